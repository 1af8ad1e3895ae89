// @module-tag long
/** Migrations on both databases: the safe ones, the refused ones, and that none is left incomplete. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database, Queryable } from '../../src/database/contract.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { readCatalog } from '../../src/migrations/catalog.ts';
import { MigrationRefused, planMigration } from '../../src/migrations/migration.ts';
import { hasAllOf } from '../../src/migrations/readiness.ts';
import { quotedText, raw } from '../../src/sql.ts';
import { KINDS, ONE_KIND, openKind, schemaOf } from '../support/store-world.ts';

const collections = (text: string): string => `collections:\n${text}`;
const FIRST = collections(`
  teams: { fields: { name: { type: string, required: true } } }
  things:
    fields: { name: { type: string, required: true, unique: true }, n: { type: int, index: true } }
    relations:
      team: { kind: belongs_to, collection: teams, on_delete: cascade }
      tags: { kind: many_to_many, collection: teams }
`);

describe.each(KINDS)('a migration on %s', (kind) => {
  let db: Database;
  beforeAll(async () => {
    db = await openKind(kind);
    await applyMigration(db, schemaOf(FIRST));
    await db.run(raw(`INSERT INTO teams (id, name) VALUES ('01900000-0000-7000-8000-000000000001', 'a')`));
    await db.run(
      raw(`INSERT INTO things (id, name, n) VALUES ('01900000-0000-7000-8000-000000000002', 'x', 9007199254740991)`),
    );
    await db.run(raw(`INSERT INTO things (id, name, n) VALUES ('01900000-0000-7000-8000-000000000003', 'y', NULL)`));
  });
  afterAll(() => db?.close());

  const thing = async (columns: string) =>
    (await db.rows(raw(`SELECT ${columns} FROM things ORDER BY id`))).map((row) => [...row]);
  const refusedFor = async (text: string): Promise<string[]> => {
    const schema = schemaOf(text);
    const before = await readCatalog(db);
    const error = await applyMigration(db, schema).then(
      () => new Error('applied'),
      (thrown: Error) => thrown,
    );
    expect(error).toBeInstanceOf(MigrationRefused);
    expect(error.message).toContain('bylaw migrate apply --allow-destructive');
    expect(await readCatalog(db)).toEqual(before);
    const { migration } = error as MigrationRefused;
    expect((await planMigration(db, schema)).destructive).toEqual(migration.destructive);
    return migration.destructive.map(({ why }) => why);
  };

  it('a plan is empty if the database matches the schema', async () => {
    const schema = schemaOf(FIRST);
    expect(await planMigration(db, schema)).toEqual({ statements: [], destructive: [], apart: [] });
    expect((await applyMigration(db, schema)).statements).toEqual([]);
    expect(await hasAllOf(db, schema)).toBe(true);
    expect(await hasAllOf(db, schemaOf(FIRST.replace('n: {', 'm: { type: bool }, n: {')))).toBe(false);
  });

  it('a start reads the catalogue once if nothing changes', async () => {
    let reads = 0;
    const rowsOf =
      (q: Queryable): Queryable['rows'] =>
      (statement, ...options) => {
        if (statement.text.includes('a.attnotnull')) reads++;
        return q.rows(statement, ...options);
      };
    const transaction: Database['transaction'] = (work, options) =>
      db.transaction((tx) => work({ ...tx, rows: rowsOf(tx) }), options);
    const counting = Object.create(db, {
      transaction: { value: transaction },
      rows: { value: rowsOf(db) },
    }) as Database;
    await applyMigration(counting, schemaOf(FIRST));
    expect(reads).toBe(1);
  });

  it('new tables compare text by code point and have keys that cascade', async () => {
    const catalogue = await readCatalog(db);
    const things = catalogue.get('things')!;
    expect(Object.fromEntries(things.columns)).toMatchObject({
      id: { type: 'uuid', required: true },
      name: { type: 'text', required: true },
      n: { type: 'bigint', required: false },
      team_id: { type: 'uuid', required: false },
      created_at: { type: 'timestamp with time zone', required: true },
    });
    expect(things.constraints).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ kind: 'u', columns: ['name'], isPlain: true }),
        expect.objectContaining({ kind: 'f', columns: ['team_id'], table: 'teams', onDelete: 'CASCADE' }),
      ]),
    );
    expect(things.indexes.map(({ columns }) => columns)).toEqual(
      expect.arrayContaining([
        ['n', 'id'],
        ['team_id', 'id'],
      ]),
    );
    const link = catalogue.get('things__tags')!;
    expect(link.constraints.filter(({ kind: k }) => k === 'f').map(({ onDelete }) => onDelete)).toEqual([
      'CASCADE',
      'CASCADE',
    ]);
    const [row] = await db.rows(
      raw(
        `SELECT collation_name FROM information_schema.columns WHERE table_name = 'things' AND column_name = 'name' AND table_schema = current_schema()`,
      ),
    );
    expect(row).toEqual(['C']);
  });

  it('a migration adds tables, columns, defaults, indexes and references', async () => {
    const schema = schemaOf(
      collections(`
  teams: { fields: { name: { type: string, required: true } } }
  more: { fields: { a: { type: datetime, required: true } }, relations: { thing: { kind: belongs_to, collection: things, required: true } } }
  things:
    fields:
      name: { type: string, required: true, unique: true }
      n: { type: int, index: true }
      note: string
      kind: { type: string, required: true, default: "it's" }
      flag: { type: bool, required: true, default: true, index: true }
    relations:
      team: { kind: belongs_to, collection: teams, on_delete: set_null }
      tags: { kind: many_to_many, collection: teams }
      parent: { kind: belongs_to, collection: things }
`),
    );
    const planned = await planMigration(db, schema);
    expect(planned.destructive).toEqual([]);
    expect((await applyMigration(db, schema)).statements).toEqual(planned.statements);
    expect(await thing('name, note, kind, flag')).toEqual([
      ['x', null, "it's", 't'],
      ['y', null, "it's", 't'],
    ]);
    expect(await planMigration(db, schema)).toEqual({ statements: [], destructive: [], apart: [] });
    const { columns, constraints } = (await readCatalog(db)).get('things')!;
    expect(columns.get('kind')).toEqual({ type: 'text', required: true, hasDefault: true });
    expect(constraints.find(({ columns: c }) => c[0] === 'team_id')).toMatchObject({ onDelete: 'SET NULL' });
  });

  it('a migration renames by `was`, widens types and keeps values', async () => {
    const schema = schemaOf(
      collections(`
  teams: { fields: { name: { type: string, required: true } } }
  more: { fields: { a: { type: datetime, required: true } }, relations: { thing: { kind: belongs_to, collection: things, required: true } } }
  things:
    fields:
      title: { type: string, required: true, unique: true, was: name }
      n: { type: float, index: true }
      note: string
      kind: { type: string, default: "it's" }
      flag: { type: bool, required: true, default: true, index: true }
    relations:
      group: { kind: belongs_to, collection: teams, on_delete: set_null, was: team }
      tags: { kind: many_to_many, collection: teams }
      parent: { kind: belongs_to, collection: things }
`),
    );
    expect((await planMigration(db, schema)).destructive).toEqual([]);
    await applyMigration(db, schema);
    expect(await thing('title, n, group_id')).toEqual([
      ['x', '9.007199254740991e+15', null],
      ['y', null, null],
    ]);
    expect(await planMigration(db, schema)).toEqual({ statements: [], destructive: [], apart: [] });
    const names = (await readCatalog(db)).get('things')!.constraints.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['things_title_key', 'things_group_id_fkey']));
    expect(names.join()).not.toMatch(/things_name|things_team/);
  });

  it('a migration gives tables and columns the names of the file', async () => {
    const text = (teams: string, name: string, n: string, team: string) =>
      collections(`
  teams: { ${teams} fields: { name: { type: string, required: true } } }
  named:
    fields: { name: { type: string, unique: true, search: true, max: 9 ${name} }, n: { type: int ${n} } }
    relations: { team: { kind: belongs_to, collection: teams ${team} } }
`);
    const usual = schemaOf(text('', '', '', ''));
    const other = schemaOf(text('table: "T, x",', ', column: n', `, column: 'Größe "n"'`, ', column: team'));
    const moved = await openKind(kind);
    try {
      await applyMigration(moved, usual);
      await moved.run(raw(`INSERT INTO teams (id, name) VALUES ('01900000-0000-7000-8000-000000000001', 'a')`));
      await moved.run(
        raw(`INSERT INTO named (id, name, "name~folded", n, team_id)
             VALUES ('01900000-0000-7000-8000-000000000002', 'X', 'x', 7, '01900000-0000-7000-8000-000000000001')`),
      );
      const renamed = schemaOf(text('table: "T, x",', ', column: title', `, column: 'Größe "n"'`, ', column: team'));
      expect((await planMigration(moved, renamed)).destructive).toEqual([]);
      await applyMigration(moved, renamed);
      const rows = await moved.rows(
        raw(
          `SELECT d.title, d."title~folded", d."Größe ""n""", t.name FROM named AS d JOIN "T, x" AS t ON t.id = d.team`,
        ),
      );
      expect(rows).toEqual([['X', 'x', '7', 'a']]);
      expect(await planMigration(moved, renamed)).toEqual({ statements: [], destructive: [], apart: [] });
      const { constraints } = (await readCatalog(moved)).get('named')!;
      expect(constraints.map(({ name }) => name)).toEqual(
        expect.arrayContaining(['named_title_key', 'named_team_fkey']),
      );
      // The column of one field is never taken for the former one of another.
      expect((await planMigration(moved, other)).destructive.map(({ why }) => why)).toEqual([
        expect.stringContaining('"named"."title"'),
      ]);
    } finally {
      await moved.close();
    }
  });

  it('a migration runs statements that lose data or may fail with consent only, and otherwise changes nothing', async () => {
    const last = (fields: string) =>
      collections(`
  teams: { fields: { name: { type: string, required: true } } }
  things:
    fields: ${fields}
    relations: { tags: { kind: many_to_many, collection: teams } }
`);
    const why = await refusedFor(
      last(
        '{ title: { type: string, required: true }, n: { type: float, required: true }, kind: { type: int }, must: { type: int, required: true } }',
      ),
    );
    expect(why).toEqual([
      expect.stringContaining('"things"."n" becomes required'),
      expect.stringContaining('"things"."kind" would change from text to bigint'),
      expect.stringContaining('the required "must" would have no value'),
      expect.stringContaining('has "things"."group_id"'),
      expect.stringContaining('has "things"."note"'),
      expect.stringContaining('has "things"."flag"'),
      expect.stringContaining('has "things"."parent_id"'),
      expect.stringContaining('the table "more"'),
    ]);
    const duplicated = last(
      '{ title: string, n: float, kind: { type: string, unique: true }, note: string, flag: bool }',
    );
    expect(await refusedFor(duplicated)).toContainEqual(expect.stringContaining('"things"."kind" becomes unique'));
    await expect(applyMigration(db, schemaOf(duplicated), { allowDestructive: true })).rejects.toThrow();
    expect((await readCatalog(db)).has('more')).toBe(true);
    await applyMigration(db, schemaOf(last('{ title: string, n: float }')), { allowDestructive: true });
    expect((await readCatalog(db)).has('more')).toBe(false);
    expect(await thing('title, n')).toHaveLength(2);
  });

  it('a migration needs consent to drop a constraint that no schema can declare', async () => {
    await db.run(raw('CREATE TABLE seats (id uuid PRIMARY KEY, room bigint, place bigint, UNIQUE (room, place))'));
    await db.run(raw('CREATE TABLE bookings (id uuid PRIMARY KEY, room bigint, place bigint)'));
    await db.run(raw('ALTER TABLE bookings ADD FOREIGN KEY (room, place) REFERENCES seats (room, place)'));
    const fields = '{ fields: { room: int, place: int } }';
    const schema = FIRST.replace('collections:', `collections:\n  bookings: ${fields}\n  seats: ${fields}`);
    const lost = (await refusedFor(schema)).filter((why) => why.includes('constraint'));
    expect(lost).toEqual([
      'no schema can declare the constraint FOREIGN KEY (room, place) of "bookings"; it would be lost',
      'no schema can declare the constraint UNIQUE (room, place) of "seats"; it would be lost',
    ]);
    await db.run(raw('DROP TABLE bookings, seats'));
  });

  it('a migration keeps foreign tables, and creates tables of other rooms once', async () => {
    await db.run(raw('CREATE TABLE elsewhere (id int)'));
    const systemTables = [raw('CREATE TABLE IF NOT EXISTS "_files_blobs" (id int PRIMARY KEY)')];
    const schema = schemaOf(
      collections(
        '  teams: { fields: { name: { type: string, required: true } } }\n' +
          '  things: { fields: { title: string, n: float }, relations: { tags: { kind: many_to_many, collection: teams } } }',
      ),
    );
    expect(await planMigration(db, schema, { systemTables })).toEqual({
      statements: [systemTables[0]!.text],
      destructive: [],
      apart: [],
    });
    await applyMigration(db, schema, { systemTables });
    expect((await planMigration(db, schema, { systemTables })).statements).toEqual([]);
    expect((await readCatalog(db)).has('elsewhere')).toBe(true);
  });

  it('three concurrent callers run a migration once', async () => {
    const schema = schemaOf(
      collections(
        '  teams: { fields: { name: { type: string, required: true }, at: datetime } }\n' +
          '  things: { fields: { title: string, n: float }, relations: { tags: { kind: many_to_many, collection: teams } } }',
      ),
    );
    const done = await Promise.all([1, 2, 3].map(() => applyMigration(db, schema)));
    expect(done.map(({ statements }) => statements.length).sort()).toEqual([0, 0, 1]);
  });
});

/** Values of each type as a string holds them, and a string that is near one. */
const TEXT_FORMS = [
  {
    type: 'decimal, precision: 4, scale: 2',
    values: ['0.00', '-12.50', '99.99'],
    others: ['12.345', '123', '1e1', 'NaN'],
  },
  {
    type: 'uuid',
    values: ['00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff'],
    others: ['FFFFFFFF-ffff-ffff-ffff-ffffffffffff', 'x'],
  },
  { type: 'time', values: ['00:00:00', '09:30:00.5', '23:59:59.999999'], others: ['24:00:00', '09:30', '09:30:00.50'] },
  { type: 'date', values: ['0001-01-01', '2024-02-29', '9999-12-31'], others: ['2023-02-29', '0000-01-01', 'today'] },
];

describe.each(ONE_KIND)('a migration to and from strings on %s', (kind) => {
  let db: Database;
  beforeAll(async () => {
    db = await openKind(kind);
  });
  afterAll(() => db?.close());
  const valuesOf = (type: string) =>
    schemaOf(collections(`  values: { fields: { v: { type: ${type}, index: true } } }\n`));
  const stored = async () => (await db.rows(raw('SELECT v FROM "values" ORDER BY id'))).map(([v]) => v);

  it.each(TEXT_FORMS)(
    'values of $type keep their text, and other strings need consent',
    async ({ type, values, others }) => {
      await applyMigration(db, valuesOf('string'));
      await db.run(raw('TRUNCATE "values"'));
      const insert = (n: number, text: string) =>
        db.run(raw(`INSERT INTO "values" (id, v) VALUES ('01900000-0000-7000-8000-00000000000${n}', '${text}')`));
      for (const [i, value] of values.entries()) await insert(i, value);
      await db.run(raw(`INSERT INTO "values" (id) VALUES ('01900000-0000-7000-8000-00000000000a')`));
      const expected = [...values, null];
      for (const to of [type, 'string', type]) {
        const { destructive } = await planMigration(db, valuesOf(to));
        // The column may be that of an int, too.
        expect(destructive).toHaveLength(type === 'bigint' && to === 'string' ? 1 : 0);
        await applyMigration(db, valuesOf(to), { allowDestructive: true });
        expect(await stored()).toEqual(expected);
      }
      await applyMigration(db, valuesOf('string'), { allowDestructive: true });
      for (const other of others) {
        await insert(9, other);
        expect((await planMigration(db, valuesOf(type))).destructive, other).toHaveLength(1);
        await db.run(raw(`DELETE FROM "values" WHERE id = '01900000-0000-7000-8000-000000000009'`));
      }
      const [rewritten] = (await planMigration(db, valuesOf(type), { largeFrom: 0 })).destructive;
      expect(rewritten).toMatchObject({ kind: 'rewrites' });
    },
  );
});

describe.each(ONE_KIND)('a migration from strings to ints on %s', (kind) => {
  it('numerals need consent, because an int may be too small for them', async () => {
    const db = await openKind(kind);
    try {
      const of = (type: string) => schemaOf(collections(`  numerals: { fields: { v: ${type} } }\n`));
      await applyMigration(db, of('string'));
      await db.run(
        raw(`INSERT INTO numerals (id, v) VALUES ('01900000-0000-7000-8000-000000000001', '9223372036854775807')`),
      );
      expect((await planMigration(db, of('int'))).destructive).toHaveLength(1);
      expect((await planMigration(db, of('bigint'))).destructive).toEqual([]);
    } finally {
      await db.close();
    }
  });
});

describe.each(ONE_KIND)('a migration of decimals on %s', (kind) => {
  let db: Database;
  beforeAll(async () => {
    db = await openKind(kind);
  });
  afterAll(() => db?.close());

  it('a decimal gains digits without consent, and loses none', async () => {
    const prices = (precision: number, scale: number) =>
      schemaOf(
        collections(`  prices: { fields: { p: { type: decimal, precision: ${precision}, scale: ${scale} } } }\n`),
      );
    const destroyed = async (precision: number, scale: number) =>
      (await planMigration(db, prices(precision, scale))).destructive.length;
    await applyMigration(db, prices(6, 2));
    await db.run(raw(`INSERT INTO prices (id, p) VALUES ('01900000-0000-7000-8000-000000000001', -1234.56)`));
    expect((await planMigration(db, prices(6, 2))).statements).toEqual([]);
    expect(await Promise.all([destroyed(6, 1), destroyed(6, 3), destroyed(5, 2), destroyed(5, 1)])).toEqual([
      1, 1, 1, 1,
    ]);
    expect(await Promise.all([destroyed(7, 2), destroyed(7, 3), destroyed(38, 10)])).toEqual([0, 0, 0]);
    await applyMigration(db, prices(8, 3));
    expect((await db.rows(raw('SELECT p FROM prices'))).map(([p]) => p)).toEqual(['-1234.560']);
  });
});

describe.each(ONE_KIND)('a migration of bytes on %s', (kind) => {
  let db: Database;
  beforeAll(async () => {
    db = await openKind(kind);
  });
  afterAll(() => db?.close());

  it('bytes become base64 and base64 becomes bytes, and other strings need consent', async () => {
    const blobs = (type: string) => schemaOf(collections(`  blobs: { fields: { b: ${type} } }\n`));
    const stored = async () => (await db.rows(raw('SELECT b FROM blobs ORDER BY id'))).map(([b]) => b);
    const insert = (n: number, text: string) =>
      db.run(raw(`INSERT INTO blobs (id, b) VALUES ('01900000-0000-7000-8000-00000000000${n}', '${text}')`));
    const long = Buffer.alloc(200, 0xfb).toString('base64');
    await applyMigration(db, blobs('string'));
    for (const [i, text] of ['', 'AP8=', long].entries()) await insert(i, text);
    for (const to of ['bytes', 'string']) {
      expect((await planMigration(db, blobs(to))).destructive).toEqual([]);
      await applyMigration(db, blobs(to));
      if (to === 'bytes') expect((await stored()).slice(0, 2)).toEqual(['\\x', '\\x00ff']);
    }
    expect(await stored()).toEqual(['', 'AP8=', long]);
    for (const text of ['AP9=', 'AP8', 'no base64']) {
      await insert(9, text);
      expect((await planMigration(db, blobs('bytes'))).destructive, text).toHaveLength(1);
      await db.run(raw(`DELETE FROM blobs WHERE b = '${text}'`));
    }
  });
});

/** Texts that are values of the type; and others. */
const TYPE_TEXTS: readonly (readonly [type: string, texts: readonly string[], others: readonly string[]])[] = [
  [
    'list of string',
    ['[]', '["a","b c"]', '["","{}","a,b","NULL"," x ","\\"\\\\","Ünï"]'],
    ['["a", "b"]', '[null]', '["\\n"]', '[1]', '["a"', '', '{a}', `["${'x'.repeat(676)}"]`],
  ],
  [
    'list of int',
    ['[]', '[1,-2,9007199254740991]'],
    ['[9007199254740992]', '[01]', '[1.5]', '["1"]', `[${'1,'.repeat(1000)}1]`],
  ],
  ['list of float', ['[0.1,-1.5,1e+22]'], ['[1e400]', '[1.0]', '["NaN"]']],
  ['list of bool', ['[true,false]'], ['[t]']],
  ['list of date', ['["2026-01-31","0001-12-01"]'], ['["2026-02-30"]', '["0000-01-01"]']],
  [
    'list of datetime',
    ['[]', '["2026-01-31T09:30:00.000000Z","0001-12-01T23:59:59.999999Z","2026-07-01T00:00:00.120000Z"]'],
    ['["2026-01-31T09:30:00Z"]', '["2026-01-31T24:00:00.000000Z"]', '["2026-02-30T09:30:00.000000Z"]'],
  ],
  [
    'datetime',
    ['2026-01-31T09:30:00.000000Z', '9999-12-31T23:59:59.999999Z'],
    ['2026-01-31T09:30:00Z', '2026-02-30T00:00:00.000000Z', '2026-01-31', 'infinity', ''],
  ],
  [
    'point',
    ['{"lat":52.1,"lng":4.3}', '{"lat":-90,"lng":180}', '{"lat":1e-07,"lng":0}'],
    ['{"lat":91,"lng":0}', '{"lat":0,"lng":-180.5}', '{"lng":4.3,"lat":52.1}', '{"lat":1.0,"lng":0}', '(1,2)', ''],
  ],
  [
    'json',
    [
      '{}',
      '[1.50, null, "a\\"\\\\b#0", "\\u0001"]',
      '{"a": {"b, ": [{"c": true}, []]}}',
      '"x"',
      '-0.10',
      `${'['.repeat(32)}1${']'.repeat(32)}`,
    ],
    [
      ...[
        '{"a":1}',
        '{"b": 1, "a": 2}',
        'null',
        '01',
        '{"a": 1',
        '"\\u0041"',
        '[1e400]',
        '',
        '#',
        '[#]',
        '"a"b"',
        '00',
      ],
      `${'['.repeat(33)}1${']'.repeat(33)}`,
      '9'.repeat(401),
    ],
  ],
];

describe.each(ONE_KIND)('a migration of lists on %s', (kind) => {
  let db: Database;
  beforeAll(async () => {
    db = await openKind(kind);
  });
  afterAll(() => db?.close());

  it.each(TYPE_TEXTS)(
    'values of %s become text and text becomes values, and other strings need consent',
    async (type, texts, others) => {
      const of = (type: string) => schemaOf(collections(`  listed: { fields: { v: ${type} } }\n`));
      const list = type.replace(/list of (\w+)/, '{ type: list, of: $1 }');
      const insert = (n: number, value: string) =>
        db.run(
          raw(`INSERT INTO listed (id, v) VALUES ('01900000-0000-7000-8000-00000000000${n}', ${quotedText(value)})`),
        );
      const stored = async () => (await db.rows(raw('SELECT v::text FROM listed ORDER BY id'))).map(([v]) => v);
      await applyMigration(db, of('string'), { allowDestructive: true });

      for (const [i, value] of texts.entries()) await insert(i, value);
      for (const to of [list, 'string']) {
        expect((await planMigration(db, of(to))).destructive).toEqual([]);
        await applyMigration(db, of(to));
      }
      expect(await stored()).toEqual(texts);
      for (const other of others) {
        await insert(9, other);
        expect((await planMigration(db, of(list))).destructive, other).toHaveLength(1);
        await db.run(raw(`DELETE FROM listed WHERE id = '01900000-0000-7000-8000-000000000009'`));
      }
      await db.run(raw('DROP TABLE listed'));
    },
  );

  it('a required list fills existing rows, a rule brings its index, and another type needs consent', async () => {
    const notes = (fields: string, list = 'true') =>
      schemaOf(collections(`  notes: { fields: { title: string${fields} }, access: { list: ${list} } }\n`));
    const labels = ", labels: { type: list, of: string, required: true, default: [a, 'b c'] }";
    await applyMigration(db, notes(''));
    await db.run(raw(`INSERT INTO notes (id, title) VALUES ('01900000-0000-7000-8000-000000000001', 'x')`));
    await applyMigration(db, notes(labels));
    expect(await db.rows(raw('SELECT labels FROM notes'))).toEqual([['{a,"b c"}']]);
    const ruled = notes(labels, `'@record.labels contains "a"'`);
    await applyMigration(db, ruled);
    const indexes = await db.rows(raw(`SELECT indexdef FROM pg_indexes WHERE indexname = 'notes_labels_idx'`));
    expect(indexes[0]![0]).toMatch(/USING gin \(labels\)$/);
    expect((await planMigration(db, ruled)).statements).toEqual([]);
    for (const other of ['int', '{ type: list, of: int }']) {
      const { destructive } = await planMigration(db, notes(`, labels: ${other}`));
      expect(destructive, other).toHaveLength(1);
    }
  });
});

describe.each(ONE_KIND)('a migration of numbers on %s', (kind) => {
  let db: Database;
  beforeAll(async () => {
    db = await openKind(kind);
  });
  afterAll(() => db?.close());

  it('a string becomes a bigint without consent where it is one, and whole numbers become strings with consent', async () => {
    const digits = (type: string) => schemaOf(collections(`  digits: { fields: { d: ${type} } }\n`));
    const risks = async (type: string) => (await planMigration(db, digits(type))).destructive.length;
    await applyMigration(db, digits('string'));
    const insert = (text: string) =>
      db.run(raw(`INSERT INTO digits (id, d) VALUES ('01900000-0000-7000-8000-000000000001', '${text}')`));
    for (const [text, asBigint] of [
      ['0', 0],
      ['-9223372036854775808', 0],
      ['9223372036854775807', 0],
      ['9223372036854775808', 1],
      ['01', 1],
      ['1.0', 1],
      ['-0', 1],
    ] as const) {
      await insert(text);
      expect([await risks('bigint'), await risks('int')], text).toEqual([asBigint, 1]);
      await db.run(raw('TRUNCATE digits'));
    }
    await insert('9223372036854775807');
    await applyMigration(db, digits('bigint'));
    expect((await db.rows(raw('SELECT d FROM digits'))).map(([d]) => d)).toEqual(['9223372036854775807']);
    expect(await risks('string')).toBe(1);
    await db.run(raw('DROP TABLE digits'));
  });

  it('a bigint becomes a float without consent only where a double holds every value', async () => {
    const numbers = (type: string) => schemaOf(collections(`  numbers: { fields: { n: ${type} } }\n`));
    await applyMigration(db, numbers('bigint'));
    const insert = (n: string) =>
      db.run(raw(`INSERT INTO numbers (id, n) VALUES ('01900000-0000-7000-8000-000000000001', ${n})`));
    for (const [n, count] of [
      ['9007199254740991', 0],
      ['9007199254740993', 1],
      ['-9223372036854775808', 1],
    ] as const) {
      await insert(n);
      expect((await planMigration(db, numbers('float'))).destructive, n).toHaveLength(count);
      await db.run(raw('TRUNCATE numbers'));
    }
  });
});

describe.each(ONE_KIND)('a migration of an adopted table on %s', (kind) => {
  let db: Database;
  beforeAll(async () => {
    db = await openKind(kind);
  });
  afterAll(() => db?.close());
  const notes = (note: string) => schemaOf(collections(`  notes: { fields: { note: ${note} } }\n`));
  const checks = async () =>
    (await db.rows(raw(`SELECT conname FROM pg_constraint WHERE conrelid = 'notes'::regclass AND contype = 'c'`))).map(
      ([name]) => name,
    );

  it('a migration keeps a CHECK that requires more than a value', async () => {
    await applyMigration(db, notes('string'));
    const own = {
      note_required: `note IS NOT NULL AND note <> ''`,
      either_required: `note IS NOT NULL OR id IS NULL`,
      never_required: `(note IS NOT NULL) IS NOT NULL`,
    };
    for (const [name, check] of Object.entries(own))
      await db.run(raw(`ALTER TABLE notes ADD CONSTRAINT ${name} CHECK (${check})`));
    await db.run(raw('ALTER TABLE notes ADD CONSTRAINT inherits_required CHECK (note IS NOT NULL) NO INHERIT'));
    const names = [...Object.keys(own), 'inherits_required'].sort();
    for (const note of ['string', '{ type: string, required: true }', 'string', '{ type: string, max: 9 }']) {
      await applyMigration(db, notes(note), { allowDestructive: true, largeFrom: 0 });
      expect((await checks()).sort()).toEqual(names);
    }
    for (const name of names) await db.run(raw(`ALTER TABLE notes DROP CONSTRAINT ${name}`));
    // The CHECK of an interrupted migration is dropped, validated or not.
    for (const valid of ['', ' NOT VALID']) {
      await db.run(raw(`ALTER TABLE notes ADD CONSTRAINT notes_note_required CHECK (note IS NOT NULL)${valid}`));
      await applyMigration(db, notes('string'));
      expect(await checks()).toEqual([]);
    }
  });

  it.each([
    ['is deferred', 'UNIQUE (note) DEFERRABLE INITIALLY DEFERRED'],
    ['can be deferred', 'UNIQUE (note) DEFERRABLE'],
    ['allows one null', 'UNIQUE NULLS NOT DISTINCT (note)'],
  ])('a migration replaces a unique constraint that %s', async (_, definition) => {
    await applyMigration(db, notes('string'));
    for (const name of ['notes_note_key', 'mine']) {
      await db.run(raw(`ALTER TABLE notes ADD CONSTRAINT ${name} ${definition}`));
      const unique = notes('{ type: string, unique: true, max: 100 }');
      expect((await applyMigration(db, unique)).apart).toEqual([]);
      const { constraints } = (await readCatalog(db)).get('notes')!;
      expect(constraints.filter((one) => one.kind === 'u')).toMatchObject([{ name: 'notes_note_key', isPlain: true }]);
      expect((await planMigration(db, unique)).statements).toEqual([]);
      await applyMigration(db, notes('string'), { allowDestructive: true });
    }
  });

  it('a migration renames a plain constraint to the name by which errors find its field', async () => {
    await db.run(raw('ALTER TABLE notes ADD CONSTRAINT mine UNIQUE (note)'));
    const unique = notes('{ type: string, unique: true, max: 100 }');
    expect((await applyMigration(db, unique)).statements).toEqual([
      'ALTER TABLE "notes" RENAME CONSTRAINT "mine" TO "notes_note_key"',
    ]);
    await applyMigration(db, notes('string'), { allowDestructive: true });
  });

  it('a migration makes a deferred foreign key immediate', async () => {
    const linked = schemaOf(`
collections:
  notes: { fields: { note: string }, relations: { next: { kind: belongs_to, collection: notes } } }
`);
    await applyMigration(db, linked, { allowDestructive: true });
    await db.run(raw('ALTER TABLE notes ALTER CONSTRAINT notes_next_id_fkey DEFERRABLE INITIALLY DEFERRED'));
    expect((await applyMigration(db, linked)).statements).toEqual([
      'ALTER TABLE "notes" ALTER CONSTRAINT "notes_next_id_fkey" NOT DEFERRABLE',
    ]);
    expect((await planMigration(db, linked)).statements).toEqual([]);
    await applyMigration(db, notes('string'), { allowDestructive: true });
  });
});
