// @module-tag partitions
/** How many statements each route of records sends to PostgreSQL: docs/performance.md promises them. */
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { StatementBatch } from '../../src/database/pg-internals.ts';
import { TestService, type User } from '../support/service.ts';
import { hasPostgres } from '../support/store-world.ts';

const SCHEMA = `
roles: [admin, member]
register: { roles: [member] }
collections:
  teams:
    fields: { name: { type: string, required: true } }
    relations:
      memberships: { kind: has_many, collection: memberships, via: team }
    access: { view: true, create: true, update: true, delete: true }
  memberships:
    relations:
      team: { kind: belongs_to, collection: teams, required: true, on_delete: cascade }
      user: { kind: belongs_to, collection: users, required: true, on_delete: cascade }
    access: { view: true, create: true, delete: true }
  tags:
    fields: { name: string }
    access: { view: true, create: true }
  notes:
    fields: { text: { type: string, required: true } }
    relations:
      owner: { kind: belongs_to, collection: users, required: true, default: '@request.auth.id' }
    access: { view: '@record.owner = @request.auth.id', create: '@record.owner = @request.auth.id',
              update: '@record.owner = @request.auth.id', delete: '@record.owner = @request.auth.id' }
  documents:
    fields: { title: { type: string, required: true }, slug: { type: string, unique: true } }
    relations:
      owner: { kind: belongs_to, collection: users, required: true, default: '@request.auth.id' }
      team: { kind: belongs_to, collection: teams }
      tags: { kind: many_to_many, collection: tags }
    access:
      view: &member '@record.owner = @request.auth.id or any(@record.team.memberships as m, m.user = @request.auth.id)'
      create: *member
      update: *member
      delete: *member
`;

describe.skipIf(!hasPostgres)('statements', () => {
  const service = new TestService('postgres');
  let ann: User;
  let bob: User;
  let team: string;
  let tag: string;
  const sent: string[] = [];
  /** The connection that a text of `sent` went to. */
  const clients = new Map<string, unknown>();
  /** The texts of the last statements that were counted. */
  let counted: readonly string[] = [];
  const query = pg.Client.prototype.query as (...args: unknown[]) => unknown;

  beforeAll(async () => {
    await service.start({ schema: SCHEMA });
    [ann, bob] = [await service.user(), await service.user()];
    team = (await ann.client.post('/api/teams', { data: { name: 'x' } })).body.data.id;
    tag = (await ann.client.post('/api/tags', { data: { name: 'x' } })).body.data.id;
    await ann.client.post('/api/memberships', { data: { team, user: ann.id } });
    // The sessions of both, and the key of versions, are read once.
    for (const { client } of [ann, bob]) await client.post('/api/notes', { data: { text: 'first' } });
    vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: unknown, ...args: unknown[]) {
      const [batch] = args as [string | StatementBatch];
      const texts = typeof batch === 'string' ? [batch] : batch.statements.map(({ statement }) => statement.text);
      // A SELECT whose connection is silent, on a busy machine for as long as it waits for its turn, is sent again on another one.
      const isAgain = (text: string): boolean =>
        text.trimStart().startsWith('SELECT') && (clients.get(text) ?? this) !== this;
      sent.push(...texts.filter((text) => !isAgain(text)));
      for (const text of texts) clients.set(text, this);
      return query.apply(this, args);
    } as never);
  });
  beforeEach(({ onTestFailed }) => onTestFailed(() => console.error(counted.join('\n'))));
  afterEach(() => sent.splice(0));
  afterAll(async () => {
    vi.restoreAllMocks();
    await service.stop();
  });

  /** The first word of each, without those that look after sessions and connections from time to time. */
  const words = () => {
    clients.clear();
    counted = sent
      .splice(0)
      .filter((text) => !/"_auth_|bylaw_roles|pg_|set_config|^SET LOCAL statement_timeout|^SELECT 1$/.test(text));
    return counted.map((text) => /\w+/.exec(text)![0]);
  };
  const note = async () => (await ann.client.post('/api/notes', { data: { text: 'x' } })).body.data.id;
  const document = async (data = {}) =>
    (await ann.client.post('/api/documents', { data: { title: 'x', ...data } })).body.data.id;
  /** Returns the statements of a request, which follows some preparation. */
  const statementsOf = async <T>(before: () => Promise<T>, ask: (given: T) => Promise<{ readonly status: number }>) => {
    const given = await before();
    words();
    const { status } = await ask(given);
    return [status, ...words()];
  };
  const nothing = async () => undefined;

  test('reads', async () => {
    const { client } = ann;
    expect(await statementsOf(nothing, () => client.get('/api/notes'))).toEqual([200, 'SELECT']);
    expect(await statementsOf(note, (id) => client.get(`/api/notes/${id}`))).toEqual([200, 'SELECT']);
    expect(await statementsOf(document, (id) => client.get(`/api/documents/${id}?expand=owner,tags`))).toEqual([
      200,
      'SELECT',
      'SELECT',
      'SELECT',
    ]);
  });

  test('creates', async () => {
    const { client } = ann;
    const create = (collection: string, data: object, headers = {}) =>
      statementsOf(nothing, () => client.post(`/api/${collection}`, { data }, headers));
    expect(await create('notes', { text: 'x' })).toEqual([201, 'INSERT']);
    expect(await create('documents', { title: 'x' })).toEqual([201, 'INSERT']);
    expect(await create('documents', { title: 'x', team })).toEqual([201, 'INSERT']);
    expect(await create('memberships', { team, user: ann.id })).toEqual([201, 'INSERT']);
    const linked = await create('documents', { title: 'x', tags: { set: [tag] } });
    expect(linked).toEqual([201, 'SELECT', 'BEGIN', 'INSERT', 'INSERT', 'SELECT', 'COMMIT']);
    expect(await create('notes', { text: 'x' }, { 'Idempotency-Key': 'k' })).toEqual([
      201,
      'BEGIN',
      'INSERT',
      'WITH',
      'COMMIT',
    ]);
    // Again: the record, and that it is there already; then whether its caller may still read it.
    expect(await create('notes', { text: 'x' }, { 'Idempotency-Key': 'k' })).toEqual([
      201,
      'BEGIN',
      'INSERT',
      'WITH',
      'SELECT',
      'ROLLBACK',
      'SELECT',
    ]);
  });

  test('updates and deletes', async () => {
    const { client } = ann;
    const patched = { data: { text: 'y' } };
    expect(await statementsOf(note, (id) => client.patch(`/api/notes/${id}`, patched))).toEqual([200, 'UPDATE']);
    expect(
      await statementsOf(document, (id) => client.patch(`/api/documents/${id}`, { data: { title: 'y', team } })),
    ).toEqual([200, 'UPDATE']);
    const read = async () => {
      const id = await note();
      return { id, tag: (await client.get(`/api/notes/${id}`)).headers.get('etag')! };
    };
    expect(
      await statementsOf(read, ({ id, tag: etag }) => client.patch(`/api/notes/${id}`, patched, { 'If-Match': etag })),
    ).toEqual([200, 'SELECT', 'UPDATE']);
    expect(await statementsOf(note, (id) => client.patch(`/api/notes/${id}?expand=owner`, patched))).toEqual([
      200,
      'BEGIN',
      'UPDATE',
      'SELECT',
      'COMMIT',
    ]);
    expect(await statementsOf(note, (id) => client.delete(`/api/notes/${id}`))).toEqual([204, 'DELETE']);
    expect(await statementsOf(document, (id) => client.delete(`/api/documents/${id}`))).toEqual([204, 'DELETE']);
  });

  test('a value that is taken', async () => {
    const { client } = ann;
    await client.post('/api/documents', { data: { title: 'x', slug: 'taken' } });
    const data = { slug: 'taken' };
    expect(await statementsOf(nothing, () => client.post('/api/documents', { data: { title: 'x', ...data } }))).toEqual(
      [409, 'INSERT'],
    );
    expect(await statementsOf(document, (id) => client.patch(`/api/documents/${id}`, { data }))).toEqual([
      409,
      'UPDATE',
    ]);
    const linked = await statementsOf(document, (id) =>
      client.patch(`/api/documents/${id}`, { data: { slug: 'free', tags: { set: [tag] } } }),
    );
    expect(linked.slice(0, 8)).toEqual([200, 'BEGIN', 'SELECT', 'SELECT', 'SELECT', 'SELECT', 'UPDATE', 'INSERT']);
    expect(linked).not.toContain('SET');
  });

  test('a refused write takes a transaction that finds the reason', async () => {
    const { client } = bob;
    const refused = await statementsOf(note, (id) => client.patch(`/api/notes/${id}`, { data: { text: 'y' } }));
    expect(refused).toEqual([404, 'UPDATE', 'BEGIN', 'SELECT', 'SELECT', 'ROLLBACK']);
    expect(await statementsOf(note, (id) => client.delete(`/api/notes/${id}`))).toEqual([
      404,
      'DELETE',
      'BEGIN',
      'SELECT',
      'SELECT',
      'ROLLBACK',
    ]);
    expect(
      await statementsOf(nothing, () => client.post('/api/documents', { data: { title: 'x', owner: ann.id } })),
    ).toEqual([422, 'INSERT', 'SELECT']);
  });
});
