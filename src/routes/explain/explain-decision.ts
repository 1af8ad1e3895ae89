import type { Context } from 'koa';
import { keyFinder } from '../../auth/api-keys/asked-key.ts';
import type { Caller } from '../../auth/caller.ts';
import { inData } from '../../describe/collection-schemas.ts';
import { explainAnswer, explainRequest } from '../../describe/explain-schemas.ts';
import { type AskedQuestion, readAsked } from '../../explain/asked.ts';
import { inTimeOf, questionOf } from '../../explain/question.ts';
import { traceOf } from '../../explain/trace.ts';
import { traceDocument } from '../../explain/trace-document.ts';
import { withheldFor } from '../../explain/withheld.ts';
import type { App } from '../../http/app.ts';
import { admitOf, callerOf, forbiddenProblem } from '../../http/gate.ts';
import { clientOf } from '../../http/request.ts';
import type { RequestFacts } from '../../policy/types.ts';
import { Store } from '../../records/access-context.ts';
import { isAdministrator } from '../../records/write/role-changes.ts';
import { normalEmail } from '../../schema/model/normal-email.ts';
import { type Body, route } from '../define-route.ts';
import { requireRecordId } from '../records/request.ts';
import { METHOD_OF } from './request-method.ts';

const questionBody: Body<AskedQuestion> = {
  type: 'application/json',
  shape: explainRequest,
  read: async (ctx, app) => {
    const body = await app.readJson(ctx);
    await app.auth.countQuestion(callerOf(ctx));
    return readAsked(body, app.schema);
  },
};

export const explainDecision = route({
  method: 'POST',
  path: '/api/_explain',
  door: 'user',
  id: 'explain',
  summary: 'Ask why an action is allowed or denied',
  description:
    'For the role `admin`. Others may ask about themselves and a record that they may read, without rules that read more.',
  body: questionBody,
  answers: { 200: { description: 'The decision with its reasons.', shape: inData(explainAnswer) } },
  problems: ['forbidden', 'not_found', 'query_too_expensive', 'rate_limited'],
  async handle(ctx, app, asked) {
    const asker = callerOf(ctx);
    // A key that leaks must not read what rules hide, and an explanation does not know its bounds.
    if (asker.by === 'key') throw forbiddenProblem();
    const isAdmin = isAdministrator(asker.auth);
    const isOfAsker = isAbout(asker, asked);
    // Rules of an asker's own could ask for any value of a record.
    if (!isAdmin && asked.isDrafted) throw forbiddenProblem();
    if (!isAdmin) await requireOwnRecord(ctx, app, isOfAsker ? asked : undefined);
    const store = new Store(app.db, app.schema);
    const document = await inTimeOf(store, async (q) => {
      const asking = isOfAsker ? { ...asked, as: undefined } : asked;
      const facts = factsOfAsker(ctx, asked);
      const findKey = keyFinder(app.db, app.schema);
      const place = { store, q, asker: asker.auth, facts, findKey, isLimited: !isAdmin };
      const found = await questionOf(asking, place);
      const trace = await traceOf(found);
      await app.auth.explained(asker, {
        subject: auditedUser(asked, found.request.auth?.id),
        client: clientOf(ctx),
        collection: found.collection.name,
        action: found.action,
        record: asked.id ?? undefined,
        ...(asked.as?.kind === 'key' && { callers: [asked.as.id] }),
      });
      return traceDocument(trace, isAdmin ? undefined : withheldFor(found));
    });
    ctx.set('Cache-Control', 'no-store');
    ctx.body = document;
  },
});

/** The facts of a request for the action that came as the question did. */
const factsOfAsker = (ctx: Context, { action }: AskedQuestion): RequestFacts => ({
  ip: ctx.state.address,
  method: METHOD_OF[action],
  origin: ctx.req.headers.origin,
});

/** True if the question names no other caller. */
function isAbout({ principal, auth }: Caller, { as }: AskedQuestion): boolean {
  if (as === undefined) return true;
  return as.kind === 'user' && (as.name.toLowerCase() === principal || normalEmail(as.name) === auth.email);
}

/** The ids of a made-up caller and of a key name no user. */
const auditedUser = ({ as }: AskedQuestion, id: unknown): string | undefined =>
  as?.kind === 'row' || as?.kind === 'key' || typeof id !== 'string' ? undefined : id;

/** The record can be read by its own route. Throws `forbidden` and `not_found` as that route does. */
async function requireOwnRecord(ctx: Context, app: App, asked: AskedQuestion | undefined): Promise<void> {
  if (typeof asked?.id !== 'string') throw forbiddenProblem();
  const access = admitOf(ctx, app)(asked.collection, 'read').access();
  await app.records.read(access, { id: requireRecordId(asked.collection, asked.id), relations: [] });
}
