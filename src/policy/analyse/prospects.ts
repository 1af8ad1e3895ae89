/** Decides rules for update before the body and the result are known: by the stored record and the caller alone. */
import { compileChecked } from '../compile.ts';
import type { Catalog, Checked, Policy } from '../types.ts';
import { readsData, readsDataItself, readsNext, readsNextItself } from '../visit.ts';
import { assume } from './optimistic.ts';

/** Rules of the stored record alone. */
export interface Prospects {
  /** True only where the rule holds for it whatever the write is. */
  readonly certain: Policy;
  /** True wherever some write can meet the rule. */
  readonly possible: Policy;
}

/** Process-wide: a memo of a pure function of the policy. */
const known = new WeakMap<Policy, Prospects>();

/** The rule itself, twice, where it speaks neither of `@next` nor of `@request.data`. */
export function prospectsOf(policy: Policy, catalog: Catalog): Prospects {
  const found = known.get(policy) ?? (isOpen(policy.checked) ? assumed(policy, catalog) : both(policy));
  known.set(policy, found);
  return found;
}

const both = (policy: Policy): Prospects => ({ certain: policy, possible: policy });

function assumed({ text, checked }: Policy, catalog: Catalog): Prospects {
  const under = (wanted: boolean): Policy => compileChecked({ text, checked: assume(checked, wanted, WRITE), catalog });
  return { certain: under(false), possible: under(true) };
}

const isOpen = (checked: Checked): boolean => readsData(checked) || readsNext(checked);

const WRITE = { itself: (node: Checked) => readsDataItself(node) || readsNextItself(node), anywhere: isOpen };
