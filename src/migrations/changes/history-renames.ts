/**
 * Gives the entries of histories the names that columns and collections have now. Rules judge a state by its values: one
 * that stays under a former name is absent, and an absent value can open a rule.
 */
import type { Queryable } from '../../database/contract.ts';
import { RECORD_HISTORY_TABLE } from '../../schema/model/kept/history-names.ts';
import type { Collection, Schema } from '../../schema/model/model.ts';
import { quotedText, raw, type Sql, sql } from '../../sql.ts';
import { tableExists } from '../catalog.ts';
import type { Renamed } from '../renamed-tables.ts';
import type { Step } from '../step.ts';
import { stringLiteral, type Table } from '../tables.ts';
import { renamedMember, rewriteSteps } from './rewritten-rows.ts';

interface HistoryRenaming {
  readonly db: Queryable;
  readonly schema: Schema;
  readonly wanted: ReadonlyMap<string, Table>;
  readonly renamed: Renamed;
  /** The bytes from which a table is large. */
  readonly largeFrom?: number | undefined;
}

/** The entries of a collection in one table. */
interface HistoryEntries {
  readonly table: string;
  /** The name of the table in the database. */
  readonly stored: string;
  /** The collections whose entries they are; undefined: all entries of the table. */
  readonly collections?: readonly string[];
}

/** The steps follow the renames of tables, in one transaction with those of columns. */
export async function historyRenames(renaming: HistoryRenaming): Promise<readonly Step[]> {
  const { db, schema, renamed } = renaming;
  const isShared = await tableExists(db, RECORD_HISTORY_TABLE);
  const steps: Step[] = [];
  for (const collection of schema.collections.values()) {
    const { history, name, was } = collection;
    if (history === undefined) continue;
    const keys = renamedColumns(renaming, collection);
    const former = was === undefined || schema.collections.has(was) ? [] : [was];
    const shared = { table: RECORD_HISTORY_TABLE, stored: RECORD_HISTORY_TABLE };
    if (isShared && former.length > 0)
      steps.push(...(await rewritten(renaming, { ...shared, collections: former }, [currentName(name, former)])));
    if (isShared)
      steps.push(
        ...(await rewritten(renaming, { ...shared, collections: [name, ...former] }, renamedKeys(keys, name))),
      );
    if (history.table !== undefined && renamed.actual.has(history.table)) {
      const stored = renamed.formerNames.get(history.table) ?? history.table;
      steps.push(...(await rewritten(renaming, { table: history.table, stored }, renamedKeys(keys))));
    }
  }
  return steps;
}

/** Empty where the table has no such entries. */
function rewritten(
  renaming: HistoryRenaming,
  { table, stored, collections }: HistoryEntries,
  changes: readonly Sql[],
): Promise<readonly Step[]> {
  const rewrites = `the entries of \`${table}\` get other names while all writers of the collection wait`;
  return rewriteSteps(renaming, { table, stored, rows: isOf(collections), rewrites }, changes);
}

const isOf = (collections: readonly string[] | undefined): Sql =>
  collections === undefined
    ? raw('true')
    : raw(`h.collection IN (${collections.map((each) => quotedText(each)).join(', ')})`);

const currentName = (name: string, former: readonly string[]): Sql =>
  sql`SET collection = ${stringLiteral(name)} WHERE ${isOf(former)}`;

/** New name → former name. */
type RenamedColumns = readonly (readonly [name: string, was: string])[];

const renamedKeys = (columns: RenamedColumns, collection?: string): readonly Sql[] =>
  columns.map(([name, was]) => {
    const former = stringLiteral(was);
    const image = (side: Sql): Sql =>
      sql`${side} = CASE WHEN h.${side} ? ${former} THEN ${renamedMember(sql`h.${side}`, name, was)} ELSE h.${side} END`;
    const isNamed = sql`(h.before ? ${former} OR h.after ? ${former})`;
    return sql`SET ${image(raw('before'))}, ${image(raw('after'))}
      WHERE ${isOf(collection === undefined ? undefined : [collection])} AND ${isNamed}`;
  });

function renamedColumns({ wanted, renamed }: HistoryRenaming, { table }: Collection): RenamedColumns {
  const existing = renamed.actual.get(table)?.columns;
  if (existing === undefined) return [];
  return (wanted.get(table)?.columns ?? []).flatMap(({ name, was }) =>
    was !== undefined && !existing.has(name) && existing.has(was) ? [[name, was] as const] : [],
  );
}
