/** Values of every type, written to a file in each format and read from it, are the same values. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FORMATS } from '../../../src/cli/transfer/formats/format.ts';
import type { FormatOptions } from '../../../src/cli/transfer/formats/record.ts';
import type { Database } from '../../../src/database/contract.ts';
import { isOpaque } from '../../../src/policy/scalar-types.ts';
import { exportRecords } from '../../../src/records/transfer/export-records.ts';
import { importRecords } from '../../../src/records/transfer/import-records.ts';
import { storedMembersOf } from '../../../src/records/transfer/members.ts';
import { SCALAR_TYPES } from '../../../src/schema/fields/index.ts';
import { raw } from '../../../src/sql.ts';
import {
  BIGINTS,
  BYTES,
  DATES,
  DATETIMES,
  FLOATS,
  INTS,
  POINTS,
  TEXTS,
  TIME_SPELLINGS,
  UUID_SPELLINGS,
} from '../../fuzz/policies/values.ts';
import { ONE_KIND, openKind, World } from '../../support/store-world.ts';

const json = (values: readonly unknown[]): readonly string[] => values.map((value) => JSON.stringify(value));
const listsOf = (values: readonly unknown[]): readonly string[] =>
  json([[], values, ...values.map((value) => [value]), [values.at(-1), values.at(-1)]]);
/** Texts that a format or a spreadsheet may take for another value. */
const MORE_TEXTS = [
  ...TEXTS,
  ' ',
  'a b',
  'a\r\nb',
  '\r',
  '""',
  "'=1",
  '=1',
  '+1',
  '-1',
  '@x',
  '\t',
  'NA',
  '\uFEFF',
  '[]',
];

/** JSON texts of values. */
const VALUES: Readonly<Record<(typeof SCALAR_TYPES)[number], readonly string[]>> = {
  string: json(MORE_TEXTS),
  bool: json([true, false]),
  int: json(INTS),
  float: json(FLOATS),
  bigint: json(BIGINTS),
  decimal: json(['-1234567890123456789.0000000000000000001', '0', '12.50', '-0.1']),
  datetime: json(DATETIMES),
  date: json(DATES),
  time: json(TIME_SPELLINGS),
  uuid: json(UUID_SPELLINGS),
  bytes: json(BYTES),
  point: json(POINTS),
  json: [
    ...json(MORE_TEXTS),
    ...json([{}, [], [null], true, { '': [{ a: [1, '"', ',', '\n', null] }], b: 'x y' }]),
    ...['0', '-1', '12345678901234567890.123456789012345678901', '1e30', '0.10', '{"n":-9007199254740993}'],
  ],
  'string[]': listsOf(MORE_TEXTS),
  'int[]': listsOf(INTS),
  'float[]': listsOf(FLOATS),
  'bool[]': listsOf([true, false]),
  'date[]': listsOf(DATES),
  'datetime[]': listsOf(DATETIMES),
};

const nameOf = (type: string): string => `f_${type.replace('[]', 's')}`;
const declared = (type: string): string => {
  if (type.endsWith('[]')) return `{ type: list, of: ${type.slice(0, -2)} }`;
  return type === 'decimal' ? '{ type: decimal, precision: 38, scale: 19 }' : type;
};
const FIELDS = SCALAR_TYPES.map((type) => `      ${nameOf(type)}: ${declared(type)}\n`).join('');
const SCHEMA = ['source', 'target'].map((name) => `  ${name}:\n    fields:\n${FIELDS}`).join('');

describe.each(ONE_KIND)('files with every type (%s)', (kind) => {
  let db: Database;
  let world: World;
  const collection = (name: string) => world.schema.collections.get(name)!;
  async function* chunksOf(text: string) {
    // In pieces, which cut values.
    for (let at = 0; at < text.length; at += 4_099) yield text.slice(at, at + 4_099);
  }
  const imported = (name: string, format: string, text: string, options: FormatOptions = {}) =>
    importRecords(db, {
      schema: world.schema,
      collection: collection(name),
      now: '2026-01-02T03:04:05.000000Z',
      records: () => FORMATS.get(format)!.read(chunksOf(text), options),
    });
  async function exported(name: string, format: string, options: FormatOptions = {}): Promise<string> {
    const names = storedMembersOf(collection(name), world.schema).map((member) => member.name);
    const opaque = [...collection(name).fields.values()].filter(({ type }) => isOpaque(type));
    const inJson = new Set(opaque.map((field) => field.name));
    const writer = FORMATS.get(format)!.writer(names, { ...options, inJson });
    let text = writer.head;
    let count = 0;
    for await (const record of exportRecords({ q: db, schema: world.schema }, collection(name)))
      text += writer.record(record, count++);
    return text + writer.tail(count);
  }

  beforeAll(async () => {
    db = await openKind(kind);
    world = await World.open(db, `roles: [member]\ncollections:\n${SCHEMA}`);
    const rows = Math.max(...Object.values(VALUES).map((values) => values.length));
    const lines = Array.from({ length: rows + 1 }, (_, i) => {
      const members = SCALAR_TYPES.map((type) => {
        // The first record has no value, and the others have all values of the type in turn.
        const values = VALUES[type];
        return `"${nameOf(type)}":${i === 0 ? 'null' : values[i % values.length]}`;
      });
      return `{${members.join(',')}}\n`;
    });
    expect(await imported('source', 'ndjson', lines.join(''))).toMatchObject({ created: rows + 1 });
  });
  afterAll(() => db?.close());

  test.each([
    ['ndjson', {}],
    ['json', {}],
    ['csv', {}],
    ['csv', { hasSafeCells: true }],
  ] as const)('an export is imported with the same values: %s %j', async (format, options) => {
    await db.run(raw('DELETE FROM target'));
    const text = await exported('source', format, options);
    await imported('target', format, text, options);
    expect(await exported('target', 'ndjson')).toBe(await exported('source', 'ndjson'));
  });
});
