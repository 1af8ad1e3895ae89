/**
 * Values that are not known yet, and what is known about them: presence, equality, order, bounds, and
 * parts of texts. A contradiction is found here or not at all, but is never wrong.
 */
import { lengthInCodePoints, type Scalar } from '../../values.ts';
import { type DomainBound, hasOtherValues, isEmptyRange, isInRange, valuesWithin } from './domains.ts';
import { contradictParts, implies, meetsPart } from './text-parts.ts';
import type { Trail } from './trail.ts';
import { BLANK, type LengthLimits, rootOf, type StoredRow, Term, type TextPart } from './variables.ts';

/** The rows whose ids are terms. */
export interface RowTheory {
  merge(left: StoredRow, right: StoredRow): boolean;
  separate(left: StoredRow, right: StoredRow): boolean;
  mustBeStored(row: StoredRow): boolean;
  rootOf(row: StoredRow): StoredRow;
  /** The record has the id, or may have it. */
  isIdOf(row: StoredRow, text: string): boolean;
  /** It is known that the record has the id. */
  hasId(row: StoredRow, text: string): boolean;
}

export class Terms {
  readonly #trail: Trail;
  readonly #rows: RowTheory;

  constructor(trail: Trail, rows: RowTheory) {
    this.#trail = trail;
    this.#rows = rows;
  }

  // -------------------------------------------------------------- presence and equality

  present(term: Term): boolean {
    const root = rootOf(term);
    if (root.isPresent === false) return false;
    if (root.isPresent === undefined) this.#trail.set(root, 'isPresent', true);
    return !root.isReference || root.row === undefined || this.#rows.mustBeStored(root.row);
  }

  absent(term: Term): boolean {
    const root = rootOf(term);
    if (root.isPresent === true) return false;
    this.#trail.set(root, 'isPresent', false);
    return true;
  }

  same(left: Term, right: Term): boolean {
    if (!this.present(left) || !this.present(right)) return false;
    return this.agree(left, right);
  }

  /** The same value, or absent both. */
  agree(left: Term, right: Term): boolean {
    const [a, b] = [rootOf(left), rootOf(right)];
    if (a === b) return true;
    if (!this.#agreeOnPresence(a, b)) return false;
    this.#trail.set(b, 'into', a);
    if (a.collection !== undefined) return this.#joinIds(a, b);
    this.#join(a, b);
    return !this.#isCyclic(a) && this.#settle(a);
  }

  #agreeOnPresence(a: Term, b: Term): boolean {
    if (a.isPresent === b.isPresent) return true;
    if (a.isPresent === undefined) return b.isPresent ? this.present(a) : this.absent(a);
    if (b.isPresent !== undefined) return false;
    return a.isPresent ? this.present(b) : this.absent(b);
  }

  #joinIds(a: Term, b: Term): boolean {
    this.#trail.set(a, 'isReference', a.isReference || b.isReference);
    this.#trail.set(a, 'different', [...a.different, ...b.different]);
    const [own, other] = [a.row, b.row];
    if (own === undefined) this.#trail.set(a, 'row', other);
    else if (other !== undefined && !this.#rows.merge(own, other)) return false;
    if (a.isReference && a.row !== undefined && a.isPresent === true && !this.#rows.mustBeStored(a.row)) return false;
    return this.separateRows(a);
  }

  /** The rows of ids that differ are different rows. */
  separateRows(root: Term): boolean {
    return root.different.every((each) => {
      const other = rootOf(each);
      if (other === root) return false;
      return root.row === undefined || other.row === undefined || this.#rows.separate(root.row, other.row);
    });
  }

  #join(a: Term, b: Term): void {
    const set = <K extends keyof Term>(key: K, value: Term[K]): void => this.#trail.set(a, key, value);
    if (a.value === undefined) set('value', b.value);
    else if (b.value !== undefined && a.value !== b.value) set('allowed', []);
    if (b.allowed !== undefined) set('allowed', a.allowed?.filter((each) => b.allowed!.includes(each)) ?? b.allowed);
    set(
      'low',
      tighter(a.low, b.low, (x, y) => a.domain.compare(x, y)),
    );
    set(
      'high',
      tighter(a.high, b.high, (x, y) => a.domain.compare(y, x)),
    );
    set('isWhole', a.isWhole || b.isWhole);
    set('isOpenEnded', a.isOpenEnded && b.isOpenEnded);
    set('step', a.step > b.step ? a.step : b.step);
    if (b.excluded.length > 0) set('excluded', [...a.excluded, ...b.excluded]);
    if (b.different.length > 0) set('different', [...a.different, ...b.different]);
    if (b.above.length > 0) set('above', [...a.above, ...b.above]);
    if (b.below.length > 0) set('below', [...a.below, ...b.below]);
    if (b.parts.length > 0) set('parts', [...a.parts, ...b.parts]);
    if (b.limits !== a.limits) set('limits', bothLimits(a.limits, b.limits));
    if (b.idOf !== undefined) set('idOf', a.idOf ?? b.idOf);
    if (b.notIdOf.length > 0) set('notIdOf', [...a.notIdOf, ...b.notIdOf]);
  }

  differ(left: Term, right: Term): boolean {
    if (!this.present(left) || !this.present(right)) return false;
    const [a, b] = [rootOf(left), rootOf(right)];
    if (a === b) return false;
    if (a.different.some((each) => rootOf(each) === b)) return true;
    this.#trail.set(a, 'different', [...a.different, b]);
    this.#trail.set(b, 'different', [...b.different, a]);
    if (a.collection !== undefined) return this.separateRows(a);
    return this.#settle(a) && this.#settle(rootOf(b));
  }

  // -------------------------------------------------------------- values

  is(term: Term, value: Scalar): boolean {
    if (!this.present(term)) return false;
    const root = rootOf(term);
    if (root.value !== undefined) return root.value === value;
    this.#trail.set(root, 'value', value);
    return this.#settle(root);
  }

  isNot(term: Term, value: Scalar): boolean {
    if (!this.present(term)) return false;
    const root = rootOf(term);
    if (root.excluded.includes(value)) return true;
    this.#trail.set(root, 'excluded', [...root.excluded, value]);
    return this.#settle(root);
  }

  isOneOf(term: Term, values: readonly Scalar[]): boolean {
    if (!this.present(term)) return false;
    const root = rootOf(term);
    const left = root.allowed?.filter((each) => values.includes(each)) ?? values;
    if (left.length === root.allowed?.length) return true;
    this.#trail.set(root, 'allowed', left);
    return this.#settle(root);
  }

  atLeast(term: Term, bound: DomainBound): boolean {
    return this.present(term) && this.#raise(rootOf(term), bound);
  }

  atMost(term: Term, bound: DomainBound): boolean {
    return this.present(term) && this.#lower(rootOf(term), bound);
  }

  #raise(root: Term, bound: DomainBound): boolean {
    const low = tighter(root.low, bound, (x, y) => root.domain.compare(x, y));
    if (low === root.low) return true;
    this.#trail.set(root, 'low', low);
    return this.#settle(root);
  }

  #lower(root: Term, bound: DomainBound): boolean {
    const high = tighter(root.high, bound, (x, y) => root.domain.compare(y, x));
    if (high === root.high) return true;
    this.#trail.set(root, 'high', high);
    return this.#settle(root);
  }

  /** Left is less than right, or equal unless `strict`. */
  inOrder(left: Term, right: Term, strict: boolean): boolean {
    if (!this.present(left) || !this.present(right)) return false;
    const [a, b] = [rootOf(left), rootOf(right)];
    if (a === b) return !strict;
    if (a.above.some((edge) => rootOf(edge.to) === b && edge.strict >= strict)) return true;
    this.#trail.set(a, 'above', [...a.above, { to: b, strict }]);
    this.#trail.set(b, 'below', [...b.below, { to: a, strict }]);
    return !this.#isCyclic(a) && this.#settle(a) && this.#settle(b);
  }

  /** A value that is less than itself. */
  #isCyclic(start: Term): boolean {
    const met = new Set<string>();
    const ids = new Map<Term, number>();
    const visit = (term: Term, isStrict: boolean): boolean => {
      const root = rootOf(term);
      if (root === start && isStrict) return true;
      if (!ids.has(root)) ids.set(root, ids.size);
      const key = `${ids.get(root)}${isStrict}`;
      if (met.has(key)) return false;
      met.add(key);
      return root.above.some(({ to, strict }) => visit(to, isStrict || strict));
    };
    return start.above.length > 0 && visit(start, false);
  }

  // -------------------------------------------------------------- texts

  part(term: Term, part: TextPart): boolean {
    if (!this.present(term) || (part.needle instanceof Term && !this.present(part.needle))) return false;
    const root = rootOf(term);
    if (root.parts.some((each) => isSamePart(each, part))) return true;
    if (root.parts.some((each) => excludesPart(each, part) || excludesPart(part, each))) return false;
    this.#trail.set(root, 'parts', [...root.parts, part]);
    return this.#settle(root);
  }

  limit(term: Term, limits: LengthLimits): void {
    this.#trail.set(term, 'limits', limits);
  }

  isId(term: Term, row: StoredRow): boolean {
    if (!this.present(term)) return false;
    const root = rootOf(term);
    if (root.idOf !== undefined) return this.#rows.merge(root.idOf, row);
    this.#trail.set(root, 'idOf', row);
    return this.#settle(root);
  }

  isNoId(term: Term, row: StoredRow): boolean {
    if (!this.present(term)) return false;
    const root = rootOf(term);
    this.#trail.set(root, 'notIdOf', [...root.notIdOf, row]);
    return this.#settle(root);
  }

  // -------------------------------------------------------------- consequences

  /** Draws the consequences of what is known about the value; false: there is none. */
  #settle(root: Term): boolean {
    if (root.different.some((each) => rootOf(each) === root)) return false;
    if (root.allowed !== undefined) {
      const left = root.allowed.filter((value) => this.fits(root, value));
      if (left.length === 0) return false;
      if (left.length < root.allowed.length) this.#trail.set(root, 'allowed', left);
      if (left.length === 1 && root.value === undefined) this.#trail.set(root, 'value', left[0]);
    }
    if (root.value !== undefined) return this.fits(root, root.value) && this.#pass(root, root.value);
    if (isEmptyRange(root.domain, root)) return false;
    const only = singleOf(root);
    if (only !== undefined && root.allowed === undefined) {
      this.#trail.set(root, 'value', only);
      return this.fits(root, only) && this.#pass(root, only);
    }
    if (!this.#idFits(root) || contradictParts(root) || lacksItself(root)) return false;
    return this.#passBounds(root);
  }

  /** Everything that is known of the term allows the value; other terms aside. */
  fits(root: Term, value: Scalar): boolean {
    if (root.value !== undefined && root.value !== value) return false;
    if (root.excluded.includes(value) || !isInRange(value, root, (a, b) => root.domain.compare(a, b))) return false;
    if (root.isWhole && !Number.isSafeInteger(value)) return false;
    if (root.step > 1n && root.domain.ladder !== undefined && root.domain.ladder.rung(value) % root.step !== 0n)
      return false;
    if (!this.#isIdText(root, String(value))) return false;
    if (root.domain.kind !== 'text') return true;
    if (!isWithinLength(String(value), root.limits)) return false;
    return root.parts.every((part) => {
      const needle = part.needle instanceof Term ? rootOf(part.needle).value : part.needle;
      return needle === undefined || meetsPart(String(value), { ...part, needle: String(needle) });
    });
  }

  #isIdText(root: Term, text: string): boolean {
    if (root.idOf !== undefined && !this.#rows.isIdOf(root.idOf, text)) return false;
    return !root.notIdOf.some((row) => this.#rows.hasId(row, text));
  }

  #idFits({ idOf, notIdOf }: Term): boolean {
    if (idOf === undefined) return true;
    const row = this.#rows.rootOf(idOf);
    return !notIdOf.some((each) => this.#rows.rootOf(each) === row);
  }

  #pass(root: Term, value: Scalar): boolean {
    for (const other of root.different) {
      const each = rootOf(other);
      if (each.value === value) return false;
      if (each.value === undefined && !each.excluded.includes(value)) {
        this.#trail.set(each, 'excluded', [...each.excluded, value]);
        if (!this.#settle(each)) return false;
      }
    }
    return this.#passBounds(root);
  }

  #passBounds(root: Term): boolean {
    const low = root.value === undefined ? root.low : { value: root.value, strict: false };
    const high = root.value === undefined ? root.high : { value: root.value, strict: false };
    for (const { to, strict } of low === undefined ? [] : root.above)
      if (!this.#raise(rootOf(to), { value: low!.value, strict: strict || low!.strict })) return false;
    for (const { to, strict } of high === undefined ? [] : root.below)
      if (!this.#lower(rootOf(to), { value: high!.value, strict: strict || high!.strict })) return false;
    return true;
  }
}

/** Every text has itself as a part. */
const lacksItself = (root: Term): boolean =>
  root.parts.some((part) => !part.holds && part.op !== BLANK && needleOf(part) === root);

/** The one value of a range that has one. */
function singleOf(root: Term): Scalar | undefined {
  const { low, high, domain } = root;
  if ((low === undefined && high === undefined) || hasOtherValues(root)) return undefined;
  if (domain.kind === 'text') return low?.value === high?.value ? low?.value : undefined;
  const [only, ...others] = valuesWithin(domain, root, 2);
  return others.length === 0 ? only : undefined;
}

const isWithinLength = (text: string, { min = 0, max = Number.POSITIVE_INFINITY }: LengthLimits): boolean => {
  const length = lengthInCodePoints(text);
  return length >= min && length <= max;
};

const needleOf = ({ needle }: TextPart): Term | string => (needle instanceof Term ? rootOf(needle) : needle);

const isSamePart = (a: TextPart, b: TextPart): boolean =>
  a.op === b.op && a.holds === b.holds && needleOf(a) === needleOf(b);

/** A text with the one part has the other, which it must not have. */
const excludesPart = (one: TextPart, other: TextPart): boolean =>
  one.holds && !other.holds && needleOf(one) === needleOf(other) && (one.op === other.op || implies(one, other));

/** `compare` ranks the tighter of two bounds higher. */
function tighter(
  a: DomainBound | undefined,
  b: DomainBound | undefined,
  compare: (left: Scalar, right: Scalar) => number,
): DomainBound | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  const order = compare(a.value, b.value);
  if (order !== 0) return order > 0 ? a : b;
  return a.strict || !b.strict ? a : b;
}

const bothLimits = (a: LengthLimits, b: LengthLimits): LengthLimits => ({
  min: Math.max(a.min ?? 0, b.min ?? 0),
  max: Math.min(a.max ?? Number.POSITIVE_INFINITY, b.max ?? Number.POSITIVE_INFINITY),
});
