/** Decides rules that read the body (`@request.data`) as far as possible before it arrives. */
import { compileChecked } from '../compile.ts';
import type { Catalog, Checked, Policy } from '../types.ts';
import { readsData, readsDataItself } from '../visit.ts';

/** Process-wide: a memo of a pure function of the policy. */
const optimisticPolicies = new WeakMap<Policy, Policy>();

/**
 * The rule under the most favourable body: if it denies, no body makes the rule true. Returns a
 * rule that does not read the body as it is. INVARIANT: true wherever the rule can be true. It can
 * only deny; otherwise the rule itself decides with the body.
 */
export function optimistic(policy: Policy, catalog: Catalog): Policy {
  const known = optimisticPolicies.get(policy);
  if (known !== undefined) return known;
  const answer = readsData(policy.checked) ? assumeBody(policy, catalog) : policy;
  optimisticPolicies.set(policy, answer);
  return answer;
}

const assumeBody = ({ text, checked }: Policy, catalog: Catalog): Policy =>
  compileChecked({ text, checked: assume(checked, true, BODY_READS), catalog });

/**
 * A part of the request that is not known yet: `itself` tests if a condition reads it, `anywhere` includes
 * the conditions inside.
 */
interface UnknownPart {
  readonly itself: (node: Checked) => boolean;
  readonly anywhere: (checked: Checked) => boolean;
}
const BODY_READS: UnknownPart = { itself: readsDataItself, anywhere: readsData };

/** Replaces every test of an unknown value by `wanted`; under a `not`, and in `none`, by its opposite. */
export function assume(checked: Checked, wanted: boolean, unknown: UnknownPart): Checked {
  switch (checked.kind) {
    case 'and':
    case 'or':
      return { ...checked, items: checked.items.map((item) => assume(item, wanted, unknown)) };
    case 'not':
      return { ...checked, item: assume(checked.item, !wanted, unknown) };
    case 'quantified':
      if (unknown.itself(checked)) return { kind: 'const', value: wanted, span: checked.span };
      return {
        ...checked,
        condition: assume(checked.condition, checked.quantifier === 'none' ? !wanted : wanted, unknown),
      };
    case 'const':
    case 'compare':
    case 'is null':
    case 'changed':
      return unknown.anywhere(checked) ? { kind: 'const', value: wanted, span: checked.span } : checked;
  }
}
