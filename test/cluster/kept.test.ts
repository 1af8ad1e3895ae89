/**
 * A collection with `soft_delete`, `history` and `no_overlap` becomes divided by tenant: what it kept is still there, the
 * statements of the service keep what triggers kept before, and each request meets one shard.
 */
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import { openDatabase } from '../../src/database/open-database.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { planMigration } from '../../src/migrations/migration.ts';
import { importRecords } from '../../src/records/transfer/import-records.ts';
import { deleteTenant } from '../../src/records/transfer/tenant-delete.ts';
import { findTenant } from '../../src/records/transfer/tenant-parts.ts';
import { migrateOptions } from '../../src/service/system-tables.ts';
import { raw } from '../../src/sql.ts';
import { isolatedUrl } from '../support/postgres.ts';
import { clusterUrl, schemaFrom, TestService, type User } from '../support/service.ts';
import { logged, RemoteCommands } from './remote-commands.ts';

const DIVIDED = `
roles: [member, boss]
register: { roles: [member] }
collections:
  users:
    relations: { team: { kind: belongs_to, collection: teams } }
    access: { view: true, update: [{ roles: [boss] }] }
  teams:
    distribute: reference
    fields: { name: string }
    access: { view: true, create: true, delete: true }
  rooms:
    distribute: { by: team }
    fields: { name: string }
    relations:
      team: { kind: belongs_to, collection: teams, required: true, default: '@request.auth.team', on_delete: cascade }
    access: { view: '@record.team = @request.auth.team', create: '@record.team = @request.auth.team', delete: '@record.team = @request.auth.team' }
  visits:
    distribute: { by: team }
    soft_delete: true
    history: { keep: 400d }
    no_overlap: { on: [place], from: at, to: until }
    fields: { place: string, at: datetime, until: datetime, seen: datetime, bytes: float, done: bool }
    relations:
      team: { kind: belongs_to, collection: teams, required: true, default: '@request.auth.team', on_delete: cascade }
      room: { kind: belongs_to, collection: rooms, on_delete: cascade }
      last_room: { kind: belongs_to, collection: rooms, on_delete: set_null }
      related: { kind: many_to_many, collection: visits }
    access:
      view: '@record.team = @request.auth.team'
      create: '@record.team = @request.auth.team'
      update: '@record.team = @request.auth.team'
      delete: '@record.team = @request.auth.team'
      restore: '@record.team = @request.auth.team'
`;
const PLAIN = DIVIDED.replaceAll(/^ +distribute: .*\n/gm, '');
const kind = clusterUrl === '' ? 'postgres' : 'cluster';

interface Entry {
  readonly action: string;
  readonly changed: readonly string[];
  readonly by: string | null;
  readonly before: Readonly<Record<string, unknown>> | null;
  readonly after: Readonly<Record<string, unknown>> | null;
}

describe.skipIf(clusterUrl === '' && inject('postgresUrl') === '')(`kept records on ${kind} (distributed)`, () => {
  let service: TestService;
  let db: Database;
  let ann: User;
  let bob: User;
  let [red, early, gone]: string[] = [];
  let commands: RemoteCommands | undefined;

  const make = async (collection: string, data: object): Promise<string> => {
    const { body, status, text } = await ann.client.post(`/api/${collection}`, { data });
    if (status !== 201) throw new Error(text);
    return body.data.id;
  };
  const past = async (id: string, query = ''): Promise<readonly Entry[]> =>
    (await ann.client.get(`/api/visits/${id}/history${query}`)).body.data;
  const steps = async (id: string) => (await past(id)).map(({ action, changed }) => [action, changed]);
  const deleted = async (user = ann): Promise<readonly string[]> => {
    const { body } = await user.client.post('/api/visits/query', { deleted: true });
    return body.data.map(({ id }: { id: string }) => id);
  };

  beforeAll(async () => {
    const url = await isolatedUrl(clusterUrl === '' ? inject('postgresUrl') : clusterUrl);
    const before = new TestService(kind);
    await before.start({ schema: PLAIN, connect: () => url });
    [ann, bob] = await Promise.all([before.user('boss', 'member'), before.user()]);
    red = await make('teams', { name: 'red' });
    const blue = await make('teams', { name: 'blue' });
    await ann.client.patch(`/api/users/${ann.id}`, { data: { team: red } });
    await ann.client.patch(`/api/users/${bob.id}`, { data: { team: blue } });
    early = await make('visits', { place: 'a', at: '2026-01-01T00:00:00Z', until: '2026-01-02T00:00:00Z' });
    await ann.client.patch(`/api/visits/${early}`, { data: { done: true } });
    gone = await make('visits', { place: 'gone' });
    await ann.client.delete(`/api/visits/${gone}`);
    await before.stop();
    const moved = await openDatabase({ url });
    const schema = schemaFrom(DIVIDED);
    await applyMigration(moved, schema, { ...migrateOptions(), allowDestructive: true });
    expect((await planMigration(moved, schema, migrateOptions())).statements).toEqual([]);
    await moved.close();
    service = new TestService(kind);
    const watch = async (opened: Database): Promise<Database> => (db = opened);
    await service.start({ schema: DIVIDED, connect: () => logged(url), watch });
    const again = async (user: User): Promise<User> => {
      const { email, password } = user;
      const { body } = await service.anonymous.post('/api/auth/login', { email, password });
      return { ...user, client: service.anonymous.with({ Authorization: `Bearer ${body.access_token}` }) };
    };
    [ann, bob] = [await again(ann), await again(bob)];
    if (clusterUrl !== '') commands = await RemoteCommands.of(db);
  });
  afterAll(async () => {
    commands?.stop();
    await service?.stop();
  });

  test('records, deleted records and entries of before are still there, and so is the time that is taken', async () => {
    expect(await steps(early!)).toEqual([
      ['update', ['done']],
      ['create', expect.arrayContaining(['place', 'at'])],
    ]);
    expect(await deleted()).toEqual([gone]);
    const taken = { place: 'a', at: '2026-01-01T12:00:00Z', until: '2026-01-03T00:00:00Z' };
    const { status, body } = await ann.client.post('/api/visits', { data: taken });
    expect([status, body.errors.map(({ pointer }: { pointer: string }) => pointer)]).toEqual([
      409,
      ['/data/place', '/data/at', '/data/until'],
    ]);
    await ann.client.patch(`/api/visits/${early}`, { data: { done: false } });
    expect((await steps(early!)).map(([action]) => action)).toEqual(['update', 'update', 'create']);
    expect((await past(early!, '?limit=1')).map(({ changed }) => changed)).toEqual([['done']]);
    expect((await ann.client.post(`/api/visits/${gone}/restore`)).status).toBe(200);
    expect((await steps(gone!)).map(([action]) => action)).toEqual(['create', 'delete', 'create']);
  });

  test('an entry has what the record has, who wrote it, and nothing of a write that fails', async () => {
    const data = { place: 'b', seen: '2026-03-01T10:00:00.123Z', bytes: 0.1, done: true };
    const id = await make('visits', data);
    await ann.client.patch(`/api/visits/${id}`, { data: { place: 'b' } });
    expect((await bob.client.patch(`/api/visits/${id}`, { data: { place: 'x' } })).status).toBe(404);
    const { body } = await ann.client.get(`/api/visits/${id}`);
    const { updated_at: _, ...shown } = body.data;
    expect(await past(id)).toMatchObject([{ action: 'create', by: ann.id, before: null, after: shown }]);
    expect((await bob.client.get(`/api/visits/${id}/history`)).status).toBe(404);
    const taken = { op: 'create', collection: 'visits', data: { place: 'a', at: '2026-01-01T12:00:00Z' } };
    const renamed = { op: 'update', collection: 'visits', id, data: { place: 'c' } };
    expect((await ann.client.post('/api/batch', { operations: [renamed, taken] })).status).toBe(409);
    expect((await steps(id)).length).toBe(1);
  });

  test('a delete of what others refer to keeps the records that go with it, and records the cleared reference', async () => {
    const [room, other] = [await make('rooms', { name: 'r' }), await make('rooms', { name: 'o' })];
    const id = await make('visits', { room });
    const stays = await make('visits', { last_room: other, related: { add: [id] } });
    await ann.client.delete(`/api/rooms/${other}`);
    expect((await steps(stays))[0]).toEqual(['update', ['last_room']]);
    await ann.client.delete(`/api/rooms/${room}`);
    expect(await deleted()).toContain(id);
    expect(await deleted(bob)).toEqual([]);
    expect((await bob.client.post(`/api/visits/${id}/restore`)).status).toBe(404);
    const { status, body } = await ann.client.post(`/api/visits/${id}/restore`);
    expect([status, body.errors[0].pointer]).toEqual([422, '/data/room']);
  });

  test('writes by filter, of a batch and of a restore are entries, with the links that were there', async () => {
    const other = await make('visits', { place: 'linked' });
    const id = await make('visits', { place: 'by filter', related: { add: [other] } });
    const change = { filter: 'place = "by filter"', data: { done: true } };
    expect((await ann.client.post('/api/visits/update', change)).body.data).toEqual({ matched: 1, changed: 1 });
    await ann.client.post('/api/batch', { operations: [{ op: 'delete', collection: 'visits', id }] });
    expect((await ann.client.post(`/api/visits/${id}/restore`)).status).toBe(200);
    expect((await steps(id)).map(([action]) => action)).toEqual(['create', 'delete', 'update', 'create']);
    const { body } = await ann.client.get(`/api/visits/${id}?expand=related`);
    expect(body.data.expand.related.map((each: { id: string }) => each.id)).toEqual([other]);
    expect((await ann.client.post('/api/visits/delete', { filter: 'place = "by filter"' })).body.data.changed).toBe(1);
    expect(await deleted()).toContain(id);
  });

  test.skipIf(clusterUrl === '')('each write, and each look at what is kept, meets one shard', async () => {
    const requests: (() => Promise<unknown>)[] = [
      () => ann.client.patch(`/api/visits/${early}`, { data: { place: 'd' } }),
      () => past(early!),
      () => ann.client.delete(`/api/visits/${early}`),
      () => deleted(),
      () => ann.client.post(`/api/visits/${early}/restore`),
    ];
    for (const request of requests) {
      commands!.take();
      await request();
      expect(commands!.reached(commands!.take()).shards).toBe(1);
    }
  });

  test.skipIf(clusterUrl !== '')('an import is an entry for each record that it changes', async () => {
    const id = await make('visits', { place: 'imported' });
    const { schema } = service.app;
    await importRecords(db, {
      schema,
      collection: schema.collections.get('visits')!,
      now: '2026-01-02T03:04:05.000000Z',
      upsert: 'id',
      references: new Map(),
      records: async function* () {
        yield {
          line: 1,
          isText: false,
          members: new Map<string, unknown>([
            ['id', id],
            ['team', red],
            ['done', true],
          ]),
        };
      },
    });
    expect(await past(id)).toMatchObject([{ action: 'update', changed: ['done'], by: null }, { action: 'create' }]);
  });

  test('a tenant that is deleted leaves neither', async () => {
    const { schema } = service.app;
    const tenant = (await findTenant(db, schema, red!))!;
    await deleteTenant(db, schema, { tenant, onProgress: () => undefined });
    for (const table of ['bylaw_deleted_visits', 'bylaw_history_visits'])
      expect(await db.rows(raw(`SELECT 1 FROM ${table}`))).toEqual([]);
  });
});
