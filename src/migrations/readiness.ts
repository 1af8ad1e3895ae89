/**
 * Readiness: the database has everything that a schema needs. It may have more: after a migration by
 * a newer version of the program, this version continues to serve.
 */
import type { Queryable } from '../database/contract.ts';
import type { Schema } from '../schema/model/model.ts';
import { isDefinedByName, storedTables } from '../schema/model/stored-names.ts';
import { raw } from '../sql.ts';
import { type ActualColumn, type ActualTable, readCatalog, tableExists } from './catalog.ts';
import { fingerprintOf, isPending } from './schema-record.ts';
import { sameColumns } from './table-diff.ts';
import { fitsColumn, type Table, tablesOf, uniqueName } from './tables.ts';

interface KnownReadiness {
  readonly fingerprint: string;
  readonly isServed: boolean;
}
/** The result for each schema since the database last changed. */
const lastReadiness = new WeakMap<Schema, KnownReadiness>();

async function appliedFingerprint(db: Queryable): Promise<string | undefined> {
  if (!(await tableExists(db, 'bylaw_schema'))) return undefined;
  const [row] = await db.rows(raw('SELECT fingerprint FROM bylaw_schema WHERE id = 1'));
  return typeof row?.[0] === 'string' ? row[0] : undefined;
}

/** The last migration was for the same tables. */
export const hasTablesOf = async (db: Queryable, schema: Schema): Promise<boolean> =>
  (await appliedFingerprint(db)) === fingerprintOf(schema);

/** Reads the catalogue only after a migration by another version. */
export async function hasAllOf(db: Queryable, schema: Schema): Promise<boolean> {
  const fingerprint = await appliedFingerprint(db);
  if (fingerprint === undefined) return false;
  if (fingerprint === fingerprintOf(schema)) return true;
  const last = lastReadiness.get(schema);
  if (last?.fingerprint === fingerprint) return last.isServed;
  const [tables, actual] = [tablesOf(schema), await readCatalog(db, storedTables(schema))];
  // After a migration has ended, only another version can have dropped a unique constraint: this one
  // can serve without it.
  const isWhole = !isPending(fingerprint) || !lacksUnique(tables, actual);
  const isServed = isWhole && hasColumns(tables, actual);
  lastReadiness.set(schema, { fingerprint, isServed });
  return isServed;
}

/** Values of a unique field may be equal until its index is complete. */
function lacksUnique(wanted: ReadonlyMap<string, Table>, actual: ReadonlyMap<string, ActualTable>): boolean {
  return [...wanted.values()].some(({ name, uniques, uniqueIndexes }) => {
    const { constraints = [], indexes = [] } = actual.get(name) ?? {};
    const held = [
      ...constraints.filter(({ kind }) => kind === 'u'),
      ...indexes.filter(({ name: index, isUnique, isValid }) => isUnique && isValid && !isDefinedByName(index)),
    ];
    if (!uniqueIndexes.every((one) => indexes.some((index) => index.name === one.name && index.isValid))) return true;
    return uniques.some((wanted) => !held.some(({ columns }) => sameColumns(columns, wanted)));
  });
}

/** Rows can be read, and inserted without the columns that only another schema has. */
function hasColumns(wanted: ReadonlyMap<string, Table>, actual: ReadonlyMap<string, ActualTable>): boolean {
  return [...wanted.values()].every((table) => {
    const existing = actual.get(table.name);
    return (
      existing !== undefined &&
      table.columns.every((column) => fitsColumn(column, existing.columns.get(column.name)?.type ?? '')) &&
      extraColumns(table, existing).every(([, { required, hasDefault }]) => !required || hasDefault)
    );
  });
}

function extraColumns(table: Table, { columns }: ActualTable): readonly (readonly [name: string, ActualColumn])[] {
  const names = new Set(table.columns.flatMap(({ name, was }) => (was === undefined ? [name] : [name, was])));
  return [...columns].filter(([name]) => !names.has(name));
}

/** Columns that only another schema made unique; this one does not even make them unique within a relation. */
function extraUniques({ name, uniques, columns }: Table, existing: ActualTable | undefined): readonly string[] {
  const names = new Set(columns.flatMap((column) => [column.name, column.was ?? column.name]));
  const fields = new Set(uniques.map((unique) => unique.at(-1)));
  const wanted = new Set(columns.flatMap((column) => (fields.has(column.name) ? [column.name, column.was] : [])));
  const constraintNames = new Set(uniques.map((unique) => uniqueName(name, unique)));
  return (existing?.constraints ?? []).flatMap(({ kind, name: constraint, columns: [column = '', ...more] }) => {
    const isExtra = kind === 'u' && more.length === 0 && names.has(column);
    return isExtra && !wanted.has(column) && !constraintNames.has(constraint)
      ? [`unique values of "${name}"."${column}"`]
      : [];
  });
}

/** The names of tables, columns and unique columns that another schema made and this one does not have. */
export function extraOf(
  wanted: ReadonlyMap<string, Table>,
  actual: ReadonlyMap<string, ActualTable>,
  owned: readonly string[],
): readonly string[] {
  const tables = owned.filter((name) => !wanted.has(name) && actual.has(name)).map((name) => `"${name}"`);
  const columns = [...wanted.values()].flatMap((table) => {
    const existing = actual.get(table.name);
    return existing === undefined ? [] : extraColumns(table, existing).map(([name]) => `"${table.name}"."${name}"`);
  });
  const uniques = [...wanted.values()].flatMap((table) => extraUniques(table, actual.get(table.name)));
  return [...tables, ...columns, ...uniques];
}
