/** Counts how often tests made each leaf of each rule true, false and unknown, and which rules decided alone. */
import type { Catalog, Checked, Policy } from '../../policy/types.ts';
import { partsOf } from '../../policy/visit.ts';
import { type PlacedRule, policiesOfRule, textOfPart } from '../rule-places.ts';
import type { RuleJudgement } from '../test/predicate.ts';
import { type CoveredValue, isPossible, type LeafPlace, valuesByType } from './possible-values.ts';

/** null: no caller and no row give this value, so that tests need not either. */
type LeafCount = number | null;

export interface LeafCoverage {
  readonly text: string;
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly true: LeafCount;
  readonly false: LeafCount;
  readonly unknown: LeafCount;
}
export interface PolicyCoverage {
  readonly collection: string;
  readonly action: string;
  readonly path: string;
  /** Decisions in which this rule held, or this check failed, and no other one did. */
  readonly decided_alone: number;
  readonly leaves: readonly LeafCoverage[];
}
export interface CoverageDocument {
  readonly policies: readonly PolicyCoverage[];
}

/** A schema, and its file as the user typed it. */
interface CoveredFile {
  readonly file: string;
  readonly catalog: Catalog;
}

interface Counts {
  true: number;
  false: number;
  unknown: number;
}

export class CoverageCounter {
  readonly #counts = new Map<Checked, Counts>();
  readonly #alone = new Map<Policy, number>();

  /** To be called for every part of a rule that was evaluated. */
  count(node: Checked, value: boolean | undefined): void {
    const counts = this.#counts.get(node) ?? { true: 0, false: 0, unknown: 0 };
    counts[value === undefined ? 'unknown' : value ? 'true' : 'false']++;
    this.#counts.set(node, counts);
  }

  countRules(rules: readonly RuleJudgement[]): void {
    const [held, ...others] = rules.filter(({ isAllowed }) => isAllowed);
    if (held !== undefined && others.length === 0) this.#alone.set(held.rule, (this.#alone.get(held.rule) ?? 0) + 1);
  }

  report(rules: readonly PlacedRule[], { file, catalog }: CoveredFile): CoverageDocument {
    const policies = rules.map((placed): PolicyCoverage => {
      const { collection, path, rule } = placed;
      const action = placed.check === undefined ? placed.action : 'check';
      const leaves = leavesOf(rule.checked).map((leaf): LeafCoverage => {
        const { line, column } = placed.placeOf(leaf);
        return { text: textOfPart(rule, leaf), file, line, column, ...this.#valuesOf(leaf, { placed, catalog }) };
      });
      const alone = policiesOfRule(placed).map((each) => this.#alone.get(each) ?? 0);
      return { collection, action, path, decided_alone: alone.reduce((a, b) => a + b), leaves };
    });
    return { policies };
  }

  #valuesOf(leaf: Checked, place: LeafPlace): Pick<LeafCoverage, 'true' | 'false' | 'unknown'> {
    const counts = this.#counts.get(leaf) ?? { true: 0, false: 0, unknown: 0 };
    const typed = valuesByType(leaf);
    const countOf = (value: CoveredValue): LeafCount => {
      if (!typed.has(value)) return null;
      return counts[value] > 0 || isPossible(leaf, value, place) ? counts[value] : null;
    };
    return { true: countOf('true'), false: countOf('false'), unknown: countOf('unknown') };
  }
}

/** The parts without parts of their own; those within quantifiers and counts too. */
function leavesOf(checked: Checked): readonly Checked[] {
  const parts = partsOf(checked);
  const inner = parts.flatMap(leavesOf);
  return parts.length === 0 || checked.kind === 'compare' ? [checked, ...inner] : inner;
}

/** The share of possible values that tests gave, in percent. */
export function percentOf({ policies }: CoverageDocument): number {
  const wanted = policies
    .flatMap(({ leaves }) => leaves.flatMap((leaf) => [leaf.true, leaf.false, leaf.unknown]))
    .filter((count) => count !== null);
  return wanted.length === 0 ? 100 : (wanted.filter((count) => count > 0).length / wanted.length) * 100;
}
