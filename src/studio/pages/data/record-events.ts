/** The writes of this page, and of others on a feed, for the parts that show records. */
import { signal } from '@preact/signals';
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
