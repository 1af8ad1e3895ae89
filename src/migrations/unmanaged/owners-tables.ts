/** Tables and views that other programs own, read from PostgreSQL's catalogue. */
import { readStrings } from '../../database/cells.ts';
import type { Cells, Queryable } from '../../database/contract.ts';
import { param, type Sql, sql, tableIdent } from '../../sql.ts';

export interface OwnersColumn {
  /** As `format_type` prints it; of a domain, its base type. */
  readonly type: string;
  /** The values of an enum type. */
  readonly labels: readonly string[] | undefined;
  readonly required: boolean;
  readonly hasDefault: boolean;
  /** The database lets this connection set it. */
  readonly isWritable: boolean;
  /** An update may set it: the role of this connection has the right. */
  readonly takesUpdates: boolean;
}

interface OwnersKey {
  readonly columns: readonly string[];
  readonly isUnique: boolean;
}

/** The changes of rows that the database takes from this connection. */
interface WritesOfTable {
  readonly create: boolean;
  readonly update: boolean;
  readonly delete: boolean;
}

export interface OwnersTable {
  readonly isView: boolean;
  readonly columns: ReadonlyMap<string, OwnersColumn>;
  readonly keys: readonly OwnersKey[];
  /** The columns that a unique index with a condition, or of expressions, is about, each set by `columnsText`. */
  readonly partialKeys: ReadonlySet<string>;
  /** The columns of its foreign keys, each by `columnsText`. */
  readonly references: ReadonlySet<string>;
  readonly writes: WritesOfTable;
  /** The rows can be locked, for which the role needs a right to update them: those of a view only if PostgreSQL itself updates them. */
  readonly hasRowLocks: boolean;
  /** Row security decides which rows this connection sees. */
  readonly hasRowSecurity: boolean;
}

/** @param tables names as the schema file spells them */
export async function readOwnersTables(
  db: Queryable,
  tables: readonly string[],
): Promise<ReadonlyMap<string, OwnersTable>> {
  if (tables.length === 0) return new Map();
  const quoted = tables.map((table) => tableIdent(table).text);
  const named = sql`unnest(${param('text[]', tables)}, ${param('text[]', quoted)}) AS named (name, quoted)`;
  const columns = Map.groupBy(await db.rows(selectOwnersColumns(named)), ([table]) => table!);
  const keys = Map.groupBy(await db.rows(selectKeys(named)), ([table]) => table!);
  const partial = Map.groupBy(await db.rows(selectPartialKeys(named)), ([table]) => table!);
  const references = Map.groupBy(await db.rows(selectReferences(named)), ([table]) => table!);
  return new Map(
    (await db.rows(selectOwnersTables(named))).map(([name, kind, create, update, remove, isLocked, isSecured]) => [
      name!,
      {
        isView: kind === 'v' || kind === 'm',
        columns: new Map((columns.get(name!) ?? []).map(columnOf)),
        keys: (keys.get(name!) ?? []).map(([, key, isUnique]) => ({
          columns: readStrings(key),
          isUnique: isUnique === 't',
        })),
        partialKeys: new Set((partial.get(name!) ?? []).map(([, columns]) => columnsText(readStrings(columns)))),
        references: new Set((references.get(name!) ?? []).map(([, columns]) => columnsText(readStrings(columns)))),
        writes: { create: create === 't', update: update === 't', delete: remove === 't' },
        hasRowLocks: isLocked === 't',
        hasRowSecurity: isSecured === 't',
      },
    ]),
  );
}

/** Columns in any order as one text. */
export const columnsText = (columns: readonly string[]): string => columns.toSorted().join('\0');

type ColumnFlags = [boolean, boolean, boolean, boolean];

function columnOf([, name, type, labels, ...flagCells]: Cells): readonly [string, OwnersColumn] {
  const [required, hasDefault, isWritable, mayUpdate] = flagCells.map((cell) => cell === 't') as ColumnFlags;
  const flags = { required, hasDefault, isWritable, takesUpdates: isWritable && mayUpdate };
  return [name!, { type: type!, labels: labels == null ? undefined : readStrings(labels), ...flags }];
}

/** The bits of `pg_relation_is_updatable`: UPDATE, INSERT, DELETE. */
const selectOwnersTables = (named: Sql): Sql => sql`
SELECT named.name, c.relkind,
       pg_relation_is_updatable(c.oid, true) & 8 <> 0 AND has_any_column_privilege(c.oid, 'INSERT'),
       pg_relation_is_updatable(c.oid, true) & 4 <> 0 AND has_any_column_privilege(c.oid, 'UPDATE'),
       pg_relation_is_updatable(c.oid, true) & 16 <> 0 AND has_table_privilege(c.oid, 'DELETE'),
       (c.relkind <> 'v' OR pg_relation_is_updatable(c.oid, false) & 4 <> 0) AND has_any_column_privilege(c.oid, 'UPDATE'),
       row_security_active(c.oid)
  FROM ${named}
  JOIN pg_class c ON c.oid = to_regclass(named.quoted)
 WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')`;

/** The triggers of a view whose type has the bit 64 are INSTEAD OF, and take any column. */
const selectOwnersColumns = (named: Sql): Sql => sql`
SELECT named.name, a.attname, format_type(base.type, base.modifier),
       (SELECT json_agg(e.enumlabel ORDER BY e.enumsortorder)::text FROM pg_enum e WHERE e.enumtypid = base.type),
       a.attnotnull OR base.is_required, a.atthasdef OR a.attidentity <> '' OR base.has_default,
       a.attgenerated = '' AND a.attidentity <> 'a'
         AND (pg_column_is_updatable(a.attrelid, a.attnum, false) OR has_instead.is_true),
       has_column_privilege(a.attrelid, a.attnum, 'UPDATE')
  FROM ${named}
  JOIN pg_attribute a ON a.attrelid = to_regclass(named.quoted)
 CROSS JOIN LATERAL (
    WITH RECURSIVE domains AS (
      SELECT a.atttypid AS type, a.atttypmod AS modifier, false AS is_required, false AS has_default
       UNION ALL
      SELECT t.typbasetype, t.typtypmod, d.is_required OR t.typnotnull, d.has_default OR t.typdefault IS NOT NULL
        FROM domains d
        JOIN pg_type t ON t.oid = d.type
       WHERE t.typtype = 'd')
    SELECT d.*
      FROM domains d
      JOIN pg_type t ON t.oid = d.type
     WHERE t.typtype <> 'd') AS base
 CROSS JOIN LATERAL (
    SELECT EXISTS (SELECT 1 FROM pg_trigger g WHERE g.tgrelid = a.attrelid AND g.tgtype & 64 <> 0)) AS has_instead (is_true)
 WHERE a.attnum > 0 AND NOT a.attisdropped`;

/** Indexes that any row can be found by. */
const selectKeys = (named: Sql): Sql => sql`
SELECT named.name,
       (SELECT json_agg(a.attname ORDER BY u.place)::text
          FROM unnest(x.indkey) WITH ORDINALITY AS u (number, place)
          JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = u.number
         WHERE u.place <= x.indnkeyatts),
       x.indisunique AND x.indimmediate
  FROM ${named}
  JOIN pg_index x ON x.indrelid = to_regclass(named.quoted)
 WHERE x.indpred IS NULL AND x.indexprs IS NULL AND x.indisvalid`;

const selectPartialKeys = (named: Sql): Sql => sql`
SELECT named.name,
       (SELECT json_agg(DISTINCT a.attname)::text
          FROM pg_depend d
          JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
         WHERE d.classid = 'pg_class'::regclass AND d.objid = x.indexrelid
           AND d.refclassid = 'pg_class'::regclass AND d.refobjid = x.indrelid AND d.refobjsubid > 0)
  FROM ${named}
  JOIN pg_index x ON x.indrelid = to_regclass(named.quoted)
 WHERE x.indisunique AND x.indisvalid AND (x.indpred IS NOT NULL OR x.indexprs IS NOT NULL)`;

const selectReferences = (named: Sql): Sql => sql`
SELECT named.name,
       (SELECT json_agg(a.attname)::text
          FROM pg_attribute a
         WHERE a.attrelid = k.conrelid AND a.attnum = ANY(k.conkey))
  FROM ${named}
  JOIN pg_constraint k ON k.conrelid = to_regclass(named.quoted)
 WHERE k.contype = 'f'`;
