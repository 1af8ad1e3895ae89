/**
 * The state of a record as an opaque string, which changes with the record and with the members of
 * its many_to_many.
 */
import { createHmac } from 'node:crypto';

interface Changes {
  readonly collection: string;
  readonly id: string;
  /** The cell of `_version`. */
  readonly count: string;
}

export class Versions {
  readonly #key: Buffer;

  /**
   * Keyed, so that a version reveals neither how often a record changed nor anything that its
   * reader may not see.
   */
  constructor(key: Buffer) {
    this.#key = key;
  }

  /** 96 bits: too many to guess one, or for two to meet. */
  of({ collection, id, count }: Changes): string {
    return createHmac('sha256', this.#key).update(`${collection}/${id}/${count}`).digest('base64url').slice(0, 16);
  }
}
