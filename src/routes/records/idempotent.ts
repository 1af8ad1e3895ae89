/** Writing once under an Idempotency-Key. Not a route. */
import type { Context } from 'koa';
import { type Queryable, StoreError, type Transaction } from '../../database/contract.ts';
import type { OperationParameter } from '../../describe/operation.ts';
import type { App } from '../../http/app.ts';
import { Problem } from '../../problem.ts';
import { type IdempotencyKey, keepAnswer, keptAnswer } from '../../records/idempotency.ts';
import { Refusal } from '../../refusal.ts';
import { type Answer, headerOf } from './request.ts';

/** The record and the kept answer are in the same transaction: both exist, or neither. */
export function withIdempotencyKey(
  { db }: App,
  key: IdempotencyKey,
  create: (tx: Transaction) => Promise<Answer>,
): Promise<Answer> {
  return onceUnderKey(db, key, (keep) => db.transaction(async (tx) => keep(tx, await create(tx)))).finally(() =>
    db.noteWrite(key.userId),
  );
}

/** Thrown to undo a write that another request under the key has done before. */
class AnsweredBefore extends Error {
  readonly kept: string;
  constructor(kept: string) {
    super('answered before');
    this.kept = kept;
  }
}

type Keep = (tx: Transaction, answer: Answer) => Promise<Answer>;

/**
 * Returns the answer of `write`, which ends its transaction with `keep`; or the answer that is already
 * kept under the key. A kept answer takes precedence over an error, because the changes of the first
 * request may be the reason why the second fails.
 */
export async function onceUnderKey(
  db: Queryable,
  key: IdempotencyKey,
  write: (keep: Keep) => Promise<Answer>,
): Promise<Answer> {
  try {
    return await write(async (tx, answer) => {
      const kept = await keepAnswer(tx, key, JSON.stringify(answer));
      if (kept !== undefined) throw new AnsweredBefore(kept);
      return answer;
    });
  } catch (error) {
    const kept = error instanceof AnsweredBefore ? error.kept : isDeclined(error) && (await keptAnswer(db, key));
    if (!kept) throw error;
    return JSON.parse(kept) as Answer;
  }
}

/** A constraint without a refusal declines a write, too; an unavailable database does not. */
const isDeclined = (error: unknown): boolean =>
  error instanceof StoreError
    ? error.kind !== 'unavailable' && error.kind !== 'time_limit'
    : error instanceof Refusal || error instanceof Problem;

const VISIBLE_ASCII = /^[\x21-\x7e]{1,255}$/;

export const idempotencyParameter: OperationParameter = {
  name: 'Idempotency-Key',
  in: 'header',
  description: 'The same key and body within 24 hours return the first response.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]+$' },
};

/** Undefined without the header. Throws `invalid_parameter`. */
export function idempotencyKeyOf(ctx: Context): string | undefined {
  // An empty header is an invalid key, not a missing one.
  if (ctx.req.headers['idempotency-key'] === undefined) return undefined;
  const key = headerOf(ctx, 'Idempotency-Key');
  if (key !== undefined && VISIBLE_ASCII.test(key)) return key;
  const detail = '`Idempotency-Key` must be 1 to 255 visible ASCII characters';
  throw new Problem('invalid_parameter', detail, {
    errors: [{ parameter: 'Idempotency-Key', code: 'invalid_parameter', detail }],
  });
}
