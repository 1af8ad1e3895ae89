/** The shares of rows that have given values or one of a list of keys, by the statistics of tables. */
import { memoizedBy } from '../../memoized.ts';
import type { ColumnValues, KeyCount, LookUp, RowShare } from '../../policy/branch.ts';
import type { ColumnStatistics, StatisticsOf, TableStatistics } from './table-statistics.ts';

/** The share of the rows with a value, for a column without statistics. */
const UNKNOWN_VALUE = 0.005;
export const UNKNOWN_KEYS = 10;
/** The share of the rows that a frequent value has, and how far that is above the average of a skewed column. */
const FREQUENT = 0.05;
const FAR = 1.5;
const RARE = 5;
/** So many rows that an index finds, or links with their rows, take some milliseconds to read. */
const MANY_ROWS = 1_000;

/** The share of a table's rows whose column has one of the values. */
export function shareOf({ columns, rows }: TableStatistics, { column, isId, values }: ColumnValues): number {
  const known = columns.get(column);
  if (known === undefined) return isId ? values.length / Math.max(rows, 1) : UNKNOWN_VALUE;
  const rare = rareShare(known);
  let share = 0;
  for (const value of values) share += known.common.get(statisticText(value)) ?? rare;
  return Math.min(1, Math.max(1e-9, share));
}

/** The share of the rows that have a value which is not a frequent one. */
const rareShare = ({ common, commonShare, nullShare, distinct }: ColumnStatistics): number =>
  Math.max(0, 1 - nullShare - commonShare) / Math.max(1, distinct - common.size);

/** The text that PostgreSQL prints for the value. */
const statisticText = (value: unknown): string => (typeof value === 'boolean' ? (value ? 't' : 'f') : String(value));

export const keyShare = (known: ColumnStatistics | undefined): number =>
  known === undefined ? UNKNOWN_VALUE : (1 - known.nullShare) / known.distinct;

/** The same for one of the keys that rows of a table give, which have a frequent key more often than another. */
export function shareOfKey(
  known: ColumnStatistics | undefined,
  count: KeyCount | undefined,
  statisticsOf: StatisticsOf,
): number {
  const column = count?.kind === 'rows' ? count.column : undefined;
  const given = column && count?.kind === 'rows' ? statisticsOf(count.table)?.columns.get(column) : undefined;
  return known === undefined || given === undefined ? keyShare(known) : sharesOfGiven(given)(known).average;
}

const sharesOfGiven = memoizedBy((given: ColumnStatistics) =>
  memoizedBy((known: ColumnStatistics) => {
    const rare = rareShare(known);
    const present = Math.max(given.commonShare, 1 - given.nullShare);
    let share = (present - given.commonShare) * rare;
    for (const [value, each] of given.common) share += each * (known.common.get(value) ?? rare);
    return { average: present === 0 ? rare : share / present };
  }),
);

/**
 * A value of the request is far more frequent than the values of its column on average, so that a plan for all values
 * would misjudge it.
 */
export function isFrequentValue(test: ColumnValues, range: string | undefined, table: TableStatistics): boolean {
  if (test.isStated === true) return false;
  const known = table.columns.get(test.column);
  if (known === undefined) return false;
  const share = shareOf(table, test);
  return share > FREQUENT && (test.column === range || share > FAR * keyShare(known));
}

/** The same for the rows or links that an index finds, which PostgreSQL reads all where it expects few. */
export function areManyRows(test: ColumnValues, table: TableStatistics): boolean {
  if (test.isStated === true) return false;
  const share = shareOf(table, test);
  return share * table.rows > MANY_ROWS && share > FAR * keyShare(table.columns.get(test.column));
}

/** The same for a value that is far rarer, where PostgreSQL chooses the way. */
export function isRareValue(test: ColumnValues, table: TableStatistics): boolean {
  const known = table.columns.get(test.column);
  if (known === undefined || test.isStated === true) return false;
  const average = keyShare(known);
  return average > FREQUENT && shareOf(table, test) * RARE < average;
}

/** A list of keys joins many rows that a value of the request finds: a plan for all values would look up others for each. */
export function joinsManyRows(count: KeyCount | undefined, statisticsOf: StatisticsOf, isJoined = false): boolean {
  if (count?.kind !== 'rows') return false;
  const table = statisticsOf(count.table);
  return shareParts(count.share).some((part) =>
    part.kind === 'keys'
      ? joinsManyRows(part.keys, statisticsOf, true)
      : isJoined && table !== undefined && areManyRows(part, table),
  );
}

type SharePart = Extract<RowShare, { kind: 'values' } | { kind: 'keys' }>;

const shareParts = (share: RowShare): readonly SharePart[] => ('of' in share ? share.of.flatMap(shareParts) : [share]);

interface FoundKeys {
  readonly keys: number;
  /** The share of the rows that have one key. */
  readonly ofKey: number;
  readonly statisticsOf: StatisticsOf;
}

/** The share of the rows that have one of the keys. Each row refers to any row of the other table alike. */
export function foundBy(count: KeyCount | undefined, { keys, ofKey, statisticsOf }: FoundKeys): number {
  const other = count?.kind === 'rows' && count.areIds ? statisticsOf(count.table) : undefined;
  return Math.max(1e-9, Math.min(1, other === undefined ? keys * ofKey : keys / Math.max(1, other.rows)));
}

/** Undefined: nothing is known of the table. */
export function estimatedKeys(count: KeyCount, statisticsOf: StatisticsOf): number | undefined {
  if (count.kind === 'list') return count.count;
  const table = statisticsOf(count.table);
  const links = count.links && statisticsOf(count.links.table);
  if (table === undefined || links === undefined)
    return table && table.rows * shareMeeting(count.share, table, statisticsOf);
  // A row may have far more links than others.
  const shareOfTest = (test: ColumnValues): number =>
    test.isId ? shareOf(links, { ...test, column: count.links!.column }) : shareOf(table, test);
  return links.rows * shareMeeting(count.share, table, statisticsOf, shareOfTest);
}

/** Some index begins with the column of the table. */
export type IsIndexed = (table: string, column: string) => boolean;

/** An index finds the rows that give the keys; else their table is read as a whole. */
export const areIndexed = (count: KeyCount, isIndexed: IsIndexed): boolean =>
  count.kind === 'list' || isServed(count.share, count.table, isIndexed);

function isServed(share: RowShare, table: string, isIndexed: IsIndexed): boolean {
  switch (share.kind) {
    case 'values':
      return share.isId === true || isIndexed(table, share.column);
    case 'keys':
      return isIndexed(table, share.column) && areIndexed(share.keys, isIndexed);
    case 'all':
      return share.of.some((each) => isServed(each, table, isIndexed));
    case 'any':
      return share.of.every((each) => isServed(each, table, isIndexed));
  }
}

function shareMeeting(
  share: RowShare,
  table: TableStatistics,
  statisticsOf: StatisticsOf,
  shareOfTest = (test: ColumnValues): number => shareOf(table, test),
): number {
  switch (share.kind) {
    case 'values':
      return shareOfTest(share);
    case 'keys': {
      const keys = estimatedKeys(share.keys, statisticsOf) ?? UNKNOWN_KEYS;
      const ofKey = shareOfKey(table.columns.get(share.column), share.keys, statisticsOf);
      return foundBy(share.keys, { keys, ofKey, statisticsOf });
    }
    case 'all':
      return Math.min(...share.of.map((each) => shareMeeting(each, table, statisticsOf, shareOfTest)));
    case 'any':
      return Math.min(
        1,
        share.of.reduce((sum, each) => sum + shareMeeting(each, table, statisticsOf, shareOfTest), 0),
      );
  }
}

/** The look-ups, and those within. */
export const allLookUps = (lookUps: readonly LookUp[]): readonly LookUp[] =>
  lookUps.flatMap((each) => [each, ...allLookUps(each.within)]);

/** The tables of all look-ups. */
export const tablesOfLookUps = (lookUps: readonly LookUp[]): readonly string[] =>
  allLookUps(lookUps).map(({ table }) => table);

/** The rows that a look-up reads. */
export function rowsOfKey({ table, column, isId }: LookUp, statisticsOf: StatisticsOf): number {
  const known = isId ? undefined : statisticsOf(table);
  return known === undefined ? 1 : Math.max(1, known.rows * keyShare(known.columns.get(column)));
}

/** The most rows that have one value of the column. */
export function mostRowsOf({ rows, columns }: TableStatistics, column: string): number {
  const known = columns.get(column);
  return rows * Math.max(keyShare(known), ...(known?.common.values() ?? []));
}
