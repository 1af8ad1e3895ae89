/** Typed parts of json fields, by the paths that a schema declares. A value of another type at the path is absent. */
import type { CatalogField, JsonPart, PartType } from '../types.ts';
import { InexactNumeral, own, parseInt53, plainNumeral, type Scalar } from '../values.ts';

/** No column of a table has such a name. */
const BETWEEN = '\0';

/** The parts of a json field by their paths, such as `size.w`. */
export const jsonPartsOf = (
  { name, column }: Pick<CatalogField, 'name' | 'column'>,
  types: Readonly<Record<string, PartType>>,
): ReadonlyMap<string, CatalogField> =>
  new Map(
    Object.entries(types).map(([path, type]) => {
      const keys = path.split('.');
      const part = { member: name, column, keys };
      const own = { name: `${name}.${path}`, column: [column, ...keys].join(BETWEEN) };
      return [path, { ...own, type, required: false, unique: false, index: false, part }];
    }),
  );

type JsonReviver = (key: string, value: unknown, context?: { readonly source?: string }) => unknown;

/** A number keeps its digits, which doubles may not have. */
const keptDigits: JsonReviver = (_, value, context) =>
  typeof value === 'number' ? new InexactNumeral(context?.source ?? String(value)) : value;

/** PostgreSQL reports an error for numbers of these magnitudes, where JavaScript has 0 or Infinity. */
const BEYOND_FLOATS = /^-?(?:0\.0{300}|\d{301})/;

const PART_READERS: Readonly<Record<PartType, (value: unknown) => Scalar | undefined>> = {
  string: (value) => (typeof value === 'string' ? value : undefined),
  bool: (value) => (typeof value === 'boolean' ? value : undefined),
  int: (value) => (value instanceof InexactNumeral ? parseInt53(plainNumeral(value.text)) : undefined),
  float(value) {
    const plain = value instanceof InexactNumeral ? plainNumeral(value.text) : undefined;
    return plain === undefined || BEYOND_FLOATS.test(plain) ? undefined : Number(plain);
  },
};

/** @param text of the whole value */
export function partOf(text: unknown, { keys }: JsonPart, type: PartType): Scalar | undefined {
  if (typeof text !== 'string') return undefined;
  let value: unknown = JSON.parse(text, keptDigits);
  for (const key of keys) {
    if (typeof value !== 'object' || Array.isArray(value)) return undefined;
    value = own(value as Readonly<Record<string, unknown>> | null, key);
  }
  return PART_READERS[type](value);
}
