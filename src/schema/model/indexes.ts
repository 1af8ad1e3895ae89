/** The indexes of a collection, and those that its policies lack. */

import { unindexed } from '../../policy/analyse/unindexed.ts';
import { elementOf, scalarOf } from '../../policy/scalar-types.ts';
import type { Catalog, Checked, CheckedOperand, Policy } from '../../policy/types.ts';
import { ident, type Sql, sql } from '../../sql.ts';
import { FIELD_KINDS } from '../fields/index.ts';
import { INDEXABLE_LENGTH } from '../rules/field-rules.ts';
import { keyColumnsOf } from './composite-key.ts';
import {
  type BelongsTo,
  type Collection,
  type Field,
  isTenant,
  isUniqueMember,
  type NoOverlap,
  withinOf,
} from './model.ts';
import { constraintName, shortDigest } from './stored-names.ts';

export interface IndexDefinition {
  /**
   * In a distributed collection the tenant comes first. A column that is not unique is followed by
   * the id, so that the index returns a page in its order. A list or a point is alone, in an index of its elements or places.
   */
  readonly columns: readonly string[];
  /** Undefined: the index belongs to a key of several columns. */
  readonly serves: string | undefined;
  readonly unique: boolean;
  /** `index: true` or `unique` of the file, a belongs_to, or an equality in a list policy. */
  readonly because: Reason;
}
type Reason = 'declared' | 'reference' | 'policy';

/** The store itself adds the primary key and the indexes of link tables. */
export function indexesOf(collection: Collection, catalog: Catalog): readonly IndexDefinition[] {
  const definitions: IndexDefinition[] = [];
  const tenant = tenantColumns(collection);
  for (const columns of uniqueColumns(collection)) {
    const own = columns.filter((column) => !tenant.includes(column));
    const serves = own.length > 1 ? undefined : columns.at(-1);
    definitions.push({ columns, serves, unique: true, because: 'declared' });
  }
  const add = (serves: string, because: Reason): void => {
    if (definitions.some((made) => made.serves === serves)) return;
    definitions.push({ columns: columnsInOrder(collection, serves), serves, unique: false, because });
  };
  for (const { column, index } of collection.fields.values()) if (index) add(column, 'declared');
  for (const relation of collection.relations.values()) {
    // The primary key of a distributed collection begins with its tenant.
    if (relation.kind !== 'belongs_to' || isTenant(collection, relation.name)) continue;
    // An index on values of another field has not the order of the ids.
    if (relation.references !== undefined) {
      if (!relation.unique)
        definitions.push({ columns: [relation.column], serves: undefined, unique: false, because: 'reference' });
    } else if (relation.columns === undefined) add(relation.column, 'reference');
    else definitions.push({ columns: relation.columns, serves: undefined, unique: false, because: 'reference' });
  }
  for (const column of wantedBy(collection, catalog)) add(column, 'policy');
  return definitions;
}

/** The columns of the index that serves a column, and returns a page in its order. */
export function columnsInOrder(collection: Pick<Collection, 'fields' | 'tenantLayout' | 'key'>, column: string) {
  if (hasNoOrder(collection, column)) return [column];
  return [...new Set([...tenantColumns(collection), column, ...keyColumnsOf(collection)])];
}

/** An index of lists or points finds the records by an element or a place, and has no order. */
function hasNoOrder({ fields }: Pick<Collection, 'fields'>, column: string): boolean {
  const field = fieldOfColumn(column, fields);
  return field !== undefined && scalarOf(field.type).sorts === false;
}

export function uniqueColumns(collection: UniqueMembers): readonly (readonly string[])[] {
  return storedMembersIn(collection).flatMap((member) =>
    isUniqueMember(member) && isConstraint(member) ? [columnsOfUnique(collection, member)] : [],
  );
}

type UniqueMembers = Pick<Collection, 'fields' | 'relations' | 'tenantLayout'>;

/** A unique index that no constraint can be: it has a condition, or ignores letter case. */
export interface UniqueIndexDefinition {
  /** It changes with the definition: PostgreSQL prints conditions in a form of its own, which compares with no other. */
  readonly name: string;
  readonly member: Field | BelongsTo;
  /** The tenant, the members that it is unique within, and the member itself: each once. */
  readonly columns: readonly string[];
}

export const uniqueIndexes = (collection: IndexedCollection): readonly UniqueIndexDefinition[] =>
  storedMembersIn(collection).flatMap((member) => {
    if (isConstraint(member)) return [];
    const columns = columnsOfUnique(collection, member);
    const { where, ignoresCase } = member.uniqueKey!;
    const digest = shortDigest(JSON.stringify([columns, ignoresCase, where?.text])).slice(0, 8);
    return [{ name: constraintName(collection.table, [member.column, digest], 'only'), member, columns }];
  });

/**
 * The name of the constraint of `no_overlap`, which changes with the definition.
 * @param partition of the table that has it; default: the table itself
 */
export function exclusionName(
  { table }: Pick<Collection, 'table'>,
  { on, from, to, where }: NoOverlap,
  partition: number | '' = '',
): string {
  const columns = [...on, from, to].map(({ column }) => column);
  const digest = shortDigest(JSON.stringify([columns, from.type, where?.text])).slice(0, 8);
  return constraintName(table, [from.column, digest], `apart${partition}`);
}

/** Each partition has an exclusion constraint of its own, and a shard appends a number to the name, or reports none. */
export const isExclusion = (collection: Pick<Collection, 'table'>, key: NoOverlap, constraint: string): boolean =>
  constraint === '' ||
  constraint.startsWith(exclusionName(collection, key)) ||
  PARTITION_NUMBERS.some((partition) => exclusionName(collection, key, partition) === constraint);

/** The partitions of a table that is stored by tenant, without Citus. More would cost planning time, fewer would have more rows each. */
export const PARTITION_NUMBERS: readonly number[] = Array.from({ length: 8 }, (_, partition) => partition);

type IndexedCollection = UniqueMembers & Pick<Collection, 'table'>;

const isConstraint = ({ uniqueKey: key }: Field | BelongsTo): boolean =>
  key === undefined || (key.where === undefined && !key.ignoresCase);

function storedMembersIn({ fields, relations }: UniqueMembers): readonly (Field | BelongsTo)[] {
  const references = [...relations.values()].filter((relation) => relation.kind === 'belongs_to');
  return [...fields.values(), ...references];
}

const ownColumnsOf = (member: Field | BelongsTo): readonly string[] =>
  ('columns' in member ? member.columns : undefined) ?? [member.column];

/** The tenant, the members that it is unique within, and the member itself: each once. */
function columnsOfUnique(collection: UniqueMembers, member: Field | BelongsTo): readonly string[] {
  const within = withinOf(member).flatMap((name) => {
    const found = collection.fields.get(name) ?? collection.relations.get(name);
    return found !== undefined && 'column' in found ? [found.column] : [];
  });
  return [...new Set([...tenantColumns(collection), ...within, ...ownColumnsOf(member)])];
}

/** The first columns of every key and index. */
export const tenantColumns = ({ tenantLayout }: Pick<Collection, 'tenantLayout'>): readonly string[] =>
  tenantLayout?.kind === 'by' ? [tenantLayout.column] : [];

/** Only lists read many rows; every other action finds its row by id. */
function wantedBy({ name, access, fields }: Collection, catalog: Catalog): ReadonlySet<string> {
  const columns = access.list.flatMap(({ checked }) => automatic(checked, { catalog, collection: name, fields }));
  return new Set(columns);
}

interface Guarded {
  readonly catalog: Catalog;
  readonly collection: string;
  readonly fields: ReadonlyMap<string, Field>;
}

/**
 * The columns that are indexed without a declaration: compared for equality, lists asked for an element, or points asked
 * for a place, and never too long for an index.
 */
function automatic(checked: Checked, { catalog, collection, fields }: Guarded): readonly string[] {
  const wanted = unindexed(checked, catalog, collection)?.columns ?? [];
  const equal = new Set(equalities(checked));
  return wanted.filter((column) => equal.has(column) && isIndexable(fieldOfColumn(column, fields)));
}

const fieldOfColumn = (column: string, fields: ReadonlyMap<string, Field>): Field | undefined =>
  [...fields.values()].find((field) => field.column === column);

export function isIndexable(field: Field | undefined): boolean {
  if (field === undefined || FIELD_KINDS[field.type].isIndexable === false) return false;
  if (FIELD_KINDS[field.type].bounds !== 'length') return true;
  return field.enum !== undefined || (field.max !== undefined && Number(field.max) <= INDEXABLE_LENGTH);
}

/** The record's own fields that no declared or automatic index serves, by name. */
export function missingIndexes(policy: Policy, guarded: Guarded): readonly string[] {
  const wanted = unindexed(policy.checked, guarded.catalog, guarded.collection)?.columns ?? [];
  const made = automatic(policy.checked, guarded);
  return wanted
    .filter((column) => !made.includes(column))
    .map((column) => fieldOfColumn(column, guarded.fields)?.name ?? column);
}

function equalities(checked: Checked): readonly string[] {
  switch (checked.kind) {
    case 'and':
    case 'or':
      return checked.items.flatMap(equalities);
    case 'compare':
      if (checked.op === 'within') return ownColumn(checked.left);
      if (checked.op === 'contains') return elementOf(checked.left.type) ? ownColumn(checked.left) : [];
      return checked.op === '=' || checked.op === 'in' ? [checked.left, checked.right].flatMap(ownColumn) : [];
    case 'const':
    case 'not':
    case 'is null':
    case 'quantified':
    case 'changed':
      return [];
  }
}

const ownColumn = (operand: CheckedOperand): readonly string[] =>
  operand.kind === 'column' && operand.steps.length === 0 && operand.column.kind === 'field'
    ? [operand.column.field.column]
    : [];

/** Letters fold by Unicode in each database, under each collation of it. */
export const FOLDING_COLLATION = 'und-x-icu';
/** A value as a unique index with `ignore_case` holds it; the folded texts compare by code point. */
export const foldedKey = (value: Sql): Sql => sql`lower(${value} COLLATE ${ident(FOLDING_COLLATION)}) COLLATE "C"`;
