/** What the database holds now, read from its own catalogue. */
import { raw, type Sql } from '../../sql.ts';
import type { Queryable } from '../database/contract.ts';

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

export async function readCatalog(db: Queryable): Promise<Map<string, ActualTable>> {
  const tables = new Map<string, ActualTable>();
  for (const [table, name, type, required, hasDefault] of await db.rows(COLUMNS)) {
    const entry = tables.get(table!) ?? { name: table!, columns: new Map(), constraints: [], indexes: [] };
    tables.set(table!, entry);
    entry.columns.set(name!, { type: type!, required: required === 't', hasDefault: hasDefault === 't' });
  }
  const constraints = await group(db, CONSTRAINTS, ([name, kind, table, onDelete, deferred, columns]) => ({
    name: name!,
    kind: kind as 'p' | 'u' | 'f',
    columns: JSON.parse(columns!) as string[],
    ...(kind === 'f' ? { table: table!, onDelete: ON_DELETE_OF_CODE[onDelete!]! } : {}),
    deferred: deferred === 't',
  }));
  const indexes = await group(db, INDEXES, ([name, columns]) => ({
    name: name!,
    columns: (JSON.parse(columns!) as string[]).map(withoutQuotes),
  }));
  for (const [name, entry] of tables) {
    tables.set(name, { ...entry, constraints: constraints.get(name) ?? [], indexes: indexes.get(name) ?? [] });
  }
  return tables;
}

/** By the table's name in the first cell. */
async function group<T>(
  db: Queryable,
  statement: Sql,
  make: (cells: readonly (string | null)[]) => T,
): Promise<Map<string, T[]>> {
  const groups = new Map<string, T[]>();
  for (const [table, ...cells] of await db.rows(statement)) {
    groups.set(table!, [...(groups.get(table!) ?? []), make(cells)]);
  }
  return groups;
}

const withoutQuotes = (name: string): string => (name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name);
