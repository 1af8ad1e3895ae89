/**
 * Exclusion constraints: records of one place do not overlap in time. A place is a range of its one text, of a range
 * type that PostgreSQL makes without an extension: btree_gist is missing where its role cannot add it. A cluster gives
 * its nodes extensions, and no range types, and wants the tenant compared by `=`. A partition has all records of a tenant,
 * and a constraint of its own: PostgreSQL 15 takes none for the whole table.
 */
import type { Queryable } from '../../database/contract.ts';
import { present } from '../../invariant.ts';
import { PARTITION_NUMBERS } from '../../schema/model/indexes.ts';
import { ident, join, param, raw, regclassOf, type Sql, sql, tableIdent } from '../../sql.ts';
import type { Step } from '../step.ts';
import type { TableDiff } from '../table-diff.ts';
import type { Column, ExclusionKey, Table, TableTenantLayout } from '../tables.ts';
import { partitionName } from '../tenant-tables.ts';

const TEXT_RANGE = 'bylaw_text_range';
const CREATE_TEXT_RANGE = raw(`CREATE TYPE ${TEXT_RANGE} AS RANGE (subtype = text, collation = "C")`);

/** The step that makes the range type, or in a cluster adds the extension, if a table needs it. */
export async function exclusionTypeSteps(
  db: Queryable,
  tables: Iterable<Table>,
  isCluster: boolean,
): Promise<readonly Step[]> {
  const excluding = [...tables].filter(({ exclusions }) => exclusions.length > 0);
  const isShared = (table: Table): boolean => isCluster && table.tenantLayout !== undefined;
  const ofExtension = excluding.some(isShared) ? await extensionSteps(db) : [];
  return excluding.every(isShared) ? ofExtension : [...ofExtension, ...(await textRangeSteps(db))];
}

async function extensionSteps(db: Queryable): Promise<readonly Step[]> {
  const [row] = await db.rows(sql`SELECT 1 FROM pg_extension WHERE extname = 'btree_gist'`);
  return row === undefined ? [{ sql: raw('CREATE EXTENSION IF NOT EXISTS btree_gist') }] : [];
}

async function textRangeSteps(db: Queryable): Promise<readonly Step[]> {
  const [row] = await db.rows(sql`SELECT to_regtype(${param('text', TEXT_RANGE)}) IS NOT NULL`);
  return row?.[0] === 't' ? [] : [{ sql: CREATE_TEXT_RANGE }];
}

interface Overlapping {
  /** Each is equal for two records of one place. */
  readonly places: readonly Sql[];
  readonly period: Sql;
  readonly where: Sql;
}

/** An entry of an index holds a text of so many bytes twice for each place. A longer one is compared by its beginning and its hashes. */
const MOST_BYTES_OF_PLACE = 1_000;
const COMPARED_CHARACTERS = 100;

function placeExpression(column: Column): Sql {
  const value = ident(column.name);
  if (column.type !== 'text') return sql`${value}::text`;
  const hash = (seed: number): Sql => sql`hashtextextended(${value}, ${raw(String(seed))})::text`;
  return sql`(CASE WHEN octet_length(${value}) <= ${raw(String(MOST_BYTES_OF_PLACE))} THEN ${value}
    ELSE left(${value}, ${raw(String(COMPARED_CHARACTERS))}) || ${hash(0)} || '/' || ${hash(1)} END)`;
}

function overlapping({ on, from, to, range, where }: ExclusionKey, { columns }: Pick<Table, 'columns'>): Overlapping {
  const [start, end] = [ident(from), ident(to)];
  const isReversed = sql`${end} < ${start}`;
  const first = sql`CASE WHEN ${isReversed} THEN ${end} ELSE ${start} END`;
  const last = sql`CASE WHEN ${isReversed} THEN ${start} ELSE ${end} END`;
  const isPlaced = [
    ...on.map((name) => sql`${ident(name)} IS NOT NULL`),
    sql`(${start} IS NOT NULL OR ${end} IS NOT NULL)`,
    ...(where === undefined ? [] : [where]),
  ];
  return {
    places: on.map((name) =>
      placeExpression(
        present(
          columns.find((column) => column.name === name),
          'the column of a place',
        ),
      ),
    ),
    period: sql`${raw(range)}(${first}, ${last})`,
    where: join(isPlaced, ' AND '),
  };
}

/** The statements for the table, or for each of its partitions. */
export const addExclusions = (table: Table, isCluster: boolean): readonly Sql[] =>
  table.exclusions.flatMap((key) => additionsOf(table, key, isCluster));

function additionsOf(definition: Table, key: ExclusionKey, isCluster: boolean): readonly Sql[] {
  const { name, tenantLayout } = definition;
  const isShared = isCluster && tenantLayout !== undefined;
  return holdersOf(name, key, { isPartitioned: !isCluster && tenantLayout?.kind === 'by' }).map(
    ({ table, constraint }) =>
      addExclusion(table, constraint, { key, of: definition, tenant: isShared ? tenantLayout : undefined }),
  );
}

interface Holder {
  readonly table: string;
  readonly constraint: string;
}

const holdersOf = (
  table: string,
  { name, partitionNames }: Pick<ExclusionKey, 'name' | 'partitionNames'>,
  { isPartitioned }: { readonly isPartitioned: boolean },
): readonly Holder[] =>
  isPartitioned
    ? partitionNames.map((constraint, i) => ({ table: partitionName(table, i), constraint }))
    : [{ table, constraint: name }];

interface ExclusionDefinition {
  readonly key: ExclusionKey;
  readonly of: Table;
  /** Given in a cluster. */
  readonly tenant: TableTenantLayout | undefined;
}

function addExclusion(table: string, constraint: string, { key, of, tenant }: ExclusionDefinition): Sql {
  const { places, period, where } = overlapping(key, of);
  const elements = places.map((place, i) => {
    if (tenant === undefined) return sql`(${raw(TEXT_RANGE)}(${place}, ${place}, '[]')) WITH &&`;
    const isTenant = tenant.kind === 'by' && key.on[i] === tenant.column;
    return isTenant ? sql`${ident(key.on[i]!)} WITH =` : sql`(${place}) WITH =`;
  });
  const list = join([...elements, sql`(${period}) WITH &&`], ', ');
  return sql`ALTER TABLE ${tableIdent(table)} ADD CONSTRAINT ${ident(constraint)} EXCLUDE USING gist (${list}) WHERE (${where})`;
}

/** The steps that add the missing constraints, then the steps that drop the constraints of former definitions. */
export async function exclusionSteps(db: Queryable, t: TableDiff, isCluster: boolean): Promise<readonly Step[]> {
  const { exclusions, name, tenantLayout } = t.table;
  const isPartitioned = !isCluster && tenantLayout?.kind === 'by';
  const wanted = exclusions.flatMap((key) => holdersOf(name, key, { isPartitioned }));
  const existing = await readExclusions(db, t, isPartitioned);
  const isWanted = ({ constraint }: Holder): boolean => wanted.some((each) => each.constraint === constraint);
  const isMade = (key: ExclusionKey): boolean => {
    const names = holdersOf(name, key, { isPartitioned }).map(({ constraint }) => constraint);
    return existing.some(({ constraint }) => names.includes(constraint));
  };
  const steps: Step[] = [];
  for (const key of exclusions) if (!isMade(key)) steps.push(...(await additionSteps(t, key, isCluster)));
  if (steps.some(({ isImpossible }) => isImpossible === true)) return steps;
  const drops = existing
    .filter((each) => !isWanted(each))
    .map(({ table, constraint }) => ({
      sql: sql`ALTER TABLE ${tableIdent(table)} DROP CONSTRAINT IF EXISTS ${ident(constraint)}`,
      // Nodes of a newer version may rely on a constraint that no other one replaces.
      ...(steps.length === 0 && { isExtra: true }),
    }));
  return [...steps, ...drops];
}

async function additionSteps(t: TableDiff, exclusion: ExclusionKey, isCluster: boolean): Promise<readonly Step[]> {
  const { name } = t.table;
  const [add, ...others] = additionsOf(t.table, exclusion, isCluster);
  const broken = overlaps(t, exclusion);
  const [place] = exclusion.on;
  if (await t.finds(broken)) {
    const destructive =
      `rows of "${name}" overlap in "${exclusion.from}" and "${exclusion.to}" at one "${place}"; change them first; ` +
      `${broken.text} finds them`;
    return [{ sql: add!, destructive, isImpossible: true }];
  }
  const rewrites = `the constraint on "${exclusion.from}" of "${name}" is built while all writers of the table wait`;
  const large = (await t.isLarge()) && { rewrites };
  return [add!, ...others].map((statement): Step => ({ sql: statement, ...large }));
}

/**
 * The holders have their new names: tables are renamed before constraints change.
 * INVARIANT: a name that ends in a digest is of a constraint that an earlier schema declared.
 */
async function readExclusions(db: Queryable, t: TableDiff, isPartitioned: boolean): Promise<readonly Holder[]> {
  const tablesOf = (name: string): readonly string[] =>
    isPartitioned ? PARTITION_NUMBERS.map((partition) => partitionName(name, partition)) : [name];
  const renamed = tablesOf(t.table.name);
  const found = await Promise.all(
    tablesOf(t.actual.name).map(async (stored, i) => {
      const rows = await db.rows(sql`
        SELECT conname
          FROM pg_constraint
         WHERE conrelid = ${regclassOf(stored)}
           AND contype = 'x'
           AND conname ~ '_[0-9a-f]{8,10}_apart[0-7]?$'`);
      return rows.map(([constraint]) => ({ table: renamed[i]!, constraint: constraint! }));
    }),
  );
  return found.flat();
}

/** Pairs of rows that the constraint keeps apart. */
function overlaps(t: TableDiff, key: ExclusionKey): Sql {
  const id = t.table.primaryKey.at(-1)!;
  const { places, period, where } = overlapping(key, t.table);
  const columns = [...new Set([id, ...key.on, key.from, key.to, ...key.whereColumns])];
  const named = places.map((place, i) => sql`${place} AS ${ident(`place${i}`)}`);
  const rows = sql`SELECT ${ident(id)} AS id, ${join([...named, sql`${period} AS period`], ', ')} FROM ${t.rowsToBe(columns)} WHERE ${where}`;
  const samePlace = places.map((_, i) => sql`a.${ident(`place${i}`)} = b.${ident(`place${i}`)}`);
  const isPair = join([...samePlace, sql`a.period && b.period`, sql`a.id < b.id`], ' AND ');
  return sql`SELECT a.id, b.id FROM (${rows}) AS a JOIN (${rows}) AS b ON ${isPair}`;
}
