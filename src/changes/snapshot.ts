/** A snapshot of PostgreSQL: the transactions that a reader sees. */
export class Snapshot {
  readonly text: string;
  /** Transactions from this one on had not begun. */
  readonly xmax: string;
  /** Earlier ones that had not ended. */
  readonly inFlight: readonly string[];
  readonly #inFlight: ReadonlySet<string>;
  readonly #xmax: bigint;

  /** @param text as `pg_current_snapshot()` prints it */
  constructor(text: string) {
    const [, xmax = '0', list = ''] = text.split(':');
    this.text = text;
    this.xmax = xmax;
    this.inFlight = list === '' ? [] : list.split(',');
    this.#inFlight = new Set(this.inFlight);
    this.#xmax = BigInt(xmax);
  }

  sees(xid: string): boolean {
    return BigInt(xid) < this.#xmax && !this.#inFlight.has(xid);
  }
}
