/** Writing once under an Idempotency-Key. Not a route. */
import type { Context } from 'koa';
import { StoreError, type Transaction } from '../../database/contract.ts';
import type { OperationParameter } from '../../describe/operation.ts';
import type { App } from '../../http/app.ts';
import { admitOf } from '../../http/gate.ts';
import { Problem, problemOfError } from '../../problem.ts';
import {
  type AnswerToKeep,
  type IdempotencyKey,
  MAX_KEPT_BYTES,
  type RecordReference,
  type StoredAnswer,
} from '../../records/idempotency.ts';
import type { JsonText } from '../../records/json-pieces.ts';
import type { Written } from '../../records/read.ts';
import { Refusal } from '../../refusal.ts';
import type { Collection, Relation } from '../../schema/model/model.ts';
import { type Answer, answerCreated, headerOf } from './request.ts';

/** A create under a key. */
export interface KeyedCreate {
  readonly key: IdempotencyKey;
  readonly collection: Collection;
  /** The relations that the answer expands. */
  readonly relations: readonly Relation[];
  readonly create: (tx: Transaction) => Promise<Written>;
}

/** The record and the kept answer are in the same transaction: both exist, or neither. */
export function createUnderKey(ctx: Context, app: App, asked: KeyedCreate): Promise<Answer> {
  const { key, collection, relations, create } = asked;
  const { path } = key;
  const write = (keep: Keep): Promise<Answer> =>
    app.records.transaction(async (tx) => {
      const written = await create(tx);
      const answer = answerCreated(path, written);
      const records = [{ collection: collection.name, id: written.id }, ...expandedIn(written.json, relations)];
      return keep(tx, { answer, outline: answerCreated(path, { id: written.id }), records });
    });
  const reread = async ({ body }: StoredAnswer): Promise<Answer> => {
    const { id } = (JSON.parse(body) as { readonly data: { readonly id: string } }).data;
    return answerCreated(path, await rereadRecord(ctx, app, { collection, id, relations }));
  };
  return onceUnderKey(app, key, { write, reread }).finally(() => app.db.noteWrite(key.userId));
}

/** The records that a write's `expand` has put into its answer, if the answer is kept. */
function expandedIn(json: JsonText | undefined, relations: readonly Relation[]): readonly RecordReference[] {
  if (json === undefined || json.length > MAX_KEPT_BYTES || relations.length === 0) return [];
  const { expand } = JSON.parse(String(json)) as { readonly expand: Readonly<Record<string, unknown>> };
  return relations.flatMap(({ name, collection }) =>
    [expand[name]].flat().flatMap((record) => {
      const { id } = (record ?? {}) as { readonly id?: string };
      return id === undefined ? [] : [{ collection, id }];
    }),
  );
}

interface Reread {
  readonly collection: Collection;
  readonly id: string;
  readonly relations: readonly Relation[];
}

/** Reads the record as its caller may now; only the id if the record is gone, or hidden from the caller. */
export async function rereadRecord(ctx: Context, app: App, { collection, id, relations }: Reread): Promise<Written> {
  try {
    const access = admitOf(ctx, app)(collection, 'read').access();
    return { id, ...(await app.records.read(access, { id, relations })) };
  } catch (error) {
    if (error instanceof Refusal || error instanceof Problem) return { id };
    throw error;
  }
}

/** Thrown to undo a write that another request under the key has done before. */
class AnsweredBefore extends Error {
  readonly kept: StoredAnswer;
  constructor(kept: StoredAnswer) {
    super('answered before');
    this.kept = kept;
  }
}

type Keep = (tx: Transaction, answer: AnswerToKeep) => Promise<Answer>;

interface KeyedWrite {
  /** Ends its transaction with `keep`. */
  readonly write: (keep: Keep) => Promise<Answer>;
  /** Reads the records of an outline again. */
  readonly reread: (outline: StoredAnswer) => Promise<Answer>;
}

/**
 * Returns the answer of `write`, or the answer that is already kept under the key. A kept answer takes
 * precedence over an error, because the changes of the first request may be the reason why the
 * second fails.
 */
export async function onceUnderKey({ kept }: App, key: IdempotencyKey, { write, reread }: KeyedWrite): Promise<Answer> {
  let before: StoredAnswer | undefined;
  try {
    return await write(async (tx, toKeep) => {
      const found = await kept.keep(tx, key, toKeep);
      if (found !== undefined) throw new AnsweredBefore(found);
      return toKeep.answer;
    });
  } catch (error) {
    before = error instanceof AnsweredBefore ? error.kept : isDeclined(error) ? await kept.find(key) : undefined;
    if (before === undefined) throw error;
  }
  return before.isOutline === true ? reread(before) : before;
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
  throw problemOfError('invalid_parameter', { parameter: 'Idempotency-Key', code: 'invalid_parameter', detail });
}
