/** Writes by filter: their bodies, and their answers. Not a route. */
import type { Context } from 'koa';
import type { App } from '../../../http/app.ts';
import { admissionOf, admitOf } from '../../../http/gate.ts';
import { addError, type ErrorDetail, Problem } from '../../../problem.ts';
import type { AnswerToKeep } from '../../../records/idempotency.ts';
import { type Data, isObject } from '../../../records/write/input.ts';
import type { MatchedWrites, MatchingWrite } from '../../../records/write/matching.ts';
import { keyKindOf } from '../../../schema/fields/index.ts';
import { WRITE_LIMIT } from '../../../schema/model/list-parameters.ts';
import type { Collection, Schema } from '../../../schema/model/model.ts';
import { idempotencyKeyOf, keyOwnerOf, onceUnderKey } from '../idempotent.ts';
import { QueryBody } from '../query/query-body.ts';
import { QueryErrors } from '../query/query-errors.ts';
import { type Answer, requireChange, sendAnswer } from '../request.ts';

type MatchingRequest = Pick<MatchingWrite, 'filter' | 'limit' | 'data' | 'skipsRefused'>;

/** Throws `filter_invalid`, `validation_failed`, `filter_required` and `patch_empty`. */
function matchingRequestOf(given: unknown, { schema, collection, takesData }: MatchingPlace): MatchingRequest {
  const errors = new QueryErrors();
  if (!isObject(given)) errors.add([], 'not_an_object', 'expected an object with the key `filter`');
  const body = isObject(given) ? given : {};
  const reader = new QueryBody({ body, path: [] }, { schema, collection, errors });
  reader.allow(['filter', 'params', 'limit', 'skip_refused', ...(takesData ? ['data'] : [])]);
  // A filter that was forgotten would be a write of everything.
  if (isObject(given) && reader.value('filter') === undefined)
    errors.add(['filter'], 'required', 'expected a filter, such as `status = "open"`');
  const filter = reader.filterOfTenant();
  const limit = reader.integer('limit', WRITE_LIMIT);
  const skipsRefused = reader.flag('skip_refused');
  const data = reader.value('data');
  if (takesData && !isObject(data)) {
    const code = data === undefined ? 'required' : 'not_an_object';
    errors.add(['data'], code, 'expected an object with the fields to change');
  }
  errors.throwAny();
  if (!takesData) return { filter, limit, skipsRefused };
  requireChange(data as Data);
  return { filter, limit, skipsRefused, data: data as Data };
}

interface MatchingPlace {
  readonly schema: Schema;
  readonly collection: Collection;
  readonly takesData: boolean;
}

/** Writes, and answers once under an idempotency key. */
export async function answerMatching(ctx: Context, app: App, body: unknown): Promise<void> {
  const admission = admissionOf(ctx);
  const { collection, caller } = admission;
  const takesData = ctx.path.endsWith('/update');
  const list = admitOf(ctx, app)(collection, 'list').access();
  const key = idempotencyKeyOf(ctx);
  const request = matchingRequestOf(body, { schema: app.schema, collection, takesData });
  const write = { ...request, list, access: admission.access(request.data) };
  if (key === undefined) {
    return sendAnswer(ctx, await app.records.matching(write, async (outcome) => answerOf(outcome, collection)));
  }
  const answer = await onceUnderKey(ctx, app, {
    key: { ...keyOwnerOf(ctx, caller), path: ctx.path, key, bodyHash: ctx.state.bodyHash },
    write: (keep) => app.records.matching(write, (outcome, { tx }) => keep(tx, toKeep(answerOf(outcome, collection)))),
    // The answer has counts alone.
    recordsIn: () => [],
    reread: async (kept) => kept,
  });
  await sendAnswer(ctx, answer);
}

const toKeep = (answer: Answer): AnswerToKeep => ({ answer, outline: answer, records: [] });

/** Throws `forbidden`, which undoes all. */
function answerOf({ matched, changed, refused, isRefused }: MatchedWrites, collection: Collection): Answer {
  if (isRefused) {
    const errors: ErrorDetail[] = [];
    for (const { id, refusal } of refused) {
      const record = JSON.parse(keyKindOf(collection).toJson(id)) as string | number;
      const ofFilter = { pointer: '/filter', code: refusal.code, detail: refusal.message };
      for (const error of refusal.errors.length > 0 ? refusal.errors : [ofFilter])
        addError(errors, { ...error, record });
    }
    const detail =
      'the access rules do not allow this for all records; `skip_refused` leaves out those that they refuse';
    throw new Problem('forbidden', detail, { errors });
  }
  return { status: 200, headers: {}, body: JSON.stringify({ data: { matched, changed } }) };
}
