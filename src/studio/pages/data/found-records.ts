/** The records that the page shows, and what a write or a change of the feed makes of them. */
import type { RecordEvent } from './record-events.ts';
import type { StudioRecord } from './record-query.ts';

interface RecordChanges {
  readonly names: ReadonlySet<string>;
  /** Counts the changes of the record. */
  readonly at: number;
}
/** Marks lie outside of the records, whose fields may have any name. */
const changes = new WeakMap<StudioRecord, RecordChanges>();

/** The members that changed while the record was shown. */
export const changesOf = (record: StudioRecord): RecordChanges | undefined => changes.get(record);

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
  changes.set(changed, { names: new Set(names), at: (changesOf(before)?.at ?? 0) + 1 });
  return changed;
}

const isOther = (a: unknown, b: unknown): boolean => JSON.stringify(a) !== JSON.stringify(b);

/** The members of each record, as a line of JSON; what the answer adds to them is left out. */
export const exportedLines = (records: readonly StudioRecord[]): string[] =>
  records.map(({ expand: _, can: __, ...own }) => `${JSON.stringify(own)}\n`);
