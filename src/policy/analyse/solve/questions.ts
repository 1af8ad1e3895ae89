/** The questions that are asked of a tree, and the names and paths in it. */
import type { Checked, ColumnOperand, CountOperand, ToManyPath } from '../../types.ts';
import type { Asked } from './asked-request.ts';
import type { Formula } from './formula.ts';
import type { Rows } from './rows.ts';
import type { RowVariable, Term } from './variables.ts';

/** The truth that is asked for, and the opposite of the question. */
export interface Proposition {
  readonly truth: boolean;
  /** True: that it is *not* definitely of that truth. */
  readonly isOpposite: boolean;
}
export const IS_TRUE: Proposition = { truth: true, isOpposite: false };
export const IS_NOT_TRUE: Proposition = { truth: true, isOpposite: true };

/** The rows that names lead to. */
export interface Names {
  readonly record: RowVariable;
  readonly next: RowVariable;
  readonly variables: ReadonlyMap<string, RowVariable>;
}
/** Elements of a to-many relation of a row. */
export interface ElementsQuestion {
  readonly path: ToManyPath;
  readonly owner: RowVariable;
}
export interface CountedQuestion {
  atLeast(least: number): Formula;
  fewerThan(most: number): Formula;
}
export type PathStart = Pick<ColumnOperand, 'scope' | 'steps'>;
export interface Walk {
  readonly then: (row: RowVariable) => Formula;
  readonly absent: Formula;
  readonly isRead: boolean;
}
export interface TermWalk {
  readonly then: (term: Term) => Formula;
  readonly absent: Formula;
  /** For a type that is not reasoned about. */
  readonly opaque: () => Formula;
}
/** The part of a translation that comparisons use. */
export interface Paths {
  readonly rows: Rows;
  readonly asked: Asked;
  opaque(node: Checked, names: Names, question: Proposition): Formula;
  keyOf(node: object, names: Names): string;
  ifPresent(term: Term, present: Formula, absent: Formula): Formula;
  formula(node: Checked, names: Names, question: Proposition): Formula;
  walk(from: PathStart, names: Names, walk: Walk): Formula;
  owner(path: ToManyPath, names: Names, walk: Omit<Walk, 'isRead'>): Formula;
  column(operand: ColumnOperand, names: Names, walk: TermWalk): Formula;
  counted(count: CountOperand, elements: ElementsQuestion, names: Names): CountedQuestion;
  withinChain(elements: ElementsQuestion, test: Formula, question: Proposition): Formula;
}
