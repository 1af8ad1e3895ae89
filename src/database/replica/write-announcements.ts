/**
 * Announces each writer to every node, with a position in the log: all nodes answer this caller
 * from the primary until the replica has reached the position. A notification names all writers
 * during the one before it.
 */

/** Ids in one notification, whose payload is at most 8,000 bytes. */
const MOST_IDS = 200;

export const WRITE_CHANNEL = 'bylaw_wrote';

/** Sends the ids with the current position of the log, and returns it. */
export type SendsWriters = (ids: string) => Promise<bigint>;

export class WriteAnnouncements {
  readonly #send: SendsWriters;
  #waiting = new Set<string>();
  #next: Promise<bigint | undefined> | undefined;
  #underWay: Promise<unknown> = Promise.resolve();

  constructor(send: SendsWriters) {
    this.#send = send;
  }

  /** Call it after the commit. Resolves with a position behind the write; undefined if the announcement failed. */
  announce(callerId: string): Promise<bigint | undefined> {
    this.#waiting.add(callerId);
    this.#next ??= this.#underWay.then(() => this.#sendAll());
    return this.#next;
  }

  async #sendAll(): Promise<bigint | undefined> {
    const ids = [...this.#waiting];
    this.#waiting = new Set();
    this.#underWay = this.#next!;
    this.#next = undefined;
    let position: bigint | undefined;
    for (let at = 0; at < ids.length; at += MOST_IDS) {
      // Without the announcement, a node reads data that is older by the permitted lag at most.
      const sent = await this.#send(ids.slice(at, at + MOST_IDS).join(',')).catch(() => undefined);
      if (sent === undefined) return undefined;
      position = sent;
    }
    return position;
  }
}

export interface WritersNote {
  readonly position: bigint;
  readonly callerIds: readonly string[];
}

/** Reads `POSITION:ID,ID,…`, the payload of an announcement. */
export function readWriters(payload: string): WritersNote {
  const [position = '0', ids = ''] = payload.split(':');
  return { position: BigInt(position), callerIds: ids.split(',') };
}
