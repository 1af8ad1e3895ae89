/**
 * Divides a table that has rows by tenant, or no longer: a new table takes its name and a copy of its rows, which is verified
 * before the former one is dropped. INVARIANT: all steps are in one transaction, so nobody sees a part of it.
 */
import { LINK_TENANT_COLUMN } from '../policy/condition.ts';
import { constraintName } from '../schema/model/stored-names.ts';
import { ident } from '../sql.ts';
import type { ActualConstraint, ActualTable } from './catalog.ts';
import { createTable } from './ddl.ts';
import { type Divided, partitionName, renamedPartitions } from './division.ts';
import type { LostByCopy } from './lost-by-copy.ts';
import type { Step } from './step.ts';
import type { Table } from './tables.ts';

const quoted = (name: string): string => ident(name).text;

/** Whether the rows have to move to be where the schema wants them. */
export function isMoved({ division: actual }: ActualTable, { division: wanted }: Table): boolean {
  const from = actual?.kind === 'by' ? actual.column : undefined;
  const to = wanted?.kind === 'by' ? wanted.column : undefined;
  return from !== to;
}

/** Without the column that only a divided link table has: the copy fills it. */
export const ownColumns = (table: Table): Table => ({
  ...table,
  columns: table.columns.filter(({ name }) => name !== LINK_TENANT_COLUMN),
});

/** As the copy will find it, and as constraints and indexes will be made: none of the former ones is kept. */
export const bare = (actual: ActualTable): ActualTable => ({
  ...actual,
  columns: new Map([...actual.columns].filter(([name]) => name !== LINK_TENANT_COLUMN)),
  constraints: [],
  indexes: [],
});

interface Redivision {
  /** As it is now, by its new name. */
  readonly actual: ActualTable;
  readonly wanted: Table;
  readonly divided: Divided;
  readonly hasRows: boolean;
  readonly found: LostByCopy;
}

/** After the columns are as wanted and no foreign key involves the table. */
export function redivide({ actual, wanted, divided, hasRows, found }: Redivision): readonly Step[] {
  const { name } = wanted;
  const former = partitionName(name, 'former');
  const alter = `ALTER TABLE ${quoted(former)}`;
  const keys = actual.constraints.filter(({ kind }) => kind === 'p' || kind === 'u');
  const statements = [
    ...(actual.division?.kind === 'by' ? renamedPartitions(name, former).map((step) => step.sql) : []),
    // Their names are those of the new ones.
    ...keys.map((key) => `${alter} DROP CONSTRAINT ${quoted(key.name)}`),
    ...actual.indexes.map((index) => `DROP INDEX ${quoted(index.name)}`),
    ...createTable({ ...wanted, uniques: [] }, divided),
    copy(wanted, former),
    verify(name, former),
  ];
  const first: Step = {
    sql: `ALTER TABLE ${quoted(name)} RENAME TO ${quoted(former)}`,
    ...(hasRows && { rewrites: reason(wanted) }),
    ...(found.inTheWay.length > 0 && { destructive: whyNot(name, found), isImpossible: true }),
  };
  const last: Step = {
    sql: `DROP TABLE ${quoted(former)}`,
    ...(found.lost.length > 0 && { destructive: whatIsLost(name, found) }),
  };
  return [first, ...statements.map((sql) => ({ sql })), last];
}

const whyNot = (name: string, { inTheWay }: LostByCopy): string =>
  `"${name}" has to be made anew, and cannot be dropped: ${inTheWay.join('; ')}`;

const whatIsLost = (name: string, { lost }: LostByCopy): string =>
  `"${name}" is made anew, and no schema can declare what it would lose: ${lost.join(', ')}; make that again afterwards`;

function reason({ name, division }: Table): string {
  const how = division?.kind === 'by' ? `divided by "${division.column}"` : 'divided no longer';
  return (
    `the rows of "${name}" would be ${how}: all of them are copied to a new table in one transaction, which needs room for ` +
    'both; stop the service first, because nobody can use the table meanwhile'
  );
}

function copy(wanted: Table, former: string): string {
  const names = wanted.columns.map((column) => quoted(column.name)).join(', ');
  const [source] = wanted.foreignKeys;
  const isLinked = wanted.columns.some(({ name }) => name === LINK_TENANT_COLUMN);
  if (!isLinked || source?.tenant === undefined)
    return `INSERT INTO ${quoted(wanted.name)} (${names}) SELECT ${names} FROM ${quoted(former)}`;
  const values = wanted.columns.map(({ name }) =>
    name === LINK_TENANT_COLUMN ? `s.${quoted(source.tenant!.references)}` : `f.${quoted(name)}`,
  );
  return (
    `INSERT INTO ${quoted(wanted.name)} (${names}) SELECT ${values.join(', ')} ` +
    `FROM ${quoted(former)} AS f JOIN ${quoted(source.table)} AS s ON s.id = f.${quoted(source.column)}`
  );
}

/** Fails the transaction. */
function verify(name: string, former: string): string {
  const rows = (table: string): string => `(SELECT count(*) FROM ${quoted(table)})`;
  return `DO $verify$ BEGIN IF ${rows(name)} <> ${rows(former)} THEN RAISE EXCEPTION 'not every row of ${name} was copied'; END IF; END $verify$`;
}

interface KeyOfTable {
  readonly table: string;
  readonly constraint: ActualConstraint;
}

/** The foreign keys of tables that move, and those that lead to them: they stand in the way, and are made again. */
export function keysInTheWay(actual: Iterable<ActualTable>, moved: ReadonlySet<string>): readonly KeyOfTable[] {
  return [...actual].flatMap(({ name, constraints }) =>
    constraints
      .filter(({ kind, table }) => kind === 'f' && (moved.has(name) || (table !== undefined && moved.has(table))))
      .map((constraint) => ({ table: name, constraint })),
  );
}

/** `wanted`: the table that has the key. */
export function dropKey({ table, constraint }: KeyOfTable, wanted: Table | undefined): Step {
  const { name, columns, table: target = '' } = constraint;
  const sql = `ALTER TABLE ${quoted(table)} DROP CONSTRAINT ${quoted(name)}`;
  const column = columns.slice(-1);
  const names = [table, ...(wanted?.was ?? [])].map((one) => constraintName(one, column, 'fkey'));
  const isMadeAgain = wanted?.foreignKeys.some((key) => key.table === target && column.includes(key.column)) === true;
  // A schema that no longer has the relation loses nothing else by it.
  if (wanted === undefined || isMadeAgain || names.includes(name)) return { sql };
  const what = `FOREIGN KEY (${columns.join(', ')}) to "${target}"`;
  return { sql, destructive: `the schema does not have the constraint ${what} of "${table}"; it would be lost` };
}
