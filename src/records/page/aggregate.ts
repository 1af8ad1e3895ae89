/**
 * Groups of the records that a filter matches, with measures over each. A single statement reads
 * them, under the list rule, and uses only members that the caller may read.
 */
import type { Cells } from '../../database/contract.ts';
import type { Filter } from '../../policy/filters/filter.ts';
import { gridOf, isText, isWhole } from '../../policy/scalar-types.ts';
import { maskedBy, type Visibility } from '../../policy/visibility.ts';
import { FIELD_KINDS, keyKindIn } from '../../schema/fields/index.ts';
import type { BelongsTo, Field, Schema } from '../../schema/model/model.ts';
import { ident, join, raw, type Sql, sql } from '../../sql.ts';
import { type AccessContext, accessIn, type Store, visibilityOf } from '../access-context.ts';
import { arrayOf, type JsonText } from '../json-pieces.ts';
import { readWithin } from '../read-budget.ts';
import { listedTenant, scopeOf } from '../scope.ts';
import { mostOf } from './keyset.ts';

/** `name`: its key in the answer. */
export type Group =
  | { readonly name: string; readonly kind: 'field'; readonly field: Field }
  | { readonly name: string; readonly kind: 'belongs_to'; readonly relation: BelongsTo }
  /** A datetime, truncated in UTC. */
  | { readonly name: string; readonly kind: DatePart; readonly field: Field };
export type DatePart = keyof typeof DATE_PARTS;
export type Measure =
  | { readonly name: string; readonly kind: 'count' }
  | { readonly name: string; readonly kind: 'sum' | 'avg' | 'min' | 'max'; readonly field: Field };

export interface AggregateRequest {
  readonly filter?: Filter | undefined;
  readonly groups: readonly Group[];
  readonly measures: readonly Measure[];
  /** Names of groups and measures; the groups break ties. */
  readonly sort: readonly { readonly name: string; readonly descending: boolean }[];
  readonly limit: number;
}
export interface Aggregates {
  /** The text of a JSON array. */
  readonly json: JsonText;
  readonly hasMore: boolean;
}

export const DATE_PARTS = { year: 'YYYY', month: 'YYYY-MM', day: 'YYYY-MM-DD' } as const;

/** Throws `query_too_expensive`. */
export async function aggregate(store: Store, access: AccessContext, request: AggregateRequest): Promise<Aggregates> {
  const { statement, tenant } = aggregateStatement(store, access, request);
  const options = { schema: store.schema, reader: store.readerFor(access, tenant), lane: 'query' } as const;
  return readWithin(options, async (budget) => {
    const rows = await budget.rows(statement);
    const shown = rows.slice(0, request.limit).map((cells) => groupJson(store.schema, cells, request));
    return { json: arrayOf(budget.fitting(shown)), hasMore: rows.length > request.limit };
  });
}

function aggregateStatement(store: Store, caller: AccessContext, request: AggregateRequest) {
  const { name } = caller.collection;
  const { filter, groups, measures, limit } = request;
  const facts = filter?.asked(caller, visibilityOf(caller)).facts ?? {};
  const tenant = listedTenant(caller, facts);
  const access = accessIn(caller, tenant);
  const visibility = visibilityOf(access);
  const asked = filter?.asked(access, visibility);
  const permit = access.permit(name, 'list').given(facts);
  const conditions = [
    ...(asked === undefined ? [] : [asked.where('t', store.inTime)]),
    ...(permit.verdict === 'allow' ? [] : [permit.where('t')]),
  ];
  const seen = new SeenColumns(name, visibility);
  const columns = [...groups.map((group) => seen.group(group)), ...measures.map((measure) => seen.measure(measure))];
  const named = columns.map((column, i) => sql`${column} AS ${raw(columnAlias(i))}`);
  const grouped = groups.length === 0 ? raw('') : raw(` GROUP BY ${groups.map((_, i) => i + 1).join(', ')}`);
  const order = groupOrder(request);
  const statement = sql`
    SELECT ${join(named, ', ')}
      FROM ${scopeOf({ store, tenant })
        .from(name, 't')
        .where(...conditions)}${grouped}
    ${order === '' ? raw('') : raw(`ORDER BY ${order} `)}LIMIT ${mostOf(limit + 1)}`;
  return { statement, tenant };
}

const columnAlias = (i: number): string => `"_k${i}"`;

function groupOrder({ groups, measures, sort }: AggregateRequest): string {
  const names = [...groups, ...measures].map(({ name }) => name);
  const ties = groups.filter(({ name }) => !sort.some((each) => each.name === name));
  const order = [...sort, ...ties.map(({ name }) => ({ name, descending: false }))];
  return order
    .map(({ name, descending }) => `${columnAlias(names.indexOf(name))}${descending ? ' DESC NULLS LAST' : ''}`)
    .join(', ');
}

/** Columns as the caller may read them. */
class SeenColumns {
  readonly #collection: string;
  readonly #visibility: Visibility;

  constructor(collection: string, visibility: Visibility) {
    this.#collection = collection;
    this.#visibility = visibility;
  }

  group(group: Group): Sql {
    if (group.kind === 'belongs_to') return this.#column(group.relation);
    const column = this.#column(group.field);
    if (group.kind === 'field') return isText(group.field.type) ? sql`${column} COLLATE "C"` : column;
    return sql`to_char(${column} AT TIME ZONE 'UTC', ${raw(`'${DATE_PARTS[group.kind]}'`)})`;
  }

  /**
   * Sums of floats are sums of their shortest decimals: exact, so that they do not depend on the
   * order of the rows. An average has as many decimals as the least double needs.
   */
  measure(measure: Measure): Sql {
    if (measure.kind === 'count') return raw('count(*)');
    const { kind, field } = measure;
    const column = this.#column(field);
    if (kind === 'min' || kind === 'max')
      return sql`${raw(kind)}(${column}${raw(isText(field.type) ? ' COLLATE "C"' : '')})`;
    const exact = !isWhole(field.type) && gridOf(field.type) === undefined ? sql`${column}::text::numeric` : column;
    if (kind === 'sum') return sql`sum(${exact})`;
    return sql`sum(${exact})::numeric(1000, ${raw(isWhole(field.type) ? '40' : '350')}) / nullif(count(${column}), 0)`;
  }

  #column({ name, column }: Pick<Field, 'name' | 'column'>): Sql {
    return maskedBy(this.#visibility.member(this.#collection, name), 't', ident('t', column));
  }
}

// ---------------------------------------------------------------- rows

function groupJson(schema: Schema, cells: Cells, { groups, measures }: AggregateRequest): string {
  const members = groups.map((group, i) => member(group.name, groupText(schema, group, cells[i] ?? null)));
  const beyond: string[] = [];
  measures.forEach((measure, i) => {
    const text = measureText(measure, cells[groups.length + i] ?? null);
    if (text === undefined) beyond.push(measure.name);
    members.push(member(measure.name, text ?? 'null'));
  });
  if (beyond.length > 0)
    members.push(member('errors', JSON.stringify(beyond.map((name) => ({ measure: name, code: 'out_of_range' })))));
  return `{${members.join(',')}}`;
}

const member = (name: string, text: string): string => `${JSON.stringify(name)}:${text}`;

function groupText(schema: Schema, group: Group, cell: string | null): string {
  if (cell === null) return 'null';
  if (group.kind === 'belongs_to') return keyKindIn(schema, group.relation.collection).toJson(cell);
  return group.kind === 'field' ? FIELD_KINDS[group.field.type].toJson(cell) : JSON.stringify(cell);
}

/** Undefined: no JSON number of its type is that large. */
function measureText(measure: Measure, cell: string | null): string | undefined {
  if (cell === null) return 'null';
  if (measure.kind === 'count') return cell;
  const { kind, field } = measure;
  if (kind === 'min' || kind === 'max') return FIELD_KINDS[field.type].toJson(cell);
  // A string, as its values are.
  if (kind === 'sum' && gridOf(field.type) !== undefined) return JSON.stringify(cell);
  const value = Number(cell);
  if (kind === 'sum' && isWhole(field.type)) return Number.isSafeInteger(value) ? cell : undefined;
  return Number.isFinite(value) ? JSON.stringify(value + 0) : undefined;
}
