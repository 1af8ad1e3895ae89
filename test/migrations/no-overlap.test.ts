// @module-tag long
/** The constraints of `no_overlap`: made, changed, dropped, and refused where rows overlap. */
import { afterEach, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { MigrationRefused, planMigration } from '../../src/migrations/migration.ts';
import type { Schema } from '../../src/schema/model/model.ts';
import { raw } from '../../src/sql.ts';
import { KINDS, openKind, schemaOf } from '../support/store-world.ts';

const bookings = (more: string, fields = 'cancelled: { type: bool, required: true, default: false }'): Schema =>
  schemaOf(`
collections:
  bookings:
    ${more}
    fields: { room: int, at: date, until: date, ${fields} }
`);
const PLAIN = bookings('');
const APART = bookings('no_overlap: { on: [room], from: at, to: until }');
const LIVE = bookings(`no_overlap: { on: [room], from: at, to: until, where: '@record.cancelled = false' }`);
const insert = (room: number, at: string, until: string) =>
  raw(
    `INSERT INTO bookings (id, room, at, until) VALUES (gen_random_uuid(), ${room}, '2026-11-${at}', '2026-11-${until}')`,
  );

let db: Database;
afterEach(() => db?.close());

const constraints = async (): Promise<readonly (string | null)[]> => {
  const rows = await db.rows(
    raw(
      `SELECT regexp_replace(conname, '[0-9a-f]{8}', '…') FROM pg_constraint WHERE conrelid = 'bookings'::regclass AND contype = 'x'`,
    ),
  );
  return rows.map(([name]) => name!);
};
const definition = async (): Promise<string> =>
  (
    await db.rows(
      raw(
        `SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'bookings'::regclass AND contype = 'x'`,
      ),
    )
  )[0]![0]!;

describe.each(KINDS)('no_overlap on %s', (kind) => {
  async function open(schema: Schema): Promise<void> {
    db = await openKind(kind);
    await applyMigration(db, schema);
  }

  it('the constraint is made, changed and dropped, and holds rows apart', async () => {
    await open(PLAIN);
    await db.run(insert(1, '01', '05'));
    await applyMigration(db, APART);
    expect(await constraints()).toEqual(['bookings_at_…_apart']);
    expect(await definition()).not.toContain('cancelled');
    expect((await planMigration(db, APART)).statements).toEqual([]);
    await expect(db.run(insert(1, '04', '06'))).rejects.toMatchObject({ kind: 'exclusion' });
    await applyMigration(db, LIVE);
    expect(await constraints()).toHaveLength(1);
    expect(await definition()).toContain('NOT cancelled');
    await db.run(raw('UPDATE bookings SET cancelled = true'));
    await db.run(insert(1, '04', '06'));
    await applyMigration(db, PLAIN);
    expect(await constraints()).toEqual([]);
  });

  it('each of several places has a constraint, which is made and dropped alone', async () => {
    const places = (...on: readonly string[]): Schema =>
      bookings(`no_overlap: [${on.map((name) => `{ on: [${name}], from: at, to: until }`).join(', ')}]`, 'desk: int');
    await open(places('room'));
    const [first] = await constraints();
    await applyMigration(db, places('room', 'desk'));
    expect(await constraints()).toHaveLength(2);
    expect((await planMigration(db, places('desk', 'room'))).statements).toEqual([]);
    await db.run(insert(1, '01', '05'));
    await db.run(raw('UPDATE bookings SET desk = 1'));
    await db.run(insert(2, '01', '05'));
    await expect(db.run(raw('UPDATE bookings SET desk = 1'))).rejects.toMatchObject({ kind: 'exclusion' });
    await applyMigration(db, places('room'), { keepsExtra: true });
    expect(await constraints()).toHaveLength(2);
    await applyMigration(db, places('room'));
    expect(await constraints()).toEqual([first]);
  });

  it('the constraint follows a renamed collection', async () => {
    const visits = schemaOf(`
collections:
  visits:
    was: bookings
    no_overlap: { on: [room], from: at, to: until }
    fields: { room: int, at: date, until: date, cancelled: { type: bool, required: true, default: false } }
`);
    await open(APART);
    await db.run(insert(1, '01', '05'));
    await applyMigration(db, visits);
    const names = await db.rows(
      raw(
        `SELECT conname ~ '^visits_at_.*_apart$' FROM pg_constraint WHERE conrelid = 'visits'::regclass AND contype = 'x'`,
      ),
    );
    expect(names).toEqual([['t']]);
    await expect(
      db.run(raw(`INSERT INTO visits (id, room, at, until) VALUES (gen_random_uuid(), 1, '2026-11-04', '2026-11-06')`)),
    ).rejects.toMatchObject({ kind: 'exclusion' });
    expect((await planMigration(db, visits)).statements).toEqual([]);
  });

  it('the migration is refused while rows overlap, with the query that finds them', async () => {
    await open(PLAIN);
    for (const [at, until] of [
      ['01', '05'],
      ['05', '09'],
      ['08', '10'],
    ] as const)
      await db.run(insert(1, at, until));
    const error = await applyMigration(db, APART, { allowDestructive: true }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(MigrationRefused);
    const { message } = error as Error;
    expect(message).toContain(
      'rows of "bookings" overlap in "at" and "until" at one "room"; change them first; SELECT a.id, b.id FROM',
    );
    expect(await db.rows(raw(/change them first; (SELECT .*) finds them/.exec(message)![1]!))).toHaveLength(1);
    await db.run(raw(`DELETE FROM bookings WHERE until = '2026-11-10'`));
    await applyMigration(db, APART);
    expect(await constraints()).toHaveLength(1);
  });

  it('the migration looks at the values that new columns will have', async () => {
    await open(bookings('', 'n: int'));
    await db.run(insert(1, '01', '05'));
    await db.run(insert(1, '02', '06'));
    await expect(applyMigration(db, LIVE, { allowDestructive: true })).rejects.toThrow('overlap in "at" and "until"');
    await applyMigration(db, bookings(LIVE_RULE, 'cancelled: { type: bool, required: true, default: true }'), {
      allowDestructive: true,
    });
    expect(await constraints()).toHaveLength(1);
  });

  it('a start does not shut a large table, and the constraint stays for nodes of a newer version', async () => {
    await open(PLAIN);
    const start = { keepsExtra: true, mayRewrite: false, largeFrom: 0 };
    await expect(applyMigration(db, APART, start)).rejects.toThrow('is built while all writers of the table wait');
    await applyMigration(db, APART, { largeFrom: 0 });
    await applyMigration(db, PLAIN, start);
    expect(await constraints()).toHaveLength(1);
  });
});

/** Records of two teams, whose collection moves to hash partitions and back. */
describe('no_overlap where records are stored by tenant', () => {
  const tenants = (distribute: string, on = 'room', name = 'bookings'): Schema =>
    schemaOf(`
roles: { admin: { assigns: [member] }, member: {} }
register: { roles: [member] }
collections:
  users: { access: { list: true, read: true }, relations: { team: { kind: belongs_to, collection: teams } } }
  teams: { fields: { name: string }${distribute === '' ? '' : ', distribute: reference'} }
  ${name}:
    ${distribute}
    ${name === 'bookings' ? '' : 'was: bookings'}
    ${on === '' ? '' : `no_overlap: { on: [${on}], from: at, to: until, where: '@record.gone = false' }`}
    fields: { room: int, desk: int, at: date, until: date, gone: { type: bool, required: true, default: false } }
    relations: { team: { kind: belongs_to, collection: teams, required: true, default: '@request.auth.team' } }
    access: { view: '@record.team = @request.auth.team', create: '@record.team = @request.auth.team' }
`);
  const BY_TEAM = 'distribute: { by: team }';
  const book = (team: number, at: string, until: string) =>
    raw(`
      INSERT INTO bookings (id, team_id, room, desk, at, until)
      SELECT gen_random_uuid(), id, 1, 1, '2026-11-${at}', '2026-11-${until}' FROM teams ORDER BY id LIMIT 1 OFFSET ${team}`);
  const names = async (): Promise<number> =>
    (
      await db.rows(
        raw(`
          SELECT 1 FROM pg_constraint
           WHERE contype = 'x' AND conname ~ '_apart[0-7]?$' AND connamespace = current_schema()::regnamespace`),
      )
    ).length;
  const apply = (schema: Schema) => applyMigration(db, schema, { allowDestructive: true });
  const OVERLAPS = { kind: 'exclusion' };

  it('the constraint follows the rows to partitions and back, changes and goes', async () => {
    db = await openKind(KINDS.at(-1)!);
    await applyMigration(db, tenants(''));
    await db.run(raw(`INSERT INTO teams (id) VALUES (gen_random_uuid()), (gen_random_uuid())`));
    await db.run(book(0, '01', '05'));
    await apply(tenants(BY_TEAM));
    expect(await names()).toBe(8);
    expect((await planMigration(db, tenants(BY_TEAM))).statements).toEqual([]);
    await expect(db.run(book(0, '04', '06'))).rejects.toMatchObject(OVERLAPS);
    await db.run(book(1, '04', '06'));
    await apply(tenants(BY_TEAM, 'desk'));
    expect(await names()).toBe(8);
    await expect(db.run(book(1, '05', '07'))).rejects.toMatchObject(OVERLAPS);
    await apply(tenants(BY_TEAM, ''));
    expect(await names()).toBe(0);
    await db.run(book(1, '05', '07'));
    await expect(apply(tenants(BY_TEAM))).rejects.toThrow('rows of "bookings" overlap');
    await db.run(raw('UPDATE bookings SET gone = true'));
    await apply(tenants(BY_TEAM));
    await apply(tenants(''));
    expect(await names()).toBe(1);
    await db.run(book(0, '04', '06'));
    await expect(db.run(book(0, '04', '06'))).rejects.toMatchObject(OVERLAPS);
  });

  it('the constraints of partitions follow a renamed collection', async () => {
    db = await openKind(KINDS.at(-1)!);
    await applyMigration(db, tenants(BY_TEAM));
    const renamed = tenants(BY_TEAM, 'room', 'visits');
    await apply(renamed);
    expect(await names()).toBe(8);
    expect((await planMigration(db, renamed)).statements).toEqual([]);
  });
});

const LIVE_RULE = `no_overlap: { on: [room], from: at, to: until, where: '@record.cancelled = false' }`;
