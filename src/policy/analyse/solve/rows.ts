/** The records of a world that is being looked for: their columns, what links them, and the caller. */

import { elementOf, type IdType, isNumeric, isText, isWhole } from '../../scalar-types.ts';
import {
  type Catalog,
  type CatalogBelongsTo,
  type CatalogField,
  type CatalogManyToMany,
  ELEMENT_VALUE,
  type HasOne,
  idOf,
  type ValueType,
} from '../../types.ts';
import { plainNumeral } from '../../values.ts';
import { DECIMAL_PLACES, domainOf, isIdText } from './domains.ts';
import { all, atom, type Every, type Formula, later } from './formula.ts';
import { type RowTheory, Terms } from './terms.ts';
import { Trail } from './trail.ts';
import { type RowVariable, rootOf, rowRoot, StoredRow, Term, WrittenVariables } from './variables.ts';

/** A pair of records that a many_to_many links, or does not. `owner` may be the written record. */
interface StoredLink {
  readonly relation: string;
  readonly owner: RowVariable;
  readonly element: StoredRow;
  readonly isLinked: boolean;
}
/** An element of a list, as a row with one column. */
interface SolvedElement {
  readonly list: Term;
  readonly row: StoredRow;
}

/** `done`: the records that it was applied to. */
interface Universal {
  readonly every: Every;
  done: readonly StoredRow[];
}
/** Follows as soon as something is so. */
interface Consequence {
  isDrawn: boolean;
  isDue(): boolean;
  make(): Formula;
}
/** A column whose values are unique in a collection. */
interface UniqueTerm {
  readonly row: RowVariable;
  readonly term: Term;
}

/** A column whose values are unique among some records. */
interface KeyedTerm extends UniqueTerm {
  readonly within: readonly string[];
}

/** Beyond this many records, the search goes no further. */
const MOST_WORLD_ROWS = 120;

export class Rows implements RowTheory {
  readonly trail = new Trail();
  readonly terms: Terms;
  readonly catalog: Catalog;
  readonly #stored = new Map<string, StoredRow[]>();
  readonly links: StoredLink[] = [];
  readonly elements: SolvedElement[] = [];
  /** Facts with names: roles, lists, tests that are not reasoned about. */
  readonly facts = new Map<string, boolean>();
  /** Follow from what was named so far. The search takes them in turn. */
  readonly axioms: Formula[] = [];
  /** Counts that are compared with values of records and of the request. */
  readonly counts = new Map<string, Term>();
  /** Values of policies that are compared as terms. */
  readonly constants = new Map<string, Term>();
  axiomsTaken = 0;
  readonly consequences: Consequence[] = [];
  readonly #unique = new Map<string, UniqueTerm[]>();
  readonly #keyed = new Map<string, KeyedTerm[]>();
  readonly universals: Universal[] = [];
  readonly #named = new Map<string, StoredRow>();
  count = 0;

  constructor(catalog: Catalog) {
    this.catalog = catalog;
    this.terms = new Terms(this.trail, this);
  }

  get isFull(): boolean {
    return this.count > MOST_WORLD_ROWS;
  }

  // -------------------------------------------------------------- rows

  stored(collection: string): readonly StoredRow[] {
    return this.#stored.get(collection) ?? [];
  }

  get all(): readonly StoredRow[] {
    return [...this.#stored.values()].flat().filter((row) => row.into === undefined);
  }

  make(collection: string): StoredRow {
    const row = new StoredRow(collection, domainOf(this.idType(collection))!);
    if (!this.#stored.has(collection)) this.#stored.set(collection, []);
    this.trail.push(this.#stored.get(collection)!, row);
    this.trail.set(this as Rows, 'count', this.count + 1);
    return row;
  }

  idType(collection: string): IdType {
    return idOf(this.catalog, collection);
  }

  /** The record whose id is written in a policy. */
  named(collection: string, uuid: string): StoredRow {
    const key = `${collection} ${uuid}`;
    const known = this.#named.get(key);
    if (known !== undefined) return known;
    const row = this.make(collection);
    this.trail.set(row, 'uuid', uuid);
    this.trail.put(this.#named, key, row);
    return row;
  }

  rootOf(row: StoredRow): StoredRow {
    return rowRoot(row);
  }

  isIdOf(row: StoredRow, text: string): boolean {
    const { uuid, collection } = rowRoot(row);
    return uuid === undefined ? isIdText(this.idType(collection), text) : uuid === text;
  }

  hasId(row: StoredRow, text: string): boolean {
    return rowRoot(row).uuid === text;
  }

  rowOf(term: Term): StoredRow {
    const root = rootOf(term);
    if (root.row === undefined) {
      const row = this.make(root.collection!);
      this.trail.set(root, 'row', row);
      if (root.isReference) this.trail.set(row, 'isStored', true);
      this.terms.separateRows(root);
    }
    return rowRoot(root.row!);
  }

  mustBeStored(row: StoredRow): boolean {
    const root = rowRoot(row);
    if (root.isStored === false) return false;
    this.trail.set(root, 'isStored', true);
    return true;
  }

  mustNotBeStored(row: StoredRow): boolean {
    const root = rowRoot(row);
    if (root.isStored === true) return false;
    this.trail.set(root, 'isStored', false);
    return true;
  }

  merge(left: StoredRow, right: StoredRow): boolean {
    const [a, b] = [rowRoot(left), rowRoot(right)];
    if (a === b) return true;
    if (a.uuid !== undefined && b.uuid !== undefined && a.uuid !== b.uuid) return false;
    if (a.others.some((each) => rowRoot(each) === b)) return false;
    this.trail.set(b, 'into', a);
    if (a.uuid === undefined) this.trail.set(a, 'uuid', b.uuid);
    this.trail.set(a, 'others', [...a.others, ...b.others]);
    if (b.isStored !== undefined && !(b.isStored ? this.mustBeStored(a) : this.mustNotBeStored(a))) return false;
    for (const [name, term] of b.columns) {
      const own = a.columns.get(name);
      if (own === undefined) this.trail.put(a.columns, name, term);
      else if (!this.terms.agree(own, term)) return false;
    }
    return this.#linksAgree();
  }

  separate(left: StoredRow, right: StoredRow): boolean {
    const [a, b] = [rowRoot(left), rowRoot(right)];
    if (a === b) return false;
    if (a.uuid !== undefined && b.uuid !== undefined) return a.uuid !== b.uuid;
    if (a.others.some((each) => rowRoot(each) === b)) return true;
    this.trail.set(a, 'others', [...a.others, b]);
    this.trail.set(b, 'others', [...b.others, a]);
    return true;
  }

  // -------------------------------------------------------------- links and facts

  link(link: StoredLink): boolean {
    if (link.owner instanceof StoredRow && link.isLinked && !this.mustBeStored(link.owner)) return false;
    if (link.isLinked && !this.mustBeStored(link.element)) return false;
    const known = this.linkOf(link);
    if (known !== undefined) return known === link.isLinked;
    this.trail.push(this.links, link);
    return true;
  }

  linkOf({ relation, owner, element }: Omit<StoredLink, 'isLinked'>): boolean | undefined {
    const isOf = (each: StoredLink): boolean =>
      each.relation === relation &&
      rowRoot(each.owner) === rowRoot(owner) &&
      rowRoot(each.element) === rowRoot(element);
    return this.links.find(isOf)?.isLinked;
  }

  #linksAgree(): boolean {
    return this.links.every((link) => this.linkOf(link) === link.isLinked);
  }

  // -------------------------------------------------------------- elements of lists

  /** A new row of the pseudo-collection, whose value is of the type. */
  makeElement(collection: string, type: ValueType): StoredRow {
    const row = this.make(collection);
    this.trail.put(row.columns, ELEMENT_VALUE, this.value(type, false)!);
    return row;
  }

  isElementOf(list: Term, row: StoredRow): boolean {
    return this.elements.some((each) => rootOf(each.list) === rootOf(list) && rowRoot(each.row) === rowRoot(row));
  }

  addElement(list: Term, row: StoredRow): boolean {
    if (!this.terms.present(list)) return false;
    if (!this.isElementOf(list, row)) this.trail.push(this.elements, { list, row });
    return true;
  }

  elementsOf(list: Term): readonly StoredRow[] {
    const own = this.elements.filter((each) => rootOf(each.list) === rootOf(list));
    return [...new Set(own.map(({ row }) => rowRoot(row)))];
  }

  fact(name: string, value: boolean): boolean {
    const known = this.facts.get(name);
    if (known !== undefined) return known === value;
    this.trail.put(this.facts, name, value);
    return true;
  }

  // -------------------------------------------------------------- columns

  /** The term of a field or belongs_to, or of the partner of a has_one. */
  column(row: RowVariable, name: string): Term | undefined {
    const holder = rowRoot(row);
    if (name === 'id') return holder.id;
    const known = holder.columns.get(name);
    if (known !== undefined) return known;
    const { fields, relations } = this.catalog.collections.get(row.collection)!;
    const field = fields.get(name);
    const dot = name.indexOf('.');
    if (field === undefined && dot > 0) return this.#part(row, fields.get(name.slice(0, dot)), name);
    const relation = relations.get(name);
    if (field !== undefined) return this.#field(holder, field);
    if (relation?.kind === 'belongs_to') return this.#reference(holder, relation);
    return relation?.kind === 'has_one' ? this.#partner(holder, relation) : undefined;
  }

  value(type: ValueType, isNullable: boolean): Term | undefined {
    const domain = domainOf(type);
    if (domain === undefined) return undefined;
    const term = new Term(domain, typeof type === 'object' ? type.id : undefined);
    if (!isNullable) term.isPresent = true;
    term.isWhole = isWhole(type);
    return term;
  }

  #field(row: RowVariable, field: CatalogField): Term | undefined {
    const term = this.value(field.type, !field.required);
    if (term === undefined) return undefined;
    boundTerm(term, field);
    this.trail.put(row.columns, field.name, term);
    if (term.domain.kind === 'list') this.#hasLeastElements(row, field, term);
    if (field.unique) this.#isUnique(row, field.name, term);
    else this.#hasKey(row, field, term);
    return term;
  }

  /** A part of a json field, which is present only in a value. */
  #part(row: RowVariable, field: CatalogField | undefined, name: string): Term | undefined {
    const part = field?.paths?.get(name.slice(field.name.length + 1));
    const whole = field && this.column(row, field.name);
    const term = part && this.value(part.type, true);
    if (term === undefined || whole === undefined) return undefined;
    this.trail.put(rowRoot(row).columns, name, term);
    this.follows({
      isDue: () => rootOf(term).isPresent === true,
      make: () => atom(() => this.terms.present(whole)),
    });
    return term;
  }

  /** A list has as many elements as the schema asks for. */
  #hasLeastElements(row: RowVariable, field: CatalogField, list: Term): void {
    const least = Number(field.min ?? 0);
    if (least === 0) return;
    this.follows({
      isDue: () => rootOf(list).isPresent === true,
      make: () =>
        later(() => {
          const collection = elementsOf(row.collection, field.name);
          const made = Array.from({ length: least }, () => this.makeElement(collection, elementOf(field.type)!));
          const pairs = made.flatMap((one, i) => made.slice(i + 1).map((other) => [one, other] as const));
          return all([
            ...made.map((each) => atom(() => this.addElement(list, each))),
            ...pairs.map(([one, other]) => atom(() => this.separate(one, other))),
          ]);
        }),
    });
  }

  #reference(row: RowVariable, relation: CatalogBelongsTo): Term {
    const term = this.value(this.idType(relation.collection), true)!;
    term.isReference = relation.mayBeLost !== true;
    this.trail.put(row.columns, relation.name, term);
    if (relation.required) term.isPresent = true;
    // The column has the value, which is the only trace of the record.
    const { references } = relation;
    if (references !== undefined && row instanceof StoredRow)
      this.follows({
        isDue: () => rootOf(term).isPresent === true,
        make: () =>
          atom(() => {
            const value = this.column(this.rowOf(term), references.field);
            return value === undefined || this.terms.present(value);
          }),
      });
    if (isExclusiveIn(this.catalog, row.collection, relation)) this.#isUnique(row, relation.name, term);
    else this.#hasKey(row, relation, term);
    return term;
  }

  /** The partner of a stored record has it as its `via`, and is the only one; a written record names its own. */
  #partner(row: RowVariable, relation: HasOne): Term {
    const term = this.value(this.idType(relation.collection), true)!;
    term.isReference = true;
    this.trail.put(row.columns, relation.name, term);
    if (row instanceof WrittenVariables) return term;
    const viaOf = (other: StoredRow): Term => this.column(other, relation.via)!;
    const isPresent = atom(() => this.terms.present(term));
    this.follows({
      isDue: () => rootOf(term).isPresent === true,
      make: () => atom(() => this.terms.same(viaOf(this.rowOf(term)), row.id)),
    });
    const applies = (other: StoredRow): boolean => this.refersTo(viaOf(other), row);
    const each = (other: StoredRow): Formula => all([isPresent, atom(() => this.merge(this.rowOf(term), other))]);
    this.trail.push(this.axioms, { kind: 'every', collection: relation.collection, applies, each });
    return term;
  }

  follows(consequence: Omit<Consequence, 'isDrawn'>): void {
    this.trail.push(this.consequences, { ...consequence, isDrawn: false });
  }

  /** It is known that the reference leads to the row. */
  refersTo(reference: Term, row: RowVariable): boolean {
    const [a, b] = [rootOf(reference), rootOf(row.id)];
    if (a.isPresent !== true) return false;
    return a === b || (a.row !== undefined && b.row !== undefined && rowRoot(a.row) === rowRoot(b.row));
  }

  #isUnique(row: RowVariable, name: string, term: Term): void {
    this.#collect(this.#unique, `${row.collection} ${name}`, { row, term });
  }

  #hasKey(row: RowVariable, { name, uniqueWithin, uniqueKey }: CatalogField | CatalogBelongsTo, term: Term): void {
    const within = uniqueWithin === undefined ? uniqueKey?.within : [uniqueWithin];
    if (within !== undefined) this.#collect(this.#keyed, `${row.collection} ${name}`, { row, term, within });
  }

  #collect<T>(terms: Map<string, T[]>, key: string, term: T): void {
    if (!terms.has(key)) terms.set(key, []);
    this.trail.push(terms.get(key)!, term);
  }

  /** Unique values that nothing speaks of together differ. */
  separateUnique(): boolean {
    for (const terms of this.#unique.values())
      for (const [i, one] of terms.entries())
        for (const other of terms.slice(i + 1)) {
          const arePresent = [one, other].every(({ term }) => rootOf(term).isPresent === true);
          const isOne = this.rowOf(one.row.id) === this.rowOf(other.row.id);
          if (arePresent && !isOne && !this.terms.differ(one.term, other.term)) return false;
        }
    return true;
  }

  /** Values that are unique among some records differ if they may. The world is held to its keys when it is built. */
  separateKeyed(): void {
    for (const terms of this.#keyed.values())
      for (const [i, one] of terms.entries())
        for (const other of terms.slice(i + 1)) {
          if (this.rowOf(one.row.id) === this.rowOf(other.row.id) || !this.#isWithinOne(one, other)) continue;
          const mark = this.trail.mark;
          const arePresent = [one, other].every(({ term }) => rootOf(term).isPresent === true);
          if (arePresent && !this.terms.differ(one.term, other.term)) this.trail.undoTo(mark);
        }
  }

  #isWithinOne({ row, within }: KeyedTerm, other: KeyedTerm): boolean {
    return within.every((name) => {
      const [a, b] = [row, other.row].map((each) => rowRoot(each).columns.get(name));
      return a !== undefined && b !== undefined && knownValue(a) === knownValue(b);
    });
  }

  /** Two records that have one unique value are one record. */
  uniqueConflict(): Formula | undefined {
    for (const terms of this.#unique.values()) {
      const known = new Map<unknown, UniqueTerm>();
      for (const one of terms.length > 1 ? terms : []) {
        const key = knownValue(one.term);
        if (key === undefined) continue;
        const other = known.get(key);
        if (other === undefined) known.set(key, one);
        else {
          const [a, b] = [this.rowOf(other.row.id), this.rowOf(one.row.id)];
          if (a !== b) return atom(() => this.merge(a, b));
        }
      }
    }
    return undefined;
  }

  // -------------------------------------------------------------- atoms

  presence = (term: Term): Formula =>
    atom(
      () => this.terms.present(term),
      () => this.terms.absent(term),
    );

  absence = (term: Term): Formula =>
    atom(
      () => this.terms.absent(term),
      () => this.terms.present(term),
    );

  isLinked(relation: CatalogManyToMany, owner: RowVariable, element: StoredRow): Formula {
    return this.#linking(relation, owner, element, true);
  }

  isNotLinked(relation: CatalogManyToMany, owner: RowVariable, element: StoredRow): Formula {
    return this.#linking(relation, owner, element, false);
  }

  #linking(relation: CatalogManyToMany, ...[owner, element, isLinked]: [RowVariable, StoredRow, boolean]): Formula {
    const link = { relation: relation.linkTable, owner, element };
    return atom(
      () => this.link({ ...link, isLinked }),
      () => this.link({ ...link, isLinked: !isLinked }),
    );
  }
}

/** The pseudo-collection of the elements of a list field. */
export const elementsOf = (collection: string, field: string): string => `${collection}.${field}[]`;

/** Two terms have an equal key only if they have the same value. Undefined: the term is not present. */
function knownValue(term: Term): unknown {
  const root = rootOf(term);
  if (root.isPresent !== true) return undefined;
  return root.row === undefined ? (root.value ?? root) : rowRoot(root.row);
}

/** A belongs_to that is unique in the whole collection by itself, or as the `via` of a has_one. */
export function isExclusiveIn(
  { collections }: Catalog,
  collection: string,
  relation: CatalogBelongsTo & { readonly unique?: boolean },
): boolean {
  if (relation.unique === true) return true;
  const others = [...collections.get(relation.collection)!.relations.values()];
  return others.some((each) => each.kind === 'has_one' && each.collection === collection && each.via === relation.name);
}

/** The bounds that the schema gives to a field. */
export function boundsOf({
  type,
  min,
  max,
  precision,
  scale = 0,
}: CatalogField): Pick<Term, 'low' | 'high' | 'limits' | 'isWhole'> {
  const given = { low: undefined, high: undefined, limits: {}, isWhole: isWhole(type) };
  if (elementOf(type) !== undefined) return given;
  if (isText(type)) {
    const limits = { ...(min !== undefined && { min: Number(min) }), ...(max !== undefined && { max: Number(max) }) };
    return { ...given, limits };
  }
  const bound = (limit: number | string | undefined) =>
    limit === undefined ? undefined : { value: isNumeric(type) ? Number(limit) : String(limit), strict: false };
  // The digits of a decimal end before those of its type.
  const most = precision === undefined ? undefined : greatestDecimal(10n ** BigInt(precision) - 1n, scale);
  return { ...given, low: bound(min ?? (most && `-${most}`)), high: bound(max ?? most) };
}

const greatestDecimal = (digits: bigint, scale: number): string => plainNumeral(`${digits}e-${scale}`);

function boundTerm(term: Term, field: CatalogField): void {
  Object.assign(term, boundsOf(field));
  if (field.enum !== undefined) term.allowed = field.enum;
  if (field.mayExceedType) term.isOpenEnded = true;
  if (field.scale !== undefined) term.step = 10n ** BigInt(DECIMAL_PLACES - field.scale);
}
