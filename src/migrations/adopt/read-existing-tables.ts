/** Reads the tables of a foreign database from PostgreSQL's catalogue. */
import type { Queryable } from '../../database/contract.ts';
import { param, raw, type Sql, sql } from '../../sql.ts';
import type { ExistingTable } from './existing-tables.ts';

/** The name of a table in a schema file. */
const FILE_NAME = raw(
  `CASE WHEN n.nspname = current_schema() THEN c.relname::text ELSE n.nspname || '.' || c.relname END`,
);

/** The relations of the schemas that are named, or of all but those of the system. */
const selectRelations = (schemas: readonly string[]): Sql => sql`(
  SELECT c.*, n.nspname, ${FILE_NAME} AS file_name
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
     AND ${
       schemas.length > 0
         ? sql`n.nspname = ANY(${param('text[]', schemas)})`
         : raw(`n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'`)
     })`;

// The citus extension owns a view in `public`, and PostGIS a table.
const selectTables = (relations: Sql): Sql => sql`
SELECT c.oid::text, json_strip_nulls(json_build_object(
         'schema', c.nspname, 'name', c.relname, 'table', c.file_name,
         'kind', CASE WHEN c.relkind IN ('v', 'm') THEN 'view'
                      WHEN c.relkind = 'f' THEN 'foreign table'
                      WHEN i.inhparent IS NOT NULL THEN 'partition'
                      ELSE 'table' END,
         'partOf', i.inhparent::regclass::text,
         'extension', (SELECT e.extname
                         FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
                        WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
                          AND d.refclassid = 'pg_extension'::regclass),
         'writes', (SELECT coalesce(json_agg(command), '[]')
                      FROM (VALUES ('INSERT', 8), ('UPDATE', 4), ('DELETE', 16)) AS w (command, bit)
                     WHERE pg_relation_is_updatable(c.oid, true) & bit <> 0),
         'rowSecurity', CASE WHEN c.relrowsecurity THEN json_build_object(
           'active', row_security_active(c.oid),
           'policies', (SELECT coalesce(json_agg(json_strip_nulls(json_build_object(
                                 'name', p.policyname, 'command', p.cmd, 'using', p.qual, 'check', p.with_check))
                               ORDER BY p.policyname), '[]')
                          FROM pg_policies p
                         WHERE p.schemaname = c.nspname AND p.tablename = c.relname)) END))::text
  FROM ${relations} AS c
  LEFT JOIN pg_inherits i ON i.inhrelid = c.oid AND i.inhseqno = 1
 ORDER BY c.nspname <> current_schema(), c.nspname COLLATE "C", c.relname COLLATE "C"`;

const selectExistingColumns = (relations: Sql): Sql => sql`
SELECT c.oid::text, json_strip_nulls(json_build_object(
         'name', a.attname, 'type', format_type(a.atttypid, a.atttypmod),
         'base', CASE WHEN t.typtype = 'd' THEN format_type(t.typbasetype, t.typtypmod) END,
         'required', a.attnotnull OR t.typnotnull,
         'default', coalesce(pg_get_expr(d.adbin, d.adrelid), t.typdefault),
         'generated', a.attgenerated <> '' OR a.attidentity <> ''
                      OR coalesce(pg_get_expr(d.adbin, d.adrelid) LIKE 'nextval(%', false),
         'computed', a.attgenerated <> '' OR a.attidentity = 'a',
         'values', (SELECT json_agg(e.enumlabel ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = a.atttypid),
         'collation', CASE WHEN NOT coalesce(l.collisdeterministic, true) THEN 'nondeterministic'
                           WHEN l.collname IN ('C', 'POSIX', 'ucs_basic') THEN 'code points'
                           WHEN l.collname = 'default' AND b.datlocprovider = 'c' AND b.datcollate IN ('C', 'POSIX')
                           THEN 'code points'
                           ELSE 'other' END))::text
  FROM ${relations} AS c
  JOIN pg_attribute a ON a.attrelid = c.oid
  JOIN pg_type t ON t.oid = a.atttypid
  JOIN pg_database b ON b.datname = current_database()
  LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
  LEFT JOIN pg_collation l ON l.oid = a.attcollation
 WHERE a.attnum > 0
   AND NOT a.attisdropped
   AND a.attname NOT LIKE '%~folded'
 ORDER BY c.oid, a.attnum`;

const selectNames = (numbers: string, relation: string): Sql =>
  raw(`(SELECT json_agg(a.attname ORDER BY u.place)
          FROM unnest(${numbers}) WITH ORDINALITY AS u (number, place)
          JOIN pg_attribute a ON a.attrelid = ${relation} AND a.attnum = u.number)`);

const selectExistingConstraints = (relations: Sql): Sql => sql`
SELECT k.conrelid::text, json_strip_nulls(json_build_object(
         'kind', k.contype, 'definition', pg_get_constraintdef(k.oid),
         'columns', coalesce(${selectNames('k.conkey', 'k.conrelid')}, '[]'),
         'table', f.file_name, 'foreignColumns', ${selectNames('k.confkey', 'k.confrelid')},
         'onDelete', CASE WHEN k.contype = 'f' THEN k.confdeltype END))::text
  FROM pg_constraint k
  JOIN ${relations} AS r ON r.oid = k.conrelid
  LEFT JOIN (SELECT c.oid, ${FILE_NAME} AS file_name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace) AS f
    ON f.oid = k.confrelid
 WHERE k.contype IN ('p', 'u', 'f', 'c', 'x')
 ORDER BY k.conrelid, k.conname`;

const selectExistingIndexes = (relations: Sql): Sql => sql`
SELECT x.indrelid::text, json_build_object(
         'unique', x.indisunique,
         'columns', (SELECT coalesce(json_agg(a.attname ORDER BY u.place), '[]')
                       FROM unnest(x.indkey) WITH ORDINALITY AS u (number, place)
                       JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = u.number
                      WHERE u.place <= x.indnkeyatts))::text
  FROM pg_index x
  JOIN ${relations} AS r ON r.oid = x.indrelid
 WHERE x.indpred IS NULL
   AND x.indexprs IS NULL
   AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = x.indexrelid AND k.contype IN ('p', 'u', 'x'))
 ORDER BY x.indrelid, x.indexrelid`;

/**
 * The tables of the current schema come first.
 * @param schemas the names of schemas; none: all but those of PostgreSQL itself
 */
export async function readExistingTables(
  db: Queryable,
  schemas: readonly string[] = [],
): Promise<readonly ExistingTable[]> {
  const relations = selectRelations(schemas);
  const rows = async (statement: Sql) => (await db.rows(statement)).map(([oid, json]) => [oid, JSON.parse(json!)]);
  const tables = await rows(selectTables(relations));
  const parts = {
    columns: await rows(selectExistingColumns(relations)),
    constraints: await rows(selectExistingConstraints(relations)),
    indexes: await rows(selectExistingIndexes(relations)),
  };
  return tables.map(([oid, table]) => {
    const own = Object.entries(parts).map(([part, all]) => [
      part,
      all.filter(([owner]) => owner === oid).map(([, value]) => value),
    ]);
    return { ...table, ...Object.fromEntries(own) };
  });
}
