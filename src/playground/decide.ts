/** The outcome of an action for a caller and a row, as the service decides it. */
import { STORED_ROOTS, WRITTEN_ROOTS } from '../policy/condition.ts';
import { closures } from '../policy/emit/closures.ts';
import { decisionsOf } from '../policy/in-memory.ts';
import { lower } from '../policy/lower/lower.ts';
import { bind, requestPlanOf } from '../policy/lower/specialise.ts';
import type { Action, Checked, PolicyRequest, Row } from '../policy/types.ts';
import type { Schema } from '../schema/model/model.ts';
import type { PlaygroundWorld } from './read-world.ts';

export type WorldOutcome = 'allowed' | 'refused' | 'hidden';

interface Decided {
  readonly schema: Schema;
  readonly world: PlaygroundWorld;
  readonly collection: string;
  readonly action: Action;
}

/** A create and an update are about the row as it is. */
export function outcomeOf(asked: Decided, caller: Row, row: Row): WorldOutcome {
  const request = worldRequest(caller);
  const { action } = asked;
  if (isWholeDenied(asked, request)) return 'refused';
  if (isAllowed(asked, request, row)) return 'allowed';
  if (action === 'create') return 'refused';
  const mayRead = action !== 'list' && action !== 'read' && isAllowed({ ...asked, action: 'read' }, request, row);
  return mayRead ? 'refused' : 'hidden';
}

function worldRequest(caller: Row): PolicyRequest {
  const isGuest = caller.id === undefined;
  const now = new Date().toISOString().replace('Z', '000Z');
  return { auth: caller, kind: isGuest ? 'guest' : 'user', query: {}, now };
}

const rulesOf = ({ schema, collection, action }: Decided) => schema.collections.get(collection)!.access[action];

/** The caller alone makes every rule false. */
const isWholeDenied = (asked: Decided, request: PolicyRequest): boolean =>
  rulesOf(asked).every(({ checked }) => isNever(checked, asked, request));

function isNever(checked: Checked, { schema, action }: Decided, request: PolicyRequest): boolean {
  const plan = requestPlanOf(checked);
  const { states, decided } = bind(plan, request);
  const roots = action === 'create' ? WRITTEN_ROOTS : STORED_ROOTS;
  const condition = lower(plan.tree, { catalog: schema, signature: { states, decided }, roots });
  return condition.kind === 'const' && !condition.value;
}

function isAllowed(asked: Decided, request: PolicyRequest, row: Row): boolean {
  const { schema, collection, action, world } = asked;
  return rulesOf(asked).some(({ checked }) =>
    decisionsOf(checked, { catalog: schema, collection, action }, closures)(request)(row, world.related, row),
  );
}
