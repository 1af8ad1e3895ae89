/** The answer to a create, and creating only once under an Idempotency-Key. Not a route. */
import type { Context } from 'koa';
import type { App } from '../../http/app.ts';
import { Problem } from '../../problem.ts';
import type { Transaction } from '../../store/database/contract.ts';
import { claimKey, type KeptAnswer, keepAnswer } from '../../store/idempotency.ts';
import type { Written } from '../../store/records/create.ts';
import { headerOf } from './request.ts';

export function answerOf({ path }: Context, { id, json, etag }: Written): KeptAnswer {
  return {
    status: 201,
    headers: { Location: `${path}/${id}`, ...(etag === undefined ? {} : { ETag: etag }) },
    body: json === undefined ? JSON.stringify({ data: { id } }) : `{"data":${json}}`,
  };
}

type Claim = Parameters<typeof claimKey>[1];

/** The answer and the record are kept by one transaction: both are there, or neither. */
export function withIdempotencyKey(
  claim: Claim,
  { db }: App,
  create: (tx: Transaction) => Promise<KeptAnswer>,
): Promise<KeptAnswer> {
  return db.transaction(async (tx) => {
    const first = await claimKey(tx, claim);
    if (first !== undefined) return first;
    const answer = await create(tx);
    await keepAnswer(tx, claim, answer);
    return answer;
  });
}

const VISIBLE_ASCII = /^[\x21-\x7e]{1,255}$/;

export function idempotencyKeyOf(ctx: Context): string | undefined {
  // An empty header is a key that says nothing, not the absence of one.
  if (ctx.req.headers['idempotency-key'] === undefined) return undefined;
  const key = headerOf(ctx, 'Idempotency-Key');
  if (key !== undefined && VISIBLE_ASCII.test(key)) return key;
  const detail = '`Idempotency-Key` must be 1 to 255 visible ASCII characters';
  throw new Problem('invalid_parameter', detail, {
    errors: [{ parameter: 'Idempotency-Key', code: 'invalid_parameter', detail }],
  });
}
