/** The order of a query by its definition: nulls last in both directions, strings by code point, ties by id. */
import type { Catalog, CatalogCollection, Related, Row, ScalarType } from '../../src/policy/types.ts';
import { folded } from './interpret.ts';

export interface Ordering {
  readonly catalog: Catalog;
  readonly collection: string;
  /** The visible part of other records. */
  readonly related: Related;
}

/** @param rows as the caller sees them. `sort`: `field`, `-field`, `-owner.name`. */
export function inOrder(rows: readonly Row[], sort: readonly string[], ordering: Ordering): readonly Row[] {
  const keys = [...sort.flatMap(spelledOut), 'id'].map((text) => ({
    names: text.replace(/^-/, '').split('.'),
    sign: text.startsWith('-') ? -1 : 1,
  }));
  return rows.toSorted((a, b) => {
    for (const { names, sign } of keys) {
      const order = ranked(cellOf(a, names, ordering), cellOf(b, names, ordering), sign);
      if (order !== 0) return order;
    }
    return 0;
  });
}

/** Texts that fold alike are in the order of their code points. */
const spelledOut = (text: string): readonly string[] =>
  text.endsWith(FOLDED) ? [text, text.slice(0, -FOLDED.length)] : [text];
const FOLDED = ':text';

/** The sort values of a record, which JSON can write. */
export const keysOf = (row: Row, sort: readonly string[], ordering: Ordering): readonly unknown[] =>
  sort
    .flatMap(spelledOut)
    .map((text) => cellOf(row, text.replace(/^-/, '').split('.'), ordering))
    .map((value) => (typeof value === 'bigint' ? String(value) : value));

/** A key of several columns is in the order of each of them. */
export function placeOf(row: Row, { key }: CatalogCollection): unknown {
  const { parts } = (key ?? {}) as { readonly parts?: readonly { readonly column: string }[] };
  return parts === undefined ? row.id : parts.map(({ column }) => row[column]);
}

function cellOf(row: Row, [name, ...rest]: readonly string[], { catalog, collection, related }: Ordering): unknown {
  if (rest.length === 0 && name === 'id') return placeOf(row, catalog.collections.get(collection)!);
  if (rest.length === 0 && name!.endsWith(FOLDED)) {
    const value = row[name!.slice(0, -FOLDED.length)] ?? null;
    return value === null ? null : folded(String(value));
  }
  if (rest.length === 0)
    return sortedBy(row[name!] ?? null, catalog.collections.get(collection)!.fields.get(name!)?.type);
  const relation = catalog.collections.get(collection)!.relations.get(name!)!;
  const id = row[name!] ?? null;
  const target =
    relation.kind === 'belongs_to'
      ? id === null
        ? undefined
        : related.one(relation.collection, id as string)
      : related.many(collection, relation.name, row.id as string)[0];
  if (target === undefined) return null;
  return cellOf(target, rest, { catalog, collection: relation.collection, related });
}

/** Numbers that are written as strings sort by value. */
export const sortedBy = (value: unknown, type: ScalarType | undefined): unknown =>
  type === 'bigint' && typeof value === 'string' ? BigInt(value) : value;

/** @param sign -1: descending, in which null still comes last. */
export function ranked(a: unknown, b: unknown, sign: number): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  return sign * compared(a, b);
}

/** Compares two values of one type: string, number, bigint or boolean, or lists of such values. */
export function compared(a: unknown, b: unknown): number {
  if (Array.isArray(a) && Array.isArray(b))
    return a.map((value, i) => compared(value, b[i])).find((order) => order !== 0) ?? 0;
  if (typeof a === 'string' && typeof b === 'string') return Math.sign(Buffer.compare(Buffer.from(a), Buffer.from(b)));
  const [left, right] = [a as number, b as number];
  return left < right ? -1 : left > right ? 1 : 0;
}
