/** The steps to the unique indexes that no constraint can be: partial ones, and those of folded values. */
import type { Queryable } from '../../database/contract.ts';
import { FOLDING_COLLATION, foldedKey } from '../../schema/model/indexes.ts';
import { isDefinedByName } from '../../schema/model/stored-names.ts';
import { empty, ident, identBeside, join, raw, type Sql, sql, tableIdent, text } from '../../sql.ts';
import type { ActualIndex } from '../catalog.ts';
import { dropIndex } from '../online-ddl.ts';
import type { Step } from '../step.ts';
import type { TableDiff } from '../table-diff.ts';
import type { Table, UniqueIndex } from '../tables.ts';

const keyExpressions = (columns: readonly Sql[], ignoresCase: boolean): readonly Sql[] =>
  columns.map((column, i) => (ignoresCase && i === columns.length - 1 ? sql`(${foldedKey(column)})` : column));

export function createUniqueIndex(table: string, index: UniqueIndex, isOnline = false): Sql {
  const key = keyExpressions(
    index.columns.map((column) => ident(column)),
    index.ignoresCase,
  );
  // Citus takes a column in parentheses for an expression, and finds no tenant in the key.
  const elements = join(key, ', ');
  const how = raw(isOnline ? 'CREATE UNIQUE INDEX CONCURRENTLY' : 'CREATE UNIQUE INDEX');
  const where = index.where === undefined ? empty : sql` WHERE ${index.where}`;
  return sql`${how} ${ident(index.name)} ON ${tableIdent(table)} (${elements})${where}`;
}

/** The steps that make the missing indexes, then the steps that drop the indexes of former definitions. */
export async function uniqueIndexSteps(t: TableDiff): Promise<readonly Step[]> {
  const steps: Step[] = [];
  for (const index of t.table.uniqueIndexes) steps.push(...(await addSteps(t, index)));
  const isOnline = await t.isOnline();
  return [...steps, ...formerIndexes(t).map((index) => dropStep(t, index, isOnline))];
}

async function addSteps(t: TableDiff, index: UniqueIndex): Promise<readonly Step[]> {
  const { name } = t.table;
  const existing = t.actual.indexes.find((one) => one.name === index.name);
  if (existing?.isValid === true) return [];
  const isOnline = await t.isOnline();
  const left = existing === undefined ? [] : [dropStep(t, existing, isOnline)];
  const create = createUniqueIndex(name, index, isOnline);
  const duplicates = duplicatesOf(t, index);
  const why =
    `"${name}"."${index.columns.at(-1)}" becomes unique, and some rows have equal values; change them first; ` +
    `${duplicates.text} finds them`;
  if (await t.finds(duplicates)) return [{ sql: create, destructive: why, isImpossible: true }];
  if (!isOnline) return [...left, { sql: create }];
  const undo = { sql: dropIndex(name, index.name, true), apart: 'statement' } as const;
  return [...left, { sql: create, apart: 'statement', onBrokenRow: { why, undo } }];
}

/** The keys that several rows have. */
function duplicatesOf(t: TableDiff, { columns, ignoresCase, where, whereColumns }: UniqueIndex): Sql {
  const named = columns.map((column) => ident(column));
  const key = join(keyExpressions(named, ignoresCase), ', ');
  const conditions = [...named.map((column) => sql`${column} IS NOT NULL`), ...(where === undefined ? [] : [where])];
  const from = t.rowsToBe([...new Set([...columns, ...whereColumns])]);
  return sql`SELECT ${key} FROM ${from} WHERE ${join(conditions, ' AND ')} GROUP BY ${key} HAVING count(*) > 1`;
}

/** INVARIANT: a name that ends in a digest is of an index that an earlier schema declared. */
function formerIndexes({ table, actual }: TableDiff): readonly ActualIndex[] {
  const wanted = new Set(table.uniqueIndexes.map(({ name }) => name));
  return actual.indexes.filter(({ name, isUnique }) => isUnique && isDefinedByName(name) && !wanted.has(name));
}

function dropStep(t: TableDiff, { name, columns }: ActualIndex, isOnline: boolean): Step {
  const { uniques, uniqueIndexes } = t.table;
  // Nodes of a newer version may rely on the index of a field that has no other one.
  const fields = new Set([...uniques, ...uniqueIndexes.map((index) => index.columns)].map((each) => each.at(-1)));
  const isExtra = ![...fields].some((field) => field !== undefined && columns.at(-1)?.includes(field));
  // PostgreSQL drops it with a column that its condition reads.
  const drop = sql`DROP INDEX ${raw(isOnline ? 'CONCURRENTLY ' : '')}IF EXISTS ${identBeside(t.table.name, name)}`;
  return { sql: drop, ...(isOnline && { apart: 'statement' as const }), ...(isExtra && { isExtra }) };
}

export const createUniqueIndexes = ({ name, uniqueIndexes }: Table): readonly Step[] =>
  uniqueIndexes.map((index) => ({ sql: createUniqueIndex(name, index) }));

/** A database without ICU lacks the collation that folds letters. */
export async function foldingError(db: Queryable, tables: Iterable<Table>): Promise<Step | undefined> {
  const folded = [...tables].find(({ uniqueIndexes }) => uniqueIndexes.some(({ ignoresCase }) => ignoresCase));
  if (folded === undefined) return undefined;
  const [row] = await db.rows(
    sql`SELECT EXISTS (SELECT 1 FROM pg_collation WHERE collname = ${text(FOLDING_COLLATION)})`,
  );
  if (row?.[0] === 't') return undefined;
  const index = folded.uniqueIndexes.find(({ ignoresCase }) => ignoresCase)!;
  const destructive =
    `"${folded.name}"."${index.columns.at(-1)}" has \`ignore_case\`, and this PostgreSQL is built without ICU, ` +
    'which folds letters; use a PostgreSQL with ICU, or `lower: true`';
  return { sql: createUniqueIndex(folded.name, index), destructive, isImpossible: true };
}
