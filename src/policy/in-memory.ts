/** The pipeline without SQL: a checked tree → the decision of a request about rows in memory. */
import { BoundedMap } from '../bounded-map.ts';
import type { CatalogPlace } from './compile.ts';
import { type Condition, STORED_ROOTS, WRITTEN_ROOTS } from './condition.ts';
import type { Decision, Predicate } from './emit/decision.ts';
import { lower } from './lower/lower.ts';
import { bind, requestPlanOf } from './lower/specialise.ts';
import type { Checked, PolicyRequest } from './types.ts';

/** Writes the JavaScript of a condition. */
export type Emit = (cond: Condition) => Predicate;

/** Requests of one signature share a predicate, and few signatures meet one policy of a page. */
const KEPT_PREDICATES = 64;

export function decisionsOf(
  checked: Checked,
  { catalog, action }: CatalogPlace,
  emit: Emit,
): (request: PolicyRequest) => Decision {
  const plan = requestPlanOf(checked);
  const roots = action === 'create' ? WRITTEN_ROOTS : STORED_ROOTS;
  const predicates = new BoundedMap<string | number, Predicate>(KEPT_PREDICATES);
  return (request) => {
    const binding = bind(plan, request);
    const { states, decided, values } = binding;
    let predicate = predicates.get(binding.signature);
    if (predicate === undefined) {
      predicate = emit(lower(plan.tree, { catalog, signature: { states, decided }, roots }));
      predicates.set(binding.signature, predicate);
    }
    return predicate(values);
  };
}
