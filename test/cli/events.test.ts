// @module-tag long
/** `bylaw events` lists what webhooks could not deliver, and sends it again. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand } from '../../src/cli/index.ts';
import { type LentWorkspace, lentWorkspace } from '../../src/cli/support/workspace.ts';
import type { Database } from '../../src/database/contract.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { parseSchema } from '../../src/schema/load.ts';
import { startOptions } from '../../src/service/system-tables.ts';
import { raw } from '../../src/sql.ts';
import { openEmbeddedDatabase } from '../support/embedded/embedded.ts';

const env = { SECRET: `whsec_${Buffer.alloc(32, 7).toString('base64')}` };
const SCHEMA = `
collections:
  notes: { changes: true, fields: { title: string } }
webhooks:
  notes: { url: 'https://a.example', as: hook, secret_env: SECRET }
  others: { url: 'https://a.example', collection: notes, as: hook, secret_env: SECRET }
`;
const ids = ['1', '2'].map((last) => `0193a000-0000-7000-8000-00000000000${last}`);
let db: Database;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bylaw-events-'));
  await writeFile(join(folder, 'bylaw.yaml'), SCHEMA);
  db = await openEmbeddedDatabase();
  await applyMigration(db, parseSchema(SCHEMA, 'bylaw.yaml', env).schema!, startOptions());
  await db.run(
    raw(`INSERT INTO bylaw_webhook_events (id, webhook, record, type, body, attempts, error, given_up_at)
VALUES ('${ids[0]}', 'notes', 'r1', 'enter', '{"secret":1}', 12, 'the receiver answered 500', now()),
       ('${ids[1]}', 'others', 'r2', 'leave', '{}', 0, NULL, NULL)`),
  );
});
afterAll(async () => {
  await db.close();
  await rm(folder, { recursive: true, force: true });
});

async function bylaw(...args: readonly string[]) {
  const printed = { stdout: '', stderr: '' };
  const into = (stream: 'stdout' | 'stderr') => ({ write: (text: string) => (printed[stream] += text) });
  const io = { stdout: into('stdout'), stderr: into('stderr'), stdin: process.stdin, env, cwd: folder };
  const schema = parseSchema(SCHEMA, 'bylaw.yaml', env).schema!;
  const lent = { db, schema, config: { schema: join(folder, 'bylaw.yaml') } } as unknown as LentWorkspace;
  const code = await lentWorkspace.run(lent, () => runCommand(['events', ...args], io));
  return { code, ...printed };
}

test('a list shows events that wait and that were given up, without their records', async () => {
  const { code, stdout } = await bylaw('list');
  expect(code).toBe(0);
  expect(stdout).toContain(`${ids[0]} notes enter record="r1" given_up attempts=12 (the receiver answered 500)`);
  expect(stdout).toMatch(new RegExp(`${ids[1]} others leave record="r2" waiting attempts=0 next=2\\d{3}-`));
  expect(stdout).not.toContain('secret');
  const { stdout: json } = await bylaw('list', '--json', '--given-up');
  expect(JSON.parse(json)).toMatchObject({ id: ids[0], state: 'given_up', next_attempt_at: null });
  expect((await bylaw('list', '--webhook', 'others')).stdout).not.toContain(ids[0]);
});

test('an unknown webhook and an unknown id are errors', async () => {
  const webhook = await bylaw('list', '--webhook', 'other');
  expect([webhook.code, webhook.stderr]).toEqual([2, expect.stringContaining('it has notes, others')]);
  expect((await bylaw('retry', 'x')).code).toBe(2);
  expect((await bylaw('retry', '0193a000-0000-7000-8000-00000000000f')).code).toBe(1);
});

test('a retry makes an event due again, with all its attempts', async () => {
  expect((await bylaw('retry')).stdout).toBe('1 event is sent again\n');
  const { stdout } = await bylaw('list', '--json', '--webhook', 'notes');
  expect(JSON.parse(stdout)).toMatchObject({ id: ids[0], state: 'waiting', attempts: 0 });
});
