/** Counts the commits that a subscriber has to receive one by one: commits are never merged with each other. */
import type { NodeEvent } from './feed-node.ts';
import type { ListedRecords } from './snapshot-lists.ts';

export class CountedCommits {
  /** The list after the last commit. Undefined: the stream has begun since. */
  #last: ListedRecords | undefined;
  /** The changes of each record that every list since the last quiet moment has shown. */
  #changes = new Map<string, number>();

  forget(): void {
    this.#last = undefined;
    this.#changes.clear();
  }

  /** A commit has ended. @param list the one after it */
  note(list: ListedRecords): void {
    const last = this.#last;
    if (last === undefined) return;
    this.#last = list;
    for (const [id, record] of last) {
      const now = list.get(id);
      const known = this.#changes.get(id) ?? 0;
      if (now === undefined) this.#changes.set(id, Number.NEGATIVE_INFINITY);
      else if (textOf(now) !== textOf(record)) this.#changes.set(id, known + 1);
    }
  }

  /** The record with too few of the events of a quiet moment. */
  mergedIn(events: readonly NodeEvent[], list: ListedRecords): string | undefined {
    const changes = this.#changes;
    this.#changes = new Map();
    this.#last = list;
    if (events.some(({ type }) => type === 'reset')) return undefined;
    const received = Map.groupBy(events, ({ data }) => String(JSON.parse(`{${data}}`).record?.id));
    for (const [id, count] of changes) {
      const own = received.get(id) ?? [];
      if (own.length < count) return `${count} commits of ${id} came as ${own.length} events`;
    }
    return undefined;
  }
}

/** A partner whose readability alone changes makes no event. */
const textOf = (record: string): string => JSON.stringify({ ...JSON.parse(record), cover: undefined });
