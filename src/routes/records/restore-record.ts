import type { Context } from 'koa';
import type { Transaction } from '../../database/contract.ts';
import { uniqueProblems, written } from '../../describe/collection-schemas.ts';
import type { App } from '../../http/app.ts';
import { admissionOf, admitOf, forbiddenProblem } from '../../http/gate.ts';
import { livingName } from '../../policy/deleted-names.ts';
import { Problem } from '../../problem.ts';
import { Refusal } from '../../refusal.ts';
import type { Collection } from '../../schema/model/model.ts';
import { route } from '../define-route.ts';
import { idempotencyKeyOf, idempotencyParameter, keyOwnerOf, onceUnderKey } from './idempotent.ts';
import { type Answer, answerWritten, recordIdOf, sendAnswer } from './request.ts';

export const restoreRecord = route({
  method: 'POST',
  path: '/api/:collection/:id/restore',
  door: { action: 'list', needs: 'softDelete', deleted: true },
  id: 'restore',
  summary: 'Bring back one deleted record of {collection}',
  description:
    'The record comes back as it was deleted, with the links whose other side still exists. Records that were deleted with it are restored one by one.',
  parameters: [idempotencyParameter],
  answers: {
    200: { description: 'The record, or only its id where you may not read it.', shape: written, headers: ['ETag'] },
  },
  problems: ['invalid_parameter', 'not_found', 'validation_failed', 'conflict', uniqueProblems],
  async handle(ctx, app) {
    const admission = admissionOf(ctx);
    const { caller } = admission;
    const collection = app.schema.collections.get(livingName(admission.collection.name))!;
    // A key brings back only what it may create.
    if (caller.bounds?.allows(collection.name, 'create') === false) throw forbiddenProblem();
    const key = idempotencyKeyOf(ctx);
    const id = recordIdOf(ctx, collection);
    const restored = async (tx?: Transaction): Promise<Answer> => {
      await app.deleted(collection.name)?.restore(admission.access(), id, tx);
      return restoredAs(ctx, app, { collection, id, tx });
    };
    if (key === undefined) return await sendAnswer(ctx, await restored());
    const records = [{ collection: collection.name, id }];
    const answer = await onceUnderKey(ctx, app, {
      // The path alone says what to restore.
      key: { ...keyOwnerOf(ctx, caller), path: ctx.path, key, bodyHash: '' },
      write: (keep) =>
        app.records.transaction(async (tx) =>
          keep(tx, { answer: await restored(tx), outline: answerWritten(collection, { id }), records }),
        ),
      recordsIn: () => records,
      reread: () => restoredAs(ctx, app, { collection, id }),
    });
    await sendAnswer(ctx, answer);
  },
});

interface Restored {
  readonly collection: Collection;
  readonly id: string;
  readonly tx?: Transaction | undefined;
}

/** The record as its reader sees it now. */
async function restoredAs(ctx: Context, app: App, { collection, id, tx }: Restored): Promise<Answer> {
  try {
    const access = admitOf(ctx, app)(collection, 'read').access();
    return answerWritten(collection, { id, ...(await app.records.read(access, { id, relations: [], tx })) });
  } catch (error) {
    const isHidden = (error instanceof Problem || error instanceof Refusal) && HIDDEN_CODES.includes(error.code);
    if (isHidden) return answerWritten(collection, { id });
    throw error;
  }
}

const HIDDEN_CODES: readonly string[] = ['forbidden', 'not_found'];
