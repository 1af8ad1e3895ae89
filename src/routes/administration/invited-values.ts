/** The values of an invited user, as the rules of an update let the caller write them. Not a route. */
import type { Context } from 'koa';
import type { InviteRequest } from '../../auth/auth.ts';
import type { App } from '../../http/app.ts';
import { admitOf, forbiddenProblem } from '../../http/gate.ts';
import { present } from '../../invariant.ts';
import { Problem, pointerPart } from '../../problem.ts';
import type { SystemValues } from '../../records/system.ts';
import { Refusal } from '../../refusal.ts';

interface InvitedData extends InviteRequest {
  readonly data: Readonly<Record<string, unknown>>;
}

/**
 * Makes the user and updates it in a transaction that is undone. Throws the problems of an update; `forbidden` also for a
 * user that the rules hide.
 */
export async function invitedValues(ctx: Context, app: App, { data, ...invite }: InvitedData): Promise<SystemValues> {
  const names = Object.keys(data);
  if (names.length === 0) return {};
  const collection = present(app.schema.collections.get('users'), 'the collection of users');
  const errors = names.flatMap((name) => {
    const relation = collection.relations.get(name);
    if (name !== 'roles' && (relation === undefined || relation.kind === 'belongs_to')) return [];
    const pointer = `/data/${pointerPart(name)}`;
    return [{ pointer, code: 'read_only', detail: 'expected fields and belongs_to of the user' }];
  });
  if (errors.length > 0) throw new Problem('validation_failed', 'the data is not valid', { errors });
  const access = admitOf(ctx, app, 'PATCH')(collection, 'update').access(data);
  try {
    return await app.records.dryRun(async (batch) => {
      const id = await app.auth.invitations.tryUser(batch.tx, invite);
      await batch.update(access, { id, data, errors: [], relations: [] });
      return app.auth.invitations.valuesOf(batch.tx, id, names);
    });
  } catch (error) {
    throw error instanceof Refusal && error.code === 'not_found' ? forbiddenProblem() : error;
  }
}
