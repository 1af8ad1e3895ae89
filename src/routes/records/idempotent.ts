/** Writing once under an Idempotency-Key. Not a route. */
import type { Context } from 'koa';
import { v5 } from 'uuid';
import type { Caller } from '../../auth/caller.ts';
import { StoreError, type Transaction } from '../../database/contract.ts';
import type { OperationParameter } from '../../describe/operation.ts';
import type { App } from '../../http/app.ts';
import { admitOf, callerOf } from '../../http/gate.ts';
import { present } from '../../invariant.ts';
import { Problem, problemOfError } from '../../problem.ts';
import {
  type AnswerToKeep,
  type IdempotencyKey,
  MAX_KEPT_BYTES,
  type RecordReference,
  type StoredAnswer,
} from '../../records/idempotency.ts';
import type { WrittenAnswer } from '../../records/read.ts';
import { Refusal } from '../../refusal.ts';
import type { Collection, Relation } from '../../schema/model/model.ts';
import { type Answer, answerCreated, headerOf } from './request.ts';

/** The owner of a key. Visitors of one publishable key on other networks own other keys: none gets the answer of another. */
export function keyOwnerOf(ctx: Context, caller: Caller): Pick<IdempotencyKey, 'principal' | 'kind'> {
  const { principal, kind, isShared } = caller;
  return isShared === true
    ? { principal: v5(present(ctx.state.share, 'a share'), principal), kind }
    : { principal, kind };
}

/** A create under a key. */
export interface KeyedCreate {
  readonly key: IdempotencyKey;
  readonly collection: Collection;
  /** The relations that the answer expands. */
  readonly relations: readonly Relation[];
  readonly create: (tx: Transaction) => Promise<WrittenAnswer>;
}

/** The record and the kept answer are in the same transaction: both exist, or neither. */
export function createUnderKey(ctx: Context, app: App, asked: KeyedCreate): Promise<Answer> {
  const { key, collection, relations, create } = asked;
  const { path } = key;
  const write = (keep: Keep): Promise<Answer> =>
    app.records.transaction(async (tx) => {
      const written = await create(tx);
      const answer = answerCreated(path, collection, written);
      const records = recordsIn(collection, relations.length === 0 ? written : keptIn(written));
      return keep(tx, { answer, outline: answerCreated(path, collection, { id: written.id }), records });
    });
  const createdIn = ({ body }: StoredAnswer) => (JSON.parse(body) as { readonly data: KeptRecord }).data;
  return onceUnderKey(ctx, app, {
    key,
    write,
    recordsIn: (kept) => recordsIn(collection, createdIn(kept)),
    async reread(kept) {
      const id = String(createdIn(kept).id);
      return answerCreated(
        path,
        collection,
        await rereadRecord(ctx, app, { collection: collection.name, id, relations }),
      );
    },
  });
}

interface KeptRecord {
  /** As JSON has it. */
  readonly id: string | number;
  /** Records by relation. */
  readonly expand?: Readonly<Record<string, unknown>>;
}

/** An answer that is too long to be kept is not parsed. */
const keptIn = ({ id, json }: WrittenAnswer): KeptRecord =>
  json === undefined || json.length > MAX_KEPT_BYTES ? { id } : (JSON.parse(String(json)) as KeptRecord);

/** A created record, and the records that its answer expands. */
function recordsIn(collection: Collection, { id, expand = {} }: KeptRecord): readonly RecordReference[] {
  const expanded = Object.entries(expand).flatMap(([name, shown]) => {
    const relation = collection.relations.get(name);
    const records = [shown].flat() as readonly (KeptRecord | null)[];
    return records.flatMap((record) =>
      record && relation ? [{ collection: relation.collection, id: String(record.id) }] : [],
    );
  });
  return [{ collection: collection.name, id: String(id) }, ...expanded];
}

interface Reread {
  readonly collection: string;
  readonly id: string;
  readonly relations: readonly Relation[];
}

/** Reads the record as its caller may now; only the id if the record is gone, or hidden from the caller. */
export async function rereadRecord(
  ctx: Context,
  app: App,
  { collection: name, id, relations }: Reread,
): Promise<WrittenAnswer> {
  const collection = app.schema.collections.get(name);
  if (collection === undefined) return { id };
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
  readonly key: IdempotencyKey;
  /** Ends its transaction with `keep`. */
  readonly write: (keep: Keep) => Promise<Answer>;
  /** The records whose content is in a kept answer. */
  readonly recordsIn: (kept: StoredAnswer) => readonly RecordReference[];
  /** Reads the records of a kept answer again. */
  readonly reread: (kept: StoredAnswer) => Promise<Answer>;
}

/**
 * Returns the answer of `write`, or the answer that is already kept under the key. A kept answer takes
 * precedence over an error, because the changes of the first request may be the reason why the
 * second fails. It is given as long as its caller may read every record in it: a delete that ran beside the
 * first request may not have seen the answer, and a record can be hidden since.
 */
export async function onceUnderKey(ctx: Context, app: App, asked: KeyedWrite): Promise<Answer> {
  const { key, write, recordsIn, reread } = asked;
  let before: StoredAnswer | undefined;
  try {
    return await write(async (tx, toKeep) => {
      const found = await app.kept.keep(tx, key, { ...toKeep, schema: app.schema });
      if (found !== undefined) throw new AnsweredBefore(found);
      return toKeep.answer;
    });
  } catch (error) {
    before = error instanceof AnsweredBefore ? error.kept : isDeclined(error) ? await app.kept.find(key) : undefined;
    if (before === undefined) throw error;
  } finally {
    // Also after an error, and for a kept answer: another node may have committed it just now.
    await app.db.noteWrite(callerOf(ctx).principal);
  }
  const isReadable = before.isOutline !== true && (await mayReadAll(ctx, app, recordsIn(before)));
  return isReadable ? before : reread(before);
}

async function mayReadAll(ctx: Context, app: App, records: readonly RecordReference[]): Promise<boolean> {
  for (const { collection, id } of records) {
    const { json } = await rereadRecord(ctx, app, { collection, id, relations: [] });
    if (json === undefined) return false;
  }
  return true;
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
