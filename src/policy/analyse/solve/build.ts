/** Gives the values that a search left open, so that a branch becomes a world of rows. */
import type { Scalar } from '../../values.ts';
import { idNumber, valuesWithin } from './domains.ts';
import type { Rows } from './rows.ts';
import type { Terms } from './terms.ts';
import { meetsPart, textsWith } from './text-parts.ts';
import {
  BLANK,
  type RowVariable,
  rootOf,
  rowRoot,
  type StoredRow,
  type Term,
  type TextPart,
  type WrittenVariables,
} from './variables.ts';

/** The values of a branch, by root. */
export type Assigned = ReadonlyMap<Term, Scalar>;

/** Attempts to give the terms of a branch values, all together. */
const MOST_BUILDS = 400;
const TEXTS_A_TERM = 40;

/** Finds values for all present terms that no row is the value of. Undefined: none were found. */
export function valuesOf(all: readonly Term[], terms: Terms): Map<Term, Scalar> | undefined {
  return new Assignment(all, terms).values();
}

class Assignment {
  readonly #order: readonly Term[];
  readonly #terms: Terms;
  readonly #values = new Map<Term, Scalar>();
  #tries = MOST_BUILDS;

  constructor(all: readonly Term[], terms: Terms) {
    this.#terms = terms;
    this.#order = inOrder(new Set(all.map(rootOf)));
  }

  values(): Map<Term, Scalar> | undefined {
    return this.#assign(0) ? this.#values : undefined;
  }

  #assign(at: number): boolean {
    const term = this.#order[at];
    if (term === undefined) return true;
    for (const value of this.#candidates(term)) {
      if (--this.#tries < 0) return false;
      if (!this.#terms.fits(term, value) || !this.#agrees(term, value)) continue;
      this.#values.set(term, value);
      if (this.#assign(at + 1)) return true;
      this.#values.delete(term);
    }
    return false;
  }

  *#candidates(term: Term): Iterable<Scalar> {
    if (term.value !== undefined) return yield term.value;
    if (term.allowed !== undefined) return yield* term.allowed;
    if (term.idOf !== undefined) {
      const { uuid } = rowRoot(term.idOf);
      if (uuid !== undefined) yield term.domain.kind === 'number' ? Number(uuid) : uuid;
      return;
    }
    const low = this.#lowOf(term);
    const range = { low, high: term.high, isWhole: term.isWhole, step: term.step };
    if (term.domain.kind !== 'text') {
      const count = 4 + term.excluded.length + term.different.length;
      for (const { holds, needle } of term.parts) if (holds) yield circleCentre(String(needle));
      return yield* valuesWithin(term.domain, range, count);
    }
    const needleOf = (needle: Term) => this.#values.get(rootOf(needle)) as string | undefined;
    let count = 0;
    for (const text of textsWith({ ...term, ...range }, needleOf)) {
      if (count++ > TEXTS_A_TERM) return;
      yield text;
    }
  }

  /** The values below are known already, because terms are taken in their order. */
  #lowOf(term: Term): Term['low'] {
    let { low } = term;
    for (const { to, strict } of term.below) {
      const value = this.#values.get(rootOf(to));
      if (value === undefined) continue;
      const order = low === undefined ? 1 : term.domain.compare(value, low.value);
      if (order > 0 || (order === 0 && strict)) low = { value, strict };
    }
    return low;
  }

  #agrees(term: Term, value: Scalar): boolean {
    const known = (other: Term): Scalar | undefined => this.#values.get(rootOf(other)) ?? rootOf(other).value;
    if (term.different.some((other) => known(other) === value)) return false;
    const { compare } = term.domain;
    const isOrdered = (other: Term, strict: boolean, sign: 1 | -1): boolean => {
      const against = known(other);
      if (against === undefined) return true;
      const order = compare(against, value) * sign;
      return order > 0 || (order === 0 && !strict);
    };
    if (!term.above.every(({ to, strict }) => isOrdered(to, strict, 1))) return false;
    if (!term.below.every(({ to, strict }) => isOrdered(to, strict, -1))) return false;
    return term.parts.every((part) => this.#meets(String(value), part));
  }

  #meets(text: string, part: TextPart): boolean {
    if (part.op === BLANK) return meetsPart(text, { ...part, needle: '' });
    const needle = typeof part.needle === 'string' ? part.needle : this.#values.get(rootOf(part.needle));
    return needle === undefined || meetsPart(text, { ...part, needle: String(needle) });
  }
}

/** The point in the middle of a circle, the only part whose value is not a text. */
function circleCentre(circle: string): string {
  const [lat, lng] = circle.split(', ');
  return `(${lng},${lat})`;
}

/** Lesser values come first, and needles before the texts that have them. */
function inOrder(roots: ReadonlySet<Term>): readonly Term[] {
  const done = new Set<Term>();
  const order: Term[] = [];
  const visit = (term: Term): void => {
    const root = rootOf(term);
    if (done.has(root)) return;
    done.add(root);
    for (const { to } of root.below) visit(to);
    for (const { needle } of root.parts) if (typeof needle !== 'string') visit(needle);
    const isValue = root.collection === undefined && root.domain.kind !== 'list';
    if (isValue && root.isPresent !== false) order.push(root);
  };
  const known = (root: Term): number => (root.value !== undefined ? 0 : root.allowed !== undefined ? 1 : 2);
  for (const root of [...roots].toSorted((a, b) => known(a) - known(b))) visit(root);
  return order;
}

// ---------------------------------------------------------------- the terms of a branch

export const termsOfRow = (row: RowVariable): readonly Term[] => [...rowRoot(row).columns.values()];

/** Gives ids to the rows that have none. False: two records would have one id. */
export function giveIds(rows: Rows, written: WrittenVariables | undefined, terms: readonly Term[]): boolean {
  let count = 0;
  const all = new Set(written === undefined ? rows.all : [...rows.all, rows.rowOf(written.id)]);
  const taken = new Set(Array.from(all, ({ uuid }) => uuid));
  const give = (row: StoredRow, id: string): void => {
    rows.trail.set(row, 'uuid', id);
    taken.add(id);
  };
  for (const term of new Set(terms.map(rootOf))) {
    const row = term.idOf && rowRoot(term.idOf);
    if (row?.uuid !== undefined || row === undefined) continue;
    const wanted = valuesOfId(term).find((value) => !taken.has(String(value)) && rows.terms.fits(term, value));
    if (wanted !== undefined) give(row, String(wanted));
  }
  for (const row of all) {
    if (row.uuid !== undefined) continue;
    const type = rows.idType(row.collection);
    let id = idNumber(type, ++count);
    while (taken.has(id)) id = idNumber(type, ++count);
    give(row, id);
  }
  const ids = Array.from(all, ({ collection, uuid }) => `${collection} ${uuid}`);
  return new Set(ids).size === ids.length;
}

/** Values that a term may ask of the id that it equals; none: any id will do. */
function valuesOfId({ value, allowed, domain, low, high, isWhole, step, excluded }: Term): readonly Scalar[] {
  if (value !== undefined) return [value];
  if (allowed !== undefined) return allowed;
  if (domain.kind !== 'number' || (low === undefined && high === undefined)) return [];
  return valuesWithin(domain, { low, high, isWhole, step }, 8 + excluded.length);
}
