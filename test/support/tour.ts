/** The tour of README.md: its own lines, run against a service that serves the sample schema. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect } from 'vitest';

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
const tour = /```sh tour\n([\s\S]*?)```/.exec(readme)?.[1] ?? '';

/** The lines that promise an answer: `curl … #> "text"`. */
const promised = [...tour.matchAll(/#> (".*")$/gm)].map((match) => JSON.parse(match[1]!) as string);

/** Every line answers what it promises, in order. */
export async function followTour(url: string, env: NodeJS.ProcessEnv = process.env): Promise<void> {
  const script = tour.replaceAll(/\s*#> (".*")$/gm, '; echo "#>"');
  const { stdout } = await promisify(execFile)('bash', ['-c', `set -euo pipefail\n${script}`], {
    env: { ...env, BASE: url },
  });
  const answers = stdout.split('#>\n').slice(0, -1);
  expect(promised.length).toBeGreaterThan(5);
  expect(answers).toHaveLength(promised.length);
  answers.forEach((answer, i) => {
    expect(answer.trim().split('\n').at(-1)).toContain(promised[i]);
  });
  expect(stdout).not.toContain('internal');
}
