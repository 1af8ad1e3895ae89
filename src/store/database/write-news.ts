/**
 * Tells every node who has just written, so that all of them answer that caller from the primary
 * until the replica has it. One notification is under way at a time; it names all who wrote during
 * the one before.
 */

/** Ids in one notification, whose payload is at most 8,000 bytes. */
const MOST_IDS = 200;

export const WRITE_CHANNEL = 'bylaw_wrote';

export class WriteNews {
  readonly #notify: (payload: string) => Promise<void>;
  #waiting = new Set<string>();
  #next: Promise<void> | undefined;
  #underWay: Promise<void> = Promise.resolve();

  constructor(notify: (payload: string) => Promise<void>) {
    this.#notify = notify;
  }

  /** Resolves when it is sent, or cannot be. */
  tell(callerId: string): Promise<void> {
    this.#waiting.add(callerId);
    this.#next ??= this.#underWay.then(() => this.#send());
    return this.#next;
  }

  async #send(): Promise<void> {
    const ids = [...this.#waiting];
    this.#waiting = new Set();
    this.#underWay = this.#next!;
    this.#next = undefined;
    for (let at = 0; at < ids.length; at += MOST_IDS) {
      // A node that is not told reads what is older by the permitted lag at most.
      await this.#notify(ids.slice(at, at + MOST_IDS).join(',')).catch(() => undefined);
    }
  }
}

export const writersIn = (payload: string): readonly string[] => payload.split(',');
