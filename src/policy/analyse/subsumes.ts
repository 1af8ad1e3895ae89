/** Finds rules of a union that another rule makes redundant. */
import { isMember, isNonMember, OPERATORS, rank } from '../operators.ts';
import type { Checked, CheckedCompare, CheckedQuantified } from '../types.ts';
import { readsNext } from '../visit.ts';
import { canonical, canonicalKey } from './canonical.ts';

/**
 * True only if `a` allows everything that `b` allows. Sound and incomplete: `false` means that it
 * could not be proved. In a union with `a`, `b` is then redundant.
 */
export function subsumes(a: Checked, b: Checked): boolean {
  // A rule without `@next` must also hold for the resulting record; `b` with `@next` need not.
  if (readsNext(b) && !readsNext(a)) return false;
  return new ImplicationProof().implies(canonical(b), canonical(a));
}

/** Steps that one proof may take; a nest of `and` and `or` on both sides could take very many. */
const MOST_PROOF_STEPS = 20_000;

/** Proves implications between canonical conditions; all proofs of one instance share its steps. */
export class ImplicationProof {
  #steps: number;

  constructor(steps = MOST_PROOF_STEPS) {
    this.#steps = steps;
  }

  /** True if `a` is true wherever `b` is. Both are canonical. The proof is sound and incomplete, as above. */
  implies(b: Checked, a: Checked): boolean {
    if (--this.#steps < 0) return false;
    if (canonicalKey(a) === canonicalKey(b)) return true;
    if (b.kind === 'const') return !b.value || (a.kind === 'const' && a.value);
    if (a.kind === 'const') return a.value;
    if (b.kind === 'or') return b.items.every((item) => this.implies(item, a));
    if (a.kind === 'and') return a.items.every((item) => this.implies(b, item));
    if (a.kind === 'or' && a.items.some((item) => this.implies(b, item))) return true;
    if (b.kind === 'and' && b.items.some((item) => this.implies(item, a))) return true;
    return this.#leaf(b, a);
  }

  #leaf(b: Checked, a: Checked): boolean {
    if (a.kind === 'quantified' && b.kind === 'quantified') return this.#quantified(b, a);
    if (b.kind !== 'compare') return false;
    if (a.kind === 'is null') return a.negated && [b.left, b.right].some((side) => this.#isPresent(b, side, a.operand));
    return a.kind === 'compare' && canonicalKey(a.left) === canonicalKey(b.left) && narrower(b, a);
  }

  #quantified(b: CheckedQuantified, a: CheckedQuantified): boolean {
    if (a.quantifier !== b.quantifier || canonicalKey(a.path) !== canonicalKey(b.path)) return false;
    // `none` reverses the implication, and a condition that is not true may be unknown.
    return a.quantifier !== 'none' && this.implies(b.condition, a.condition);
  }

  /** A true comparison has two present sides, except for list tests that an empty list settles. */
  #isPresent({ op }: CheckedCompare, side: object, operand: object): boolean {
    const { family, negative } = OPERATORS[op];
    return !(family === 'list' && negative) && canonicalKey(side) === canonicalKey(operand);
  }
}

type LiteralValues = readonly (string | number | boolean)[];

/** The literals of a comparison, unless one of them is not an exact value. */
function literals({ right }: CheckedCompare): LiteralValues | undefined {
  if (right.kind !== 'literal' || right.exact !== undefined) return undefined;
  return Array.isArray(right.value) ? right.value : [right.value as string | number | boolean];
}

/** For comparisons of the same left side with literals: every value that `b` takes, `a` takes. */
function narrower(b: CheckedCompare, a: CheckedCompare): boolean {
  const [few, many] = [literals(b), literals(a)];
  if (few === undefined || many === undefined) return ordered(b, a);
  const [narrow, wide] = [OPERATORS[b.op], OPERATORS[a.op]];
  if (isMember(narrow) && isMember(wide)) return few.every((value) => many.includes(value));
  if (isMember(narrow) && isNonMember(wide)) return few.every((value) => !many.includes(value));
  if (isNonMember(narrow) && isNonMember(wide)) return many.every((value) => few.includes(value));
  return ordered(b, a);
}

function ordered(b: CheckedCompare, a: CheckedCompare): boolean {
  const [low, high] = [orderedValue(a), orderedValue(b)];
  // An instant relative to the request is not comparable with one that is written out.
  if (low === undefined || high === undefined || a.right.kind !== b.right.kind) return false;
  const [narrow, wide] = [OPERATORS[b.op], OPERATORS[a.op]];
  if (wide.direction === undefined) return false;
  if (!isMember(narrow) && narrow.direction !== wide.direction) return false;
  const order = rank(high, low, b.left.type);
  const strictlyInside = wide.direction === 'up' ? order > 0 : order < 0;
  const inclusive = !wide.strict || narrow.strict === true;
  return strictlyInside || (order === 0 && inclusive);
}

/** The exact value that an ordering compares with. */
function orderedValue({ right }: CheckedCompare): string | number | undefined {
  if (right.kind === 'now') return right.seconds;
  if (right.kind !== 'literal' || right.exact !== undefined) return undefined;
  return typeof right.value === 'number' || typeof right.value === 'string' ? right.value : undefined;
}
