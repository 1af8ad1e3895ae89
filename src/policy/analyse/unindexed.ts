/** Finds the indexes without which a policy's condition makes the database read the whole table. */
import { ident, tableIdent } from '../../sql.ts';
import { OPERATORS } from '../operators.ts';
import { elementOf } from '../scalar-types.ts';
import type { Catalog, CatalogField, Checked, CheckedCompare, CheckedOperand, ColumnOperand } from '../types.ts';

export interface Unindexed {
  readonly columns: readonly string[];
  /** A statement for each column. */
  readonly createIndex: string;
}

/**
 * `free`: the request alone decides. `served`: an index answers. Else the fields whose index would;
 * none if no index can.
 */
type IndexAccess = 'free' | 'served' | readonly CatalogField[];

const HOPELESS: IndexAccess = [];

/**
 * `undefined` where an index serves the policy, or none would. `collection` is the one that the
 * policy guards.
 */
export function unindexed(checked: Checked, catalog: Catalog, collection: string): Unindexed | undefined {
  const table = catalog.collections.get(collection)?.table;
  const access = indexAccess(checked);
  if (table === undefined || access === 'free' || access === 'served' || access.length === 0) return undefined;
  const fields = [...new Set(access)];
  const columns = fields.map(({ column }) => column);
  const createIndex = fields
    .map(({ column, type }) => {
      const method = type === 'point' ? 'USING gist ' : elementOf(type) ? 'USING gin ' : '';
      return `CREATE INDEX ON ${tableIdent(table).text} ${method}(${ident(column).text});`;
    })
    .join('\n');
  return { columns, createIndex };
}

function indexAccess(checked: Checked): IndexAccess {
  switch (checked.kind) {
    case 'const':
      return 'free';
    case 'changed':
      return HOPELESS;
    case 'and':
      return ofAnd(checked.items.map(indexAccess));
    case 'or':
      return ofOr(checked.items.map(indexAccess));
    case 'not':
      return indexAccess(checked.item) === 'free' ? 'free' : HOPELESS;
    case 'is null':
      return dependsOnRecord(checked.operand) ? HOPELESS : 'free';
    case 'quantified':
      // `any` is a semi-join over an indexed key; `all` and `none` look at every record.
      return checked.quantifier === 'any' && checked.path.relation.kind !== 'elements' ? 'served' : HOPELESS;
    case 'compare':
      return accessOfCompare(checked);
  }
}

const isWanted = (access: IndexAccess): access is readonly CatalogField[] => typeof access === 'object';

/** A single served item is enough, and so is a single index. */
function ofAnd(items: readonly IndexAccess[]): IndexAccess {
  if (items.every((item) => item === 'free')) return 'free';
  if (items.includes('served')) return 'served';
  return items.filter(isWanted).find((fields) => fields.length > 0) ?? HOPELESS;
}

/** Every branch needs its own. */
function ofOr(items: readonly IndexAccess[]): IndexAccess {
  const wanted = items.filter(isWanted);
  if (wanted.some((fields) => fields.length === 0)) return HOPELESS;
  if (wanted.length > 0) return wanted.flat();
  return items.includes('served') ? 'served' : 'free';
}

const dependsOnRecord = (operand: CheckedOperand): operand is ColumnOperand => operand.kind === 'column';

function accessOfCompare({ op, left, right }: CheckedCompare): IndexAccess {
  if (left.kind === 'count' || right.kind === 'count') return HOPELESS;
  const [operand, other] = [left, right].filter(dependsOnRecord);
  if (operand === undefined) return 'free';
  if (other !== undefined) return HOPELESS;
  if (operand === left && elementOf(operand.type) && OPERATORS[op].sides === 'holder') return ofColumn(operand);
  if (!OPERATORS[op].sargable) return HOPELESS;
  // The operator does not look up the column on the list or needle side.
  if (operand === right && OPERATORS[op].mirror === undefined) return HOPELESS;
  return ofColumn(operand);
}

function ofColumn({ column, steps }: ColumnOperand): IndexAccess {
  // Behind a relation the record's own key is looked up, which is indexed.
  if (steps.length > 0 || column.kind !== 'field') return 'served';
  const { field } = column;
  if (field.part !== undefined) return HOPELESS;
  // Also of a bool: an index that goes on with the id gives the first records of the rarer value.
  return field.index || field.unique ? 'served' : [field];
}
