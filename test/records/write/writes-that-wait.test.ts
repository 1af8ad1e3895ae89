// @module-tag partitions
/**
 * A write of one statement that waits for another transaction is decided on the row as that left it,
 * and on one state of all other rows.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/database/contract.ts';
import { param, raw, type Sql, sql, text, uuid } from '../../../src/sql.ts';
import { type Caller, hasPostgres, openKind, refusal, World } from '../../support/store-world.ts';
import { until } from '../../support/until.ts';

const SCHEMA = `
roles: [admin, member]
register: { roles: [member] }
collections:
  teams:
    fields: { name: string }
    relations:
      memberships: { kind: has_many, collection: memberships, via: team }
    access: { view: true, create: true }
  memberships:
    relations:
      team: { kind: belongs_to, collection: teams, required: true, on_delete: cascade }
      user: { kind: belongs_to, collection: users, required: true, on_delete: cascade }
    access: { view: true, create: true }
  notes:
    fields: { text: string, score: int, code: { type: string, unique: true } }
    relations:
      owner: { kind: belongs_to, collection: users, default: '@request.auth.id' }
    access: { view: true, create: true, update: '@record.owner = @request.auth.id', delete: '@record.owner = @request.auth.id' }
  shelves:
    relations: { pin: { kind: has_one, collection: pins, via: shelf } }
    access: { view: true, create: true, update: true }
  pins:
    relations: { shelf: { kind: belongs_to, collection: shelves } }
    access: { view: true, create: true, update: true }
  documents:
    fields: { text: string }
    relations:
      team: { kind: belongs_to, collection: teams }
    access:
      view: true
      create: true
      update: 'any(@record.team.memberships as m, m.user = @request.auth.id)'
      delete: 'any(@record.team.memberships as m, m.user = @request.auth.id)'
`;

describe.skipIf(!hasPostgres)('a write that waits', () => {
  let db: Database;
  let ann: Caller;
  let bob: Caller;
  let note: string;
  let document: string;
  /** Ann is in both. */
  let teams: readonly [string, string];

  beforeAll(async () => {
    db = await openKind('postgres');
    const world = await World.open(db, SCHEMA);
    [ann, bob] = [await world.user('ann@example.org'), await world.user('bob@example.org')];
  });
  afterAll(() => db?.close());
  beforeEach(async () => {
    note = (await ann.create('notes', { text: 'old', score: 1 })).id;
    teams = [(await ann.create('teams', {})).id, (await ann.create('teams', {})).id];
    for (const team of teams) await ann.create('memberships', { team, user: ann.id });
    document = (await ann.create('documents', { text: 'old', team: teams[0] })).id;
  });

  /** Runs `others` in a transaction that `write` begins to wait for, and which ends in `failure` if that is given. */
  async function during(others: readonly Sql[], write: () => Promise<unknown>, failure?: Error): Promise<unknown> {
    const { promise: started, resolve: start } = Promise.withResolvers<string>();
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const other = db.transaction(async (tx) => {
      for (const statement of others) await tx.run(statement);
      const [row] = await tx.rows(raw('SELECT pg_backend_pid()'));
      start(row![0]!);
      await ended;
      if (failure !== undefined) throw failure;
    });
    const process = await started;
    const written = write().catch((error: unknown) => Promise.reject(error));
    written.catch(() => undefined);
    await untilWaitingFor(process);
    end();
    expect(await other.catch((error: unknown) => error)).toBe(failure);
    return written;
  }

  /** Other suites wait on the same server. */
  async function untilWaitingFor(process: string): Promise<void> {
    const waiting = sql`
      SELECT 1
        FROM pg_stat_activity
       WHERE wait_event_type = 'Lock' AND ${param('int8', Number(process))} = ANY(pg_blocking_pids(pid))`;
    await until('it waits', async () => (await db.rows(waiting)).length > 0);
  }

  const set = (table: 'notes' | 'documents', id: string, assignment: Sql): Sql =>
    table === 'notes'
      ? sql`UPDATE notes SET ${assignment}, _version = _version + 1 WHERE id = ${uuid(id)}`
      : sql`UPDATE documents SET ${assignment}, _version = _version + 1 WHERE id = ${uuid(id)}`;
  const leave = (team: string): Sql =>
    sql`DELETE FROM memberships WHERE team_id = ${uuid(team)} AND user_id = ${uuid(ann.id)}`;

  it('keeps what the other one changed', async () => {
    const other = [set('notes', note, sql`score = ${param('int8', 2)}`)];
    const written = await during(other, () => ann.update('notes', note, { text: 'new' }));
    expect(written).toMatchObject({ text: 'new', score: 2 });
    expect(await ann.read('notes', note)).toEqual(written);
  });

  it.each(['update', 'remove'] as const)('%s: is refused where the record was given away', async (action) => {
    const other = [set('notes', note, sql`owner_id = ${uuid(bob.id)}`)];
    const write = () => (action === 'update' ? ann.update('notes', note, { text: 'new' }) : ann.remove('notes', note));
    expect(await refusal(during(other, write))).toBe('forbidden');
    expect(await ann.read('notes', note)).toMatchObject({ text: 'old', owner: bob.id });
  });

  it.each(['update', 'remove'] as const)('%s: is refused where the record was deleted', async (action) => {
    const other = [sql`DELETE FROM notes WHERE id = ${uuid(note)}`];
    const write = () => (action === 'update' ? ann.update('notes', note, { text: 'new' }) : ann.remove('notes', note));
    expect(await refusal(during(other, write))).toBe('not_found');
  });

  it.each(['update', 'remove'] as const)('%s: has changed where If-Match named another version', async (action) => {
    const accepted = [await ann.version('notes', note)];
    const other = [set('notes', note, sql`score = ${param('int8', 2)}`)];
    const write = () =>
      action === 'update'
        ? ann.update('notes', note, { text: 'new' }, { ifVersion: accepted })
        : ann.remove('notes', note, accepted);
    expect(await refusal(during(other, write))).toBe('changed');
    expect(await ann.read('notes', note)).toMatchObject({ text: 'old', score: 2 });
  });

  // Before it, Ann was a member of the record's team; after it, she is not. She is a member of the new
  // team only as that was before it.
  it.each(['update', 'remove'] as const)('%s: does not mix two states of the database', async (action) => {
    const other = [set('documents', document, sql`team_id = ${uuid(teams[1])}`), leave(teams[1])];
    const write = () =>
      action === 'update' ? ann.update('documents', document, { text: 'new' }) : ann.remove('documents', document);
    expect(await refusal(during(other, write))).toBe('forbidden');
    expect(await ann.read('documents', document)).toMatchObject({ text: 'old', team: teams[1] });
  });

  it.each(['update', 'remove'] as const)('%s: is decided again where both states allow it', async (action) => {
    const other = [set('documents', document, sql`team_id = ${uuid(teams[1])}`), leave(teams[0])];
    const write = () =>
      action === 'update' ? ann.update('documents', document, { text: 'new' }) : ann.remove('documents', document);
    const written = await during(other, write);
    if (action === 'update') expect(written).toMatchObject({ text: 'new', team: teams[1] });
    else expect(await refusal(ann.read('documents', document))).toBe('not_found');
  });

  it.each(['update', 'create'] as const)('%s: is refused where the other one takes the value', async (action) => {
    const code = `c ${note}`;
    const other = [sql`INSERT INTO notes (id, code) VALUES (gen_random_uuid(), ${text(code)})`];
    const write = () => (action === 'create' ? ann.create('notes', { code }) : ann.update('notes', note, { code }));
    expect(await refusal(during(other, write))).toEqual({ unique_violation: ['/data/code unique_violation'] });
  });

  it.each(['update', 'create'] as const)('%s: is done where the other one gives the value up', async (action) => {
    const code = `c ${note}`;
    const other = [sql`INSERT INTO notes (id, code) VALUES (gen_random_uuid(), ${text(code)})`];
    const write = () => (action === 'create' ? ann.create('notes', { code }) : ann.update('notes', note, { code }));
    expect(await during(other, write, new Error('undone'))).toMatchObject({ code });
  });

  it('a place of a has_one that is filled meanwhile is taken', async () => {
    const [shelf, pin] = [await ann.create('shelves', {}), await ann.create('pins', {})];
    const other = [sql`INSERT INTO pins (id, shelf_id) VALUES (gen_random_uuid(), ${uuid(shelf.id)})`];
    expect(await refusal(during(other, () => ann.update('shelves', shelf.id, { pin: pin.id })))).toEqual({
      unique_violation: ['/data/pin unique_violation'],
    });
  });

  it('reports a duplicate only where the rules allow the write', async () => {
    await ann.create('notes', { code: 'taken' });
    expect(await refusal(ann.update('notes', note, { code: 'taken' }))).toEqual({
      unique_violation: ['/data/code unique_violation'],
    });
    expect(await refusal(bob.update('notes', note, { code: 'taken' }))).toBe('forbidden');
  });
});
