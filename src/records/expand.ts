/**
 * Related records of a page: one statement for each relation of a level, only what
 * the caller may read, at most 100 per record.
 */
import type { Cells } from '../database/contract.ts';
import type { Filter } from '../policy/filters/filter.ts';
import type { Readable, Visibility } from '../policy/visibility.ts';
import { viaColumns } from '../schema/model/composite-references.ts';
import { countName, EXPAND_LIMIT } from '../schema/model/list-parameters.ts';
import type { BelongsTo, HasMany, HasOne, ManyToMany, Relation } from '../schema/model/model.ts';
import { empty, ident, join, param, plannedFor, raw, type Sql, sql, tested } from '../sql.ts';
import { lookingUpIn, type Reading, readable, visibilityOf } from './access-context.ts';
import { arrayOf, JsonPieces, type JsonText } from './json-pieces.ts';
import { type Keyset, keysetOf, mostOf, type Sorting } from './page/keyset.ts';
import type { ReadBudget } from './read-budget.ts';
import { recordKeyIn } from './record-key.ts';
import type { Members } from './record-shape.ts';
import { RecordView, withExpanded } from './record-view.ts';
import { relatedBy } from './relations/related.ts';
import { type Scope, scopeOf, withinTenant } from './scope.ts';

/** A relation whose records come along. */
export interface Expand {
  readonly relation: Relation;
  /** Members of the related records; undefined: all. */
  readonly members?: Members | undefined;
  readonly expands: readonly Expand[];
  /** The filter of a to-many. */
  readonly filter?: Filter | undefined;
  readonly sort?: readonly Sorting[];
  readonly limit?: number;
  /** The number of the records of a to-many comes along. */
  readonly isCounted?: boolean;
}

/** The records themselves, as GET shows them. */
export const expandsOf = (relations: readonly Relation[]): readonly Expand[] =>
  relations.map((relation) => ({ relation, expands: [] }));

export interface ExpandedRows {
  readonly collection: string;
  readonly rows: readonly Cells[];
  /** The place of the record's first cell. */
  readonly from: number;
  /** The members that are shown; undefined: all. */
  readonly members?: Members | undefined;
  readonly expands: readonly Expand[];
}

export interface Expansion extends Omit<Reading, 'q'> {
  readonly q: Pick<Reading['q'], 'rows'>;
  readonly budget: ReadBudget;
}

/** The JSON text of each record; at once where nothing is expanded. */
export function toJson(reading: Expansion, given: ExpandedRows): readonly JsonText[] | Promise<readonly JsonText[]> {
  const { collection, rows, from, members, expands } = given;
  const own = withExpanded(members, expands);
  const view = new RecordView(reading.store, reading.access, { collection, members: own });
  if (expands.length === 0) return reading.budget.fitting(rows.map((cells) => view.json(cells, from)));
  return rows.length === 0 ? [] : expandedJson(reading, given, view);
}

async function expandedJson(asked: Expansion, given: ExpandedRows, view: RecordView): Promise<readonly JsonText[]> {
  const reading = withinTenant(asked, asked.tenant);
  const { collection, rows, from, members, expands } = given;
  const records = rows.map((cells) => cells.slice(from));
  const lookups = await Promise.all(expands.map((expand) => expandOne(reading, expand, { collection, records })));
  const textOf = (record: Cells): JsonText => {
    const found = lookups.map((lookup) => lookup(record));
    const shown = expands.flatMap(({ relation: { name } }, i) => {
      const { json, count } = found[i]!;
      const counted = count === undefined ? [] : [`,${JSON.stringify(countName(name))}:${count}`];
      return [`${i === 0 ? '' : ','}${JSON.stringify(name)}:`, json, ...counted];
    });
    const cut = expands.filter((_, i) => found[i]!.isCut).map(({ relation }) => relation.name);
    const more = cut.length === 0 ? '' : `,"expand_more":${JSON.stringify(cut)}`;
    return new JsonPieces([`${view.open(record, 0, members)},"expand":{`, ...shown, `}${more}}`]);
  };
  return reading.budget.fitting(records.values().map(textOf));
}

interface Owners {
  readonly collection: string;
  readonly records: readonly Cells[];
}
interface Expanded {
  readonly json: JsonText;
  /** The record has more related records than are shown. */
  readonly isCut: boolean;
  /** The number of its related records, if the relation is counted. */
  readonly count?: string | undefined;
}
/** Finds the related records of a record by its cells. */
type Lookup = (record: Cells) => Expanded;
type ExpandOf<R> = Expand & { readonly relation: R };

function expandOne(reading: Expansion, expand: Expand, owners: Owners): Promise<Lookup> {
  const { relation } = expand;
  switch (relation.kind) {
    case 'belongs_to':
    case 'has_one':
      return expandToOne(reading, { ...expand, relation }, owners);
    case 'has_many':
    case 'many_to_many':
      return expandToMany(reading, { ...expand, relation }, owners);
  }
}

const mayReadNone = ({ access }: Pick<Reading, 'access'>, { collection }: Relation): boolean =>
  access.permit(collection, 'read').verdict === 'deny';

/** The rule of the reference by which the related records are found. */
function isLinkReadable({ access }: Pick<Reading, 'access'>, relation: HasMany | ManyToMany): Readable | undefined {
  return relation.kind === 'has_many'
    ? access.member(relation.collection, relation.via, 'read')?.lookingUp()
    : undefined;
}

async function expandToOne(
  reading: Expansion,
  { relation, members, expands }: ExpandOf<BelongsTo | HasOne>,
  owners: Owners,
): Promise<Lookup> {
  const { store, q, access, tenant, budget } = reading;
  const own = store.shape(owners.collection);
  const place = own.place(relation.name);
  const ids = [...new Set(owners.records.flatMap((record) => record[place] ?? []))];
  if (ids.length === 0 || mayReadNone(reading, relation)) return () => ({ json: 'null', isCut: false });
  const { collection } = relation;
  const view = new RecordView(store, access, { collection, members: withExpanded(members, expands), tenant });
  const isHeld = recordKeyIn(store.schema, collection).isAmong('x', ids);
  const rows = await q.rows(sql`
    SELECT ${view.columns('x')}
      FROM ${scopeOf(reading)
        .from(collection, 'x')
        .where(isHeld, readable(access, collection, 'x', store.pages.isFew))}`);
  budget.takeRelated(rows.length);
  const texts = await toJson(reading, { collection, rows, from: 0, members, expands });
  const byId = new Map(rows.map((cells, i) => [cells[0], texts[i]!]));
  return (record) => ({ json: byId.get(record[place] ?? null) ?? 'null', isCut: false });
}

/** Reads one more related row per record than is shown, which reveals whether there are more. */
async function expandToMany(
  reading: Expansion,
  expand: ExpandOf<HasMany | ManyToMany>,
  owners: Owners,
): Promise<Lookup> {
  const link = isLinkReadable(reading, expand.relation);
  const { members, expands, limit = EXPAND_LIMIT.default, relation, isCounted = false } = expand;
  if (mayReadNone(reading, relation) || link?.verdict === 'deny')
    return () => ({ json: '[]', isCut: false, ...(isCounted && { count: '0' }) });
  const related = relatedRows(reading, expand, owners);
  const { schema, pages } = reading.store;
  const rule = reading.access.permit(relation.collection, 'read');
  const isSkewed = pages.hasManyRows(schema.collections.get(relation.collection)!, rule);
  const read = (statement: Sql) => reading.q.rows(isSkewed ? plannedFor(statement) : statement);
  const counts = isCounted ? new Map((await read(countStatement(related))) as [string, string][]) : undefined;
  const rows = limit === 0 ? [] : await read(relatedStatement(reading, expand, related));
  reading.budget.takeRelated(rows.length);
  const texts = await toJson(reading, { collection: relation.collection, rows, from: 1, members, expands });
  const byRecord = new Map<string | null, JsonText[]>();
  rows.forEach((cells, i) => {
    const group = byRecord.get(cells[0]!);
    if (group === undefined) byRecord.set(cells[0]!, [texts[i]!]);
    else group.push(texts[i]!);
  });
  return (record) => {
    const all = byRecord.get(record[0]!) ?? [];
    return { json: arrayOf(all.slice(0, limit)), isCut: all.length > limit, count: counts?.get(record[0]!) };
  };
}

/** The related records of each owner that the caller may read and the filter finds. */
interface RowsToExpand {
  readonly scope: Scope;
  readonly visibility: Visibility;
  /** The row `record` has the id of the owner, the row `x` is a related one. */
  readonly owners: Sql;
  readonly from: Sql;
}

function relatedRows(
  reading: Expansion,
  { relation, filter }: ExpandOf<HasMany | ManyToMany>,
  { collection: owner, records }: Owners,
): RowsToExpand {
  const { store, access } = reading;
  const { collection } = relation;
  const scope = scopeOf(reading);
  const visibility = visibilityOf(lookingUpIn(access, store.pages.isFew));
  const link = isLinkReadable(reading, relation);
  const { rows, key } = relatedBy(scope, relation, owner);
  // Several records may share a related one, whose own related records are wanted once.
  const ids = [...new Set(records.map((record) => record[0]))];
  const ownKey = recordKeyIn(store.schema, owner);
  const parts = viaColumns(store.schema, relation)?.map(
    (column, i) => sql`${ident('x', column)} = record.${ownKey.partOfRecord(i)}`,
  );
  const isRelated = parts === undefined ? sql`${key} = record.id` : join(parts, ' AND ');
  const rule = readable(access, collection, 'x', store.pages.isFew);
  // The links lead to few rows, where a rule of the caller's own rows has an index that finds all of these.
  const conditions = [isRelated, relation.kind === 'many_to_many' ? tested(rule) : rule];
  if (link?.verdict === 'depends') conditions.push(link.where('x'));
  if (filter !== undefined) conditions.push(filter.asked(access, visibility).where('x', store.inTime));
  return { scope, visibility, owners: ownKey.asRecords(ids), from: rows.where(...conditions) };
}

const countStatement = ({ owners, from }: RowsToExpand): Sql =>
  sql`SELECT record.id, (SELECT count(*) FROM ${from}) FROM ${owners}`;

function relatedStatement(
  { store, access, tenant, budget }: Expansion,
  { relation, members, expands, sort = [], limit = EXPAND_LIMIT.default }: ExpandOf<HasMany | ManyToMany>,
  { scope, visibility, owners, from }: RowsToExpand,
): Sql {
  const { collection } = relation;
  const keyset: Keyset = keysetOf(sort, { scope, visibility, collection, alias: 'x' });
  const shown = withExpanded(members, expands);
  const columns = new RecordView(store, access, { collection, members: shown, tenant }).columns('x');
  // Repeated outside the subquery, because the columns look up rows by it.
  const own = scope.isOfTenant(collection, 'x');
  const isFound = own.length === 0 ? empty : sql` WHERE ${join(own, ' AND ')}`;
  return sql`
    SELECT record.id, ${columns}
      FROM ${owners}
     CROSS JOIN LATERAL (
           SELECT ${join([raw('x.*'), ...keyset.columns], ', ')}
             FROM ${from}
            ORDER BY ${keyset.order}
            LIMIT ${mostOf(limit + 1)}) AS x${isFound}
     ORDER BY ${keyset.order} LIMIT ${param('int8', budget.related + 1)}`;
}
