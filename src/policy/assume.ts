/** Replaces what is not known yet about a request by a wanted outcome: a bound on the later decision. */
import type { Checked } from './types.ts';
import { readsData, readsDataItself } from './visit.ts';

/**
 * A part of the request that is not known yet: `itself` tests if a condition reads it, `anywhere` includes
 * the conditions inside.
 */
interface UnknownPart {
  readonly itself: (node: Checked) => boolean;
  readonly anywhere: (checked: Checked) => boolean;
}
export const BODY_PART: UnknownPart = { itself: readsDataItself, anywhere: readsData };

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
