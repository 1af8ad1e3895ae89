/** The indexes of a collection, and those that its policies lack. */

import { unindexed } from '../policy/analyse/unindexed.ts';
import type { Catalog, Checked, CheckedOperand, Policy } from '../policy/types.ts';
import { INDEXABLE_LENGTH } from './field-rules.ts';
import type { Collection, Field } from './model.ts';

export interface IndexDefinition {
  /** A column that is not unique is followed by `id`, so that the index returns a page in its order. */
  readonly columns: readonly string[];
  readonly unique: boolean;
  /** `index: true` or `unique: true` of the file, a belongs_to, or an equality in a list policy. */
  readonly because: 'declared' | 'reference' | 'policy';
}

/** Each column once. The store itself adds the primary key and the indexes of link tables. */
export function indexesOf(collection: Collection, catalog: Catalog): readonly IndexDefinition[] {
  const definitions: IndexDefinition[] = [];
  for (const { column, unique, index } of collection.fields.values()) {
    if (unique || index) definitions.push(definition({ column, unique, because: 'declared' }));
  }
  for (const relation of collection.relations.values()) {
    if (relation.kind === 'belongs_to')
      definitions.push(definition({ column: relation.column, unique: relation.unique, because: 'reference' }));
  }
  for (const column of wantedBy(collection, catalog))
    definitions.push(definition({ column, unique: false, because: 'policy' }));
  return definitions;
}

interface IndexedColumn {
  readonly column: string;
  readonly unique: boolean;
  readonly because: IndexDefinition['because'];
}

function definition({ column, unique, because }: IndexedColumn): IndexDefinition {
  return { columns: unique ? [column] : [column, 'id'], unique, because };
}

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
 * The columns that are indexed without a declaration: compared for equality, and never too long for
 * an index.
 */
function automatic(checked: Checked, { catalog, collection, fields }: Guarded): readonly string[] {
  const wanted = unindexed(checked, catalog, collection)?.columns ?? [];
  const equal = new Set(equalities(checked));
  return wanted.filter((column) => equal.has(column) && isIndexable(fieldOfColumn(column, fields)));
}

const fieldOfColumn = (column: string, fields: ReadonlyMap<string, Field>): Field | undefined =>
  [...fields.values()].find((field) => field.column === column);

function isIndexable(field: Field | undefined): boolean {
  if (field?.type !== 'string') return field !== undefined;
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
