/** The keys that a query sorts by, as SQL: columns of the row, or of the readable record that to-one relations lead to. */
import { isText, type ScalarType, scalarOf } from '../../policy/scalar-types.ts';
import type { SortPath } from '../../policy/sort-path.ts';
import type { CatalogField, ToOneStep } from '../../policy/types.ts';
import type { Readable, Visibility } from '../../policy/visibility.ts';
import { ident, raw, type Sql, sql } from '../../sql.ts';
import type { Scope } from '../scope.ts';
import { maskedBy } from '../visibility.ts';
import { type Key, Keyset } from './keyset.ts';

export interface Sorting {
  readonly path: SortPath;
  readonly descending: boolean;
}

/** The row that is sorted. */
export interface SortedRow {
  readonly scope: Scope;
  readonly visibility: Visibility;
  readonly collection: string;
  readonly alias: string;
}

/** Ends with the id, which breaks ties; what comes after it would settle nothing. */
export function keysetOf(sorts: readonly Sorting[], row: SortedRow): Keyset {
  if (sorts.length === 0) return keysetById(row.alias);
  const at = sorts.findIndex(({ path }) => path.steps.length === 0 && path.field === undefined);
  const keys = (at < 0 ? sorts : sorts.slice(0, at)).map((sorting) => keyOf(sorting, row));
  return new Keyset([...keys, idKey(row, at >= 0 && sorts[at]!.descending)]);
}

/** Process-wide: a memo of a pure function of the alias, of which the program has a few. */
const keysetsById = new Map<string, Keyset>();

function keysetById(alias: string): Keyset {
  let keyset = keysetsById.get(alias);
  if (keyset === undefined) {
    keyset = new Keyset([idKey({ alias }, false)]);
    keysetsById.set(alias, keyset);
  }
  return keyset;
}

const idKey = ({ alias }: Pick<SortedRow, 'alias'>, descending: boolean): Key => ({
  sql: ident(alias, 'id'),
  type: 'uuid',
  nullable: false,
  descending,
  isIndexed: true,
});

function keyOf({ path, descending }: Sorting, row: SortedRow): Key {
  const { steps, field } = path;
  const own = steps.length === 0 && field !== undefined;
  const mask = own ? maskOf(row, row.collection, field.name) : undefined;
  return {
    sql: inOrder(columnOf(path, row, row), typeOf(field)),
    type: typeOf(field) === undefined ? 'uuid' : scalarOf(typeOf(field)!).sqlType,
    nullable: !own || !field.required || mask !== undefined,
    descending,
    isIndexed: own && mask === undefined && (field.index || field.unique),
  };
}

const typeOf = (field: CatalogField | undefined): ScalarType | undefined => field?.type;

/** By code point under every default collation. */
const inOrder = (value: Sql, type: ScalarType | undefined): Sql =>
  type !== undefined && isText(type) ? sql`${value} COLLATE "C"` : value;

interface Place {
  readonly collection: string;
  readonly alias: string;
}

/** NULL behind an absent or hidden step. */
function columnOf({ steps, field, at }: SortPath, row: SortedRow, place: Place): Sql {
  const [step, ...rest] = steps;
  if (step === undefined)
    return field === undefined
      ? ident(place.alias, 'id')
      : maskedBy(maskOf(row, place.collection, field.name), place.alias, ident(place.alias, field.column));
  const { collection } = step.relation;
  const records = row.visibility.records(collection);
  const link = linkOf(step, row, place);
  if (records.verdict === 'deny' || link === undefined) return raw(`NULL::${nullTypeOf(field)}`);
  const target = { collection, alias: `${place.alias}_s` };
  const conditions = records.verdict === 'allow' ? [link] : [link, records.where(target.alias)];
  const { related } = row.scope.from(place.collection, place.alias);
  return sql`(
    SELECT ${columnOf({ steps: rest, field, at }, { ...row, scope: related }, target)}
      FROM ${related.from(collection, target.alias).where(...conditions)})`;
}

const nullTypeOf = (field: CatalogField | undefined): string =>
  field === undefined ? 'uuid' : scalarOf(field.type).sqlType;

/** That the row behind the step is the one that the step leads to. Undefined: the caller may not read what links them. */
function linkOf({ from, relation }: ToOneStep, row: SortedRow, { alias }: Place): Sql | undefined {
  const target = `${alias}_s`;
  if (relation.kind === 'belongs_to') {
    const rule = maskOf(row, from, relation.name);
    if (rule?.verdict === 'deny') return undefined;
    return sql`${ident(target, 'id')} = ${maskedBy(rule, alias, ident(alias, relation.column))}`;
  }
  const rule = maskOf(row, relation.collection, relation.via);
  if (rule?.verdict === 'deny') return undefined;
  return sql`${maskedBy(rule, target, ident(target, relation.viaColumn))} = ${ident(alias, 'id')}`;
}

/** Undefined: the member is as readable as the record. */
function maskOf({ visibility }: SortedRow, collection: string, member: string): Readable | undefined {
  const rule = visibility.member(collection, member);
  return rule?.verdict === 'allow' ? undefined : rule;
}
