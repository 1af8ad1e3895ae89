import type { OperationParameter } from '../../describe/operation.ts';
import { ID_SCHEMA, object, type Shape, TEXT, TIMESTAMP } from '../../describe/operation.ts';
import { parseString, parseUuid } from '../../policy/values.ts';
import { route } from '../define-route.ts';
import { intParameter, limitParameter, parametersOf } from '../query-parameters.ts';

const [DEFAULT_LIMIT, MAX_LIMIT] = [20, 100];

const nullableText = { type: ['string', 'null'] };
const nullableId = { anyOf: [ID_SCHEMA, { type: 'null' }] };

const auditEvent: Shape = (scope) =>
  scope.define(
    'AuditEvent',
    object({
      id: ID_SCHEMA,
      at: TIMESTAMP,
      event: TEXT,
      user_id: nullableId,
      email: { ...nullableText, description: "The user's present address." },
      actor_id: { ...nullableId, description: 'The principal who caused it, if not the user.' },
      session_id: nullableId,
      ip: nullableText,
      user_agent: nullableText,
      request_id: nullableText,
      detail: { type: ['object', 'null'] },
    }),
  );

const AUDIT_PARAMETERS: readonly OperationParameter[] = [
  { name: 'user', in: 'query', description: 'Only events of this user, by id.', schema: ID_SCHEMA },
  { name: 'event', in: 'query', description: 'Only events of this kind.', schema: TEXT },
  { name: 'before', in: 'query', description: 'Only events before the one with this id.', schema: ID_SCHEMA },
  limitParameter('The number of events.', { most: MAX_LIMIT, otherwise: DEFAULT_LIMIT }),
];

export const readAuditTrail = route({
  method: 'GET',
  path: '/api/_audit',
  door: 'admin',
  id: 'read_audit',
  summary: 'Read the audit trail of accounts',
  parameters: AUDIT_PARAMETERS,
  answers: {
    200: {
      description: 'Newest first.',
      shape: (scope) => object({ data: { type: 'array', items: auditEvent(scope) } }),
    },
  },
  problems: ['invalid_parameter'],
  async handle(ctx, app) {
    const { user: userId, limit = DEFAULT_LIMIT, ...choice } = parametersOf(ctx, AUDIT_FILTERS);
    const data = await app.auth.admin.audit({ userId, limit, ...choice });
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { data };
  },
});

const AUDIT_FILTERS = {
  user: { read: parseUuid, expected: 'the id of a user' },
  event: { read: parseString, expected: 'the name of an event' },
  before: { read: parseUuid, expected: 'the id of an event' },
  limit: intParameter(MAX_LIMIT),
};
