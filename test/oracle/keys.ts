/** The keys of a schema by their definition: unique values, and periods that do not overlap. Shares no code with the store. */
import type { Catalog, CatalogCollection, Checked, PolicyRequest, Related, Row } from '../../src/policy/types.ts';
import type { Data } from './database.ts';
import { interpret } from './interpret.ts';

interface Stored {
  readonly catalog: Catalog;
  readonly data: Data;
  readonly request: PolicyRequest;
}
interface Condition {
  readonly checked: Checked;
}
/** The schema says more of a field than policies need. */
interface KeyField {
  readonly name: string;
  readonly unique: boolean;
  readonly uniqueWithin?: string | undefined;
  readonly uniqueKey?: {
    readonly within: readonly string[];
    readonly where?: Condition;
    readonly ignoresCase?: boolean;
  };
}
interface Named {
  readonly name: string;
}
interface Apart {
  readonly on: readonly Named[];
  readonly from: Named;
  readonly to: Named;
  readonly where?: Condition;
}
type KeyedCollection = CatalogCollection & { readonly noOverlap?: readonly Apart[] };

/** True if no two records have one key, and no two periods of one place overlap. */
export function holdsKeys(stored: Stored): boolean {
  for (const [name, collection] of stored.catalog.collections) {
    const rows = stored.data.rows.get(name)!;
    const fields: readonly KeyField[] = [...collection.fields.values()];
    for (const field of fields) {
      const keys = rows.filter((row) => isMet(field.uniqueKey?.where, row, stored)).map((row) => keyOf(field, row));
      const taken = keys.filter((key) => key !== undefined);
      if (new Set(taken).size < taken.length) return false;
    }
    const { noOverlap = [] } = collection as KeyedCollection;
    if (noOverlap.some((apart) => hasOverlap(apart, rows, stored))) return false;
  }
  return true;
}

/** The members that a value is unique within. */
export const membersWithin = ({ uniqueKey, uniqueWithin }: KeyField): readonly string[] =>
  uniqueKey?.within ?? (uniqueWithin === undefined ? [] : [uniqueWithin]);

/** The values of a key; undefined: the field has none, or the record has no value. */
export function keyOf(field: KeyField, row: Row): string | undefined {
  const { name, unique, uniqueKey } = field;
  const within = membersWithin(field);
  if ((!unique && uniqueKey === undefined && within.length === 0) || row[name] === null) return undefined;
  const value = uniqueKey?.ignoresCase === true ? String(row[name]).toLowerCase() : row[name];
  return JSON.stringify([...within.map((member) => row[member]), value]);
}

/** A condition of a key reads no other record. */
const NOTHING_RELATED: Related = { one: () => undefined, many: () => [] };

const isMet = (where: Condition | undefined, record: Row, { request }: Stored): boolean =>
  where === undefined || interpret(where.checked, { record, related: NOTHING_RELATED, request }) === true;

function hasOverlap({ on, from, to, where }: Apart, rows: readonly Row[], stored: Stored): boolean {
  const placed = rows.filter(
    (row) =>
      on.every(({ name }) => row[name] !== null) &&
      (row[from.name] !== null || row[to.name] !== null) &&
      isMet(where, row, stored),
  );
  const periods = placed.map((row) => {
    const [first, last] = [
      Number(row[from.name] ?? Number.NEGATIVE_INFINITY),
      Number(row[to.name] ?? Number.POSITIVE_INFINITY),
    ];
    const place = JSON.stringify(on.map(({ name }) => row[name]));
    return { place, begin: Math.min(first, last), end: Math.max(first, last) };
  });
  return periods.some((a, i) =>
    periods.slice(i + 1).some((b) => a.place === b.place && Math.max(a.begin, b.begin) < Math.min(a.end, b.end)),
  );
}
