/**
 * The bytes of long answers that callers have not read: a client that sends requests and never reads must not hold the
 * memory of others.
 */
import type { ServerResponse } from 'node:http';
import { currentCaller } from './queued-caller.ts';

/** The most of one caller: two answers of the usual limit. A single one may be longer. */
const MOST_UNREAD = 32 * 1_048_576;

const unread = new Map<string, number>();

/** The bytes that another answer of the caller may have. */
export function roomForAnswer(): number {
  const bytes = unread.get(currentCaller().id);
  return bytes === undefined ? Number.POSITIVE_INFINITY : Math.max(0, MOST_UNREAD - bytes);
}

/** Counts the bytes until the response is closed. */
export function countUnread(bytes: number, response: ServerResponse): void {
  if (response.closed) return;
  const { id } = currentCaller();
  unread.set(id, (unread.get(id) ?? 0) + bytes);
  response.once('close', () => {
    const left = unread.get(id)! - bytes;
    if (left === 0) unread.delete(id);
    else unread.set(id, left);
  });
}
