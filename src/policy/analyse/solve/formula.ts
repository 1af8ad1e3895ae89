/**
 * Two-valued formulas over atoms. A part that names records which do not exist yet is made later, when
 * the search has made them.
 */
import type { StoredRow } from './variables.ts';

export type Formula = Atom | FormulaJunction | Later | Every | Cut;

/** Asserts itself; false: it contradicts what was asserted before. */
export interface Atom {
  readonly kind: 'atom';
  assert(): boolean;
  /** Asserts the opposite, where that is one atom. */
  deny?(): boolean;
}
interface FormulaJunction {
  readonly kind: 'and' | 'or';
  readonly items: readonly Formula[];
}
interface Later {
  readonly kind: 'later';
  make(): Formula;
}
/**
 * Holds for each record of a collection that it applies to, as soon as that is known. A record of which it
 * is not known need not be looked at: the world is then built so that it does not apply.
 */
export interface Every {
  readonly kind: 'every';
  readonly collection: string;
  applies(row: StoredRow): boolean;
  /** `before`: the records that it applied to earlier, for conditions on several records. */
  each(row: StoredRow, before: readonly StoredRow[]): Formula;
}
/** The search stops here, so it cannot prove any more that no world exists. */
interface Cut {
  readonly kind: 'cut';
}

export const YES: Formula = { kind: 'and', items: [] };
export const NO: Formula = { kind: 'or', items: [] };
export const CUT: Formula = { kind: 'cut' };

export const constantly = (value: boolean): Formula => (value ? YES : NO);
export const later = (make: () => Formula): Formula => ({ kind: 'later', make });
export const atom = (assert: () => boolean, deny?: () => boolean): Formula =>
  deny === undefined ? { kind: 'atom', assert } : { kind: 'atom', assert, deny };

export function all(items: readonly Formula[]): Formula {
  if (items.includes(NO)) return NO;
  const left = items.filter((item) => item !== YES);
  return left.length === 1 ? left[0]! : left.length === 0 ? YES : { kind: 'and', items: left };
}

export function someOf(items: readonly Formula[]): Formula {
  if (items.includes(YES)) return YES;
  const left = items.filter((item) => item !== NO);
  return left.length === 1 ? left[0]! : left.length === 0 ? NO : { kind: 'or', items: left };
}
