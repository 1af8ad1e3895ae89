import { closed, type OperationParameter, object, type Shape, TEXT, TIMESTAMP } from '../../describe/operation.ts';
import { sendJson } from '../../http/answer/send.ts';
import { admissionOf } from '../../http/gate.ts';
import { route } from '../define-route.ts';
import { intParameter, parametersOf } from '../query-parameters.ts';
import { recordIdOf } from './request.ts';

const [DEFAULT_LIMIT, MAX_LIMIT] = [20, 100];

const parameters: readonly OperationParameter[] = [
  {
    name: 'before',
    in: 'query',
    description: 'Only entries before the one of this number: `next_before` of the page before.',
    schema: { type: 'integer', minimum: 1 },
  },
  {
    name: 'limit',
    in: 'query',
    description: 'The number of entries.',
    schema: { type: 'integer', minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT },
  },
];

/** Members by name, as the record shows them. */
const IMAGE = {
  type: ['object', 'null'],
  description: 'The changed members; null: the record did not exist, or you may not read it so.',
};

const historyEntry: Shape = (scope) =>
  scope.define(
    'HistoryEntry',
    object({
      entry: { type: 'integer' },
      at: TIMESTAMP,
      by: { type: ['string', 'null'], description: 'The principal who wrote; null: another program.' },
      action: { type: 'string', enum: ['create', 'update', 'delete'] },
      changed: { type: 'array', items: TEXT },
      before: IMAGE,
      after: IMAGE,
    }),
  );

export const readHistory = route({
  method: 'GET',
  path: '/api/:collection/:id/history',
  door: { action: 'read', needs: 'history', former: true },
  id: 'history',
  summary: 'Read the history of one record of {collection}',
  description:
    'Who changed it, when, and what was before and after, the newest first: of each state what you may read of it, and of the present record.',
  parameters,
  answers: {
    200: {
      description: 'A page of entries.',
      shape: (scope) =>
        object({
          data: { type: 'array', items: historyEntry(scope) },
          page: closed({ limit: { type: 'integer' }, next_before: { type: ['integer', 'null'] } }),
        }),
    },
  },
  problems: ['not_found', 'invalid_parameter', 'query_too_expensive'],
  async handle(ctx, app) {
    const admission = admissionOf(ctx);
    const { before, limit = DEFAULT_LIMIT } = parametersOf(ctx, HISTORY_PARAMETERS);
    const id = recordIdOf(ctx, admission.collection);
    const { entries, next = null } = await app.records.history(admission.access(), { id, before, limit });
    ctx.set('Cache-Control', 'no-store');
    const page = JSON.stringify({ limit, next_before: next });
    await sendJson(ctx, `{"data":[${entries.join(',')}],"page":${page}}`);
  },
});

const HISTORY_PARAMETERS = { before: intParameter(Number.MAX_SAFE_INTEGER), limit: intParameter(MAX_LIMIT) };
