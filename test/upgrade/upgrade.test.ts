// @module-tag long
/**
 * The data of earlier versions under this one: records, sessions, keys, files and audit. `npm run fixture -- TAG` makes the data of a version.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import { openDatabase } from '../../src/database/open-database.ts';
import type { Service } from '../../src/service/start-service.ts';
import { raw } from '../../src/sql.ts';
import { Client } from '../support/client.ts';
import { fillDataFolder } from '../support/embedded/embedded.ts';
import { isolatedUrl } from '../support/postgres.ts';
import { startServiceOn } from '../support/service.ts';
import { FILLED_ADMIN, FILLED_ENV, FILLED_SCHEMA, type Filled } from './filling.ts';

const FIXTURES = join(import.meta.dirname, 'fixtures');

interface Fixture extends Filled {
  readonly made: string;
  /** Contents by their place in the data folder. */
  readonly stored: Readonly<Record<string, string>>;
}

/** Time passes for sessions and keys, but not for records. */
const AGED = `
DO $$
DECLARE
  aged record;
BEGIN
  FOR aged IN
    SELECT table_name, column_name
      FROM information_schema.columns
     WHERE table_schema = current_schema()
       AND data_type = 'timestamp with time zone'
       AND (starts_with(table_name, '_') OR starts_with(table_name, 'bylaw_'))
  LOOP
    EXECUTE format('UPDATE %I SET %2$I = %2$I + (now() - %3$L)', aged.table_name, aged.column_name, 'MADE');
  END LOOP;
END $$`;

describe.each(readdirSync(FIXTURES))('the data of %s', (version) => {
  const fixture = JSON.parse(readFileSync(join(FIXTURES, version, 'expected.json'), 'utf8')) as Fixture;
  const statements = readFileSync(join(FIXTURES, version, 'database.sql'), 'utf8').split(/;\n/);

  describe.each(inject('postgresUrl') === '' ? ['embedded'] : ['embedded', 'postgres'])('%s', (kind) => {
    let folder: string;
    let service: Service;
    let client: Client;
    let audited: number;
    const open = async (): Promise<Database> => {
      if (kind === 'postgres') return openDatabase({ url: await isolatedUrl(inject('postgresUrl')), pipelines: 1 });
      await fillDataFolder(folder);
      return openDatabase({ dataDir: folder });
    };
    const auditEntries = async (db: Database): Promise<number> =>
      Number((await db.rows(raw('SELECT count(*) FROM "_auth_audit"')))[0]![0]);

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'bylaw-upgrade-'));
      for (const [place, content] of Object.entries(fixture.stored)) {
        mkdirSync(dirname(join(folder, place)), { recursive: true });
        writeFileSync(join(folder, place), content);
      }
      const db = await open();
      await db.transaction(async (tx) => {
        for (const statement of statements) if (statement.trim() !== '') await tx.run(raw(statement));
        await tx.run(raw(AGED.replace('MADE', fixture.made)));
      });
      audited = await auditEntries(db);
      service = await startServiceOn(db, FILLED_SCHEMA, { ...FILLED_ENV, BYLAW_DATA: folder });
      const { body } = await new Client(service.url).post('/api/auth/login', fixture.user);
      client = new Client(service.url, { Authorization: `Bearer ${body.access_token}` });
    });
    afterAll(async () => {
      await service?.stop();
      await rm(folder, { recursive: true, force: true });
    });

    test('records are the same, and can be changed', async () => {
      for (const [path, text] of Object.entries(fixture.lists)) expect((await client.get(path)).text).toBe(text);
      const [note] = (await client.get('/api/notes')).body.data;
      expect((await client.patch(`/api/notes/${note.id}`, { data: { code: 'c1' } })).status).toBe(409);
      expect((await client.patch(`/api/notes/${note.id}`, { data: { n: 77 } })).body.data).toMatchObject({ n: 77 });
      await client.patch(`/api/notes/${note.id}`, { data: { n: note.n } });
    });

    test('sessions go on, and passwords are the same', async () => {
      const anonymous = new Client(service.url);
      const byCookie = await anonymous.get('/api/auth/me', { Cookie: fixture.cookie });
      expect([byCookie.status, byCookie.body.user?.email]).toEqual([200, fixture.user.email]);
      const refreshed = await anonymous.post('/api/auth/token/refresh', { refresh_token: fixture.refreshToken });
      expect([refreshed.status, typeof refreshed.body.access_token]).toEqual([200, 'string']);
      expect((await anonymous.post('/api/auth/login', FILLED_ADMIN)).status).toBe(200);
    });

    test('an Idempotency-Key still writes once', async () => {
      const { path, key, body, answer } = fixture.kept;
      const ask = (changed = body) => client.post(path, changed, { 'Idempotency-Key': key });
      const count = async () => (await client.get(path, { Prefer: 'count=exact' })).body.page.total;
      const before = await count();
      const repeated = await Promise.all([ask(), ask()]);
      expect(repeated.map(({ status, text }) => [status, text])).toEqual([1, 2].map(() => [201, answer]));
      expect(repeated[0]!.headers.get('location')).toBe(`${path}/${JSON.parse(answer).data.id}`);
      expect((await ask({ data: { title: 'another' } })).body.code).toBe('idempotency_mismatch');
      expect(await count()).toBe(before);
    });

    test('files have their bytes, and new ones are stored', async () => {
      for (const [id, content] of Object.entries(fixture.files))
        expect((await client.get(`/api/files/${id}/content`)).text).toBe(content);
      await service.app.files.sweep(0);
      for (const [id, content] of Object.entries(fixture.files))
        expect((await client.get(`/api/files/${id}/content`)).text).toBe(content);
    });

    test('the audit keeps its entries, and goes on', async () => {
      const before = await auditEntries(service.app.db);
      expect(before).toBeGreaterThan(audited);
      await new Client(service.url).post('/api/auth/login', { ...fixture.user, password: 'a wrong password' });
      expect(await auditEntries(service.app.db)).toBe(before + 1);
    });
  });
});
