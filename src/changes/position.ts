/** Positions: opaque texts that only this service can make, and only for one feed of one caller. */
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';

export interface FeedPosition {
  readonly life: string;
  /** All of this snapshot was sent. */
  readonly from: string;
  /** Milliseconds: when `from` was taken. */
  readonly at: number;
  /** The changes up to `seq` that this snapshot sees were sent. */
  readonly to: string;
  readonly seq: number;
  /** Digests of what the caller was, and of the rules. */
  readonly caller: string;
  readonly rules: string;
}

const POSITION_MAC_BYTES = 16;
type WrittenPosition = readonly [string, string, number, string | 0, number, string, string];

export class Positions {
  readonly #key: KeyObject;

  /** @param secret the one that versions are keyed by; positions have a key of their own that is made from it */
  constructor(secret: Buffer) {
    this.#key = createSecretKey(createHmac('sha256', secret).update('positions').digest());
  }

  /** @param scope the collection, the filter and the principal, in one spelling */
  write({ life, from, at, to, seq, caller, rules }: FeedPosition, scope: string): string {
    const written: WrittenPosition = [life, from, at, to === from ? 0 : to, seq, caller, rules];
    const payload = Buffer.from(JSON.stringify(written));
    return Buffer.concat([this.#mac(payload, scope), payload]).toString('base64url');
  }

  /** Undefined: it is not a position of this feed. */
  read(position: string, scope: string): FeedPosition | undefined {
    const bytes = Buffer.from(position, 'base64url');
    const mac = bytes.subarray(0, POSITION_MAC_BYTES);
    const payload = bytes.subarray(POSITION_MAC_BYTES);
    if (mac.length < POSITION_MAC_BYTES || bytes.toString('base64url') !== position) return undefined;
    if (!timingSafeEqual(mac, this.#mac(payload, scope))) return undefined;
    const [life, from, at, to, seq, caller, rules] = JSON.parse(payload.toString()) as WrittenPosition;
    return { life, from, at, to: to === 0 ? from : to, seq, caller, rules };
  }

  #mac(payload: Buffer, scope: string): Buffer {
    return createHmac('sha256', this.#key)
      .update(JSON.stringify(scope))
      .update(payload)
      .digest()
      .subarray(0, POSITION_MAC_BYTES);
  }
}
