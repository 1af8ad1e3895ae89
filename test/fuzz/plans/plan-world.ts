/**
 * A random schema and its tables, which the server fills by itself: values of uneven frequency, which are spread, lie
 * together or follow a reference, and tables that are steady, grow, or hold dead rows.
 */
import type { Random } from '../random.ts';

export interface ReferenceSpec {
  readonly name: string;
  readonly collection: string;
  /** The number of the row that it leads to. */
  readonly sql: string;
  /** The has_many of the other collection. */
  readonly back: string | undefined;
}
export interface FieldSpec {
  readonly name: string;
  readonly type: 'string' | 'int' | 'bool' | 'datetime';
  readonly isIndexed: boolean;
  readonly isSearched: boolean;
  readonly isRequired: boolean;
  readonly sql: string;
  /** Values that occur often, seldom and never. */
  readonly values: readonly unknown[];
}
/** `grown`: a quarter of the rows came after the statistics; `updated` and `deleted`: dead rows remain. */
type TableState = 'steady' | 'grown' | 'updated' | 'deleted';
export interface TableSpec {
  readonly name: string;
  readonly rows: number;
  readonly references: readonly ReferenceSpec[];
  readonly fields: readonly FieldSpec[];
  readonly links: LinkSpec | undefined;
  readonly state: TableState;
}
interface LinkSpec {
  readonly name: string;
  readonly collection: string;
  readonly rows: number;
  /** The number of the linked record. */
  readonly sql: string;
}
export interface WorldSpec {
  readonly tables: readonly TableSpec[];
}

/** The users with roles of their own in the tables; all later ones are alike. */
export const CALLERS = [1, 2, 3, 4, 17] as const;
const FIRST_OTHER = 5;
const NAMES = ['teams', 'projects', 'docs', 'notes'] as const;
/** The instant of all requests. */
export const NOW = '2026-01-01T00:00:00.000000Z';

export const tableOf = ({ tables }: WorldSpec, name: string): TableSpec => tables.find((each) => each.name === name)!;

const kindOf = (collection: string): number => 1 + ['users', ...NAMES].indexOf(collection);
export const idOf = (collection: string, n: number): string =>
  `0190000${kindOf(collection)}-0000-7000-8000-${n.toString(16).padStart(12, '0')}`;
const madeId = (collection: string, n: string): string =>
  `('0190000${kindOf(collection)}-0000-7000-8000-' || lpad(to_hex(${n}), 12, '0'))::uuid`;

// ---------------------------------------------------------------- the random parts

/** In [0, 1), as if it were random. */
const hashed = (of: string, salt: number): string => `((hashint8extended(${of}, ${salt}) & 1048575)::float8 / 1048576)`;

/** A place in [0, 1) for each row: spread, in the order of the rows, or by the row of a reference. */
function placeOf(rows: number, references: readonly ReferenceSpec[], random: Random): string {
  const [reference] = random.shuffled(references);
  // Columns of one salt go together.
  const salt = random.below(3);
  const roll = random.next();
  if (roll < 0.5) return hashed('n', salt);
  if (roll < 0.7) return `((n - 1) / ${rows}::float8)`;
  if (roll < 0.8) return `(1 - n / ${rows}::float8)`;
  return reference === undefined ? hashed('n', salt) : hashed(`coalesce("r_${reference.name}", 0)`, salt);
}

/** The first value where the place is below its share, and so on; the last value else. */
function byShares(place: string, values: readonly string[], shares: readonly number[]): string {
  let end = 0;
  const cases = shares.slice(0, values.length - 1).map((share, i) => {
    end += share;
    return `WHEN ${place} < ${end.toFixed(7)} THEN ${values[i]}`;
  });
  return `CASE ${cases.join(' ')} ELSE ${values.at(-1)} END`;
}

export function randomWorld(random: Random, base: number): WorldSpec {
  const users: TableSpec = {
    name: 'users',
    rows: Math.max(100, Math.round(base / 40)),
    references: [],
    fields: [randomField('level', { rows: base / 40, references: [], random })],
    links: undefined,
    state: 'steady',
  };
  const tables = [users];
  const large = random.pick(NAMES.slice(1));
  for (const name of NAMES) {
    const share = name === large ? 1 : random.pick(name === 'teams' ? [0.005, 0.02, 0.1] : [0.02, 0.1, 0.3, 1]);
    tables.push(randomTable(name, Math.max(50, Math.round(base * share)), { tables, random }));
  }
  return { tables };
}

interface Drawing {
  readonly tables: readonly TableSpec[];
  readonly random: Random;
}

function randomTable(name: string, rows: number, { tables, random }: Drawing): TableSpec {
  const references: ReferenceSpec[] = [];
  const [users, ...others] = tables;
  const refer = (of: string, target: TableSpec, sql: string) => {
    const back = random.chance(0.85) ? `${name}_of_${of}` : undefined;
    references.push({ name: of, collection: target.name, sql, back });
  };
  if (name === 'teams' ? random.chance(0.4) : random.chance(0.9)) refer('owner', users!, userOf(rows, users!, random));
  if (random.chance(0.25)) refer('editor', users!, userOf(rows, users!, random));
  for (const target of random.shuffled(others).slice(0, random.pick([0, 1, 1, 1, 2])))
    refer(target.name.slice(0, -1), target, referenceTo(rows, target, random));
  if (references.length === 0) refer('owner', users!, userOf(rows, users!, random));
  const own = { rows, references, random };
  const fields = ['status', 'kind', 'open', 'score', 'due', 'body', 'title']
    .filter((field) => random.chance(field === 'title' ? 0.25 : 0.65))
    .map((field) => randomField(field, own));
  const target = others.length > 0 && random.chance(0.4) ? random.pick(others) : undefined;
  const isReferred = tables.length < NAMES.length;
  const state = random.pick<TableState>([
    ...Array<TableState>(5).fill('steady'),
    'grown',
    'grown',
    'updated',
    isReferred || target !== undefined ? 'updated' : 'deleted',
  ]);
  const links = target && {
    name: 'labels',
    collection: target.name,
    rows: 2 * rows,
    sql: random.chance(0.5) ? `1 + n * 7919 % ${target.rows}` : frequent(target.rows, random),
  };
  return { name, rows, references, fields, links, state };
}

/** A few numbers are far more frequent than others. */
const frequent = (rows: number, random: Random): string =>
  `1 + floor(${rows} * pow(${hashed('n', random.below(1000))}, ${random.pick([2, 4, 8])}))::int8`;

/** Each of four users has none, a few or many of the rows. */
function userOf(rows: number, users: TableSpec, random: Random): string {
  const few = [5, 50, 500].map((count) => Math.min(0.1, count / rows));
  const shares = [0.45, random.pick([0, ...few]), 0, random.pick([0, 0.05, ...few])].map((share) =>
    random.chance(0.7) ? share : random.pick([0, ...few]),
  );
  const others = random.chance(0.5)
    ? `${FIRST_OTHER} + n * 7907 % ${users.rows - FIRST_OTHER}`
    : `${FIRST_OTHER} - 1 + ${frequent(users.rows - FIRST_OTHER, random)}`;
  return byShares(placeOf(rows, [], random), [...random.shuffled(['1', '2', '3', '4']), others], shares);
}

function referenceTo(rows: number, target: TableSpec, random: Random): string {
  const even = `1 + n * 7919 % ${target.rows}`;
  const aligned = `1 + (n - 1) * ${target.rows} / ${rows}`;
  const made = random.pick([even, even, aligned, frequent(target.rows, random)]);
  if (random.chance(0.7)) return made;
  return `CASE WHEN ${hashed('n', 77)} < ${random.pick([0.1, 0.5, 0.99])} THEN NULL ELSE ${made} END`;
}

interface FieldDrawing {
  readonly rows: number;
  readonly references: readonly ReferenceSpec[];
  readonly random: Random;
}

const SHARES: readonly (readonly number[])[] = [
  [0.97, 0.0275, 0.0025],
  [0.9, 0.0999, 0.0001],
  [0.5, 0.3, 0.2],
  [0.0005, 0.0095, 0.99],
  [0.65, 0.3499, 0.0001],
];
const quoted = (text: string): string => `'${text}'`;

function randomField(name: string, { rows, references, random }: FieldDrawing): FieldSpec {
  const place = placeOf(rows, references, random);
  const isIndexed = random.chance(0.65);
  const own = { name, isIndexed, isSearched: false, isRequired: true };
  switch (name) {
    case 'status':
    case 'level': {
      const values = ['draft', 'ready', 'odd'];
      const sql = byShares(place, values.map(quoted), random.pick(SHARES));
      // A new user has an address alone.
      return { ...own, isRequired: name !== 'level', type: 'string', sql, values: [...values, 'none'] };
    }
    case 'kind': {
      const count = random.pick([7, 50, 1000]);
      const sql = `'kind ' || floor(${count} * pow(${place}, ${random.pick([1, 3, 6])}))`;
      const values = [0, 1, Math.floor(count / 2), count - 1, count].map((each) => `kind ${each}`);
      return { ...own, type: 'string', sql, values };
    }
    case 'open':
      return {
        ...own,
        type: 'bool',
        sql: `${place} < ${random.pick([0.5, 0.99, 0.01, 0.001])}`,
        values: [true, false],
      };
    case 'score': {
      const most = random.pick([100, 1_000_000]);
      const isRequired = random.chance(0.6);
      const value = `floor(${most} * pow(${place}, ${random.pick([1, 1, 4])}))::int8`;
      const sql = isRequired ? value : `CASE WHEN ${hashed('n', 9)} < 0.6 THEN ${value} END`;
      const values = [0, 1, 0.01, 0.5, 0.99, 1.5].map((share) => (share === 1 ? 1 : Math.floor(share * most)));
      return { ...own, isRequired, type: 'int', sql, values };
    }
    case 'due': {
      const isRequired = random.chance(0.6);
      const value = `timestamptz '${NOW}' + floor(${rows} * (${place} - 0.5)) * interval '1 minute'`;
      const sql = isRequired ? value : `CASE WHEN ${hashed('n', 8)} < 0.6 THEN ${value} END`;
      const at = (share: number) => new Date(Date.parse(NOW) + Math.floor(rows * share) * 60_000).toISOString();
      return { ...own, isRequired, type: 'datetime', sql, values: [-0.499, -0.4, 0, 0.4, 0.499].map(at) };
    }
    case 'title': {
      const sql = `'title ' || n % 1000 || ' of ' || floor(50 * ${place})`;
      const values = ['title 77 ', 'of 3', 'title', 'title 999 of 1', 'nothing'];
      return { ...own, isIndexed: false, isSearched: true, type: 'string', sql, values };
    }
    default: {
      const count = random.pick([10, 10_000]);
      const values = ['b1', `b${count - 1}`, 'b'];
      return { ...own, isIndexed: false, type: 'string', sql: `'b' || n % ${count}`, values };
    }
  }
}

// ---------------------------------------------------------------- the schema file

/** @param rules the list rules of each collection */
export function schemaText({ tables }: WorldSpec, rules: ReadonlyMap<string, readonly string[]>): string {
  const collections = tables.map(({ name, fields, references, links }) => {
    const backs = tables.flatMap((other) =>
      other.references
        .filter(({ collection, back }) => collection === name && back !== undefined)
        .map((each) => [each.back!, { kind: 'has_many', collection: other.name, via: each.name }] as const),
    );
    const own = references.map(
      (each) => [each.name, { kind: 'belongs_to', collection: each.collection, on_delete: 'cascade' }] as const,
    );
    const linked =
      links === undefined ? [] : [[links.name, { kind: 'many_to_many', collection: links.collection }] as const];
    const shown = rules.get(name) ?? [];
    const view = shown.length === 0 ? true : shown.map((when) => ({ when }));
    return [
      name,
      {
        fields: Object.fromEntries(fields.map((field) => [field.name, fieldShape(field)])),
        relations: Object.fromEntries([...own, ...backs, ...linked]),
        access: { view },
      },
    ] as const;
  });
  return JSON.stringify({
    roles: ['member'],
    register: { roles: ['member'] },
    limits: { query_time: '60s' },
    collections: Object.fromEntries(collections),
  });
}

const fieldShape = ({ type, isIndexed, isRequired, isSearched }: FieldSpec): object => ({
  type,
  ...(type === 'string' && { max: 100 }),
  ...(isRequired && { required: true }),
  ...(isIndexed && { index: true }),
  ...(isSearched && { search: true }),
});

// ---------------------------------------------------------------- the rows

export interface StoredNames {
  readonly table: string;
  /** The column of a field or belongs_to. */
  readonly columns: ReadonlyMap<string, string>;
  readonly links: { readonly table: string; readonly source: string; readonly target: string } | undefined;
}

/** Statements in turn. `analysed`: PostgreSQL looks at the tables before the rest. */
export interface Filling {
  readonly analysed: readonly string[];
  readonly later: readonly string[];
}

const GROWTH = 0.75;

export function fillingsOf(table: TableSpec, names: StoredNames): Filling {
  const { rows, state, links, name } = table;
  const insert = (from: number, to: number) => inserted(table, names, from, to);
  const known = state === 'grown' ? Math.round(rows * GROWTH) : rows;
  const linked =
    links === undefined || names.links === undefined
      ? []
      : [
          `INSERT INTO "${names.links.table}" ("${names.links.source}", "${names.links.target}")
           SELECT ${madeId(name, `1 + n * 7907 % ${rows}`)}, ${madeId(links.collection, links.sql)}
             FROM generate_series(1::int8, ${links.rows}) AS n
               ON CONFLICT DO NOTHING`,
        ];
  const later: readonly string[] =
    state === 'grown'
      ? [insert(known + 1, rows)]
      : state === 'updated'
        ? [`UPDATE "${names.table}" SET updated_at = updated_at + interval '1 second' WHERE ${isOfHead(name, rows)}`]
        : state === 'deleted'
          ? [`DELETE FROM "${names.table}" WHERE ${isOfHead(name, rows)}`]
          : [];
  const analysedLinks = names.links === undefined ? [] : [`ANALYZE "${names.links.table}"`];
  return { analysed: [insert(1, known), ...linked, `ANALYZE "${names.table}"`, ...analysedLinks], later };
}

/** A third of the rows, the first ones. */
const isOfHead = (name: string, rows: number): string => `id < '${idOf(name, Math.round(rows / 3))}'`;

function inserted(table: TableSpec, { table: stored, columns }: StoredNames, from: number, to: number): string {
  const { name, references, fields } = table;
  const isUsers = name === 'users';
  const own = fields.flatMap((field) => {
    const column = columns.get(field.name)!;
    return [[column, field.sql] as const, ...(field.isSearched ? [[`${column}~folded`, field.sql] as const] : [])];
  });
  const held = references.map(
    (each) => [columns.get(each.name)!, madeId(each.collection, `"r_${each.name}"`)] as const,
  );
  const stamps = `timestamptz '${NOW}' - (${table.rows} - n) * interval '1 second'`;
  const values: readonly (readonly [string, string])[] = [
    ['id', madeId(name, 'n')],
    ['created_at', stamps],
    ['updated_at', stamps],
    ...(isUsers
      ? ([
          ['email', `'user' || n || '@example.com'`],
          ['email_verified', 'true'],
        ] as const)
      : []),
    ...own,
    ...held,
  ];
  const numbers = references.map((each) => `, (${each.sql})::int8 AS "r_${each.name}"`).join('');
  return `INSERT INTO "${stored}" (${values.map(([column]) => `"${column}"`).join(', ')})
    SELECT ${values.map(([, made]) => made).join(', ')}
      FROM (SELECT n${numbers} FROM generate_series(${from}::int8, ${to}) AS n) AS made`;
}
