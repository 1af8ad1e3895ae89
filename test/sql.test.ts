// @module-tag long
/** Fragments of SQL: their text and parameters, independent of earlier ones, and the shapes that they share. */
import { describe, expect, it } from 'vitest';
import { ident, join, Param, param, plannedParam, raw, type Sql, type SqlType, sql, typedLiteral } from '../src/sql.ts';
import { Random } from './fuzz/random.ts';

/** A fragment, and its parts in order. */
interface Built {
  readonly sql: Sql;
  readonly pieces: readonly (string | Param)[];
}

const TYPES: readonly SqlType[] = ['text', 'uuid', 'int8', 'text[]', 'uuid[]'];
const SEPARATORS = [', ', ' OR ', '', 'text'];
const NAMES = ['a', 'a"b', 'a.b', '', 'text', '$1'];
const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

type Build = (random: Random, inner: () => Built) => Built;
const LEAVES: readonly Build[] = [
  (random) => {
    const text = random.pick([`w${random.below(30)} `, '', '$1::text', 'text', quoted('a')]);
    return { sql: raw(text), pieces: [text] };
  },
  (random) => {
    const name = random.pick(NAMES);
    return { sql: ident(name), pieces: [quoted(name)] };
  },
  (random) => {
    const [name, column] = [random.pick(NAMES), random.pick(NAMES)];
    return { sql: ident(name, column), pieces: [`${quoted(name)}.${quoted(column)}`] };
  },
  (random) => {
    const value = param(random.pick(TYPES), random.below(1_000));
    return { sql: sql`${value}`, pieces: [value] };
  },
  (random) => {
    const value = random.below(50);
    return { sql: typedLiteral('int8', value), pieces: [`${value}::int8`] };
  },
  (random) => {
    const value = plannedParam(random.pick(TYPES), random.below(1_000));
    return { sql: sql`${value}`, pieces: [value] };
  },
  (random) => {
    const value = `o'${random.below(50)}`;
    return { sql: typedLiteral('text', value), pieces: [`'${value.replace("'", "''")}'::text`] };
  },
];
const TREES: readonly Build[] = [
  (_, inner) => {
    const [a, b] = [inner(), inner()];
    return { sql: sql`(${a.sql} AND ${b.sql})`, pieces: ['(', ...a.pieces, ' AND ', ...b.pieces, ')'] };
  },
  (_, inner) => {
    const [a, b] = [inner(), inner()];
    return { sql: sql`(${a.sql} OR ${b.sql})`, pieces: ['(', ...a.pieces, ' OR ', ...b.pieces, ')'] };
  },
  (random, inner) => {
    const [a, value] = [inner(), param(random.pick(TYPES), ['x'])];
    return { sql: sql`${a.sql} = ${value} `, pieces: [...a.pieces, ' = ', value, ' '] };
  },
  (random, inner) => {
    const parts = Array.from({ length: random.below(5) }, inner);
    const separator = random.pick(SEPARATORS);
    const fragments = parts.map((part) => part.sql);
    const pieces = parts.flatMap((part, i) => (i === 0 ? part.pieces : [separator, ...part.pieces]));
    return { sql: join(fragments, separator), pieces };
  },
];

function built(random: Random, depth: number): Built {
  const build = depth === 0 ? random.pick(LEAVES) : random.pick([...LEAVES, ...TREES, ...TREES]);
  return build(random, () => built(random, depth - 1));
}

function textOf(pieces: readonly (string | Param)[]): string {
  let number = 0;
  return pieces.map((piece) => (piece instanceof Param ? `$${++number}::${piece.type}` : piece)).join('');
}

const find = (type: SqlType, value: unknown): Sql =>
  sql`SELECT ${ident('t', 'id')} WHERE ${join([sql`x = ${param(type, value)}`, sql`y IS NULL`], ' AND ')}`;

/** A statement whose text depends on `n`, as one with the fields that a request chose. */
const chosen = (n: number): Sql =>
  join(
    Array.from({ length: 20 }, (_, i) => ident('t', `c${(n >> i) & 1 ? i : 'x'}`)),
    ', ',
  );

/** Runs `work` until the cache has dropped what it held. Fails if it never does. */
function untilDropped(work: (n: number) => void, most = 60_000): void {
  const { shape } = find('text', 1);
  for (let n = 0; n < most; n++) {
    work(n);
    if (find('text', 1).shape !== shape) return;
  }
  throw new Error('the cache grows without a limit');
}

it('a fragment has the text and the parameters of its parts, independent of earlier ones', () => {
  const random = new Random(20261122);
  const held: Built[] = [];
  // Some fragments outlive the cache that they were made with.
  for (let i = 0; i < 6_000; i++) {
    const made = built(random, 1 + random.below(4));
    if (i % 100 === 0) held.push(made);
    const old = held.length > 0 ? random.pick(held) : made;
    const both = {
      sql: sql`${made.sql} / ${old.sql}`,
      pieces: [...made.pieces, ' / ', ...old.pieces],
    };
    for (const each of [made, both]) {
      expect(each.sql.text).toBe(textOf(each.pieces));
      const params = each.pieces.filter((piece) => piece instanceof Param);
      expect(each.sql.params).toEqual(params);
      expect(each.sql.isPlannedAnew).toBe(params.some(({ isPlannedFor }) => isPlannedFor));
    }
    if (i % 2_000 === 1_999) untilDropped(chosen);
  }
});

describe('fragments that are made alike', () => {
  it('equal fragments share their shape, and not their values', () => {
    expect(find('text', 'a').shape).toBe(find('text', 'b').shape);
    expect(find('text', 'a').values).toEqual(['a']);
    expect(find('text', 'b').values).toEqual(['b']);
    expect(find('uuid[]', ['a', 'b']).shape).toBe(find('uuid[]', []).shape);
    expect(find('uuid[]', ['a', 'b']).values).toEqual([['a', 'b']]);
    expect(JSON.stringify(find('text', `'; DROP TABLE t`).shape)).not.toContain('DROP');
  });

  it('fragments of another type, template, separator, order or number of parts have another shape', () => {
    const [a, b] = [sql`a = ${param('text', 1)}`, sql`b = ${param('int8', 2)}`];
    const texts = [
      find('text', 'a'),
      find('text[]', 'a'),
      find('uuid', 'a'),
      sql`${a}, ${b}`,
      sql`${b}, ${a}`,
      sql`${a},  ${b}`,
      join([a, b], ' AND '),
      join([a, b], ' OR '),
      join([a], ' AND '),
      join([a, b, a], ' AND '),
      join([], ' AND '),
      ident('t.id'),
      ident('t', 'id'),
      raw('t'),
      ident('t'),
    ].map(({ text }) => text);
    expect(texts.slice(0, 5)).toEqual([
      'SELECT "t"."id" WHERE x = $1::text AND y IS NULL',
      'SELECT "t"."id" WHERE x = $1::text[] AND y IS NULL',
      'SELECT "t"."id" WHERE x = $1::uuid AND y IS NULL',
      'a = $1::text, b = $2::int8',
      'b = $1::int8, a = $2::text',
    ]);
    expect(new Set(texts).size).toBe(texts.length);
  });
});

describe('the cache', () => {
  it('the cache limits its shapes, and makes dropped ones again', () => {
    const { text, shape } = find('text', 1);
    untilDropped(chosen);
    expect(find('text', 1).text).toBe(text);
    expect(find('text', 1).shape).not.toBe(shape);
    expect(find('text', 1).shape).toBe(find('text', 2).shape);
  });

  it.each<readonly [name: string, work: (n: number) => Sql]>([
    ['names', (n) => ident(`name ${n}`)],
    ['texts', (n) => raw(`text ${n}`)],
    ['literals of the program', (n) => typedLiteral('int8', n)],
    ['separators', (n) => join([], `${n}`)],
  ])('the cache limits %s too', (_, work) => {
    untilDropped(work);
  });

  it('the cache limits the length of its texts', () => {
    const long = raw('x'.repeat(1_000_000));
    untilDropped((n) => sql`${long}${ident(`c${n}`)}`, 20);
    untilDropped((n) => join([long, ident(`c${n}`)], ', '), 20);
    untilDropped((n) => raw(`${n}`.padEnd(1_000_000)), 20);
  });

  it('the cache holds no values: each statement requests its own custom plan', () => {
    const asked = (value: Param): Sql => sql`SELECT ${join([sql`a`, sql`(x = ${value})`], ' AND ')}`;
    const [planned, any] = [asked(plannedParam('text', 'a')), asked(param('text', 'a'))];
    expect([planned.text, planned.shape]).toEqual([any.text, any.shape]);
    expect([planned.isPlannedAnew, any.isPlannedAnew, sql`${any}, ${planned}`.isPlannedAnew]).toEqual([
      true,
      false,
      true,
    ]);
    // Nor do any number of values push out what it holds.
    const { shape } = find('text', 1);
    for (let n = 0; n < 60_000; n++) asked(plannedParam('text', `value ${n}`));
    expect(find('text', 1).shape).toBe(shape);
  });
});
