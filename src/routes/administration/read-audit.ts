import type { Context } from 'koa';
import type { OperationParameter } from '../../describe/operation.ts';
import { ID_SCHEMA, object, type Shape, TEXT, TIMESTAMP } from '../../describe/operation.ts';
import { queryOf } from '../../http/request.ts';
import { parseInt53, parseString, parseUuid } from '../../policy/values.ts';
import { echo, problemOfError } from '../../problem.ts';
import { route } from '../define-route.ts';

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
  {
    name: 'limit',
    in: 'query',
    description: 'The number of events.',
    schema: { type: 'integer', minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT },
  },
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
    const given = auditParametersOf(ctx);
    const data = await app.auth.admin.audit({
      userId: given.get('user') as string | undefined,
      event: given.get('event') as string | undefined,
      before: given.get('before') as string | undefined,
      limit: (given.get('limit') as number | undefined) ?? DEFAULT_LIMIT,
    });
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { data };
  },
});

type ParameterReader = (text: string) => string | number | undefined;

function readLimit(text: string): number | undefined {
  const limit = parseInt53(text);
  return limit !== undefined && limit >= 1 && limit <= MAX_LIMIT ? limit : undefined;
}

const PARAMETER_READERS: ReadonlyMap<string, readonly [read: ParameterReader, expected: string]> = new Map([
  ['user', [parseUuid, 'the id of a user']],
  ['event', [parseString, 'the name of an event']],
  ['before', [parseUuid, 'the id of an event']],
  ['limit', [readLimit, `an int from 1 to ${MAX_LIMIT}`]],
]);

/** Throws `invalid_parameter` for one that is unknown, repeated or unreadable. */
function auditParametersOf(ctx: Context): ReadonlyMap<string, string | number> {
  const found = new Map<string, string | number>();
  for (const { key, value } of queryOf(ctx)) {
    const [read, expected] = PARAMETER_READERS.get(key) ?? [
      () => undefined,
      `one of ${[...PARAMETER_READERS.keys()].join(', ')}`,
    ];
    const parsed = value === undefined || found.has(key) ? undefined : read(value);
    if (parsed === undefined) {
      const detail = found.has(key) ? `\`${key}\` is given twice` : `\`${echo(key)}\`: expected ${expected}`;
      throw problemOfError('invalid_parameter', { parameter: echo(key), code: 'invalid_parameter', detail });
    }
    found.set(key, parsed);
  }
  return found;
}
