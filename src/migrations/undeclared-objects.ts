/**
 * Objects that an owner has added to a table and that no schema can declare: a table that replaces
 * it would lose them.
 */
import type { Queryable } from '../database/contract.ts';
import { constraintName, isDefinedByName } from '../schema/model/stored-names.ts';
import { ident, regclassOf, type Sql, sql, text } from '../sql.ts';
import type { ActualTable } from './catalog.ts';
import { COPYING_MARK } from './search-columns.ts';
import { sameColumns } from './table-diff.ts';
import { type Table, uniqueName } from './tables.ts';

export interface ReplacedTable {
  /** Its `name` is the one in the database. */
  readonly actual: ActualTable;
  readonly wanted: Table;
  /** The plan itself drops the foreign keys of the table, and adds them again. */
  readonly isKnown: (table: string) => boolean;
}

export interface UndeclaredObjects {
  /** Such as `the trigger "audit"`. */
  readonly lost: readonly string[];
  /** Objects that prevent a DROP of the table, each with the remedy. */
  readonly blocking: readonly string[];
}

/** Their kind, their name, and their table if that is another one. */
const selectObjects = (table: string): Sql => sql`
SELECT * FROM (
WITH t AS (SELECT * FROM pg_class WHERE oid = ${regclassOf(table)})
SELECT 'constraint', k.conname::text, ''
  FROM pg_constraint k JOIN t ON k.conrelid = t.oid
 WHERE k.contype IN ('c', 'x', 'u')
 UNION
SELECT 'index', i.relname::text, ''
  FROM pg_index x JOIN t ON x.indrelid = t.oid JOIN pg_class i ON i.oid = x.indexrelid
 WHERE NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = x.indexrelid AND k.contype IN ('p', 'u', 'x'))
 UNION
SELECT 'trigger', g.tgname::text, ''
  FROM pg_trigger g JOIN t ON g.tgrelid = t.oid
 WHERE NOT g.tgisinternal AND g.tgname NOT LIKE 'bylaw\\_%'
 UNION
SELECT 'policy', p.polname::text, '' FROM pg_policy p JOIN t ON p.polrelid = t.oid
 UNION
SELECT 'rule', r.rulename::text, '' FROM pg_rewrite r JOIN t ON r.ev_class = t.oid
 UNION
SELECT 'publication', p.pubname::text, ''
  FROM pg_publication_rel m JOIN t ON m.prrelid = t.oid JOIN pg_publication p ON p.oid = m.prpubid
 UNION
SELECT 'statistics', s.stxname::text, '' FROM pg_statistic_ext s JOIN t ON s.stxrelid = t.oid
 UNION
SELECT 'comment', coalesce(a.attname::text, t.relname::text), ''
  FROM t
  JOIN pg_description d ON d.objoid = t.oid AND d.classoid = 'pg_class'::regclass
  LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = d.objsubid AND a.attnum > 0
 WHERE d.description <> ${text(COPYING_MARK)}
 UNION
SELECT CASE WHEN a.attidentity = '' AND a.attgenerated = '' THEN 'default' ELSE 'computed' END, a.attname::text, ''
  FROM pg_attribute a JOIN t ON a.attrelid = t.oid
 WHERE a.attnum > 0 AND NOT a.attisdropped AND (a.atthasdef OR a.attidentity <> '')
 UNION
SELECT 'grants', t.relname::text, ''
  FROM t
 WHERE t.relacl IS NOT NULL OR EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = t.oid AND a.attacl IS NOT NULL)
 UNION
SELECT 'owner', pg_get_userbyid(t.relowner)::text, '' FROM t WHERE pg_get_userbyid(t.relowner) <> current_user
 UNION
SELECT 'row security', t.relname::text, '' FROM t WHERE t.relrowsecurity OR t.relforcerowsecurity
 UNION
SELECT 'storage', t.relname::text, ''
  FROM t
 WHERE t.reloptions IS NOT NULL OR t.relreplident <> 'd' OR t.reltablespace <> 0
 UNION
SELECT 'reference', format('ALTER TABLE %s DROP CONSTRAINT %I', k.conrelid::regclass, k.conname),
       CASE WHEN c.relnamespace = t.relnamespace THEN c.relname::text ELSE '' END
  FROM pg_constraint k JOIN t ON k.confrelid = t.oid JOIN pg_class c ON c.oid = k.conrelid
 WHERE k.contype = 'f' AND k.conparentid = 0
 UNION
SELECT 'view', r.ev_class::regclass::text, ''
  FROM pg_depend d
  JOIN t ON d.refobjid = t.oid AND d.refclassid = 'pg_class'::regclass
  JOIN pg_rewrite r ON d.objid = r.oid AND d.classid = 'pg_rewrite'::regclass
 WHERE r.ev_class <> t.oid) AS objects (kind, name, of)
 ORDER BY kind, name`;

export async function undeclaredObjects(
  db: Queryable,
  { actual, wanted, isKnown }: ReplacedTable,
): Promise<UndeclaredObjects> {
  const lost: string[] = [];
  const blocking: string[] = [];
  const kept = namesMadeAgain(actual, wanted);
  for (const [kind = '', name = '', of = ''] of await readObjects(db, actual.name)) {
    if (kind === 'reference') {
      if (!isKnown(of))
        blocking.push(`a foreign key of a table that the schema does not have refers to it; drop that first: ${name}`);
    } else if (kind === 'view')
      blocking.push(`the view ${name} reads it; drop that first, and make it again afterwards`);
    else if (kind === 'default') {
      // The new table has the defaults of the schema. The default of a dropped column is lost with the column.
      const column = wanted.columns.find((one) => one.name === name || one.was === name);
      if (column !== undefined && column.columnDefault === undefined) lost.push(`the default of "${name}"`);
    } else if (!kept.has(name) || !NAMED_BY_US.has(kind)) lost.push(described(kind, name));
  }
  return { lost, blocking };
}

async function readObjects(db: Queryable, table: string): Promise<readonly (readonly string[])[]> {
  return (await db.rows(selectObjects(table))).map((cells) => cells.map((cell) => cell ?? ''));
}

const NAMED_BY_US: ReadonlySet<string> = new Set(['constraint', 'index']);

/** The names of constraints and indexes that a schema has declared, or that the new table has under another name. */
function namesMadeAgain(
  { name, constraints, indexes }: ActualTable,
  { uniques, indexes: wanted }: Table,
): ReadonlySet<string> {
  const has = (all: Table['uniques'], columns: readonly string[]): boolean =>
    all.some((one) => sameColumns(one, columns));
  const keys = constraints.filter(
    (one) => one.kind === 'c' || has(uniques, one.columns) || one.name === uniqueName(name, one.columns),
  );
  const ours = indexes.filter(
    ({ name: index, columns, isUnique }) =>
      (isUnique && isDefinedByName(index)) ||
      index === (isUnique ? uniqueName(name, columns, 'newkey') : constraintName(name, columns, 'idx')) ||
      (!isUnique && has(wanted, columns)),
  );
  return new Set([...keys, ...ours].map((one) => one.name));
}

function described(kind: string, name: string): string {
  const quoted = ident(name).text;
  switch (kind) {
    case 'grants':
      return 'the rights that were granted on it';
    case 'row security':
      return 'its row level security';
    case 'storage':
      return 'its storage parameters, tablespace or replica identity';
    case 'owner':
      return `its owner ${quoted}`;
    case 'comment':
      return `the comment on ${quoted}`;
    case 'computed':
      return `how the database computes ${quoted}`;
    default:
      return `the ${kind} ${quoted}`;
  }
}
