/** The tables of a foreign database, read from PostgreSQL's catalogue. */
import type { Queryable } from '../../database/contract.ts';
import { raw } from '../../sql.ts';

export interface ExistingColumn {
  readonly name: string;
  /** In the format of `format_type`: `character varying(80)`. */
  readonly type: string;
  readonly required: boolean;
  /** The default as SQL. */
  readonly default?: string;
  /** The database computes its value: `GENERATED …`, an identity, or a sequence. */
  readonly generated: boolean;
  /** Values of an enum type. */
  readonly values?: readonly string[];
  readonly collation: 'code points' | 'other' | 'nondeterministic';
}
export interface ExistingConstraint {
  readonly kind: 'p' | 'u' | 'f' | 'c' | 'x';
  readonly columns: readonly string[];
  /** In PostgreSQL's format. */
  readonly definition: string;
  /** The table that a foreign key references. */
  readonly table?: string;
  readonly foreignColumns?: readonly string[];
  /** `pg_constraint.confdeltype`. */
  readonly onDelete?: string;
}
interface ExistingIndex {
  readonly unique: boolean;
  /** Plain columns only. */
  readonly columns: readonly string[];
}
export interface ExistingTable {
  readonly name: string;
  readonly kind: 'table' | 'view' | 'partition' | 'foreign table';
  readonly columns: readonly ExistingColumn[];
  readonly constraints: readonly ExistingConstraint[];
  /** The indexes that no constraint owns. */
  readonly indexes: readonly ExistingIndex[];
}

export const holdsReference = ({ constraints }: ExistingTable, column: string): boolean =>
  constraints.some(({ kind, columns }) => kind === 'f' && columns.includes(column));

export const isUniqueColumn = ({ constraints, indexes }: ExistingTable, column: string): boolean =>
  constraints.some(({ kind, columns }) => kind === 'u' && columns.length === 1 && columns[0] === column) ||
  indexes.some(({ unique, columns }) => unique && columns.length === 1 && columns[0] === column);

const TABLES = raw(`
SELECT c.relname,
       CASE WHEN c.relkind IN ('v', 'm') THEN 'view'
            WHEN c.relkind = 'f' THEN 'foreign table'
            WHEN c.relispartition OR EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhrelid = c.oid) THEN 'partition'
            ELSE 'table' END
  FROM pg_class c
 WHERE c.relnamespace = current_schema()::regnamespace
   AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
 ORDER BY c.relname`);

const COLUMN_ROWS = raw(`
SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid),
       a.attgenerated <> '' OR a.attidentity <> '' OR COALESCE(pg_get_expr(d.adbin, d.adrelid) LIKE 'nextval(%', false),
       (SELECT json_agg(e.enumlabel ORDER BY e.enumsortorder)::text FROM pg_enum e WHERE e.enumtypid = a.atttypid),
       CASE WHEN NOT COALESCE(l.collisdeterministic, true) THEN 'nondeterministic'
            WHEN l.collname IN ('C', 'POSIX', 'ucs_basic') THEN 'code points'
            WHEN l.collname = 'default' AND b.datlocprovider = 'c' AND b.datcollate IN ('C', 'POSIX') THEN 'code points'
            ELSE 'other' END
  FROM pg_class c
  JOIN pg_attribute a ON a.attrelid = c.oid
  JOIN pg_database b ON b.datname = current_database()
  LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
  LEFT JOIN pg_collation l ON l.oid = a.attcollation
 WHERE c.relnamespace = current_schema()::regnamespace
   AND c.relkind IN ('r', 'p')
   AND a.attnum > 0
   AND NOT a.attisdropped
   AND a.attname NOT LIKE '%~folded'
 ORDER BY c.relname, a.attnum`);

const CONSTRAINT_ROWS = raw(`
SELECT c.relname, k.contype, pg_get_constraintdef(k.oid),
       CASE WHEN f.relnamespace = c.relnamespace THEN f.relname ELSE f.oid::regclass::text END, k.confdeltype,
       (SELECT json_agg(a.attname ORDER BY u.place)::text
          FROM unnest(k.conkey) WITH ORDINALITY AS u (number, place)
          JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.number),
       (SELECT json_agg(a.attname ORDER BY u.place)::text
          FROM unnest(k.confkey) WITH ORDINALITY AS u (number, place)
          JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.number)
  FROM pg_constraint k
  JOIN pg_class c ON c.oid = k.conrelid
  LEFT JOIN pg_class f ON f.oid = k.confrelid
 WHERE c.relnamespace = current_schema()::regnamespace
   AND k.contype IN ('p', 'u', 'f', 'c', 'x')
 ORDER BY c.relname, k.conname`);

const INDEX_ROWS = raw(`
SELECT c.relname, x.indisunique,
       (SELECT json_agg(a.attname ORDER BY u.place)::text
          FROM unnest(x.indkey) WITH ORDINALITY AS u (number, place)
          JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = u.number
         WHERE u.place <= x.indnkeyatts)
  FROM pg_index x
  JOIN pg_class c ON c.oid = x.indrelid
 WHERE c.relnamespace = current_schema()::regnamespace
   AND x.indpred IS NULL
   AND x.indexprs IS NULL
   AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = x.indexrelid AND k.contype IN ('p', 'u', 'x'))
 ORDER BY c.relname, x.indexrelid`);

const jsonList = (json: string | null | undefined): readonly string[] => (json == null ? [] : JSON.parse(json));

/** The tables of the first schema in the search path. */
export async function readExistingTables(db: Queryable): Promise<readonly ExistingTable[]> {
  const [tables, columns, constraints, indexes] = await Promise.all(
    [TABLES, COLUMN_ROWS, CONSTRAINT_ROWS, INDEX_ROWS].map(async (statement) => db.rows(statement)),
  );
  const rowsOf = (rows: typeof tables, name: string) => rows!.filter(([table]) => table === name);
  return tables!.map(([name, kind]) => ({
    name: name!,
    kind: kind as ExistingTable['kind'],
    columns: rowsOf(columns, name!).map(([, column, type, required, value, generated, values, collation]) => ({
      name: column!,
      type: type!,
      required: required === 't',
      generated: generated === 't',
      collation: collation as ExistingColumn['collation'],
      ...(value != null && { default: value }),
      ...(values != null && { values: jsonList(values) }),
    })),
    constraints: rowsOf(constraints, name!).map(([, type, definition, table, onDelete, keys, foreignKeys]) => ({
      kind: type as ExistingConstraint['kind'],
      columns: jsonList(keys),
      definition: definition!,
      ...(table != null && { table, onDelete: onDelete!, foreignColumns: jsonList(foreignKeys) }),
    })),
    indexes: rowsOf(indexes, name!).map(([, unique, keys]) => ({ unique: unique === 't', columns: jsonList(keys) })),
  }));
}
