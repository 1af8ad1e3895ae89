import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { describeOnBoth } from './support/service.ts';

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
const tour = /```sh tour\n([\s\S]*?)```/.exec(readme)?.[1] ?? '';

/** The lines that promise an answer: `curl … #> "text"`. */
const promised = [...tour.matchAll(/#> (".*")$/gm)].map((match) => JSON.parse(match[1]!) as string);

describeOnBoth('the tour of the README', (service) => {
  test('every line answers what it promises, in order', async () => {
    const script = tour.replaceAll(/\s*#> (".*")$/gm, '; echo "#>"');
    const { stdout } = await promisify(execFile)('bash', ['-c', `set -euo pipefail\n${script}`], { env: { ...process.env, BASE: service.url } });
    const answers = stdout.split('#>\n').slice(0, -1);
    expect(promised.length).toBeGreaterThan(5);
    expect(answers).toHaveLength(promised.length);
    answers.forEach((answer, i) => {
      expect(answer.trim().split('\n').at(-1)).toContain(promised[i]);
    });
    expect(stdout).not.toContain('internal');
  });
});
