/**
 * Moves the rows of a table when their storage by tenant changes: a new table takes the name and a
 * copy of the rows, which is verified before the former table is dropped. INVARIANT: all steps are in
 * one transaction, so no other session sees a part of it.
 */
import { LINK_TENANT_COLUMN } from '../policy/condition.ts';
import { constraintName } from '../schema/model/stored-names.ts';
import { ident, join, raw, type Sql, sql, tableIdent } from '../sql.ts';
import type { ActualConstraint, ActualTable } from './catalog.ts';
import { dropIndex } from './online-ddl.ts';
import type { Step } from './step.ts';
import { columnList, type Table } from './tables.ts';
import { partitionName, renamedPartitions } from './tenant-tables.ts';
import type { UndeclaredObjects } from './undeclared-objects.ts';

/** True if another column decides where each row is stored. */
export function needsMove({ tenantLayout: actual }: ActualTable, { tenantLayout: wanted }: Table): boolean {
  const from = actual?.kind === 'by' ? actual.column : undefined;
  const to = wanted?.kind === 'by' ? wanted.column : undefined;
  return from !== to;
}

/** Leaves out the tenant of a link, which the copy fills. */
export const withoutLinkTenant = (table: Table): Table => ({
  ...table,
  columns: table.columns.filter(({ name }) => name !== LINK_TENANT_COLUMN),
});

/** The table for which constraints and indexes are planned: the new table gets all of them anew. */
export const withoutConstraints = (actual: ActualTable): ActualTable => ({
  ...actual,
  columns: new Map([...actual.columns].filter(([name]) => name !== LINK_TENANT_COLUMN)),
  constraints: [],
  indexes: [],
});

interface TableMove {
  /** The existing table, by its new name. */
  readonly actual: ActualTable;
  readonly wanted: Table;
  /** The statements that create the new table. */
  readonly create: readonly Sql[];
  readonly hasRows: boolean;
  readonly undeclared: UndeclaredObjects;
}

/** Requires that the columns are as wanted and that no foreign key involves the table. */
export function moveRows({ actual, wanted, create, hasRows, undeclared }: TableMove): readonly Step[] {
  const { name } = wanted;
  const former = partitionName(name, 'former');
  const keys = actual.constraints.filter(({ kind }) => kind === 'p' || kind === 'u');
  const statements = [
    ...(actual.tenantLayout?.kind === 'by' ? renamedPartitions(name, former).map((step) => step.sql) : []),
    // The new constraints and indexes have the same names.
    ...keys.map((key) => sql`ALTER TABLE ${tableIdent(former)} DROP CONSTRAINT ${ident(key.name)}`),
    ...actual.indexes.map((index) => dropIndex(former, index.name, false)),
    ...create,
    copyFormerRows(wanted, former),
    verifyCopy(name, former),
  ];
  const { blocking, lost } = undeclared;
  const first: Step = {
    sql: sql`ALTER TABLE ${tableIdent(name)} RENAME TO ${ident(former)}`,
    ...(hasRows && { rewrites: whyRewritten(wanted) }),
    ...(blocking.length > 0 && {
      destructive: `"${name}" has to be made anew, and cannot be dropped: ${blocking.join('; ')}`,
      isImpossible: true,
    }),
  };
  const last: Step = {
    sql: sql`DROP TABLE ${tableIdent(former)}`,
    ...(lost.length > 0 && {
      destructive:
        `"${name}" is made anew, and no schema can declare what it would lose: ${lost.join(', ')}; ` +
        'make that again afterwards',
    }),
  };
  return [first, ...statements.map((statement) => ({ sql: statement })), last];
}

function whyRewritten({ name, tenantLayout }: Table): string {
  const how = tenantLayout?.kind === 'by' ? `divided by "${tenantLayout.column}"` : 'divided no longer';
  return (
    `the rows of "${name}" would be ${how}: all of them are copied to a new table in one transaction, which needs ` +
    'room for both; stop the service first, because the table is blocked meanwhile'
  );
}

function copyFormerRows({ name, columns, foreignKeys }: Table, former: string): Sql {
  const names = columnList(columns.map((column) => column.name));
  const insert = sql`INSERT INTO ${tableIdent(name)} (${names})`;
  const [source] = foreignKeys;
  const isLinkTable = columns.some((column) => column.name === LINK_TENANT_COLUMN);
  if (!isLinkTable || source?.tenant === undefined) return sql`${insert} SELECT ${names} FROM ${tableIdent(former)}`;
  const { references } = source.tenant;
  const values = columns.map((column) =>
    column.name === LINK_TENANT_COLUMN ? sql`s.${ident(references)}` : sql`f.${ident(column.name)}`,
  );
  const from = sql`${tableIdent(former)} AS f JOIN ${tableIdent(source.table)} AS s ON s.${ident(source.key)} = f.${ident(source.column)}`;
  return sql`${insert} SELECT ${join(values, ', ')} FROM ${from}`;
}

/** Fails the transaction if rows are missing. */
function verifyCopy(name: string, former: string): Sql {
  const [copied, stored] = [name, former].map((table) => sql`(SELECT count(*) FROM ${tableIdent(table)})`) as [
    Sql,
    Sql,
  ];
  const raise = raw(`RAISE EXCEPTION 'not every row of ${name} was copied'`);
  return sql`DO $verify$ BEGIN IF ${copied} <> ${stored} THEN ${raise}; END IF; END $verify$`;
}

interface ForeignKeyOfTable {
  readonly table: string;
  readonly constraint: ActualConstraint;
}

/** The foreign keys from and to tables that move: they are dropped first, and added again. */
export function foreignKeysOfMoved(
  actual: Iterable<ActualTable>,
  moved: ReadonlySet<string>,
): readonly ForeignKeyOfTable[] {
  return [...actual].flatMap(({ name, constraints }) =>
    constraints
      .filter(({ kind, table }) => kind === 'f' && (moved.has(name) || (table !== undefined && moved.has(table))))
      .map((constraint) => ({ table: name, constraint })),
  );
}

/** @param wanted the table that has the key */
export function dropForeignKey({ table, constraint }: ForeignKeyOfTable, wanted: Table | undefined): Step {
  const { name, columns, table: target = '' } = constraint;
  const drop = sql`ALTER TABLE ${tableIdent(table)} DROP CONSTRAINT ${ident(name)}`;
  const column = columns.slice(-1);
  const names = [table, ...(wanted?.was ?? [])].map((one) => constraintName(one, column, 'fkey'));
  const isAddedAgain = wanted?.foreignKeys.some((key) => key.table === target && column.includes(key.column)) === true;
  // A schema that no longer has the relation loses only the constraint.
  if (wanted === undefined || isAddedAgain || names.includes(name)) return { sql: drop, frees: true };
  const what = `FOREIGN KEY (${columns.join(', ')}) to "${target}"`;
  const destructive = `the schema does not have the constraint ${what} of "${table}"; it would be lost`;
  return { sql: drop, frees: true, destructive };
}
