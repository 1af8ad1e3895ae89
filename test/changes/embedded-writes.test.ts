// @module-tag long
/** The embedded engine: a service that writes nothing asks its change log nothing, and no write waits for a look by the clock. */
import { describe, expect, test } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import { importRecords } from '../../src/records/transfer/import-records.ts';
import { type Sql, sql } from '../../src/sql.ts';
import { type TestService, withService } from '../support/service.ts';
import { FeedClient } from './feed-client.ts';

const SCHEMA = `
roles: [member, admin]
register: { roles: [member] }
collections:
  users: { changes: true, fields: { name: string }, access: { view: true, update: true } }
  teams: { fields: { name: string }, access: { view: true, create: true, delete: true } }
  notes:
    changes: true
    fields: { title: string }
    relations: { team: { kind: belongs_to, collection: teams, on_delete: cascade } }
    access: { view: true, create: true, update: true, delete: true }
`;

describe('writes to the embedded engine', () => {
  const sent: string[] = [];
  const counted = async (db: Database): Promise<Database> => {
    const noted = (statement: Sql): Sql => {
      sent.push(statement.text);
      return statement;
    };
    return {
      ...db,
      rows: (statement, options) => db.rows(noted(statement), options),
      run: (statement) => db.run(noted(statement)),
      write: (statement, target) => db.write(noted(statement), target),
      transaction: (work, options) => {
        sent.push('BEGIN');
        return db.transaction(work, options);
      },
    };
  };
  withService(
    'embedded',
    (service: TestService) => {
      test('wake the streams, whoever writes; without one, the log is not read', async () => {
        const { client } = await service.user('admin');
        const feed = new FeedClient(client, '/api/changes', {
          body: { feeds: { notes: { collection: 'notes' }, users: { collection: 'users' } } },
        });
        await feed.until('ready');
        await feed.until('ready');
        const heard = async (type: string) => (await feed.until(type)).map(([each]) => each);
        await feed.rest(100);
        sent.length = 0;
        expect(await feed.rest(1_300)).toEqual([]);
        // The state of a session is remembered for less than a second.
        expect(sent.filter((text) => !text.includes('FROM "_auth_sessions"'))).toEqual([]);

        const { db, schema, auth } = service.app;
        // A route, and its cascade.
        const team = (await client.post('/api/teams', { data: { name: 't' } })).body.data.id;
        await client.post('/api/notes', { data: { title: 'a', team } });
        expect(await heard('enter')).toEqual(['enter']);
        await client.delete(`/api/teams/${team}`);
        expect(await heard('leave')).toEqual(['leave']);
        // A batch.
        const operations = [{ op: 'create', collection: 'notes', data: { title: 'b' } }];
        await client.post('/api/batch', { operations });
        expect(await heard('enter')).toEqual(['enter']);
        // Accounts.
        const registered = { email: 'new@example.org', password: 'a password of tests' };
        const answer = await service.anonymous.post('/api/auth/register', registered);
        expect([answer.status, await heard('enter')]).toEqual([answer.status, ['enter']]);
        // A command in this process, which no request began.
        const { id } = await auth.admin.addUser({ ...registered, email: 'other@example.org', roles: ['member'] });
        expect(await heard('enter')).toEqual(['enter']);
        await db.run(sql`UPDATE users SET name = 'b' WHERE email = 'other@example.org'`);
        expect(await heard('change')).toEqual(['change']);
        await client.delete(`/api/users/${id}`);
        // An import.
        await importRecords(db, {
          schema,
          collection: schema.collections.get('notes')!,
          now: '2026-11-27T00:00:00.000000Z',
          records: async function* () {
            yield { line: 1, isText: false, members: new Map([['title', 'n']]) };
          },
        });
        expect(await heard('reset')).toEqual(['reset']);
        feed.close();
      });
    },
    { schema: SCHEMA, watch: counted },
  );
});
