/**
 * Cursors: positions in the order of a query, which only this service can make, and only for the
 * query that they came from.
 */
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import { Refusal } from '../../refusal.ts';

/** A cell for each key, as PostgreSQL printed it. */
export type Position = readonly (string | null)[];
/** The same, with a digest in place of each cell that is too long for a cursor. */
export type CursorPosition = readonly (string | null | CellDigest)[];
interface CellDigest {
  readonly digest: string;
}

/** The query that a cursor belongs to. */
export interface CursorScope {
  readonly collection: string;
  readonly caller: string;
  /** The filter, its params and the order, in one spelling. */
  readonly query: string;
}

const MAC_BYTES = 16;
/** Bytes of a position in JSON. The address of a request and its headers together have 16 KiB. */
const MOST_BYTES = 1024;
/** Characters of a cell that stays in a longer position. A digest is hardly shorter. */
const SHORT_CELL = 64;

/** A cursor has all cells of the position. */
export const hasAllCells = (position: CursorPosition): position is Position =>
  position.every((cell) => cell === null || typeof cell === 'string');

export class Cursors {
  readonly #key: KeyObject;

  /** @param secret the one that versions are keyed by; cursors have a key of their own that is made from it. */
  constructor(secret: Buffer) {
    this.#key = createSecretKey(createHmac('sha256', secret).update('cursors').digest());
  }

  /** @param idCells the number of the last cells, which hold the id and always stay */
  write(position: Position, scope: CursorScope, idCells: number): string {
    const whole = Buffer.from(JSON.stringify(position));
    const payload =
      whole.length <= MOST_BYTES
        ? whole
        : Buffer.from(JSON.stringify(this.#shortened(position, position.length - idCells)));
    return Buffer.concat([this.#mac(payload, scope), payload]).toString('base64url');
  }

  /** Throws `invalid_cursor`. */
  read(cursor: string, scope: CursorScope): CursorPosition {
    const bytes = Buffer.from(cursor, 'base64url');
    const mac = bytes.subarray(0, MAC_BYTES);
    const payload = bytes.subarray(MAC_BYTES);
    // A cursor has one spelling: the decoder skips characters outside base64url.
    const isWhole = mac.length === MAC_BYTES && bytes.toString('base64url') === cursor;
    if (!isWhole || !timingSafeEqual(mac, this.#mac(payload, scope))) throw invalidCursor();
    return JSON.parse(payload.toString()) as CursorPosition;
  }

  /** The cells that were digested are those of the row as it is stored now. */
  isOf(position: CursorPosition, now: Position): boolean {
    return position.every(
      (cell, i) => cell === null || typeof cell === 'string' || cell.digest === this.#digestOf(now[i] ?? ''),
    );
  }

  #shortened(position: Position, idsFrom: number): CursorPosition {
    return position.map((cell, i) =>
      cell === null || i >= idsFrom || cell.length <= SHORT_CELL ? cell : { digest: this.#digestOf(cell) },
    );
  }

  /** No scope begins so. */
  #digestOf(cell: string): string {
    return createHmac('sha256', this.#key).update(`cell ${cell}`).digest().toString('base64url', 0, MAC_BYTES);
  }

  #mac(payload: Buffer, { collection, caller, query }: CursorScope): Buffer {
    const hmac = createHmac('sha256', this.#key).update(JSON.stringify([collection, caller, query]));
    return hmac.update(payload).digest().subarray(0, MAC_BYTES);
  }
}

/** The same error for a record that is gone, hidden by now, or has another value. */
export const lostCursor = (): Refusal =>
  new Refusal(
    'invalid_cursor',
    'the last record of the page before is gone or has changed; begin again without a cursor',
  );

const invalidCursor = (): Refusal =>
  new Refusal('invalid_cursor', 'the cursor is not one of this query; begin again without a cursor');
