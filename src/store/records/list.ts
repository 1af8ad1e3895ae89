/** Lists a page of a collection: filters and policy in one statement. */
import type { Scalar } from '../../policy/values.ts';
import { FIELD_KINDS } from '../../schema/fields/index.ts';
import type { BelongsTo, Field, HasMany, HasOne, ManyToMany, Relation } from '../../schema/model.ts';
import { ident, join, param, raw, type Sql, sql, uuid } from '../../sql.ts';
import { type AccessContext, readable, readableReference, type Store } from './access-context.ts';
import { expandsOf, toJson } from './expand.ts';
import { recordColumns } from './select.ts';
import { windowOf } from './window.ts';

/** Each value already has the type of its field. */
export type Filter =
  | { readonly kind: 'field'; readonly field: Field; readonly value: Scalar }
  | { readonly kind: 'id'; readonly value: string }
  | { readonly kind: 'belongs_to'; readonly relation: BelongsTo; readonly id: string }
  | { readonly kind: 'has_one'; readonly relation: HasOne; readonly id: string }
  | { readonly kind: 'any'; readonly relation: HasMany | ManyToMany; readonly id: string };

export interface ListRequest {
  readonly filters: readonly Filter[];
  readonly limit: number;
  readonly offset: number;
  readonly relations: readonly Relation[];
  /** Whether to count all that match. */
  readonly count: boolean;
}
export interface Page {
  /** The text of a JSON array. */
  readonly json: string;
  readonly hasMore: boolean;
  readonly total?: number;
}

export async function list(store: Store, access: AccessContext, request: ListRequest): Promise<Page> {
  const permit = access.permit(access.collection.name, 'list');
  // Sorted, so that equal sets of filters give one statement for any order of the request.
  const filters = request.filters.map((filter) => conditionOf(store, access, filter)).sort(byText);
  const conditions = permit.verdict === 'allow' ? filters : [...filters, permit.where('t')];
  const source = store.from(access.collection.name, raw('t'));
  const where = conditions.length === 0 ? raw('') : sql` WHERE ${join(conditions, ' AND ')}`;
  const columns = recordColumns(store, access, { collection: access.collection.name, alias: 't' });
  const q = store.readerFor(access);
  const page = sql`
    SELECT ${columns}
      FROM ${source}${where}
     ORDER BY t.id ${windowOf(request.limit + 1, request.offset)}`;
  const [rows, total] = await Promise.all([
    request.offset >= DEEP_OFFSET ? q.slowRows(page) : q.rows(page),
    request.count ? q.slowRows(sql`SELECT count(*) FROM ${source}${where}`) : undefined,
  ]);
  const hasMore = rows.length > request.limit;
  const shown = hasMore ? rows.slice(0, request.limit) : rows;
  const expands = expandsOf(request.relations);
  const records = await toJson(
    { store, q, access },
    { collection: access.collection.name, rows: shown, from: 0, expands },
  );
  return { json: `[${records.join(',')}]`, hasMore, ...(total ? { total: Number(total[0]![0]) } : {}) };
}

const byText = (a: Sql, b: Sql): number => (a.text < b.text ? -1 : a.text === b.text ? 0 : 1);

/** PostgreSQL reads and drops what comes before: this many rows take it some milliseconds. */
const DEEP_OFFSET = 5_000;

function conditionOf(store: Store, access: AccessContext, filter: Filter): Sql {
  switch (filter.kind) {
    case 'field':
      return masked(
        access,
        filter.field,
        sql`t.${ident(filter.field.column)} = ${param(FIELD_KINDS[filter.field.type].sqlType, filter.value)}`,
      );
    case 'id':
      return sql`t.id = ${uuid(filter.value)}`;
    case 'belongs_to':
      return masked(access, filter.relation, sql`t.${ident(filter.relation.column)} = ${uuid(filter.id)}`);
    case 'has_one':
      return referencedBy(store, access, filter);
    case 'any':
      return filter.relation.kind === 'has_many'
        ? referencedBy(store, access, { relation: filter.relation, id: filter.id })
        : linkedTo(store, access, { relation: filter.relation, id: filter.id });
  }
}

/** A value that the caller may not read matches nothing. */
function masked({ collection, member }: AccessContext, { name }: Field | BelongsTo, condition: Sql): Sql {
  const own = member(collection.name, name, 'read');
  return own === undefined || own.verdict === 'allow' ? condition : sql`${condition} AND ${own.where('t')}`;
}

interface ListTarget<R> {
  readonly relation: R;
  readonly id: string;
}

/** One look-up of the target's row, however large the listed table is. */
function referencedBy(store: Store, access: AccessContext, { relation, id }: ListTarget<HasOne | HasMany>): Sql {
  const { collection, viaColumn } = relation;
  return sql`t.id = (
    SELECT f.${ident(viaColumn)}
      FROM ${store.from(collection, raw('f'))}
     WHERE f.id = ${uuid(id)}
       AND ${readableReference(access, relation, 'f')})`;
}

function linkedTo(store: Store, access: AccessContext, { relation, id }: ListTarget<ManyToMany>): Sql {
  const { collection, linkTable, sourceColumn, targetColumn } = relation;
  return sql`EXISTS (
    SELECT 1
      FROM ${ident(linkTable)} AS l
      JOIN ${store.from(collection, raw('f'))} ON f.id = l.${ident(targetColumn)}
     WHERE l.${ident(sourceColumn)} = t.id
       AND l.${ident(targetColumn)} = ${uuid(id)}
       AND ${readable(access, collection, 'f')})`;
}
