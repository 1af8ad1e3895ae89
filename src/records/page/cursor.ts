/**
 * Cursors: positions in the order of a query, which only this service can make, and only for the
 * query that they came from.
 */
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import { Refusal } from '../../refusal.ts';

/** A cell for each key, as PostgreSQL printed it. */
export type Position = readonly (string | null)[];

/** The query that a cursor belongs to. */
export interface CursorScope {
  readonly collection: string;
  readonly caller: string;
  /** The filter, its params and the order, in one spelling. */
  readonly query: string;
}

const MAC_BYTES = 16;

export class Cursors {
  readonly #key: KeyObject;

  /** @param secret the one that versions are keyed by; cursors have a key of their own that is made from it. */
  constructor(secret: Buffer) {
    this.#key = createSecretKey(createHmac('sha256', secret).update('cursors').digest());
  }

  write(position: Position, scope: CursorScope): string {
    const payload = Buffer.from(JSON.stringify(position));
    return Buffer.concat([this.#mac(payload, scope), payload]).toString('base64url');
  }

  /** Throws `invalid_cursor`. */
  read(cursor: string, scope: CursorScope): Position {
    const bytes = Buffer.from(cursor, 'base64url');
    const mac = bytes.subarray(0, MAC_BYTES);
    const payload = bytes.subarray(MAC_BYTES);
    // A cursor has one spelling: the decoder skips characters outside base64url.
    const isWhole = mac.length === MAC_BYTES && bytes.toString('base64url') === cursor;
    if (!isWhole || !timingSafeEqual(mac, this.#mac(payload, scope))) throw invalidCursor();
    return JSON.parse(payload.toString()) as Position;
  }

  #mac(payload: Buffer, { collection, caller, query }: CursorScope): Buffer {
    const hmac = createHmac('sha256', this.#key).update(JSON.stringify([collection, caller, query]));
    return hmac.update(payload).digest().subarray(0, MAC_BYTES);
  }
}

const invalidCursor = (): Refusal =>
  new Refusal('invalid_cursor', 'the cursor is not one of this query; begin again without a cursor');
