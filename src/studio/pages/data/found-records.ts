/** The records that the page shows, and what a page of records, a problem, a write or a change of the feed makes of them. */
import type { ShownProblem } from '../../data/problem-words.ts';
import type { RecordEvent } from './record-events.ts';
import type { StudioRecord } from './record-query.ts';

export interface FoundRecords {
  /** Names the set of records: the filter and the caller who sees them. */
  readonly question: string;
  readonly records: readonly StudioRecord[];
  /** `null` after the last page. */
  readonly cursor: string | null;
  readonly isLoading: boolean;
  readonly problem: ShownProblem | undefined;
}

export const NOTHING_FOUND: FoundRecords = {
  question: '',
  records: [],
  cursor: null,
  isLoading: true,
  problem: undefined,
};

/** The former records stay until the first page replaces them. @param cursor null: of the first page */
export const askedFor = (found: FoundRecords, cursor: string | null): FoundRecords => ({
  ...found,
  isLoading: found.isLoading || cursor === null,
  problem: undefined,
});

type FoundPage = Pick<FoundRecords, 'question' | 'records' | 'cursor'>;

export const withFirstPage = (page: FoundPage): FoundRecords => ({ ...page, isLoading: false, problem: undefined });

/** Adds to the records as they are now: they may have changed since the page was asked for. */
export const withNextPage = (found: FoundRecords, page: FoundPage): FoundRecords =>
  withFirstPage({ ...page, records: [...found.records, ...page.records] });

/** The records stay beside the problem, but those of another question go. */
export const withProblem = (found: FoundRecords, question: string, problem: ShownProblem): FoundRecords => ({
  ...(found.question === question ? found : { ...NOTHING_FOUND, question }),
  isLoading: false,
  problem,
});

interface RecordChanges {
  readonly names: ReadonlySet<string>;
  /** Counts the changes of the record. */
  readonly at: number;
}
/** Marks lie outside of the records, whose fields may have any name. */
const changes = new WeakMap<StudioRecord, RecordChanges>();

/** The members that changed while the record was shown. */
export const marksOf = (record: StudioRecord): RecordChanges | undefined => changes.get(record);

/** A record that was written stays in its place, also where it no longer matches the filter. */
export function afterEvent(records: readonly StudioRecord[], event: RecordEvent): readonly StudioRecord[] {
  if (event.kind === 'deleted') return records.filter(({ id }) => String(id) !== event.id);
  if (event.kind === 'created') return records;
  return records.map((each) => (each.id === event.record.id ? changedRecord(each, event.record) : each));
}

/** The members that differ flash. The title of another related record is not known: its id is shown. */
function changedRecord(before: StudioRecord, written: StudioRecord): StudioRecord {
  const names = Object.keys(written).filter((name) => name !== 'expand' && isOther(before[name], written[name]));
  if (names.length === 0) return before;
  const known = Object.entries(written.expand ?? before.expand ?? {}).filter(
    ([name]) => written.expand !== undefined || !names.includes(name),
  );
  const changed = { ...before, ...written, expand: Object.fromEntries(known) };
  changes.set(changed, { names: new Set(names), at: (marksOf(before)?.at ?? 0) + 1 });
  return changed;
}

const isOther = (a: unknown, b: unknown): boolean => JSON.stringify(a) !== JSON.stringify(b);

/** The members of each record, as a line of JSON; what the answer adds to them is left out. */
export const exportedLines = (records: readonly StudioRecord[]): string[] =>
  records.map(({ expand: _, can: __, ...own }) => `${JSON.stringify(own)}\n`);
