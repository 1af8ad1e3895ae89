/** The actual tables, read from PostgreSQL's catalogue. */
import { namedCells, readStrings } from '../database/cells.ts';
import { isCitus } from '../database/citus.ts';
import type { Cells, Queryable } from '../database/contract.ts';
import { invariant } from '../invariant.ts';
import { param, raw, regclassOf, type Sql, sql, tableIdent } from '../sql.ts';

export interface ActualColumn {
  readonly type: string;
  readonly required: boolean;
  readonly hasDefault: boolean;
  readonly comment?: string;
}
export interface ActualConstraint {
  readonly name: string;
  /** `c`: only a CHECK that keeps a column NOT NULL while a migration runs. */
  readonly kind: 'p' | 'u' | 'f' | 'c';
  readonly columns: readonly string[];
  readonly table?: string;
  readonly onDelete?: string;
  /** The last column that a foreign key leads to. */
  readonly referenced?: string | undefined;
  /** ON UPDATE CASCADE */
  readonly followsUpdates?: boolean;
  /** PostgreSQL checks it with each statement; if it is unique, any number of rows may have null. */
  readonly isPlain: boolean;
  /** False: rows that are older than the constraint may break it. */
  readonly isValidated: boolean;
  /** The statements that drop the foreign keys which need this key. */
  readonly dropsOfUsers: readonly string[];
}
export interface ActualIndex {
  readonly name: string;
  readonly columns: readonly string[];
  readonly isUnique: boolean;
  /** False: its builder ended before the index was complete. */
  readonly isValid: boolean;
}
export interface ActualTable {
  readonly name: string;
  readonly columns: Map<string, ActualColumn>;
  readonly constraints: readonly ActualConstraint[];
  /** The indexes that no constraint owns. */
  readonly indexes: readonly ActualIndex[];
  readonly tenantLayout?: ActualTenantLayout;
}
/** The `TableTenantLayout` that a table has. Partitions that an operator has made do not count. */
type ActualTenantLayout = { readonly kind: 'reference' } | { readonly kind: 'by'; readonly column: string };

/** The column that decides where each row is stored. */
export const tenantColumnOf = (table: ActualTable | undefined): string | undefined =>
  table?.tenantLayout?.kind === 'by' ? table.tenantLayout.column : undefined;

/**
 * The tables of the current schema, and those of other schemas that are named: each has the name that the schema gives it.
 * @param names of the schema's tables
 */
function namedTables(names: Iterable<string>): Sql {
  const others = [...names].filter((name) => name.includes('.'));
  const own = sql`
    SELECT relname::text AS name, oid
      FROM pg_class
     WHERE relnamespace = current_schema()::regnamespace`;
  if (others.length === 0) return sql`(${own})`;
  const quoted = others.map((name) => tableIdent(name).text);
  const named = sql`
    SELECT name, to_regclass(quoted)::oid AS oid
      FROM unnest(${param('text[]', others)}, ${param('text[]', quoted)}) AS o (name, quoted)
     WHERE to_regclass(quoted) IS NOT NULL`;
  return sql`(${named} UNION ALL ${own} AND oid NOT IN (SELECT oid FROM (${named}) AS other))`;
}

const selectColumns = (tables: Sql): Sql => sql`
SELECT t.name, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.atthasdef OR a.attidentity <> '',
       coalesce(col_description(c.oid, a.attnum), '')
  FROM ${tables} AS t JOIN pg_class c ON c.oid = t.oid JOIN pg_attribute a ON a.attrelid = c.oid
 WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
   AND a.attnum > 0 AND NOT a.attisdropped
 ORDER BY t.name COLLATE "C", a.attnum`;

const selectConstraints = (tables: Sql): Sql => sql`
SELECT t.name, k.conname, k.contype, coalesce(f.name, k.confrelid::regclass::text), k.confdeltype,
       NOT k.condeferrable AND pg_get_constraintdef(k.oid) NOT LIKE 'UNIQUE NULLS NOT DISTINCT%', k.convalidated,
       (SELECT json_agg(a.attname ORDER BY u.place)::text
          FROM unnest(k.conkey) WITH ORDINALITY AS u (number, place)
          JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = u.number),
       (SELECT coalesce(json_agg(format('ALTER TABLE %s DROP CONSTRAINT %I', r.conrelid::regclass, r.conname)
                                 ORDER BY r.conrelid::regclass::text, r.conname), '[]')::text
          FROM pg_constraint r
         WHERE r.contype = 'f' AND r.conparentid = 0 AND k.contype IN ('p', 'u') AND r.conindid = k.conindid),
       k.confupdtype = 'c',
       (SELECT a.attname
          FROM pg_attribute a
         WHERE a.attrelid = k.confrelid
           AND a.attnum = k.confkey[array_upper(k.confkey, 1)])
  FROM pg_constraint k
  JOIN ${tables} AS t ON t.oid = k.conrelid
  JOIN pg_class c ON c.oid = k.conrelid
  LEFT JOIN ${tables} AS f ON f.oid = k.confrelid
 WHERE k.conparentid = 0
   AND (k.contype IN ('p', 'u', 'f')
        OR k.contype = 'c' AND k.conname LIKE '%\\_required' AND EXISTS (
             SELECT 1
               FROM pg_attribute a
              WHERE a.attrelid = c.oid AND k.conkey = ARRAY[a.attnum]
                AND pg_get_constraintdef(k.oid) IN (format('CHECK ((%I IS NOT NULL))', a.attname),
                                                    format('CHECK ((%I IS NOT NULL)) NOT VALID', a.attname))))
 ORDER BY t.name COLLATE "C", k.conname`;

const selectIndexes = (tables: Sql): Sql => sql`
SELECT t.name, i.relname, x.indisunique, x.indisvalid,
       (SELECT json_agg(pg_get_indexdef(x.indexrelid, n, true) ORDER BY n)::text
          FROM generate_series(1, x.indnkeyatts) AS n)
  FROM pg_index x JOIN ${tables} AS t ON t.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid
 WHERE (x.indpred IS NULL OR i.relname LIKE '%\\_only')
   AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = x.indexrelid AND k.contype IN ('p', 'u', 'x'))
 ORDER BY t.name COLLATE "C", i.relname`;

/** Our partitions have names that no collection can have. */
const PARTITIONED = raw(`
SELECT c.relname, a.attname
  FROM pg_partitioned_table p
  JOIN pg_class c ON c.oid = p.partrelid
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = p.partattrs[0]
 WHERE c.relnamespace = current_schema()::regnamespace
   AND p.partstrat = 'h'
   AND p.partnatts = 1
   AND EXISTS (
       SELECT 1
         FROM pg_inherits i
         JOIN pg_class o ON o.oid = i.inhrelid
        WHERE i.inhparent = c.oid
          AND left(o.relname, 1) = '_')`);

const SHARDED = raw(`
SELECT c.relname, CASE WHEN d.partmethod = 'h' THEN column_to_column_name(d.logicalrelid, d.partkey) END
  FROM pg_dist_partition d
  JOIN pg_class c ON c.oid = d.logicalrelid
 WHERE c.relnamespace = current_schema()::regnamespace
   AND (d.partmethod = 'h' OR d.partmethod = 'n' AND d.repmodel = 't')`);

const ON_DELETE_OF_CODE: Readonly<Record<string, string>> = {
  c: 'CASCADE',
  r: 'RESTRICT',
  n: 'SET NULL',
  a: 'NO ACTION',
  d: 'SET DEFAULT',
};

const COLUMN_CELLS = ['table', 'name', 'type', 'required', 'hasDefault', 'comment'] as const;

export async function tableExists(db: Queryable, name: string): Promise<boolean> {
  const [row] = await db.rows(sql`SELECT ${regclassOf(name)} IS NOT NULL`);
  return row?.[0] === 't';
}

/** A table or an index; with `column`, the column of a table. */
export interface NamedObject {
  readonly name: string;
  readonly column?: string | undefined;
}

/** True for each of the objects that exists, in their order. */
export async function objectsExist(db: Queryable, objects: readonly NamedObject[]): Promise<readonly boolean[]> {
  const quoted = objects.map(({ name }) => tableIdent(name).text);
  const columns = objects.map(({ column = '' }) => column);
  const rows = await db.rows(sql`
    SELECT to_regclass(o.quoted) IS NOT NULL
           AND (o."column" = '' OR EXISTS (
               SELECT
                 FROM pg_attribute a
                WHERE a.attrelid = to_regclass(o.quoted)
                  AND a.attname = o."column"
                  AND NOT a.attisdropped))
      FROM unnest(${param('text[]', quoted)}, ${param('text[]', columns)}) WITH ORDINALITY AS o (quoted, "column", place)
     ORDER BY o.place`);
  return rows.map(([exists]) => exists === 't');
}

/** @param names of the schema's tables: those of other schemas are found by them */
export async function readCatalog(db: Queryable, names: Iterable<string> = []): Promise<Map<string, ActualTable>> {
  const tables = new Map<string, ActualTable>();
  const named = namedTables(names);
  for (const cells of await db.rows(selectColumns(named))) {
    const { table, name, type, required, hasDefault, comment } = namedCells(cells, ...COLUMN_CELLS);
    const entry = tables.get(table) ?? { name: table, columns: new Map(), constraints: [], indexes: [] };
    tables.set(table, entry);
    entry.columns.set(name, {
      type,
      required: required === 't',
      hasDefault: hasDefault === 't',
      ...(comment !== '' && { comment }),
    });
  }
  const constraints = await group(db, selectConstraints(named), constraintOf);
  const indexes = await group(db, selectIndexes(named), (cells) => {
    const { name, isUnique, isValid, columns } = namedCells(cells, 'name', 'isUnique', 'isValid', 'columns');
    return {
      name,
      columns: readStrings(columns).map(withoutQuotes),
      isUnique: isUnique === 't',
      isValid: isValid === 't',
    };
  });
  for (const [name, entry] of tables) {
    tables.set(name, { ...entry, constraints: constraints.get(name) ?? [], indexes: indexes.get(name) ?? [] });
  }
  for (const [name, column] of await db.rows((await isCitus(db)) ? SHARDED : PARTITIONED)) {
    const entry = tables.get(name!);
    const tenantLayout: ActualTenantLayout = column == null ? { kind: 'reference' } : { kind: 'by', column };
    if (entry !== undefined) tables.set(name!, { ...entry, tenantLayout });
  }
  return tables;
}

function constraintOf(cells: Cells): ActualConstraint {
  const [name, kind, table, onDelete, isPlain, isValidated, columns, dropsOfUsers, followsUpdates, referenced] = cells;
  invariant(name != null && columns != null, 'a constraint has a name and columns');
  invariant(kind === 'p' || kind === 'u' || kind === 'f' || kind === 'c', 'the statement asks for these kinds only');
  return {
    name,
    kind,
    columns: readStrings(columns),
    ...(kind === 'f' && {
      table: table ?? undefined,
      onDelete: ON_DELETE_OF_CODE[onDelete ?? ''],
      referenced: referenced ?? undefined,
      followsUpdates: followsUpdates === 't',
    }),
    isPlain: isPlain === 't',
    isValidated: isValidated === 't',
    dropsOfUsers: readStrings(dropsOfUsers),
  };
}

/** The rows by the name of the table, which is in the first cell. */
async function group<T>(db: Queryable, statement: Sql, make: (cells: Cells) => T): Promise<Map<string, T[]>> {
  const groups = new Map<string, T[]>();
  for (const row of await db.rows(statement)) {
    const { table } = namedCells(row, 'table');
    groups.set(table, [...(groups.get(table) ?? []), make(row.slice(1))]);
  }
  return groups;
}

const withoutQuotes = (name: string): string => (name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name);
