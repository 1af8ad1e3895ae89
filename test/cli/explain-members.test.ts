/** The output of `bylaw explain` for fields with rules of their own. */
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { runCommand } from '../../src/cli/index.ts';
import { isolatedUrl } from '../support/postgres.ts';

const SERVER = inject('postgresUrl');
const SCHEMA = join(import.meta.dirname, '../routes/field-rules.yaml');

/** The part of the output about members, without a caller. */
async function explained(collection: string, action: string): Promise<readonly string[]> {
  let printed = '';
  const stdout = { write: (text: string) => (printed += text) };
  const io = { stdout, stderr: process.stderr, stdin: process.stdin, env: {}, cwd: import.meta.dirname };
  const where = ['--schema', SCHEMA, '--database-url', await isolatedUrl(SERVER)];
  expect(await runCommand(['explain', collection, action, ...where], io)).toBe(0);
  const lines = printed.trimEnd().split('\n');
  const at = lines.indexOf('fields with rules of their own:');
  return at < 0 ? [] : lines.slice(at + 1);
}

test.skipIf(SERVER === '')('`explain` shows which fields a caller sees', async () => {
  expect(await explained('users', 'read')).toEqual([
    '  clearance: left out  (@request.auth.roles contains "hr")',
    '  badge: left out  (@record.id = @request.auth.id)',
    '  grade: left out  (no rule, so nobody)',
    '  boss: it depends on the record  (any(@record.leads as l, l.open))',
  ]);
});

test.skipIf(SERVER === '')('`explain` shows which fields a caller may set, but not for a delete', async () => {
  expect(await explained('people', 'create')).toEqual([
    '  salary: may not be set (403)  (@request.auth.roles contains "hr")',
    expect.stringMatching(/^ {2}code: may not be set \(403\) {2}\(@record\.code is null and /),
    '  score: it depends on the record  (@next.score >= @record.score)',
    '  token: may not be set (403)  (no rule, so nobody)',
    expect.stringMatching(/^ {2}team: it depends on the record/),
  ]);
  expect(await explained('leads', 'delete')).toEqual([]);
});
