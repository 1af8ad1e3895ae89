// @module-tag long
/** S11: names of prepared statements cannot run out, and what a connection keeps is bounded. */
import { afterEach, describe, expect, it } from 'vitest';
import type { Database, Queryable, Reader } from '../../src/database/contract.ts';
import { openDatabase } from '../../src/database/open-database.ts';
import { param, raw, type Sql, sql } from '../../src/sql.ts';
import { emptySnapshot } from '../support/embedded/embedded.ts';
import { KINDS, type Kind, openKind, postgresUrl, World } from '../support/store-world.ts';

const MOST = 8;
const opened: Database[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((db) => db.close()));
});

/** A single connection for quick reads, and on PostgreSQL another for transactions. */
async function open(kind: Kind, preparedStatements = MOST): Promise<Database> {
  const own =
    kind === 'embedded' ? { snapshot: await emptySnapshot() } : { url: await postgresUrl(), pipelines: 1, poolSize: 1 };
  const db = await openDatabase({ ...own, preparedStatements });
  opened.push(db);
  return db;
}

/** A statement with a unique text. */
const shape = (i: number, value: number): Sql => sql`SELECT ${param('int8', value)} + ${raw(String(i))}`;
/**
 * The answers of the one connection for transactions. Reads of a busy machine may go to a connection of another lane,
 * because a statement that is not quick leaves the pipeline.
 */
const onOne = (db: Database, statements: readonly Sql[]): Promise<readonly string[]> =>
  db.transaction(async (tx) => {
    const answers = await Promise.all(statements.map((statement) => tx.rows(statement)));
    return answers.map(([row]) => row![0]!);
  });
/** As the connection itself reports. */
async function prepared(q: Queryable): Promise<readonly string[]> {
  const rows = await q.rows(raw(`SELECT statement FROM pg_prepared_statements WHERE statement LIKE 'SELECT $1%'`));
  return rows.map(([statement]) => statement!);
}

describe.each(KINDS)('S11 on %s', (kind) => {
  it('a connection keeps the statements used last, closes others, and answers all correctly', async () => {
    const db = await open(kind);
    for (let round = 0; round < 3; round++) {
      const answers = await onOne(
        db,
        Array.from({ length: 40 }, (_, i) => shape(i, 1_000)),
      );
      expect(answers).toEqual(Array.from({ length: 40 }, (_, i) => String(1_000 + i)));
    }
    const kept = await db.transaction(prepared);
    expect(kept.length).toBeLessThanOrEqual(MOST);
    expect(kept).toContain(shape(39, 0).text);
  });

  it('a connection keeps fewer long texts', async () => {
    const db = await open(kind);
    const padded = (i: number, units: number): Sql =>
      sql`SELECT ${param('int8', 1)} + ${raw(`${i} /* ${'x'.repeat(units)} */`)}`;
    const twice = async (statements: readonly Sql[]): Promise<readonly string[]> => {
      for (let round = 0; round < 2; round++) await onOne(db, statements);
      return db.transaction(prepared);
    };
    const long = Array.from({ length: 6 }, (_, i) => padded(i, 30_000));
    const two = await twice(long);
    expect(two).toContain(long.at(-1)!.text);
    expect(two.length).toBeLessThanOrEqual(2);
    const longest = padded(6, 100_000);
    expect(await twice([longest])).not.toContain(long.at(-1)!.text);
    // BEGIN, COMMIT and the look at them are prepared, too.
    const short = Array.from({ length: MOST - 4 }, (_, i) => shape(i, 1_000));
    const kept = await twice(short);
    expect(kept).toEqual(expect.arrayContaining(short.map(({ text }) => text)));
    expect(kept.length).toBeLessThanOrEqual(MOST);
  });

  it('a connection names new statements after any number of shapes', async () => {
    const db = await open(kind);
    const shapes = Array.from({ length: 1_050 }, (_, i) => shape(i, 0));
    for (let at = 0; at < 2 * shapes.length; at += 50)
      await onOne(
        db,
        Array.from({ length: 50 }, (_, i) => shapes[(at + i) % shapes.length]!),
      );
    for (let round = 0; round < 2; round++) await onOne(db, [shape(9_999, 0)]);
    const kept = await db.transaction(prepared);
    expect(kept).toContain(shape(9_999, 0).text);
    expect(kept.length).toBeLessThanOrEqual(MOST);
  });

  it('a connection names statements in transactions, after errors too', async () => {
    const db = await open(kind);
    const divide = (i: number, by: number): Sql =>
      sql`SELECT ${param('int8', 10)} / ${param('int8', by)} + ${raw(String(i))}`;
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 20; i++) {
        const work = (by: number) => db.transaction(async (tx) => (await tx.rows(divide(i, by)))[0]![0]);
        await expect(work(0)).rejects.toMatchObject({ code: '22012' });
        // Goes on after an error within one transaction, so that a statement is asked first where
        // nothing can be.
        await expect(
          db.transaction(async (tx) => {
            await tx.rows(divide(i, 0)).catch(() => undefined);
            await tx.rows(shape(1_000 + i, 1));
          }),
        ).rejects.toMatchObject({ code: '25P02' });
        expect(await work(5)).toBe(String(2 + i));
        expect((await db.transaction((tx) => tx.rows(shape(1_000 + i, 1))))[0]![0]).toBe(String(1_001 + i));
      }
    }
    expect((await db.transaction(prepared)).length).toBeLessThanOrEqual(MOST);
  });

  it('a connection mixes errors and evictions in flight, and each statement gets its own answer', async () => {
    const db = await open(kind, 3);
    let seed = 7;
    const random = (below: number): number => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed % below;
    };
    const asked = Array.from({ length: 600 }, () => ({ i: random(12), by: random(5) }));
    const answers = await Promise.all(
      asked.map(({ i, by }) =>
        db.rows(sql`SELECT ${param('int8', 60)} / ${param('int8', by)} + ${raw(String(i))}`).then(
          ([row]) => Number(row![0]),
          ({ code }) => code,
        ),
      ),
    );
    expect(answers).toEqual(asked.map(({ i, by }) => (by === 0 ? '22012' : 60 / by + i)));
  });

  it('the printer prints one text for any order of filters and of fields', async () => {
    const texts = new Set<string>();
    const db = await openKind(kind);
    opened.push(db);
    const watched = watching(db, ({ text }) => texts.add(text));
    const world = await World.open(
      watched,
      `
roles: { admin: {}, member: {} }
register: { roles: [member] }
collections:
  notes:
    fields: { a: int, b: string, c: bool }
    relations: { owner: { kind: belongs_to, collection: users, default: '@request.auth.id' } }
    access: { list: true, read: true, create: true, update: true }
`,
    );
    const ann = await world.user('ann@example.org');
    const { fields, relations } = world.schema.collections.get('notes')!;
    const filters = [
      { kind: 'field', field: fields.get('a')!, value: 1 },
      { kind: 'field', field: fields.get('b')!, value: 'x' },
      { kind: 'field', field: fields.get('c')!, value: true },
      { kind: 'belongs_to', relation: relations.get('owner'), value: ann.id },
    ] as never[];
    const { id } = await ann.create('notes', {});
    const count = async (work: (order: readonly number[]) => Promise<unknown>): Promise<number> => {
      texts.clear();
      for (const order of ORDERS) await work(order);
      return [...texts].filter((text) => /notes/.test(text)).length;
    };
    const body = (order: readonly number[]) =>
      Object.fromEntries(order.slice(0, 3).map((i) => [['a', 'b', 'c', 'owner'][i]!, [1, 'x', true, ann.id][i]!]));
    expect(await count((order) => ann.list('notes', { exact: order.map((i) => filters[i]!) }))).toBe(1);
    const bodies = new Set(ORDERS.map((order) => Object.keys(body(order)).sort().join())).size;
    const before = await count(() => ann.update('notes', id, { a: 1 }));
    expect(await count((order) => ann.update('notes', id, body(order)))).toBe(before - 1 + bodies);
  });
});

const ORDERS: readonly (readonly number[])[] = [0, 1, 2, 3].flatMap((a) =>
  [0, 1, 2, 3].flatMap((b) =>
    [0, 1, 2, 3].flatMap((c) => [0, 1, 2, 3].flatMap((d) => (new Set([a, b, c, d]).size === 4 ? [[a, b, c, d]] : []))),
  ),
);

/** The database, with every statement shown first. */
function watching(db: Database, see: (statement: Sql) => void): Database {
  const seen = (statement: Sql): Sql => {
    see(statement);
    return statement;
  };
  const over = (q: Queryable): Queryable => ({
    rows: (statement) => q.rows(seen(statement)),
    run: (statement) => q.run(seen(statement)),
  });
  const reading = (reader: Reader): Reader => ({
    rows: (statement, options) => reader.rows(seen(statement), options),
    run: (statement) => reader.run(seen(statement)),
  });
  return {
    ...reading(db),
    kind: db.kind,
    replicaFor: (callerId) => reading(db.replicaFor(callerId)),
    noteWrite: (callerId) => db.noteWrite(callerId),
    write: (statement, target) => db.write(seen(statement), target),
    transaction: (work, options) => db.transaction((tx) => work({ ...over(tx), inTransaction: true }), options),
    listen: db.listen,
    notify: db.notify,
    ping: db.ping,
    close: db.close,
  };
}
