/** L7: the service runs with the rights that docs/operations.md gives it, and they hold. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { rotateKeys } from '../../../src/auth/keys/key-rotation.ts';
import { readConfig } from '../../../src/config.ts';
import type { Database } from '../../../src/database/contract.ts';
import { openDatabase } from '../../../src/database/open-database.ts';
import { openLog } from '../../../src/http/observe/log.ts';
import { applyMigration } from '../../../src/migrations/apply-migration.ts';
import { type Service, startService } from '../../../src/service/start-service.ts';
import { systemTables } from '../../../src/service/system-tables.ts';
import { ident, raw } from '../../../src/sql.ts';
import { Client } from '../../support/client.ts';
import { isolatedUrl } from '../../support/postgres.ts';
import { cheapPasswords, schemaFrom } from '../../support/service.ts';
import { newPerson, SCHEMA } from '../people.ts';

const PASSWORD = 'change me';
const page = readFileSync(join(import.meta.dirname, '../../../docs/operations.md'), 'utf8');
const statements = /## Database roles[\s\S]*?```sql\n([\s\S]*?)```/.exec(page)![1]!;

describe.skipIf(inject('postgresUrl') === '')('L7: a role of the service', () => {
  const role = `bylaw_service_${process.pid}_${Date.now()}`;
  const schema = schemaFrom(SCHEMA);
  let owner: Database;
  let db: Database;
  let service: Service;

  beforeAll(async () => {
    const url = await isolatedUrl(inject('postgresUrl'));
    owner = await openDatabase({ url });
    await applyMigration(owner, schema, { systemTables });
    const name = /search_path=(\w+)/.exec(decodeURIComponent(url))![1]!;
    const own = statements.replaceAll('bylaw_service', role).replaceAll('SCHEMA public', `SCHEMA ${name}`);
    for (const statement of own.replaceAll(/^--.*$/gm, '').split(';')) {
      if (statement.trim() !== '') await owner.run(raw(statement));
    }
    const as = `//${role}:${encodeURIComponent(PASSWORD)}@`;
    db = await openDatabase({ url: url.replace(/\/\/[^/@?]*@/, as) });
    service = await startService({
      config: readConfig({ port: '0' }, { BYLAW_RATE_LIMIT: 'off' }),
      schema,
      db,
      log: openLog('error'),
      passwords: cheapPasswords(),
    });
  });
  afterAll(async () => {
    await service?.stop();
    await owner?.run(raw(`DROP OWNED BY ${ident(role).text}`));
    await owner?.run(raw(`DROP ROLE ${ident(role).text}`));
    await owner?.close();
  });

  test('the role serves accounts, sessions and records', async () => {
    const person = await newPerson(new Client(service.url));
    expect((await person.client.get('/api/auth/me')).body.user.email).toBe(person.email);
    const made = await person.client.post('/api/notes', { data: { text: 'mine' } });
    expect(made.status).toBe(201);
    expect((await person.client.patch(`/api/users/${person.id}`, { data: { nick: 'x' } })).status).toBe(200);
    expect((await person.client.post('/api/auth/logout')).status).toBe(204);
    await rotateKeys(owner, { keySecret: undefined, tokenLifetime: 900, now: true });
    await newPerson(new Client(service.url));
  });

  test.each([
    ['rewrite the audit trail', `UPDATE "_auth_audit" SET event = 'login'`],
    ['shorten the audit trail', 'DELETE FROM "_auth_audit"'],
    ['delete signing keys', `DELETE FROM "_auth_keys"`],
    ['add a column', 'ALTER TABLE "users" ADD COLUMN x int'],
    ['make a table', 'CREATE TABLE mine (id int)'],
    ['make a function', `CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'`],
  ])('the role cannot %s', async (_, statement) => {
    await expect(db.run(raw(statement))).rejects.toThrow(/permission denied|must be owner/);
  });
});
