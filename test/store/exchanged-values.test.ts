/** Imports in which records take the unique values of each other, which the database checks row by row. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { raw } from '../../src/sql.ts';
import type { Database } from '../../src/store/database/contract.ts';
import { applyMigration } from '../../src/store/migrations/apply-migration.ts';
import { type Imported, ImportRejected, importRecords } from '../../src/store/transfer/import-records.ts';
import { KINDS, openKind, schemaOf } from './world.ts';

const SCHEMA = schemaOf(`
roles: [admin, member]
collections:
  desks:
    fields:
      name: { type: string, required: true, unique: true, max: 20 }
      floor: { type: int, required: true, unique: true }
      weight: { type: float, required: true, unique: true }
      since: { type: datetime, required: true, unique: true }
      code: { type: string, unique: true, search: true, max: 20 }
      isFirst: { type: bool, unique: true }
    relations:
      room: { kind: belongs_to, collection: rooms, required: true, unique: true }
      guest: { kind: belongs_to, collection: users, unique: true }
      chairs: { kind: has_many, collection: chairs, via: desk }
  chairs: { relations: { desk: { kind: belongs_to, collection: desks, required: true, on_delete: cascade } } }
  rooms:
    fields: { number: { type: int, required: true, unique: true }, label: { type: string, required: true, search: true } }
    relations: { house: { kind: belongs_to, collection: houses, required: true, unique: true } }
  houses:
    fields: { name: { type: string, unique: true, max: 20 } }
    relations: { key: { kind: belongs_to, collection: houses, required: true, unique: true } }
  switches: { fields: { on: { type: bool, required: true, unique: true } } }
`);
const id = (n: number): string => `01900000-0000-7000-8000-${String(n).padStart(12, '0')}`;
const NOW = '2026-01-02T03:04:05.000006Z';
type Line = Readonly<Record<string, unknown>>;

const USERS: readonly Line[] = [1, 2].map((n) => ({ id: id(40 + n), email: `user${n}@example.org` }));
const HOUSES: readonly Line[] = [1, 2, 3].map((n) => ({ id: id(10 + n), name: `house ${n}`, key: id(10 + n) }));
const ROOMS: readonly Line[] = [1, 2, 3].map((n) => ({
  id: id(20 + n),
  number: n,
  label: `Room ${n}`,
  house: id(10 + n),
}));
const DESKS: readonly [Line, Line] = [desk(1), desk(2)];

function desk(n: number): Line {
  const since = `2026-01-0${n}T00:00:00.000000Z`;
  const more = n === 1 ? { code: 'Eins', isFirst: true, guest: id(41) } : { code: null, isFirst: false, guest: null };
  return { id: id(n), name: `desk ${n}`, floor: n, weight: n / 2, since, room: id(20 + n), ...more };
}

describe.each(KINDS)('an import on %s', (kind) => {
  let db: Database;
  beforeAll(async () => {
    db = await openKind(kind);
    await applyMigration(db, SCHEMA);
  }, 60_000);
  afterAll(() => db?.close());
  beforeEach(async () => {
    await db.run(raw('TRUNCATE desks, chairs, rooms, houses, switches, users CASCADE'));
    await put('users', USERS);
    await put('houses', HOUSES);
    await put('rooms', ROOMS);
    await put('desks', DESKS);
    await put('chairs', [{ id: id(51), desk: id(1) }]);
  });

  function put(collection: string, lines: readonly Line[], upsert?: string): Promise<Imported> {
    const records = async function* () {
      for (const [i, line] of lines.entries())
        yield { line: i + 1, members: new Map(Object.entries(line)), isText: false };
    };
    const found = SCHEMA.collections.get(collection)!;
    return importRecords(db, {
      schema: SCHEMA,
      collection: found,
      records,
      now: NOW,
      ...(upsert !== undefined && { upsert }),
    });
  }
  const errorsOf = async (work: Promise<unknown>) => {
    const thrown = await work.then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(thrown).toBeInstanceOf(ImportRejected);
    return (thrown as ImportRejected).errors.map(({ line, message }) => `${line}: ${message}`);
  };
  const COLUMNS = {
    desks: `json_build_object('id', id, 'name', name, 'floor', floor, 'weight', weight, 'since', to_char(since, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
      'room', room_id, 'code', code, 'isFirst', "isFirst", 'guest', guest_id)`,
    rooms: `json_build_object('id', id, 'number', number, 'label', label, 'house', house_id)`,
    houses: `json_build_object('id', id, 'name', name, 'key', key_id)`,
    users: `json_build_object('id', id, 'email', email)`,
  };
  const stored = async (collection: keyof typeof COLUMNS): Promise<readonly Line[]> =>
    (await db.rows(raw(`SELECT ${COLUMNS[collection]}::text FROM ${collection} ORDER BY id`))).map(([json]) =>
      JSON.parse(json!),
    );
  const other = (taken: Line, own: Line): Line => ({ ...taken, id: own.id });

  it('two records take the values of each other, of every type, and nothing else is left', async () => {
    const [one, two] = DESKS;
    const changed = [other(two, one), other(one, two)];
    const rest = [await stored('rooms'), await stored('houses'), await stored('users')];
    expect(await put('desks', changed, 'id')).toEqual({ created: 0, updated: 2, skipped: 0 });
    expect(await stored('desks')).toEqual(changed);
    expect([await stored('rooms'), await stored('houses'), await stored('users')]).toEqual(rest);
    // Each is one change; the records of others are as they were, and so is the copy that search reads.
    expect(await db.rows(raw('SELECT _version, "code~folded" FROM desks ORDER BY id'))).toEqual([
      ['2', null],
      ['2', 'eins'],
    ]);
    expect(await db.rows(raw('SELECT desk_id FROM chairs'))).toEqual([[one.id]]);
  });

  it('values go round among three records, and on to a new one', async () => {
    const [one, two] = DESKS;
    const shifted = [
      { ...one, name: 'desk 0', floor: 0, code: 'new', room: id(23) },
      { ...two, name: 'desk 1', floor: 1, code: 'Eins', isFirst: null, room: id(21) },
      { ...two, id: id(3), floor: 2, weight: 3, since: NOW, room: id(22) },
    ];
    expect(await put('desks', shifted, 'id')).toEqual({ created: 1, updated: 2, skipped: 0 });
    expect(await stored('desks')).toEqual(shifted);
    const round = shifted.map((line, i) => ({ ...line, floor: (i + 1) % 3, room: id(21 + ((i + 1) % 3)) }));
    await put('desks', round, 'id');
    expect(await stored('desks')).toEqual(round);
    expect(await stored('rooms')).toEqual(ROOMS);
  });

  it('addresses of users, too', async () => {
    const [one, two] = USERS as readonly [Line, Line];
    await put('users', [other(two, one), other(one, two)], 'id');
    expect(await stored('users')).toEqual([other(two, one), other(one, two)]);
  });

  it('a required bool has no third value, and a ring of records no place to spare', async () => {
    const said = (member: string) =>
      [1, 2].map(
        (line) =>
          `${line}: \`${member}\`: it must have a value, and there is none to spare: records cannot exchange theirs`,
      );
    const switches = [true, false].map((on, i) => ({ id: id(60 + i), on }));
    await put('switches', switches);
    const turned = switches.map(({ on, ...rest }) => ({ ...rest, on: !on }));
    expect(await errorsOf(put('switches', turned, 'id'))).toEqual(said('on'));
    const [one, two] = HOUSES as readonly [Line, Line];
    const before = await stored('houses');
    expect(
      await errorsOf(
        put(
          'houses',
          [
            { ...one, key: two.key },
            { ...two, key: one.key },
          ],
          'id',
        ),
      ),
    ).toEqual(said('key'));
    expect(await stored('houses')).toEqual(before);
  });

  it('a record whose value the file does not give keeps it', async () => {
    const [one, two] = HOUSES as readonly [Line, Line];
    const wanted = [
      { id: one.id, key: one.key },
      { ...two, name: one.name },
    ];
    expect(await errorsOf(put('houses', wanted, 'id'))).toEqual([
      `2: \`name\` must be unique; the record ${String(one.id)} has this value`,
    ]);
  });

  it('a dry run answers the same, and nothing is parked', async () => {
    const [one, two] = DESKS;
    const found = SCHEMA.collections.get('desks')!;
    const records = async function* () {
      yield { line: 1, members: new Map(Object.entries(other(two, one))), isText: false };
      yield { line: 2, members: new Map(Object.entries(other(one, two))), isText: false };
    };
    const request = { schema: SCHEMA, collection: found, records, upsert: 'id', dryRun: true, now: NOW };
    expect(await importRecords(db, request)).toEqual({ created: 0, updated: 2, skipped: 0 });
    expect(await stored('desks')).toEqual(DESKS);
    expect(await stored('rooms')).toEqual(ROOMS);
  });
});
