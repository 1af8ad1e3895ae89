// @module-tag long
/** Imports in which records take the unique values of each other, which the database checks row by row. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/database/contract.ts';
import { applyMigration } from '../../../src/migrations/apply-migration.ts';
import { type Imported, ImportRejected, importRecords } from '../../../src/records/transfer/import-records.ts';
import { raw } from '../../../src/sql.ts';
import { ONE_KIND, openKind, schemaOf } from '../../support/store-world.ts';

const SCHEMA = schemaOf(`
roles: [admin, member]
collections:
  desks:
    fields:
      name: { type: string, required: true, unique: true, max: 20 }
      floor: { type: int, required: true, unique: true }
      weight: { type: float, required: true, unique: true }
      opened: { type: datetime, required: true, unique: true }
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
  plates: { relations: { switch: { kind: belongs_to, collection: switches, required: true, unique: true } } }
  books: {}
  pages:
    fields:
      number: { type: int, required: true, unique: within_book }
      title: { type: string, unique: within_book, search: true, max: 20 }
    relations:
      book: { kind: belongs_to, collection: books, required: true }
      keeper: { kind: belongs_to, collection: users, required: true, unique: within_book }
  marks: { relations: { page: { kind: belongs_to, collection: pages, required: true, unique: true } } }
  teams: { distribute: reference }
  places:
    distribute: { by: team }
    fields: { label: { type: string, required: true, unique: within_team, max: 20 } }
    relations: { team: { kind: belongs_to, collection: teams, required: true } }
  seats:
    distribute: { by: team }
    relations:
      team: { kind: belongs_to, collection: teams, required: true }
      place: { kind: belongs_to, collection: places, required: true, unique: true }
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
const [RED, BLUE] = [id(61), id(62)];
/** Two pages of each book. */
const PAGES: readonly Line[] = [1, 2, 3, 4].map((n) => ({
  id: id(70 + n),
  number: 2 - (n % 2),
  title: `Seite ${n % 2}`,
  book: n < 3 ? RED : BLUE,
  keeper: id(42 - (n % 2)),
}));
const [P1, P2, P3, P4] = PAGES as readonly [Line, Line, Line, Line];
const DESKS: readonly [Line, Line] = [desk(1), desk(2)];

function desk(n: number): Line {
  const opened = `2026-01-0${n}T00:00:00.000000Z`;
  const more = n === 1 ? { code: 'Eins', isFirst: true, guest: id(41) } : { code: null, isFirst: false, guest: null };
  return { id: id(n), name: `desk ${n}`, floor: n, weight: n / 2, opened, room: id(20 + n), ...more };
}

describe.each(ONE_KIND)('an import on %s', (kind) => {
  let db: Database;
  beforeAll(async () => {
    db = await openKind(kind);
    await applyMigration(db, SCHEMA);
  });
  afterAll(() => db?.close());
  beforeEach(async () => {
    await db.run(raw('TRUNCATE desks, chairs, rooms, houses, switches, users, books, teams CASCADE'));
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
    return (thrown as ImportRejected).errors.map(({ line, message }) => `${line ?? 'the file'}: ${message}`);
  };
  const COLUMNS = {
    desks: `json_build_object('id', id, 'name', name, 'floor', floor, 'weight', weight, 'opened', to_char(opened, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
      'room', room_id, 'code', code, 'isFirst', "isFirst", 'guest', guest_id)`,
    rooms: `json_build_object('id', id, 'number', number, 'label', label, 'house', house_id)`,
    houses: `json_build_object('id', id, 'name', name, 'key', key_id)`,
    pages: `json_build_object('id', id, 'number', number, 'title', title, 'book', book_id, 'keeper', keeper_id)`,
    marks: `json_build_object('id', id, 'page', page_id)`,
    places: `json_build_object('id', id, 'label', label, 'team', team_id)`,
    seats: `json_build_object('id', id, 'team', team_id, 'place', place_id)`,
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
      { ...two, id: id(3), floor: 2, weight: 3, opened: NOW, room: id(22) },
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
    const noneToSpare = (member: string) =>
      [1, 2].map(
        (line) =>
          `${line}: \`${member}\`: it must have a value, and there is none to spare: records cannot exchange theirs`,
      );
    const switches = [true, false].map((on, i) => ({ id: id(60 + i), on }));
    await put('switches', switches);
    const turned = switches.map(({ on, ...rest }) => ({ ...rest, on: !on }));
    expect(await errorsOf(put('switches', turned, 'id'))).toEqual(noneToSpare('on'));
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
    ).toEqual(noneToSpare('key'));
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

  describe('swaps of values that are unique within a relation', () => {
    const key = ({ number, title, keeper }: Line): Line => ({ number, title, keeper });
    beforeEach(async () => {
      await put('books', [{ id: RED }, { id: BLUE }]);
      await put('pages', PAGES);
    });

    it('two records take those of each other, beside the same values of another book', async () => {
      const changed = [
        { ...P1, ...key(P2) },
        { ...P2, ...key(P1) },
      ];
      const users = await stored('users');
      expect(await put('pages', changed, 'id')).toEqual({ created: 0, updated: 2, skipped: 0 });
      expect(await stored('pages')).toEqual([...changed, P3, P4]);
      expect(await stored('users')).toEqual(users);
      expect(await db.rows(raw(`SELECT "title~folded" FROM pages WHERE id = '${P1.id}'`))).toEqual([['seite 0']]);
    });

    it('records take the book of each other, and keep what the file leaves out', async () => {
      const { title: _, ...first }: Line = { ...P1, book: BLUE };
      const { title: __, ...third }: Line = { ...P3, book: RED };
      expect(await put('pages', [first, third], 'id')).toMatchObject({ updated: 2 });
      expect(await stored('pages')).toEqual([{ ...P1, book: BLUE }, P2, { ...P3, book: RED }, P4]);
    });

    it('a new record takes the number of one that moves to another book', async () => {
      const moved = { ...P1, number: 3, title: null, book: BLUE, keeper: id(43) };
      await put('users', [{ id: id(43), email: 'user3@example.org' }]);
      const fresh = { ...P1, id: id(75) };
      expect(await put('pages', [fresh, moved], 'id')).toMatchObject({ created: 1, updated: 1 });
      expect(await stored('pages')).toEqual([moved, P2, P3, P4, fresh]);
    });

    it('a taken or repeated value is reported at its line', async () => {
      const rule = (name: string) => `\`${name}\` must be unique within \`book\``;
      const rivals = [
        { ...P1, number: 2 },
        { ...P3, book: RED, number: 7, title: 'Seite 0' },
        { ...P4, number: 7, title: null, keeper: P3.keeper },
      ];
      expect(await errorsOf(put('pages', rivals, 'id'))).toEqual([
        `1: ${rule('number')}; the record ${P2.id} has this value`,
        `2: ${rule('title')}; the record ${P2.id} has this value`,
        `2: ${rule('keeper')}; line 1 has the same value`,
      ]);
      expect(await stored('pages')).toEqual(PAGES);
    });

    it('references to such records are exchanged, and no copy of one is left', async () => {
      await put('marks', [
        { id: id(81), page: P1.id },
        { id: id(82), page: P3.id },
      ]);
      const changed = [
        { id: id(81), page: P3.id },
        { id: id(82), page: P1.id },
      ];
      const users = await stored('users');
      expect(await put('marks', changed, 'id')).toMatchObject({ updated: 2 });
      expect(await stored('marks')).toEqual(changed);
      expect(await stored('pages')).toEqual(PAGES);
      expect(await stored('users')).toEqual(users);
    });
  });

  it('references are exchanged within each tenant, and do not lead out of it', async () => {
    await put('teams', [{ id: RED }, { id: BLUE }]);
    const places = [1, 2, 3, 4].map((n) => ({ id: id(70 + n), label: `${n % 2}`, team: n < 3 ? RED : BLUE }));
    await put('places', [...places, { id: id(75), label: 'free', team: BLUE }]);
    const seats = places.map(({ team }, i) => ({ id: id(81 + i), team, place: id(71 + i) }));
    await put('seats', seats);
    const changed = seats.map((seat, i) => ({ ...seat, place: id(71 + [1, 0, 3, 2][i]!) }));
    expect(await put('seats', changed, 'id')).toMatchObject({ updated: 4 });
    expect(await stored('seats')).toEqual(changed);
    expect(await stored('places')).toMatchObject([...places, { id: id(75) }]);
    expect(await errorsOf(put('seats', [{ id: id(81), team: RED, place: id(75) }], 'id'))).toEqual([
      `1: \`place\`: there is no record ${id(75)} in \`places\` of the same \`team\``,
    ]);
  });

  it('a reference to a record that no copy can be made of is not exchanged', async () => {
    await put('switches', [
      { id: id(61), on: true },
      { id: id(62), on: false },
    ]);
    const plates = [1, 2].map((n) => ({ id: id(70 + n), switch: id(60 + n) }));
    await put('plates', plates);
    const turned = plates.map((plate, i) => ({ ...plate, switch: id(62 - i) }));
    expect(await errorsOf(put('plates', turned, 'id'))).toEqual(
      [1, 2].map(
        (n) => `${n}: \`switch\`: it must have a value, and there is none to spare: records cannot exchange theirs`,
      ),
    );
  });

  it.each([
    ['CREATE UNIQUE INDEX own ON rooms (label)', '`label`: another record has this `label`'],
    ['CREATE UNIQUE INDEX own ON rooms ((label || number % 1))', 'a value must be unique, and another record has it'],
    [
      'ALTER TABLE rooms ADD CONSTRAINT own FOREIGN KEY (label) REFERENCES houses (name) NOT VALID',
      '`label`: there is no such record any more',
    ],
  ])('a constraint that only the database has is reported without a line: %s', async (definition, message) => {
    await put('houses', [{ id: id(14), key: id(14) }]);
    await db.run(raw(definition));
    try {
      const rival = { id: id(24), number: 4, label: 'Room 1', house: id(14) };
      expect(await errorsOf(put('rooms', [rival]))).toEqual([`the file: ${message}`]);
      expect(await stored('rooms')).toEqual(ROOMS);
    } finally {
      await db.run(raw(definition.startsWith('CREATE') ? 'DROP INDEX own' : 'ALTER TABLE rooms DROP CONSTRAINT own'));
    }
  });

  it('lines of a report begin with the file, and with the line where there is one', () => {
    const errors = [{ line: 3, message: 'b' }, { message: 'a' }];
    expect(new ImportRejected(errors, 2).lines('t.csv')).toEqual(['t.csv: a', 't.csv:3: b']);
    expect(new ImportRejected(errors, 5).lines('t.csv').at(-1)).toBe('… and 3 more');
  });
});
