/**
 * Tells every node who has just written, and up to which position in the log, so that all of them
 * answer that caller from the primary until the replica has reached it. One notification is under
 * way at a time; it names all who wrote during the one before.
 */

/** Ids in one notification, whose payload is at most 8,000 bytes. */
const MOST_IDS = 200;

export const WRITE_CHANNEL = 'bylaw_wrote';

/** Sends the ids with the position that the log has by then, and returns it. */
export type SendsWriters = (ids: string) => Promise<bigint>;

export class WriteAnnouncements {
  readonly #send: SendsWriters;
  #waiting = new Set<string>();
  #next: Promise<bigint | undefined> | undefined;
  #underWay: Promise<unknown> = Promise.resolve();

  constructor(send: SendsWriters) {
    this.#send = send;
  }

  /** After the commit. Resolves when it is sent, with a position that has the write; undefined if it cannot be sent. */
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
      // A node that is not told reads what is older by the permitted lag at most.
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

/** `POSITION:ID,ID,…`, as `WriteAnnouncements` has it sent. */
export function readWriters(payload: string): WritersNote {
  const [position = '0', ids = ''] = payload.split(':');
  return { position: BigInt(position), callerIds: ids.split(',') };
}
