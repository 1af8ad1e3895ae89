/**
 * Bounds on the decision of an update rule, from the stored record and the caller alone, before the body and
 * the result are known.
 */
import { assume } from '../assume.ts';
import { compileChecked } from '../compile.ts';
import type { Catalog, Checked, Policy } from '../types.ts';
import { readsData, readsDataItself, readsNext, readsNextItself } from '../visit.ts';

/** Rules of the stored record alone. */
export interface UpdateBounds {
  /** True if every write is allowed. */
  readonly certain: Policy;
  /** True if some write can be allowed. */
  readonly possible: Policy;
}

/** Process-wide: a memo of a pure function of the policy. */
const boundsByPolicy = new WeakMap<Policy, UpdateBounds>();

/** Returns the rule itself, twice, if it reads neither `@next` nor `@request.data`. */
export function updateBoundsOf(policy: Policy, catalog: Catalog): UpdateBounds {
  const found =
    boundsByPolicy.get(policy) ?? (readsWrite(policy.checked) ? assumed(policy, catalog) : unchangedBounds(policy));
  boundsByPolicy.set(policy, found);
  return found;
}

const unchangedBounds = (policy: Policy): UpdateBounds => ({ certain: policy, possible: policy });

function assumed({ text, checked }: Policy, catalog: Catalog): UpdateBounds {
  const under = (wanted: boolean): Policy => compileChecked({ text, checked: assume(checked, wanted, WRITE), catalog });
  return { certain: under(false), possible: under(true) };
}

const readsWrite = (checked: Checked): boolean => readsData(checked) || readsNext(checked);

const WRITE = { itself: (node: Checked) => readsDataItself(node) || readsNextItself(node), anywhere: readsWrite };
