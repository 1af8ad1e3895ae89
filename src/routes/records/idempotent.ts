/** Writing once under an Idempotency-Key. Not a route. */
import type { Context } from 'koa';
import type { OperationParameter } from '../../describe/operation.ts';
import type { App } from '../../http/app.ts';
import { Problem } from '../../problem.ts';
import type { Transaction } from '../../store/database/contract.ts';
import { claimKey, type IdempotencyKey, keepAnswer } from '../../store/idempotency.ts';
import type { Answer } from './answer.ts';
import { headerOf } from './request.ts';

/** One transaction holds the record and the kept answer: both exist, or neither. */
export function withIdempotencyKey(
  { db }: App,
  key: IdempotencyKey,
  create: (tx: Transaction) => Promise<Answer>,
): Promise<Answer> {
  return db.transaction((tx) => onceUnderKey(tx, key, () => create(tx))).finally(() => db.noteWrite(key.userId));
}

/** The answer that was kept under the key, or that of `work`, which is kept. */
export async function onceUnderKey(tx: Transaction, key: IdempotencyKey, work: () => Promise<Answer>): Promise<Answer> {
  const kept = await claimKey(tx, key);
  if (kept !== undefined) return JSON.parse(kept) as Answer;
  const answer = await work();
  await keepAnswer(tx, key, JSON.stringify(answer));
  return answer;
}

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
