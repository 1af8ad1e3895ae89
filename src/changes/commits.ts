/** The entries of a page as changes of records: one for each record and commit. */
import type { Cells } from '../database/contract.ts';
import type { ChangeEntry, ChangeLog, LogPage, Moment } from './change-log.ts';

/** A record before and after a commit; null: there is none. */
export interface RecordChange {
  /** That of the commit's last entry about the record. */
  readonly seq: number;
  readonly xid: number;
  readonly id: string;
  readonly before: Cells | null;
  readonly after: Cells | null;
}

/** The changes that one snapshot sees and the one before did not. */
export interface ChangeBatch {
  readonly from: Moment;
  readonly to: Moment;
  readonly life: string;
  /** Milliseconds from its first write to this read of the log, by the clock of the database. */
  readonly age: number;
  /** The changes of each source, in the order of their last entries. */
  readonly changes: ReadonlyMap<string, readonly RecordChange[]>;
  /** Sources of which only this is known: any number of rows changed. */
  readonly bulk: ReadonlySet<string>;
  /** Sources with entries of another shape than the schema has. */
  readonly foreign: ReadonlySet<string>;
}

interface BatchReading {
  readonly log: Pick<ChangeLog, 'readOf' | 'rowsAt'>;
  readonly shapes: ReadonlyMap<string, string>;
}

/** @param shapes of the sources that the schema has */
export function changeBatchOf(from: Moment, page: LogPage, shapes: ReadonlyMap<string, string>): ChangeBatch {
  const changes = new Map<string, Map<string, RecordChange>>();
  const bulk = new Set<string>();
  const foreign = new Set<string>();
  for (const entry of page.entries) {
    const { source, id, shape } = entry;
    if (id === null) bulk.add(source);
    else if (shapes.get(source) !== shape) foreign.add(source);
    else addEntry(changes, entry, id);
  }
  const ofSources = [...changes].map(([source, all]) => [source, inLogOrder(all)] as const);
  return {
    from,
    to: page.now,
    life: page.life,
    age: Math.max(0, page.readAt - (page.entries[0]?.at ?? page.readAt)),
    changes: new Map(ofSources),
    bulk,
    foreign,
  };
}

/** Reads the changes behind a batch. */
interface LaterChanges {
  /** The changes of some sources. More than a page of them are any number. */
  readonly laterOf: (sources: readonly string[]) => Promise<ChangeBatch>;
  /** Rows of a source as the batch sees them, of those that have changed since. */
  readonly rowsThen: (source: string, ids: readonly string[]) => Promise<ReadonlyMap<string, Cells>>;
}

export const laterThan = ({ log, shapes }: BatchReading, { to }: ChangeBatch): LaterChanges => ({
  laterOf: async (sources) => {
    const page = await log.readOf(to.snapshot, sources);
    const batch = changeBatchOf(to, page, shapes);
    return page.isCut ? { ...batch, bulk: new Set(sources) } : batch;
  },
  rowsThen: (source, ids) => log.rowsAt(to.snapshot, { source, shape: shapes.get(source)!, ids }),
});

function addEntry(changes: Map<string, Map<string, RecordChange>>, entry: ChangeEntry, id: string): void {
  const { source, seq, xid, before, after } = entry;
  const ofSource = changes.get(source) ?? new Map<string, RecordChange>();
  changes.set(source, ofSource);
  // Many links have one source: each entry of a table of links is a change of its own.
  const key = source.includes('__') ? `${xid} ${seq}` : `${xid} ${id}`;
  const known = ofSource.get(key);
  ofSource.set(key, { seq, xid, id, before: known === undefined ? before : known.before, after });
}

/** Without the records that a commit has made and deleted. */
const inLogOrder = (changes: ReadonlyMap<string, RecordChange>): readonly RecordChange[] =>
  [...changes.values()]
    .filter(({ before, after }) => before !== null || after !== null)
    .toSorted((a, b) => a.seq - b.seq);
