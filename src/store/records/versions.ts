/** A record at one point of its history, as an opaque text that changes whenever the record does, members of its many_to_many relations included. */
import { createHmac } from 'node:crypto';

interface Changes {
  readonly collection: string;
  readonly id: string;
  /** The cell of `_version`. */
  readonly count: string;
}

export class Versions {
  readonly #key: Buffer;

  /** Keyed, so that a version reveals neither how often a record changed nor anything that its reader may not see. */
  constructor(key: Buffer) {
    this.#key = key;
  }

  /** 96 bits: too many to guess one, or for two to meet. */
  of({ collection, id, count }: Changes): string {
    return createHmac('sha256', this.#key).update(`${collection}/${id}/${count}`).digest('base64url').slice(0, 16);
  }
}
