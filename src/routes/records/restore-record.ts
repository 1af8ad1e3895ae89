import type { Context } from 'koa';
import { uniqueProblems, written } from '../../describe/collection-schemas.ts';
import type { App } from '../../http/app.ts';
import { admissionOf, admitOf, forbiddenProblem } from '../../http/gate.ts';
import { Problem } from '../../problem.ts';
import type { WrittenAnswer } from '../../records/read.ts';
import { Refusal } from '../../refusal.ts';
import { route } from '../define-route.ts';
import { answerWritten, recordIdOf, sendAnswer } from './request.ts';

export const restoreRecord = route({
  method: 'POST',
  path: '/api/:collection/:id/restore',
  door: { action: 'list', needs: 'softDelete', deleted: true },
  id: 'restore',
  summary: 'Bring back one deleted record of {collection}',
  description:
    'The record comes back as it was deleted, with the links whose other side still exists. Records that were deleted with it are restored one by one.',
  answers: {
    200: { description: 'The record, or only its id where you may not read it.', shape: written, headers: ['ETag'] },
  },
  problems: ['not_found', 'validation_failed', 'conflict', uniqueProblems],
  async handle(ctx, app) {
    const admission = admissionOf(ctx);
    const { collection, caller } = admission;
    // A key brings back only what it may create.
    if (caller.bounds?.allows(collection.name, 'create') === false) throw forbiddenProblem();
    const id = recordIdOf(ctx, collection);
    await app.deleted(collection.name)?.restore(admission.access(), id);
    await sendAnswer(ctx, answerWritten(collection, await restoredAs(ctx, app, { collection: collection.name, id })));
  },
});

/** The record as its reader sees it now. */
async function restoredAs(
  ctx: Context,
  app: App,
  { collection, id }: { readonly collection: string; readonly id: string },
): Promise<WrittenAnswer> {
  try {
    const access = admitOf(ctx, app)(app.schema.collections.get(collection)!, 'read').access();
    return { id, ...(await app.records.read(access, { id, relations: [] })) };
  } catch (error) {
    const isHidden = (error instanceof Problem || error instanceof Refusal) && HIDDEN_CODES.includes(error.code);
    if (isHidden) return { id };
    throw error;
  }
}

const HIDDEN_CODES: readonly string[] = ['forbidden', 'not_found'];
