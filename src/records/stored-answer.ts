/** An idempotency key, and the answer that is stored under it. */
import { raw } from '../sql.ts';

/** Older keys are forgotten. */
export const EXPIRY = raw(`now() - interval '24 hours'`);

export interface IdempotencyKey {
  readonly userId: string;
  readonly path: string;
  readonly key: string;
  /** The hash of the request body, as received. */
  readonly bodyHash: string;
}

export interface StoredAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** The body has ids instead of records; these are to be read again. */
  readonly isOutline?: true;
}

/** A row of either table; `answer` is the JSON text of a StoredAnswer. */
export interface KeptRow {
  readonly bodyHash: string;
  readonly answer: string;
}
