import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { decide } from '../src/policy/access.ts';
import { loadSchema } from '../src/schema/load-file.ts';
import { describeOnBoth } from './support/service.ts';

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
const tour = /```sh tour\n([\s\S]*?)```/.exec(readme)?.[1] ?? '';

/** The lines that promise an answer: `curl … #> "text"`. */
const promised = [...tour.matchAll(/#> (".*")$/gm)].map((match) => JSON.parse(match[1]!) as string);

test('the SQL that it shows is what the sample becomes', () => {
  const { schema } = loadSchema({ file: fileURLToPath(new URL('../bylaw.yaml', import.meta.url)), env: {} });
  const id = '01900000-0000-7000-8000-000000000001';
  const request = { auth: { id, roles: ['member'] }, query: {}, now: '2026-01-01T00:00:00.000000Z' };
  const where = decide({ rules: schema!.collections.get('documents')!.access.list, request }).where('t');
  expect(`(${/```sql\n(.*)\n```/.exec(readme)?.[1]})`).toBe(where.text);
  expect(where.values).toEqual([id, id]);
});

describeOnBoth('the tour of the README', (service) => {
  test('every line answers what it promises, in order', async () => {
    const script = tour.replaceAll(/\s*#> (".*")$/gm, '; echo "#>"');
    const { stdout } = await promisify(execFile)('bash', ['-c', `set -euo pipefail\n${script}`], {
      env: { ...process.env, BASE: service.url },
    });
    const answers = stdout.split('#>\n').slice(0, -1);
    expect(promised.length).toBeGreaterThan(5);
    expect(answers).toHaveLength(promised.length);
    answers.forEach((answer, i) => {
      expect(answer.trim().split('\n').at(-1)).toContain(promised[i]);
    });
    expect(stdout).not.toContain('internal');
  });
});

test('it is short', () => {
  expect(readme.split('\n').length).toBeLessThanOrEqual(121);
});
