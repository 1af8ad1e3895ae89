/** Fields whose values are whole: lists, json and points, as bodies and answers have them and as policies see them. */
import { listElements, listText } from '../../../src/policy/scalars/list-values.ts';
import type { CatalogField, ScalarType } from '../../../src/policy/types.ts';
import { POINTS, scalarOf } from '../policies/values.ts';
import type { Random } from '../random.ts';

/** The declarations of the fields, by their names. */
export const WHOLE_FIELDS: Readonly<Record<string, object>> = {
  labels: { type: 'list', of: 'string' },
  ranks: { type: 'list', of: 'int' },
  meta: { type: 'json', paths: { a: 'string', 'b.n': 'int', 'b.ok': 'bool' } },
  place: { type: 'point' },
  shares: { type: 'list', of: 'float' },
  flags: { type: 'list', of: 'bool' },
  days: { type: 'list', of: 'date' },
  moments: { type: 'list', of: 'datetime' },
  price: { type: 'decimal', precision: 38, scale: 19 },
  blob: { type: 'bytes' },
};
/** A number of a body is a double, so none has more digits here. Keys are in their order. */
const DOCUMENTS = [
  '{}',
  '[]',
  '[null]',
  '{"a":1,"b":["x",0.5]}',
  '{"a":"x","b":{"n":1,"ok":true}}',
  '{"a":"a","b":{"n":9007199254740991,"ok":false}}',
  '{"a":null,"b":{"n":"1","ok":1}}',
  '{"b":{"n":-1.5,"ok":null}}',
];

const isListType = (type: ScalarType): boolean => type.endsWith('[]');

/** Answers spell a value in another way than policies see it. */
const isPrintedOtherwise = (type: ScalarType): boolean =>
  isListType(type) || type === 'point' || type === 'decimal' || type === 'bytes';

/** Undefined: a field of another kind. */
export function wholeValue({ type }: CatalogField, random: Random): string | undefined {
  if (type === 'json') return random.pick(DOCUMENTS);
  if (isPrintedOtherwise(type)) return scalarOf(type, random) as string;
  return undefined;
}

/** The value in the body of a write. */
export function inBody({ type }: Pick<CatalogField, 'type'>, value: unknown): unknown {
  if (typeof value !== 'string') return value;
  if (isListType(type)) return listElements(value);
  if (type === 'json') return JSON.parse(value);
  if (type === 'bytes') return Buffer.from(value.slice(2), 'hex').toString('base64');
  if (type !== 'point') return value;
  const [lng, lat] = value.slice(1, -1).split(',').map(Number);
  return POINTS.find((each) => each.lng === lng && each.lat === lat);
}

/** The value of an answer as policies see it. */
export function fromAnswer({ type }: Pick<CatalogField, 'type'>, value: unknown): unknown {
  if (value === null || value === undefined) return value;
  if (isListType(type)) return listText(value as readonly (string | number)[]);
  if (type === 'json') return spelled(value);
  if (type === 'bytes') return `\\x${Buffer.from(value as string, 'base64').toString('hex')}`;
  if (type === 'decimal') return (value as string).replace(/\.?0*$/, '');
  if (type !== 'point') return value;
  const { lat, lng } = value as (typeof POINTS)[number];
  return `(${lng},${lat})`;
}

/** The keys of objects in their order. */
const spelled = (value: unknown): string =>
  JSON.stringify(value, (_, each: unknown) =>
    each !== null && typeof each === 'object' && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  );
