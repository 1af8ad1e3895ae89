/** A world as a document: the JSON of the commands. */
import type { World } from '../policy/analyse/solve/world.ts';
import { type Catalog, type CatalogField, type RequestFacts, type Row, STAMPS } from '../policy/types.ts';
import { own } from '../policy/values.ts';
import { FIELD_KINDS } from '../schema/fields/index.ts';

export interface WorldDocument {
  readonly caller: 'guest' | Row | { readonly key: unknown; readonly roles: unknown };
  readonly request: { readonly now: string; readonly query: object; readonly data?: object } & RequestFacts;
  /** The stored record; on create the one that the request makes. */
  readonly record: Row;
  /** The result of an update. */
  readonly next?: Row;
  readonly related: Readonly<Record<string, readonly Row[]>>;
  readonly links: World['links'];
}

/** Values are as records have them in JSON. */
export function worldDocument(world: World, { collections }: Catalog): WorldDocument {
  const { request, record, written, rows, links, isGuest, collection } = world;
  const inJson = (name: string, row: Row): Row => {
    const { fields } = collections.get(name)!;
    return mapped(row, (key, value) => jsonValue(fields.get(key), value));
  };
  const related = [...rows].map(
    ([name, all]) => [name, all.filter((row) => row !== record).map((row) => inJson(name, row))] as const,
  );
  const next = written && inJson(collection, written);
  const { fields } = collections.get(collection)!;
  // The body has the values of the written record. The service takes no times of it.
  const isWritten = (key: string): boolean => fields.has(key) && !STAMPS.includes(key);
  const data =
    request.data && mapped(request.data, (key, value) => (isWritten(key) ? (own(next!, key) ?? null) : value));
  return {
    caller: isGuest ? 'guest' : request.kind === 'key' ? keyAndRoles(request.auth!) : inJson('users', request.auth!),
    request: { now: request.now, query: request.query, ...request.facts, ...(data && { data }) },
    record: record === undefined ? next! : inJson(collection, record),
    ...(record !== undefined && next !== undefined && { next }),
    related: Object.fromEntries(related.filter(([, all]) => all.length > 0)),
    links,
  };
}

const mapped = (row: Row, change: (key: string, value: unknown) => unknown): Row =>
  Object.fromEntries(Object.entries(row).map(([key, value]) => [key, change(key, value)]));

/** The solver has lists, json, points and bytes as the text of their columns. */
export const jsonValue = (field: Pick<CatalogField, 'type'> | undefined, value: unknown): unknown =>
  field === undefined || typeof value !== 'string'
    ? (value ?? null)
    : JSON.parse(FIELD_KINDS[field.type].toJson(value));

const keyAndRoles = ({ id, roles }: Row) => ({ key: id, roles });
