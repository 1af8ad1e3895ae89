/** The access of the request of a question, by the rules of a schema. Runs without Node and without a database. */
import { decide } from '../policy/access.ts';
import type { Action, Policy, PolicyRequest } from '../policy/types.ts';
import type { AccessContext, Store } from '../records/access-context.ts';
import type { Question } from './question.ts';

type Asking = Pick<Question, 'collection' | 'request' | 'allows' | 'action'> & {
  readonly store: Pick<Store, 'schema'>;
};

/** The rules of an action; none where the limit of the key leaves it out. */
export const policiesFor = ({ store, allows }: Pick<Asking, 'store' | 'allows'>, name: string, by: Action) =>
  allows?.(name, by) === false ? NO_POLICIES : (store.schema.collections.get(name)?.access[by] ?? NO_POLICIES);
const NO_POLICIES: readonly Policy[] = [];

export const isBeyondLimit = ({ allows, collection, action }: Asking): boolean =>
  allows?.(collection.name, action) === false;

/** The access of the question's request. */
export function accessOf(asking: Asking): AccessContext {
  const { store, collection, request, action } = asking;
  const { data, ...others } = request;
  const { collections } = store.schema;
  const requestFor = (of: string, by: Action): PolicyRequest =>
    of === collection.name && by === action ? request : others;
  return {
    collection,
    permit: (of, by) => decide({ rules: policiesFor(asking, of, by), request: requestFor(of, by) }),
    member: (of, member, by) => {
      const rules = collections.get(of)?.memberAccess.get(member)?.[by];
      return rules && decide({ rules, request: requestFor(of, by) });
    },
    violation: (of, { violated }, by) => decide({ rules: violated[by], request: requestFor(of, by) }),
    prospect: () => ({ certain: decide({ rules: [], request }), possible: decide({ rules: [], request }) }),
    auth: request.auth ?? {},
    kind: request.kind ?? 'user',
    principal: String(request.auth?.id ?? ''),
    now: request.now,
  };
}
