/** A command that only reads changes nothing, also on a database that this program has not seen. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, describe, expect, test } from 'vitest';
import { run } from '../support/process.ts';
import { hasPostgres, postgresUrl } from '../support/store-world.ts';

const folder = mkdtempSync(join(tmpdir(), 'bylaw-reading-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
writeFileSync(join(folder, 'bylaw.yaml'), 'collections: { notes: { fields: { title: string } } }');
writeFileSync(join(folder, 'notes.ndjson'), '{"title":"a"}\n');

const TENANT = '01900000-0000-7000-8000-000000000001';
const READING = [
  ['audit'],
  ['export', 'notes'],
  ['explain', 'notes', 'list', '--as', 'ada@example.com'],
  ['import', 'notes', 'notes.ndjson', '--dry-run'],
  ['events', 'list'],
  ['mail', 'queue'],
  ['api-key', 'list'],
  ['tenant', 'export', TENANT, 'tenant'],
].map((args) => ({ command: args.join(' '), args }));
const NOT_AT_SCHEMA = {
  code: 1,
  stdout: '',
  stderr:
    'bylaw: the database is not at the schema bylaw.yaml, and this command changes nothing: ' +
    '`bylaw migrate plan` prints the SQL that is missing, and `bylaw migrate apply` runs it\n',
};

describe('the embedded database', () => {
  const bylaw = (...args: readonly string[]) => run({ args: [...args, '--data', 'data'], cwd: folder });

  test.each(READING)('reading makes no data folder: bylaw $command', async ({ args }) => {
    expect(await bylaw(...args)).toEqual(NOT_AT_SCHEMA);
    expect(existsSync(join(folder, 'data'))).toBe(false);
  });

  test('`bylaw explain` needs no table for what the request alone decides', async () => {
    const { code, stdout } = await bylaw('explain', 'notes', 'list', '--as', 'guest');
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^denied/)]);
    expect(existsSync(join(folder, 'data'))).toBe(false);
  });

  test('`bylaw migrate plan` and `status` print what a new database needs, and make no data folder', async () => {
    expect(await bylaw('migrate', 'plan')).toMatchObject({ code: 0, stdout: expect.stringContaining('create table') });
    expect((await bylaw('migrate', 'status')).stdout).toMatch(/^\d+ statements are to be run/);
    expect(existsSync(join(folder, 'data'))).toBe(false);
  });
});

describe.runIf(hasPostgres)('PostgreSQL', () => {
  test('the tables of another program stay as they are, until a command writes', async () => {
    const url = await postgresUrl();
    const bylaw = (...args: readonly string[]) => run({ args, cwd: folder, env: { DATABASE_URL: url } });
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    const columns = async (): Promise<readonly string[]> => {
      const { rows } = await client.query(
        `SELECT table_name || '.' || column_name AS name FROM information_schema.columns
          WHERE table_schema = current_schema() ORDER BY 1`,
      );
      return rows.map(({ name }) => name);
    };
    try {
      await client.query('CREATE TABLE notes (id uuid PRIMARY KEY, title text)');
      for (const { args } of READING) expect(await bylaw(...args), args.join(' ')).toEqual(NOT_AT_SCHEMA);
      expect(await columns()).toEqual(['notes.id', 'notes.title']);

      expect(await bylaw('import', 'notes', 'notes.ndjson')).toMatchObject({ code: 0, stderr: '' });
      expect(await columns()).toContain('notes.updated_at');
      expect(await bylaw('import', 'notes', 'notes.ndjson', '--dry-run')).toMatchObject({ code: 0, stderr: '' });
      expect((await bylaw('export', 'notes')).stdout).toContain('"title":"a"');
    } finally {
      await client.end();
    }
  });
});
