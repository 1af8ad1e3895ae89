/** Reads of rows by their ids: those that begin together are one statement, as the sessions of thousands of streams. */

const ROWS_TOGETHER = 500;

/** Reads the rows of some ids by one statement; a row that is missing has ended. */
export type ReadRows<T> = (ids: readonly string[]) => Promise<ReadonlyMap<string, T>>;

type PendingReads<T> = Map<string, PromiseWithResolvers<T | undefined>>;

export class GatheredReads<T> {
  readonly #read: ReadRows<T>;
  #waiting: PendingReads<T> = new Map();

  constructor(read: ReadRows<T>) {
    this.#read = read;
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
    const ids = [...waiting.keys()];
    try {
      const found = await this.#read(ids);
      for (const [id, { resolve }] of waiting) resolve(found.get(id));
    } catch (error) {
      if (ids.length === 1) return waiting.get(ids[0]!)!.reject(error);
      // A statement fails for all of its rows; each of them may still be read.
      for (const [id, { resolve }] of waiting) resolve(this.#read([id]).then((found) => found.get(id)));
    }
  }
}
