/**
 * Looks for a world that meets formulas: asserts what must hold, drops the branches of a disjunction that
 * are contradicted, and splits the smallest that is left. All splits are tried, so no world is missed.
 */
import type { Atom, Formula } from './formula.ts';
import type { Rows } from './rows.ts';

/** The work that a comparison may do. Shared by all its searches. */
export class Budget {
  readonly #deadline: number;
  #steps: number;

  constructor(ms: number) {
    this.#deadline = performance.now() + ms * MOST_DELAY;
    this.#steps = Math.floor(ms * STEPS_A_MS);
  }

  /** Takes steps; false: nothing is left. */
  spend(steps = 1): boolean {
    this.#steps -= steps;
    return this.#steps >= 0 && (this.#steps % CLOCK_STEPS !== 0 || performance.now() < this.#deadline);
  }
}
const CLOCK_STEPS = 64;
/** The work of building the rows of a world and of deciding them. */
const BUILD_STEPS = 32;
/** The steps of a millisecond of one processor. */
const STEPS_A_MS = 160;
/** The clock ends a search only if its steps take so many times their usual time: verdicts do not depend on other work. */
const MOST_DELAY = 20;

type Disjunction = readonly Formula[];
/** The result of trying a formula: it is contradicted, it holds already, or neither. */
type Probe = 'refuted' | 'holds' | 'open';

export class Search {
  readonly #rows: Rows;
  readonly #budget: Budget;
  /** Builds the world of a branch; false: it could not. */
  readonly #build: () => boolean;
  /** Some branch was given up, so that not finding a world proves nothing. */
  isCut = false;

  constructor(rows: Rows, budget: Budget, build: () => boolean) {
    this.#rows = rows;
    this.#budget = budget;
    this.#build = build;
  }

  /** True if a world was found. */
  find(formulas: readonly Formula[]): boolean {
    return this.#solve([...formulas], []);
  }

  #solve(agenda: Formula[], given: readonly Disjunction[]): boolean {
    const settled = this.#propagate(agenda, given);
    if (settled === undefined) return false;
    const [first, ...rest] = settled.toSorted((a, b) => a.length - b.length);
    if (first !== undefined) return this.#split(first, rest);
    if (!this.#budget.spend(BUILD_STEPS)) return this.#cut();
    if (this.#build()) return true;
    this.isCut = true;
    return false;
  }

  #split(clause: Disjunction, rest: readonly Disjunction[]): boolean {
    const { trail } = this.#rows;
    const start = trail.mark;
    for (const item of clause) {
      const mark = trail.mark;
      if (this.#solve([item], rest)) return true;
      trail.undoTo(mark);
      // The next branches need not be looked at where this one holds.
      if (item.kind === 'atom' && item.deny?.() === false) break;
    }
    trail.undoTo(start);
    return false;
  }

  /** Asserts all that must hold. Returns the disjunctions that are left; undefined: a contradiction. */
  #propagate(agenda: Formula[], given: readonly Disjunction[]): readonly Disjunction[] | undefined {
    let clauses = given;
    for (;;) {
      const added: Disjunction[] = [];
      if (!this.#drain(agenda, added)) return undefined;
      clauses = [...clauses, ...added];
      const left: Disjunction[] = [];
      for (const clause of clauses) {
        const open = this.#open(clause);
        if (open === undefined) continue;
        if (open.length === 0) return undefined;
        if (open.length === 1) agenda.push(open[0]!);
        else left.push(open);
      }
      clauses = left;
      if (agenda.length === 0) return clauses;
    }
  }

  #drain(agenda: Formula[], clauses: Disjunction[]): boolean {
    for (;;) {
      const formula = agenda.pop() ?? this.#next();
      if (formula === undefined) return true;
      if (!this.#budget.spend() || this.#rows.isFull) return this.#cut();
      switch (formula.kind) {
        case 'atom':
          if (!formula.assert()) return false;
          break;
        case 'and':
          agenda.push(...formula.items.toReversed());
          break;
        case 'or':
          if (formula.items.length === 0) return false;
          clauses.push(formula.items);
          break;
        case 'later':
          agenda.push(formula.make());
          break;
        case 'every':
          this.#rows.trail.push(this.#rows.universals, { every: formula, done: [] });
          break;
        case 'cut':
          return this.#cut();
      }
    }
  }

  #cut(): boolean {
    this.isCut = true;
    return false;
  }

  /** The next consequence of the names and records that the search has made. */
  #next(): Formula | undefined {
    const rows = this.#rows;
    if (rows.axiomsTaken < rows.axioms.length) {
      const axiom = rows.axioms[rows.axiomsTaken]!;
      rows.trail.set(rows, 'axiomsTaken', rows.axiomsTaken + 1);
      return axiom;
    }
    for (const consequence of rows.consequences) {
      if (consequence.isDrawn || !consequence.isDue()) continue;
      rows.trail.set(consequence, 'isDrawn', true);
      return consequence.make();
    }
    for (const universal of rows.universals) {
      const { every, done } = universal;
      const row = rows
        .stored(every.collection)
        .find((each) => each.into === undefined && !done.includes(each) && every.applies(each));
      if (row === undefined) continue;
      rows.trail.set(universal, 'done', [...done, row]);
      return every.each(row, done);
    }
    return rows.uniqueConflict();
  }

  /** The branches that are not contradicted; undefined: one of them holds already. */
  #open(clause: Disjunction): Disjunction | undefined {
    const open: Formula[] = [];
    for (const item of clause) {
      const probe = this.#probe(item);
      if (probe === 'holds') return undefined;
      if (probe === 'open') open.push(item);
    }
    return open;
  }

  #probe(formula: Formula): Probe {
    const atoms = atomsOf(formula);
    if (atoms.atoms.length === 0) return formula.kind === 'and' && atoms.isAll ? 'holds' : 'open';
    const { trail } = this.#rows;
    const mark = trail.mark;
    const isRefuted = atoms.atoms.some((atom) => !atom.assert());
    const isChanged = trail.mark > mark;
    trail.undoTo(mark);
    if (isRefuted) return 'refuted';
    return atoms.isAll && !isChanged ? 'holds' : 'open';
  }
}

/** The atoms that a formula asserts at once; `isAll`: it is nothing else. */
function atomsOf(formula: Formula): { readonly atoms: readonly Atom[]; readonly isAll: boolean } {
  if (formula.kind === 'atom') return { atoms: [formula], isAll: true };
  if (formula.kind === 'or' && formula.items.length === 0) return { atoms: [NEVER], isAll: true };
  if (formula.kind !== 'and') return { atoms: [], isAll: false };
  const parts = formula.items.map(atomsOf);
  return { atoms: parts.flatMap((part) => part.atoms), isAll: parts.every(({ isAll }) => isAll) };
}
const NEVER: Atom = { kind: 'atom', assert: () => false };
