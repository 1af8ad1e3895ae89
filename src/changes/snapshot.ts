/**
 * A snapshot of PostgreSQL: the transactions that a reader sees. Their numbers have 64 bits and are counted from the
 * beginning of a server, so that JavaScript has each of them exactly.
 */
import { type ByteReader, varintBytes } from './varints.ts';

export class Snapshot {
  /** Transactions from this one on had not begun. */
  readonly xmax: number;
  /** Earlier ones that had not ended, in their order. */
  readonly inFlight: readonly number[];
  readonly #inFlight: ReadonlySet<number>;
  #bytes: Buffer | undefined;

  constructor(xmax: number, inFlight: readonly number[]) {
    this.xmax = xmax;
    this.inFlight = inFlight;
    this.#inFlight = new Set(inFlight);
  }

  /** @param text as `pg_current_snapshot()` prints it */
  static of(text: string): Snapshot {
    const [, xmax = '0', list = ''] = text.split(':');
    return new Snapshot(Number(xmax), list === '' ? [] : list.split(',').map(Number));
  }

  static from(bytes: ByteReader): Snapshot {
    const xmax = bytes.next();
    let last = xmax;
    const inFlight = Array.from({ length: bytes.next() }, () => (last -= bytes.next()));
    return new Snapshot(xmax, inFlight.toReversed());
  }

  sees(xid: number): boolean {
    return xid < this.xmax && !this.#inFlight.has(xid);
  }

  /** It sees each transaction that the other one sees. */
  covers(other: Snapshot): boolean {
    return other.xmax <= this.xmax && this.inFlight.every((xid) => !other.sees(xid));
  }

  /** Few, because transactions in flight are near to each other. */
  get bytes(): Buffer {
    const { xmax, inFlight } = this;
    this.#bytes ??= varintBytes([
      xmax,
      inFlight.length,
      ...inFlight.toReversed().map((xid, i, all) => (i === 0 ? xmax : all[i - 1]!) - xid),
    ]);
    return this.#bytes;
  }

  get text(): string {
    return `${this.inFlight[0] ?? this.xmax}:${this.xmax}:${this.inFlight.join()}`;
  }
}
