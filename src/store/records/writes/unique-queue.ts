/**
 * Concurrent writes of one unique value take turns. Uniqueness is checked at the end of a write,
 * after the rules, so concurrent writers would deadlock; PostgreSQL aborts all but one after
 * `deadlock_timeout` (1 s). The queue avoids that within a process; between processes the aborted
 * write is retried.
 */
import type { Collection } from '../../../schema/model.ts';

export class UniqueQueue {
  /** The end of the last write in the queue of each value. */
  readonly #last = new Map<string, Promise<void>>();

  /**
   * INVARIANT: never called while holding a connection: the write whose turn it is may be waiting
   * for one.
   */
  async run<T>(keys: readonly string[], work: () => Promise<T>): Promise<T> {
    if (keys.length === 0) return work();
    const before = keys.map((key) => this.#last.get(key));
    const { promise: end, resolve } = Promise.withResolvers<void>();
    // Into all queues at once, so that no two writes can wait for each other.
    for (const key of keys) this.#last.set(key, end);
    await Promise.all(before);
    try {
      return await work();
    } finally {
      resolve();
      for (const key of keys) if (this.#last.get(key) === end) this.#last.delete(key);
    }
  }
}

interface WantedValue {
  readonly column: string;
  readonly value: unknown;
}

/** What no other record of the collection may have at the same time. */
export function uniqueKeys(
  { table, fields, relations }: Collection,
  values: readonly WantedValue[],
): readonly string[] {
  const members = [...fields.values(), ...relations.values()];
  const unique = new Set(members.flatMap((member) => ('unique' in member && member.unique ? [member.column] : [])));
  return values
    .filter(({ column, value }) => value !== null && unique.has(column))
    .map(({ column, value }) => `${table}.${column}=${value}`);
}
