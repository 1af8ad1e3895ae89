/** The writes of this page, for the parts that show records. */
import { signal } from '@preact/signals';
import type { StudioRecord } from './record-query.ts';

export type RecordEvent =
  | { readonly kind: 'created'; readonly collection: string }
  | { readonly kind: 'updated'; readonly collection: string; readonly record: StudioRecord }
  | { readonly kind: 'deleted'; readonly collection: string; readonly id: string };

export const newestEvent = signal<RecordEvent | undefined>(undefined);

export const noteRecord = (event: RecordEvent): void => {
  newestEvent.value = event;
};
