/** A member of the row, or of the readable record that to-one relations lead to, as a column that the caller may read. */
import { isText, scalarOf } from '../../policy/scalar-types.ts';
import { partOfColumn } from '../../policy/stored-rows.ts';
import type { CatalogField, ToOneStep } from '../../policy/types.ts';
import { maskedBy, type Readable, type Visibility } from '../../policy/visibility.ts';
import { ident, raw, type Sql, type SqlType, sql } from '../../sql.ts';
import { allEqual, type OrderedColumn } from '../record-key.ts';
import type { Scope } from '../scope.ts';

export interface SeenRow {
  readonly scope: Scope;
  readonly visibility: Visibility;
  readonly collection: string;
  readonly alias: string;
}
/** The end of a path. */
interface PathEnd {
  readonly steps: readonly ToOneStep[];
  /** The collection that the steps lead to. */
  readonly at: string;
  /** Undefined: the `id`. */
  readonly field: ReadColumn | undefined;
  /** A column of those that hold the `id`. Default: its text. */
  readonly keyColumn?: OrderedColumn;
}
/** A field, or a belongs_to whose value is the id of a record of `collection`. */
type ReadColumn = Pick<CatalogField, 'name' | 'column' | 'part'> &
  (Pick<CatalogField, 'type'> | { readonly collection: string });

export const sqlTypeOf = (
  { field, at, keyColumn }: Omit<PathEnd, 'steps'>,
  { scope }: Pick<SeenRow, 'scope'>,
): SqlType => {
  if (keyColumn !== undefined) return keyColumn.type;
  if (field === undefined) return scope.key(at).type;
  return 'type' in field ? scalarOf(field.type).sqlType : scope.key(field.collection).type;
};

/** Strings sort by code point under every default collation. */
export const byCodePoint = (value: Sql, field: ReadColumn | undefined): Sql =>
  field !== undefined && 'type' in field && isText(field.type) ? sql`${value} COLLATE "C"` : value;

/** NULL behind an absent or hidden step. */
export const columnOnPath = (path: PathEnd, row: SeenRow): Sql => columnFrom(path, row, row);

/** The member whose rules decide who may read the column. */
export const memberOf = ({ name, part }: Pick<ReadColumn, 'name' | 'part'>): string => part?.member ?? name;

const columnRead = (alias: string, field: ReadColumn): Sql =>
  field.part === undefined || !('type' in field)
    ? ident(alias, field.column)
    : partOfColumn(ident(alias, field.part.column), field.part, field.type);

interface PathPlace {
  readonly collection: string;
  readonly alias: string;
}

function columnFrom({ steps, field, at, keyColumn }: PathEnd, row: SeenRow, place: PathPlace): Sql {
  const [step, ...rest] = steps;
  if (step === undefined && keyColumn !== undefined) return ident(place.alias, keyColumn.column);
  if (step === undefined)
    return field === undefined
      ? row.scope.key(place.collection).of(place.alias)
      : maskedBy(maskOf(row, place.collection, memberOf(field)), place.alias, columnRead(place.alias, field));
  const { collection } = step.relation;
  const records = row.visibility.records(collection);
  const link = linkOf(step, row, place);
  if (records.verdict === 'deny' || link === undefined) return raw(`NULL::${sqlTypeOf({ field, at, keyColumn }, row)}`);
  const target = { collection, alias: `${place.alias}_s` };
  const conditions = records.verdict === 'allow' ? [link] : [link, records.where(target.alias)];
  const { related } = row.scope.from(place.collection, place.alias);
  return sql`(
    SELECT ${columnFrom({ steps: rest, field, at, keyColumn }, { ...row, scope: related }, target)}
      FROM ${related.from(collection, target.alias).where(...conditions)})`;
}

/** The condition that joins a row with the row that the step leads to. Undefined: the caller may not read the link. */
function linkOf({ from, relation }: ToOneStep, row: SeenRow, { alias }: PathPlace): Sql | undefined {
  const target = `${alias}_s`;
  const isOwn = relation.kind === 'belongs_to';
  const reference = isOwn ? { collection: from, via: relation.name } : relation;
  const [referring, found] = isOwn ? [alias, target] : [target, alias];
  const rule = maskOf(row, reference.collection, reference.via);
  if (rule?.verdict === 'deny') return undefined;
  const columns = row.scope.referring(reference, referring).map((column) => maskedBy(rule, referring, column));
  return allEqual(row.scope.key(isOwn ? relation.collection : from).columns(found), columns);
}

/** Undefined: the member is as readable as the record. */
export function maskOf(
  { visibility }: Pick<SeenRow, 'visibility'>,
  collection: string,
  member: string,
): Readable | undefined {
  const rule = visibility.member(collection, member);
  return rule?.verdict === 'allow' ? undefined : rule;
}
