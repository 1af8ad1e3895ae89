/** Field types by the names that other systems give them, and what to write here. */

/** A type, or a sentence if there is none that simply takes its place. */
interface Advice {
  readonly type?: string;
  readonly hint: string;
}

const same = (type: string): Advice => ({ type, hint: `did you mean \`${type}\`?` });
const NUMBER_ADVICE: Advice = { hint: '`int` is for whole numbers, `float` for others' };
const DECIMAL_ADVICE: Advice = { hint: 'write `{ type: decimal, precision: 12, scale: 2 }`' };
const RELATION: Advice = { hint: 'references to records are declared under `relations`, not under `fields`' };
const LIST: Advice = { hint: 'write `{ type: list, of: string }`; for records, use a has_many or a many_to_many' };
const FILE: Advice = { hint: 'a file is a belongs_to to `files`, declared under `relations`' };
const ENUM_ADVICE: Advice = { hint: 'write `{ type: string, enum: [a, b] }`' };

const ADVICE_BY_TYPE: ReadonlyMap<string, Advice> = new Map([
  ...['text', 'varchar', 'char', 'str', 'email', 'url', 'slug'].map((name) => [name, same('string')] as const),
  ...['boolean', 'bit', 'checkbox', 'toggle'].map((name) => [name, same('bool')] as const),
  ...['integer', 'smallint', 'long', 'int4', 'int8'].map((name) => [name, same('int')] as const),
  ...['double', 'real', 'float8'].map((name) => [name, same('float')] as const),
  ...['numeric', 'money'].map((name) => [name, DECIMAL_ADVICE] as const),
  ...['timestamp', 'timestamptz'].map((name) => [name, same('datetime')] as const),
  ['number', NUMBER_ADVICE],
  ...['jsonb', 'object', 'map'].map((name) => [name, same('json')] as const),
  ...['relation', 'reference', 'ref', 'm2o', 'belongs_to', 'has_one', 'has_many', 'many_to_many'].map(
    (name) => [name, RELATION] as const,
  ),
  ...['bytea', 'binary', 'blob', 'varbinary'].map((name) => [name, same('bytes')] as const),
  ...['geometry', 'geography', 'geopoint', 'location', 'latlng'].map((name) => [name, same('point')] as const),
  ...['array', 'tags'].map((name) => [name, LIST] as const),
  ...['file', 'image'].map((name) => [name, FILE] as const),
  ...['enum', 'select'].map((name) => [name, ENUM_ADVICE] as const),
]);

export function foreignType(name: string): Advice | undefined {
  const lower = name.toLowerCase();
  return ADVICE_BY_TYPE.get(lower) ?? (lower.endsWith('[]') ? LIST : undefined);
}
