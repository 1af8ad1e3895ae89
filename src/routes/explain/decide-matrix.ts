import { z } from 'zod';
import type { Caller } from '../../auth/caller.ts';
import { inData } from '../../describe/collection-schemas.ts';
import { ID_SCHEMA, type Json, object, TEXT } from '../../describe/operation.ts';
import { readDraftedRules, readRuleSetName, reportUnknownMembers } from '../../explain/drafted-rules.ts';
import { type MatrixQuestion, matrixOf } from '../../explain/matrix.ts';
import { type AskedCaller, type ReportAsked, readPrincipal } from '../../explain/principal.ts';
import { inTimeOf } from '../../explain/question.ts';
import type { App } from '../../http/app.ts';
import { callerOf, forbiddenProblem } from '../../http/gate.ts';
import { clientOf } from '../../http/request.ts';
import { ACTIONS } from '../../policy/types.ts';
import { addError, type ErrorDetail, echo, Problem } from '../../problem.ts';
import { Store } from '../../records/access-context.ts';
import { takesWrite } from '../../schema/model/model.ts';
import { route } from '../define-route.ts';
import { jsonBody } from '../json-body.ts';
import { METHOD_OF } from './request-method.ts';

const [MOST_CALLERS, MOST_RECORDS, MOST_CREATES, MOST_MEMBERS, MOST_CELLS] = [20, 100, 20, 100, 2_000];
const [MOST_RULES, MOST_BYTES] = [100, 256 * 1024];

const ruleShape = z.strictObject({ roles: z.array(z.string()).optional(), when: z.string().optional() });
const MATRIX_SHAPE = {
  collection: z.string(),
  action: z.enum(ACTIONS).default('read'),
  member: z
    .string()
    .optional()
    .describe('A field or a belongs_to of the record, which is read or updated by rules of its own.'),
  members: z
    .array(z.string())
    .max(MOST_MEMBERS)
    .default([])
    .describe(
      `Others, of a list, a read or an update: decided as well, for each record. ${MOST_CELLS} cells in all at most.`,
    ),
  callers: z
    .array(z.union([z.string(), z.looseObject({ roles: z.array(z.string()) })]))
    .min(1)
    .max(MOST_CALLERS)
    .describe(
      'Each an email or an id of a user, a role (a caller with that role alone), `guest`, or a made-up caller.',
    ),
  ids: z
    .array(z.union([z.string(), z.number()]))
    .max(MOST_RECORDS)
    .default([])
    .describe('Records of the collection. A create makes a copy of each.'),
  data: z
    .array(z.record(z.string(), z.unknown()))
    .max(MOST_CREATES)
    .default([])
    .describe('Of a create, in place of `ids`: the data of records that are not there.'),
  rules: z
    .union([z.string(), z.array(ruleShape).max(MOST_RULES)])
    .optional()
    .describe('Rules that are not saved: decided as well, in place of those of the action, or of the member.'),
};
const matrixBody = jsonBody(MATRIX_SHAPE, MOST_BYTES);
type MatrixBody = z.infer<z.ZodObject<typeof MATRIX_SHAPE>>;

const OUTCOMES: Json = {
  type: 'array',
  items: { enum: ['allowed', 'refused', 'hidden'] },
  description: 'For each of `ids`.',
};
const USER: Json = { anyOf: [object({ id: ID_SCHEMA, email: TEXT }), { type: 'null' }] };
const BY_MEMBER: Json = { type: 'object', additionalProperties: OUTCOMES, description: 'The outcomes of `members`.' };
const MATRIX_ROW = object({ user: USER, outcomes: OUTCOMES, drafted: OUTCOMES, members: BY_MEMBER }, [
  'drafted',
  'members',
]);

export const decideMatrix = route({
  method: 'POST',
  path: '/api/_matrix',
  door: 'admin',
  id: 'decide_matrix',
  summary: 'Decide an action for several callers and records',
  description:
    'For each caller: `allowed`, `refused` (403) or `hidden` (404, or not in the list) for each record. An update is one that changes nothing. ' +
    'A `member` is refused where the record is shown without it, or may be updated without it.',
  body: matrixBody,
  answers: {
    200: {
      description: 'A row for each caller. `drafted`: by the rules of the request.',
      shape: inData(() => object({ rows: { type: 'array', items: MATRIX_ROW } })),
    },
  },
  problems: ['forbidden', 'not_found', 'query_too_expensive', 'rate_limited'],
  async handle(ctx, app, given) {
    const asker = callerOf(ctx);
    requireSession(asker);
    await app.auth.countQuestion(asker);
    const question = matrixQuestionOf(given, app);
    const store = new Store(app.db, app.schema);
    const facts = { ip: ctx.state.address, method: METHOD_OF[question.action], origin: ctx.req.headers.origin };
    const rows = await inTimeOf(store, (q) => matrixOf(question, { store, q, facts }));
    const users = rows.flatMap(({ user }) => user?.id ?? []);
    await app.auth.explained(asker, {
      subject: users.length === 1 ? users[0] : undefined,
      client: clientOf(ctx),
      collection: question.collection.name,
      action: question.action,
      record: question.ids.length === 1 ? question.ids[0] : undefined,
      callers: question.callers.map((each, i) => rows[i]!.user?.id ?? nameOfMadeUp(each)),
    });
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { data: { rows } };
  },
});

/** A key that leaks must not read what rules hide. */
function requireSession({ by }: Caller): void {
  if (by === 'key') throw forbiddenProblem();
}

const nameOfMadeUp = (caller: AskedCaller): string => (caller.kind === 'row' ? String(caller.row.roles) : caller.kind);

/** Throws `validation_failed` with every error. */
function matrixQuestionOf(body: MatrixBody, { schema }: App): MatrixQuestion {
  const { collection: name, action, member, members, callers, ids, data } = body;
  const errors: ErrorDetail[] = [];
  const report: ReportAsked = (pointer, code, detail, place) => {
    addError(errors, { pointer, code, detail, ...place });
    return undefined;
  };
  const collection = schema.collections.get(name);
  if (collection === undefined) report('/collection', 'unknown_collection', `unknown collection \`${echo(name)}\``);
  else if (!takesWrite(collection, action))
    report('/action', 'unknown_action', `\`${name}\` is a view that takes no ${action}`);
  if (data.length > 0 && action !== 'create')
    report('/data', 'unexpected_key', `only a create has data, not a ${action}`);
  if ((ids.length === 0) === (data.length === 0))
    report('/ids', 'required', 'expected the ids of records, or the `data` of creates');
  if (callers.length * ids.length * (1 + members.length) > MOST_CELLS)
    report('/members', 'too_many', `expected at most ${MOST_CELLS} cells: callers × records × (1 + members)`);
  const asked = callers.map((each, i) => {
    const given = typeof each === 'string' && schema.roles.has(each) ? { roles: [each] } : each;
    return readPrincipal(given, schema, (pointer, code, detail) =>
      report(pointer.replace('/as', `/callers/${i}`), code, detail),
    );
  });
  const place = collection && { schema, collection, action };
  if (place !== undefined) {
    readRuleSetName(body, place, report);
    reportUnknownMembers(members, place, report);
  }
  const draft = place && readDraftedRules(body, place, report);
  if (errors.length > 0 || collection === undefined)
    throw new Problem('validation_failed', 'the body is not a question about callers and records', { errors });
  return {
    collection,
    action,
    member,
    members,
    callers: asked as AskedCaller[],
    ids: ids.map(String),
    data,
    draft,
  };
}
