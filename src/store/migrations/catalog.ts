/** What the database holds now, read from its own catalogue. */

import { invariant } from '../../invariant.ts';
import { raw, type Sql } from '../../sql.ts';
import type { Cells, Queryable } from '../database/contract.ts';
import { namedCells } from '../database/named-cells.ts';
import { readStrings } from '../database/text-array.ts';

export interface ActualColumn {
  readonly type: string;
  readonly required: boolean;
  readonly hasDefault: boolean;
}
export interface ActualConstraint {
  readonly name: string;
  readonly kind: 'p' | 'u' | 'f';
  readonly columns: readonly string[];
  readonly table?: string;
  readonly onDelete?: string;
  readonly deferred: boolean;
}
interface ActualIndex {
  readonly name: string;
  readonly columns: readonly string[];
}
export interface ActualTable {
  readonly name: string;
  readonly columns: Map<string, ActualColumn>;
  readonly constraints: readonly ActualConstraint[];
  /** Those that no constraint owns. */
  readonly indexes: readonly ActualIndex[];
}

const COLUMNS = raw(`
SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.atthasdef
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
 WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
 ORDER BY c.relname, a.attnum`);

const CONSTRAINTS = raw(`
SELECT c.relname, k.conname, k.contype, f.relname, k.confdeltype, k.condeferrable AND k.condeferred,
       (SELECT json_agg(a.attname ORDER BY u.place)::text
          FROM unnest(k.conkey) WITH ORDINALITY AS u (number, place)
          JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = u.number)
  FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid LEFT JOIN pg_class f ON f.oid = k.confrelid
 WHERE c.relnamespace = current_schema()::regnamespace AND k.contype IN ('p', 'u', 'f')
 ORDER BY c.relname, k.conname`);

const INDEXES = raw(`
SELECT c.relname, i.relname,
       (SELECT json_agg(pg_get_indexdef(x.indexrelid, n, true) ORDER BY n)::text FROM generate_series(1, x.indnkeyatts) AS n)
  FROM pg_index x JOIN pg_class c ON c.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid
 WHERE c.relnamespace = current_schema()::regnamespace AND x.indpred IS NULL AND NOT x.indisunique
 ORDER BY c.relname, i.relname`);

const ON_DELETE_OF_CODE: Readonly<Record<string, string>> = {
  c: 'CASCADE',
  r: 'RESTRICT',
  n: 'SET NULL',
  a: 'NO ACTION',
  d: 'SET DEFAULT',
};

const COLUMN_CELLS = ['table', 'name', 'type', 'required', 'hasDefault'] as const;

export async function readCatalog(db: Queryable): Promise<Map<string, ActualTable>> {
  const tables = new Map<string, ActualTable>();
  for (const cells of await db.rows(COLUMNS)) {
    const { table, name, type, required, hasDefault } = namedCells(cells, ...COLUMN_CELLS);
    const entry = tables.get(table) ?? { name: table, columns: new Map(), constraints: [], indexes: [] };
    tables.set(table, entry);
    entry.columns.set(name, { type, required: required === 't', hasDefault: hasDefault === 't' });
  }
  const constraints = await group(db, CONSTRAINTS, constraintOf);
  const indexes = await group(db, INDEXES, (cells) => {
    const { name, columns } = namedCells(cells, 'name', 'columns');
    return { name, columns: readStrings(columns).map(withoutQuotes) };
  });
  for (const [name, entry] of tables) {
    tables.set(name, { ...entry, constraints: constraints.get(name) ?? [], indexes: indexes.get(name) ?? [] });
  }
  return tables;
}

function constraintOf(cells: Cells): ActualConstraint {
  const [name, kind, table, onDelete, deferred, columns] = cells;
  invariant(name != null && columns != null, 'a constraint has a name and columns');
  invariant(kind === 'p' || kind === 'u' || kind === 'f', 'the statement asks for these kinds only');
  return {
    name,
    kind,
    columns: readStrings(columns),
    ...(kind === 'f' && { table: table ?? undefined, onDelete: ON_DELETE_OF_CODE[onDelete ?? ''] }),
    deferred: deferred === 't',
  };
}

/** By the table's name in the first cell. */
async function group<T>(db: Queryable, statement: Sql, make: (cells: Cells) => T): Promise<Map<string, T[]>> {
  const groups = new Map<string, T[]>();
  for (const row of await db.rows(statement)) {
    const { table } = namedCells(row, 'table');
    groups.set(table, [...(groups.get(table) ?? []), make(row.slice(1))]);
  }
  return groups;
}

const withoutQuotes = (name: string): string => (name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name);
