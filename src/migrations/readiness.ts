/**
 * Whether a database has all that a schema needs. It may have more: a newer version of the program
 * may have migrated it, and this one goes on serving.
 */

import type { Queryable } from '../database/contract.ts';
import type { Schema } from '../schema/model/model.ts';
import { raw, sql, text } from '../sql.ts';
import { type ActualTable, readCatalog } from './catalog.ts';
import { sameColumns } from './changing-table.ts';
import { uniqueName } from './ddl.ts';
import { fingerprintOf, isUnderWay } from './fingerprint.ts';
import { type Table, tablesOf } from './tables.ts';

interface Verdict {
  readonly fingerprint: string;
  readonly isServed: boolean;
}
/** Of each schema, what was found when the database last changed. */
const verdicts = new WeakMap<Schema, Verdict>();

/** Reads the catalogue only after a migration by another version. */
export async function hasAllOf(db: Queryable, schema: Schema): Promise<boolean> {
  const [found] = await db.rows(sql`SELECT to_regclass(quote_ident(${text('bylaw_schema')})) IS NOT NULL`);
  if (found?.[0] !== 't') return false;
  const [row] = await db.rows(raw('SELECT fingerprint FROM bylaw_schema WHERE id = 1'));
  const fingerprint = row?.[0];
  if (typeof fingerprint !== 'string') return false;
  if (fingerprint === fingerprintOf(schema)) return true;
  const known = verdicts.get(schema);
  if (known?.fingerprint === fingerprint) return known.isServed;
  const [tables, actual] = [tablesOf(schema), await readCatalog(db)];
  // Where a migration has ended, another version has dropped it; that keeps nobody from working.
  const isWhole = !isUnderWay(fingerprint) || !lacksUnique(tables, actual);
  const isServed = isWhole && lacksOf(tables, actual).length === 0;
  verdicts.set(schema, { fingerprint, isServed });
  return isServed;
}

/** Values of a field that is declared unique may be equal until its index is built. */
function lacksUnique(wanted: ReadonlyMap<string, Table>, actual: ReadonlyMap<string, ActualTable>): boolean {
  return [...wanted.values()].some(({ name, uniques }) => {
    const { constraints = [], indexes = [] } = actual.get(name) ?? {};
    const held = [
      ...constraints.filter(({ kind }) => kind === 'u'),
      ...indexes.filter(({ isUnique, isValid }) => isUnique && isValid),
    ];
    return uniques.some((wanted) => !held.some(({ columns }) => sameColumns(columns, wanted)));
  });
}

/** What keeps a program with these tables from working. */
function lacksOf(wanted: ReadonlyMap<string, Table>, actual: ReadonlyMap<string, ActualTable>): readonly string[] {
  const lacks: string[] = [];
  for (const table of wanted.values()) {
    const existing = actual.get(table.name);
    if (existing === undefined) {
      lacks.push(table.name);
      continue;
    }
    for (const { name, type } of table.columns)
      if (existing.columns.get(name)?.type !== type) lacks.push(`${table.name}.${name}`);
    for (const [name, { required, hasDefault }] of extraColumns(table, existing))
      if (required && !hasDefault) lacks.push(`${table.name}.${name}`);
  }
  return lacks;
}

const extraColumns = (table: Table, { columns }: ActualTable): ActualTable['columns'] => {
  const known = new Set(table.columns.flatMap(({ name, was }) => (was === undefined ? [name] : [name, was])));
  return new Map([...columns].filter(([name]) => !known.has(name)));
};

/** Columns that another schema made unique, and this one does not, also not within a relation. */
function extraUniques({ name, uniques, columns }: Table, existing: ActualTable | undefined): readonly string[] {
  const known = new Set(columns.flatMap((column) => [column.name, column.was ?? column.name]));
  const fields = new Set(uniques.map((unique) => unique.at(-1)));
  const wanted = new Set(columns.flatMap((column) => (fields.has(column.name) ? [column.name, column.was] : [])));
  const names = new Set(uniques.map((unique) => uniqueName(name, unique)));
  return (existing?.constraints ?? []).flatMap(({ kind, name: constraint, columns: [column = '', ...more] }) => {
    const isExtra = kind === 'u' && more.length === 0 && known.has(column);
    return isExtra && !wanted.has(column) && !names.has(constraint) ? [`unique values of "${name}"."${column}"`] : [];
  });
}

/** The names of tables that a schema made, of columns, and of unique columns, that this one does not have. */
export function extraOf(
  wanted: ReadonlyMap<string, Table>,
  actual: ReadonlyMap<string, ActualTable>,
  owned: readonly string[],
): readonly string[] {
  const tables = owned.filter((name) => !wanted.has(name) && actual.has(name)).map((name) => `"${name}"`);
  const columns = [...wanted.values()].flatMap((table) => {
    const existing = actual.get(table.name);
    return existing === undefined
      ? []
      : [...extraColumns(table, existing).keys()].map((name) => `"${table.name}"."${name}"`);
  });
  const uniques = [...wanted.values()].flatMap((table) => extraUniques(table, actual.get(table.name)));
  return [...tables, ...columns, ...uniques];
}
