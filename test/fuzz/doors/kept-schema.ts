/** A random schema with keys and periods, and with collections that keep their deleted records and their changes. */
import type { CatalogField, Row } from '../../../src/policy/types.ts';
import type { Collection } from '../../../src/schema/model/model.ts';
import type { Id } from '../../oracle/database.ts';
import type { Random } from '../random.ts';

/** The field that may be unique, whose values often meet, also in another case. */
export const SLUG = 'slug';
const SLUGS = ['north', 'North', 'NORTH', 'süd', 'SÜD', 'west', 'east', ''];
const IS_OPEN = '@record.open = true';
const UNIQUE = [
  true,
  { ignore_case: true },
  { within: 'size' },
  { within: 'size' },
  { within: 'size', ignore_case: true },
  { where: IS_OPEN },
  { where: IS_OPEN, ignore_case: true },
];
/** The fields of a period; periods often overlap, and often begin where another one ends. */
const [FROM, TO] = ['start', 'finish'];
const LATEST = 30;
const COMMON = [0, 10, 20, 30];

interface CollectionFile {
  readonly fields: Record<string, object>;
  readonly access: Record<string, unknown>;
}

/** JSON is YAML. The rules of members, and of `restore`, are replaced by the session. */
export function withKept(text: string, names: readonly string[], random: Random): string {
  const file = JSON.parse(text) as { readonly collections: Record<string, CollectionFile> };
  // A history makes each write a transaction.
  const keeps = random.chance(0.5);
  for (const name of names) {
    const collection = file.collections[name]!;
    const access = (share = 0.35) => (random.chance(share) ? { access: { read: true, write: true } } : {});
    const { fields } = collection;
    if (random.chance(0.7)) fields[SLUG] = { type: 'string', max: 40, unique: random.pick(UNIQUE), ...access(0.6) };
    const hasPeriod = random.chance(0.4);
    if (hasPeriod) for (const field of [FROM, TO]) fields[field] = { type: 'int', ...access() };
    Object.assign(collection, hasPeriod && { no_overlap: randomExclusion(random) });
    Object.assign(collection, keeps && random.chance(0.5) && { history: true });
    if (!keeps || random.chance(0.4)) continue;
    Object.assign(collection, { soft_delete: true });
    collection.access.restore = true;
  }
  return JSON.stringify(file);
}

function randomExclusion(random: Random): object {
  const on = random.pick([['stage'], ['size'], ['open', 'size']]);
  return { on, from: FROM, to: TO, ...(random.chance(0.5) && { where: IS_OPEN }) };
}

/** Undefined: the field is not one of these. */
export function keptValue({ name }: CatalogField, random: Random): unknown {
  if (name === SLUG) return random.pick(SLUGS);
  if (name !== FROM && name !== TO) return undefined;
  return random.chance(0.7) ? random.pick(COMMON) : random.below(LATEST);
}

/** The value of a first record, which excludes no other one. */
export function firstValue(id: Id, { name }: CatalogField, otherwise: () => unknown): unknown {
  if (name === SLUG) return String(id).slice(-12);
  return name === FROM || name === TO ? null : otherwise();
}

/** The values of a period that begins where that of another record of the place ends. */
export function touching({ noOverlap = [] }: Collection, rows: readonly Row[], random: Random): Row {
  const [key] = noOverlap;
  const placed = rows.filter((row) => typeof row[FROM] === 'number' && typeof row[TO] === 'number');
  if (key === undefined || placed.length === 0) return {};
  const other = random.pick(placed);
  const end = Math.max(Number(other[FROM]), Number(other[TO]));
  return { ...Object.fromEntries(key.on.map(({ name }) => [name, other[name]])), [FROM]: end, [TO]: end + 1 };
}
