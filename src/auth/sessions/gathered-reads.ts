/** Reads of rows by their ids: those that begin together are one statement, as the sessions of thousands of streams. */

const ROWS_TOGETHER = 500;

export interface RowReads<T> {
  one(id: string): Promise<T | undefined>;
  /** The rows by their ids; a row that is missing has ended. */
  all(ids: readonly string[]): Promise<ReadonlyMap<string, T>>;
}

type PendingReads<T> = Map<string, PromiseWithResolvers<T | undefined>>;

export class GatheredReads<T> {
  readonly #reads: RowReads<T>;
  #waiting: PendingReads<T> = new Map();

  constructor(reads: RowReads<T>) {
    this.#reads = reads;
  }

  of(id: string): Promise<T | undefined> {
    const known = this.#waiting.get(id);
    if (known !== undefined) return known.promise;
    const asked = Promise.withResolvers<T | undefined>();
    this.#waiting.set(id, asked);
    if (this.#waiting.size === 1) queueMicrotask(() => this.#send());
    else if (this.#waiting.size === ROWS_TOGETHER) this.#send();
    return asked.promise;
  }

  #send(): void {
    const waiting = this.#waiting;
    if (waiting.size === 0) return;
    this.#waiting = new Map();
    void this.#readAll(waiting);
  }

  async #readAll(waiting: PendingReads<T>): Promise<void> {
    const alone = (id: string): void => waiting.get(id)!.resolve(this.#reads.one(id));
    const ids = [...waiting.keys()];
    if (ids.length === 1) return alone(ids[0]!);
    try {
      const found = await this.#reads.all(ids);
      for (const [id, { resolve }] of waiting) resolve(found.get(id));
    } catch {
      // A statement fails for all of its rows; each of them may still be read.
      for (const id of ids) alone(id);
    }
  }
}
