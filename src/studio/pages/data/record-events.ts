/** The writes of this page, and of others on a feed, for the parts that show records. */
import { signal } from '@preact/signals';
import type { Change } from '../../../client/changes.ts';
import type { StudioRecord } from './record-query.ts';

export type RecordEvent =
  | { readonly kind: 'created'; readonly collection: string }
  | { readonly kind: 'updated'; readonly collection: string; readonly record: StudioRecord }
  | { readonly kind: 'deleted'; readonly collection: string; readonly id: string };

export const newestEvent = signal<RecordEvent | undefined>(undefined);

const listeners = new Set<(event: RecordEvent) => void>();

/** For an effect: every event, where a signal has the newest one of a burst. Returns the function that ends it. */
export function onRecordEvent(listener: (event: RecordEvent) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function noteRecord(event: RecordEvent): void {
  newestEvent.value = event;
  for (const listener of listeners) listener(event);
}

/** A number that is read as "many". */
const MOST_NEW = 1_000;

/** The ids of the records that came, after a change of the feed. A record that only changed was there before. */
export function newIdsAfter(ids: ReadonlySet<string>, change: Change<Pick<StudioRecord, 'id'>>): ReadonlySet<string> {
  if (change.type === 'leave' && ids.has(String(change.id))) return ids.difference(new Set([String(change.id)]));
  return change.type === 'enter' && ids.size < MOST_NEW ? new Set([...ids, String(change.record.id)]) : ids;
}
