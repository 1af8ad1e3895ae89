/**
 * The offer to make the first administrator of a service: a token that the start prints. It lives in
 * memory for an hour, and works once.
 */
import { timingSafeEqual } from 'node:crypto';
import { hashSecret } from '../sessions/secrets.ts';

const LIFETIME_MS = 3_600_000;

export class SetupOffer {
  #hash: Buffer | undefined;
  #end = 0;

  /** `startedAt`: when the token was made, in milliseconds since the epoch. */
  open(token: string, startedAt = Date.now()): void {
    this.#hash = Buffer.from(hashSecret(token));
    this.#end = startedAt + LIFETIME_MS;
  }

  /**
   * Runs `work` if the token is that of the offer, and returns undefined otherwise. Concurrent uses
   * find no offer; if `work` throws, the offer stays.
   */
  async use<T>(token: string, work: () => Promise<T>): Promise<T | undefined> {
    const hash = this.#hash;
    if (hash === undefined || Date.now() >= this.#end) return undefined;
    if (!timingSafeEqual(hash, Buffer.from(hashSecret(token)))) return undefined;
    this.#hash = undefined;
    try {
      return await work();
    } catch (error) {
      this.#hash = hash;
      throw error;
    }
  }
}
