/** Shared by both JavaScript emitters: how a row, an element and a literal are read. */
import type { Exists } from '../condition.ts';
import { listElements } from '../scalars/list-values.ts';
import { type AncestorRelation, ELEMENT_VALUE, MOST_ANCESTORS, type Related, type Row } from '../types.ts';
import { own, type Scalar } from '../values.ts';

/** Reads `next` only where the condition names the resulting record. */
export type Decision = (record: Row, related: Related, next?: Row) => boolean;
/** `values`: the request's, by slot. Bound once for a request, and asked of many records. */
export type Predicate = (values: readonly unknown[]) => Decision;

// A list this long is looked up by hash.
const LONG_LIST = 8;

export function literalOf(value: Scalar | readonly Scalar[]): unknown {
  if (!Array.isArray(value) || value.length <= LONG_LIST) return value;
  const set = new Set(value);
  return { includes: (element: Scalar) => set.has(element) };
}

export function oneOf({ relation, from, by }: Exists, related: Related, key: unknown): Row | undefined {
  if (key === null || key === undefined) return undefined;
  return by === 'id'
    ? related.one(relation.collection, key as string)
    : related.many(from, relation.name, key as string)[0];
}

export function manyOf({ relation, from, by }: Exists, related: Related, key: unknown): readonly Row[] {
  if (key === null || key === undefined) return [];
  if (relation.kind === 'ancestors') return ancestorsOf(relation, related, key).rows;
  if (relation.kind === 'elements') return elementRows(key as string);
  if (by === 'owner') return related.many(from, relation.name, key as string);
  const rows = (key as readonly string[]).map((id) => related.one(relation.collection, id));
  return rows.filter((row) => row !== undefined);
}

export const elementRows = (list: string): readonly Row[] =>
  listElements(list).map((element) => ({ [ELEMENT_VALUE]: element }));

/** The rows of a count. Undefined: there are more ancestors than count. */
export function countedOf(exists: Exists, related: Related, key: unknown): readonly Row[] | undefined {
  if (exists.relation.kind !== 'ancestors') return manyOf(exists, related, key);
  const { rows, next } = ancestorsOf(exists.relation, related, key);
  return next ? undefined : rows;
}

/** True if there are more ancestors than count. */
export function goesOn({ relation }: Exists, related: Related, key: unknown): boolean {
  return relation.kind === 'ancestors' && ancestorsOf(relation, related, key).next !== undefined;
}

export interface AncestorRows {
  readonly rows: readonly Row[];
  /** The record after the last that counts. */
  readonly next?: Row;
}

/** The record `first` and its ancestors, up to the last that counts or to a record that repeats. */
export function ancestorsOf({ collection, via }: AncestorRelation, related: Related, first: unknown): AncestorRows {
  const rows: Row[] = [];
  const met = new Set<unknown>();
  for (let id = first; id != null && !met.has(id); ) {
    const row = related.one(collection, id as string);
    if (row === undefined) break;
    if (rows.length === MOST_ANCESTORS) return { rows, next: row };
    rows.push(row);
    met.add(id);
    id = own(row, via.name);
  }
  return { rows };
}

export const isToOne = ({ relation }: Exists): boolean => relation.kind === 'belongs_to' || relation.kind === 'has_one';
