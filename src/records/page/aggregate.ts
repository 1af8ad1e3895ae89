/**
 * Groups of the records that a filter matches, with measures over each. A single statement reads
 * them, under the list rule, and uses only members that the caller may read.
 */
import type { Cells } from '../../database/contract.ts';
import { isUnknownName } from '../../database/to-store-error.ts';
import { present } from '../../invariant.ts';
import type { Filter } from '../../policy/filters/filter.ts';
import { gridOf, isInstant, isNumeric, isWhole, type ScalarType } from '../../policy/scalar-types.ts';
import type { Catalog, CatalogField, ToOneStep } from '../../policy/types.ts';
import type { Visibility } from '../../policy/visibility.ts';
import { invalid, type Refusal } from '../../refusal.ts';
import { FIELD_KINDS, keyKindIn } from '../../schema/fields/index.ts';
import type { PeriodName } from '../../schema/model/list-parameters.ts';
import type { BelongsTo, Schema } from '../../schema/model/model.ts';
import { ident, join, param, raw, type Sql, sql } from '../../sql.ts';
import { type AccessContext, accessIn, type Store, visibilityOf } from '../access-context.ts';
import { arrayOf, type JsonText } from '../json-pieces.ts';
import { readWithinBudget } from '../read-budget.ts';
import { listedTenant, scopeOf } from '../scope.ts';
import { estimatedFilter } from './estimated-filter.ts';
import { conditionOf } from './first-ids.ts';
import { mostOf } from './keyset.ts';
import { relatedRowsOf } from './page-question.ts';
import { byCodePoint, columnOnPath, type SeenRow } from './path-column.ts';

/** `name`: its key in the answer. */
export type Group = NamedResult & { readonly path: MemberPath; readonly period?: Period | undefined };
export type Measure = NamedResult & { readonly of: Measured; readonly where?: Filter | undefined };
interface NamedResult {
  readonly name: string;
}
/** A field, or a belongs_to, of the record or of one that to-one relations lead to. */
export interface MemberPath<Member = CatalogField | BelongsTo> {
  readonly steps: readonly ToOneStep[];
  readonly at: string;
  readonly field: Member;
}
/** `distinct`: a count of the values. */
type Measured =
  | { readonly kind: 'count' }
  | { readonly kind: 'distinct'; readonly path: MemberPath }
  | { readonly kind: 'sum' | 'avg' | 'min' | 'max'; readonly path: MemberPath<CatalogField> };
/** The time is that of `zone`, a name of IANA. */
interface Period {
  readonly of: PeriodName;
  readonly zone: string;
}

export interface AggregateRequest {
  readonly filter?: Filter | undefined;
  readonly groups: readonly Group[];
  readonly measures: readonly Measure[];
  /** On the measures: see `measuresAsFields`. */
  readonly having?: Filter | undefined;
  /** Names of groups and measures; the groups break ties. */
  readonly sort: readonly { readonly name: string; readonly descending: boolean }[];
  readonly limit: number;
}
export interface Aggregates {
  /** The text of a JSON array. */
  readonly json: JsonText;
  readonly hasMore: boolean;
}

/** The texts of the values of each period. `weekday` is a number: 1 is Monday, 7 is Sunday. */
const PERIOD_FORMS: Readonly<Record<Exclude<PeriodName, 'weekday'>, string>> = {
  year: 'YYYY',
  month: 'YYYY-MM',
  week: 'IYYY-"W"IW',
  day: 'YYYY-MM-DD',
  hour: 'YYYY-MM-DD"T"HH24',
};
/** Times whose year has four digits in every zone: the look at the text takes as long as the text. */
const SURE_YEARS = "'0002-01-01' AND '9998-12-31'";
/** NULL for a year before 1 or after 9999, whose text would be that of another year or sort among others. */
const OF_FOUR_DIGITS = "'^AD ([0-9]{4}([^0-9].*)?)$'";

/** Throws `query_too_expensive`, and `validation_failed` for a time zone that the database does not know. */
export async function aggregate(store: Store, access: AccessContext, request: AggregateRequest): Promise<Aggregates> {
  const { statement, tenant } = await aggregateStatement(store, access, request);
  const options = { schema: store.schema, reader: store.readerFor(access, tenant), lane: 'query' } as const;
  return readWithinBudget(options, async (budget) => {
    const rows = await budget.rows(statement).catch((error: unknown) => {
      throw isUnknownName(error) ? unknownZone(request) : error;
    });
    const shown = rows.slice(0, request.limit).map((cells) => groupJson(store.schema, cells, request));
    return { json: arrayOf(budget.fitting(shown)), hasMore: rows.length > request.limit };
  });
}

function unknownZone({ groups }: AggregateRequest): Refusal {
  const zone = groups.find(({ period }) => period !== undefined)?.period?.zone;
  return invalid([{ pointer: '/zone', code: 'invalid_value', detail: `the database knows no time zone \`${zone}\`` }]);
}

async function aggregateStatement(store: Store, caller: AccessContext, request: AggregateRequest) {
  const { name } = caller.collection;
  const { filter, groups, measures, having, limit } = request;
  const facts = filter?.asked(caller, visibilityOf(caller)).facts ?? {};
  const tenant = listedTenant(caller, facts);
  const access = accessIn(caller, tenant);
  const visibility = visibilityOf(access);
  const permit = access.permit(name, 'list').given(facts);
  const filters = [filter, ...measures.map(({ where }) => where)].filter((each) => each !== undefined);
  const printed = await Promise.all(
    filters.map(async (each): Promise<readonly [Filter, Sql]> => {
      const asked = each.asked(access, visibility);
      const estimated = await estimatedFilter(store, access, { filters: [asked], permit });
      return [each, asked.where('t', store.inTime, relatedRowsOf(estimated?.lists))];
    }),
  );
  const conditionsOf = new Map(printed);
  const whereOf = (asked: Filter): Sql => present(conditionsOf.get(asked), 'the condition of the filter');
  const conditions = [...(filter === undefined ? [] : [whereOf(filter)]), ...conditionOf(permit)];
  const scope = scopeOf({ store, tenant });
  const seen = new SeenColumns({ scope, visibility, collection: name, alias: 't' }, whereOf);
  const columns = [...groups.map((group) => seen.group(group)), ...measures.map((measure) => seen.measure(measure))];
  const named = columns.map((column, i) => sql`${column} AS ${raw(columnAlias(i))}`);
  const grouped = groups.length === 0 ? raw('') : raw(` GROUP BY ${groups.map((_, i) => i + 1).join(', ')}`);
  const order = groupOrder(request);
  const all = sql`
    SELECT ${join(named, ', ')}
      FROM ${scope.from(name, 't').where(...conditions)}${grouped}`;
  const kept = having === undefined ? all : havingOf(all, request, having.asked(access, OPEN).where('t'));
  const statement = sql`${kept}
    ${order === '' ? raw('') : raw(`ORDER BY ${order} `)}LIMIT ${mostOf(limit + 1)}`;
  return { statement, tenant };
}

// ---------------------------------------------------------------- having

/** The measures are numbers of the groups themselves. */
const OPEN: Visibility = {
  records: () => {
    throw new Error('a measure has no relations');
  },
  member: () => undefined,
};

/** A measure, as a field of the only collection of a filter over measures: its value in the answer, or null. */
export const measuresAsFields = (measures: readonly Measure[]): Catalog => ({
  roles: new Map(),
  collections: new Map([
    [MEASURES, { name: MEASURES, table: MEASURES, fields: new Map(measures.map(asField)), relations: new Map() }],
  ]),
});
/** The collection of a filter over measures. */
export const MEASURES = 'measures';

const NO_INDEX = { required: false, unique: false, index: false };
const asField = ({ name, of }: Measure, i: number): readonly [string, CatalogField] => [
  name,
  { name, type: typeOfMeasure(of), column: valueAlias(i), ...NO_INDEX },
];
const valueAlias = (i: number): string => `_v${i}`;

function typeOfMeasure(of: Measured): ScalarType {
  if (of.kind === 'count' || of.kind === 'distinct') return 'int';
  const { type } = of.path.field;
  if (of.kind === 'min' || of.kind === 'max') return type;
  if (of.kind === 'avg') return 'float';
  return gridOf(type) === undefined ? type : 'decimal';
}

/** The groups of which the condition on `t` is true. */
function havingOf(all: Sql, { groups, measures }: AggregateRequest, condition: Sql): Sql {
  const cells = [...groups, ...measures].map((_, i) => raw(`t.${columnAlias(i)}`));
  const values = measures.map(({ of }, i) => {
    const cell = raw(`g.${columnAlias(groups.length + i)}`);
    return sql`${valueOfCell(typeOfMeasure(of), of, cell)} AS ${ident(valueAlias(i))}`;
  });
  return sql`
    SELECT ${join(cells, ', ')}
      FROM (SELECT ${join([raw('g.*'), ...values], ', ')} FROM (${all}) AS g) AS t
     WHERE ${condition}`;
}

/** The least numeral that rounds to infinity, which a cast refuses: halfway to 2^1024. */
const FIRST_INFINITE = String(2n ** 1024n - 2n ** 970n);

/** NULL where the answer shows null: no number of the type is so large. */
function valueOfCell(type: ScalarType, { kind }: Measured, cell: Sql): Sql {
  if (kind !== 'sum' && kind !== 'avg') return cell;
  if (!isNumeric(type)) return cell;
  return isWhole(type)
    ? sql`CASE WHEN abs(${cell}) <= ${raw(String(Number.MAX_SAFE_INTEGER))} THEN ${cell}::int8 END`
    : sql`CASE WHEN abs(${cell}) < ${raw(FIRST_INFINITE)} THEN ${cell}::float8 END`;
}

// ---------------------------------------------------------------- columns

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
  readonly #row: SeenRow;
  readonly #whereOf: (filter: Filter) => Sql;

  constructor(row: SeenRow, whereOf: (filter: Filter) => Sql) {
    this.#row = row;
    this.#whereOf = whereOf;
  }

  group({ path, period }: Group): Sql {
    const column = this.#column(path);
    if (period === undefined) return byCodePoint(column, path.field);
    const { of, zone } = period;
    const hasTime = 'type' in path.field && isInstant(path.field.type);
    const local = hasTime ? sql`${column} AT TIME ZONE ${param('text', zone)}` : column;
    if (of === 'weekday') return sql`to_char(${local}, 'ID')::int`;
    const form = PERIOD_FORMS[of];
    return sql`
      CASE WHEN ${column} BETWEEN ${raw(SURE_YEARS)} THEN to_char(${local}, ${raw(`'${form}'`)})
           ELSE substring(to_char(${local}, ${raw(`'AD ${form}'`)}) FROM ${raw(OF_FOUR_DIGITS)}) END`;
  }

  /**
   * Sums of floats are sums of their shortest decimals: exact, so that they do not depend on the
   * order of the rows. An average has as many decimals as the least double needs.
   */
  measure({ of, where }: Measure): Sql {
    const over = where === undefined ? raw('') : sql` FILTER (WHERE ${this.#whereOf(where)})`;
    if (of.kind === 'count') return sql`count(*)${over}`;
    const { kind, path } = of;
    const column = this.#column(path);
    if (kind === 'distinct') return sql`count(DISTINCT ${column})${over}`;
    const { type } = of.path.field;
    if (kind === 'min' || kind === 'max') return sql`${raw(kind)}(${byCodePoint(column, of.path.field)})${over}`;
    const exact = !isWhole(type) && gridOf(type) === undefined ? sql`${column}::text::numeric` : column;
    const sum = sql`sum(${exact})${over}`;
    if (kind === 'sum') return sum;
    const decimals = raw(isWhole(type) ? '40' : '350');
    return sql`(${sum})::numeric(1000, ${decimals}) / nullif(count(${column})${over}, 0)`;
  }

  #column(path: MemberPath): Sql {
    return columnOnPath(path, this.#row);
  }
}

// ---------------------------------------------------------------- rows

function groupJson(schema: Schema, cells: Cells, { groups, measures }: AggregateRequest): string {
  const members = groups.map((group, i) => memberText(group.name, groupText(schema, group, cells[i] ?? null)));
  const beyond: string[] = [];
  measures.forEach((measure, i) => {
    const text = measureText(measure, cells[groups.length + i] ?? null);
    if (text === undefined) beyond.push(measure.name);
    members.push(memberText(measure.name, text ?? 'null'));
  });
  if (beyond.length > 0)
    members.push(memberText('errors', JSON.stringify(beyond.map((name) => ({ measure: name, code: 'out_of_range' })))));
  return `{${members.join(',')}}`;
}

const memberText = (name: string, text: string): string => `${JSON.stringify(name)}:${text}`;

function groupText(schema: Schema, group: Group, cell: string | null): string {
  if (cell === null) return 'null';
  const { path, period } = group;
  if (period !== undefined) return period.of === 'weekday' ? cell : JSON.stringify(cell);
  if (!('type' in path.field)) return keyKindIn(schema, path.field.collection).toJson(cell);
  return FIELD_KINDS[path.field.type].toJson(cell);
}

/** Undefined: no JSON number of its type is that large. */
function measureText({ of }: Measure, cell: string | null): string | undefined {
  if (cell === null) return 'null';
  if (of.kind === 'count' || of.kind === 'distinct') return cell;
  const { type } = of.path.field;
  if (of.kind === 'min' || of.kind === 'max') return FIELD_KINDS[type].toJson(cell);
  // A string, as its values are.
  if (of.kind === 'sum' && gridOf(type) !== undefined) return JSON.stringify(cell);
  const value = Number(cell);
  if (of.kind === 'sum' && isWhole(type)) return Number.isSafeInteger(value) ? cell : undefined;
  return Number.isFinite(value) ? JSON.stringify(value + 0) : undefined;
}
