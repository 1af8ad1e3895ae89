/** Completes rows by what only the schema asks for: required values, and records that they must refer to. */

import { elementOf } from '../../scalar-types.ts';
import { listText } from '../../scalars/list-values.ts';
import {
  type Catalog,
  type CatalogBelongsTo,
  type CatalogCollection,
  type CatalogField,
  idOf,
  type Row,
} from '../../types.ts';
import { own, type Scalar } from '../../values.ts';
import { DECIMAL_PLACES, domainOf, idNumber, idValue, valuesWithin } from './domains.ts';
import { boundsOf, isExclusiveIn } from './rows.ts';

export type MutableRow = Record<string, unknown>;

/** Numbers of ids that no other row of a world has. */
const FIRST_FILLER = 1000;
const MOST_FILLERS = 60;

export class Filler {
  readonly #catalog: Catalog;
  readonly #rows: ReadonlyMap<string, MutableRow[]>;
  /** Unique values, and records that one other may refer to. */
  readonly #taken = new Set<string>();
  readonly #fillers = new Set<MutableRow>();
  #made = 0;
  /** The chains of required references did not end. */
  isExhausted = false;

  constructor(catalog: Catalog, rows: ReadonlyMap<string, MutableRow[]>) {
    this.#catalog = catalog;
    this.#rows = rows;
  }

  /** The row is one that the search has not looked at. */
  adopt(row: MutableRow): void {
    this.#fillers.add(row);
  }

  take(collection: string, member: string, value: unknown): void {
    this.#taken.add(`${collection} ${member} ${value}`);
  }

  isTaken(collection: string, member: string, value: unknown): boolean {
    return this.#taken.has(`${collection} ${member} ${value}`);
  }

  /** Undefined: every value is taken. */
  value(collection: string, field: CatalogField): Scalar | undefined {
    if (!field.unique && !isUniqueWithin(field)) return leastValue(field);
    const values = leastValues(field, this.#taken.size + 2);
    const found = values.find((value) => !this.isTaken(collection, field.name, value));
    if (found !== undefined) this.take(collection, field.name, found);
    return found;
  }

  /**
   * The id of a record that a row may refer to. `around`: the rows that are being made, which end a chain of
   * required references.
   */
  reference(collection: string, relation: CatalogBelongsTo, around: readonly Row[] = []): Scalar {
    const isExclusive = isExclusiveIn(this.#catalog, collection, relation) || isUniqueWithin(relation);
    const isFree = (row: Row): boolean => !isExclusive || !this.isTaken(collection, relation.name, row.id);
    const all = this.#rows.get(relation.collection)!;
    // A row that refers to a record of the search would be an element of its relations.
    const candidates = isExclusive
      ? around.filter((row) => all.includes(row))
      : around.length > 0
        ? this.#own(all)
        : all;
    const found = candidates.find(isFree) ?? this.#make(relation.collection, around);
    if (isExclusive) this.take(collection, relation.name, found.id);
    return found.id as Scalar;
  }

  #own(rows: readonly MutableRow[]): readonly MutableRow[] {
    return rows.filter((row) => this.#fillers.has(row));
  }

  #make(name: string, around: readonly Row[]): Row {
    const type = idOf(this.#catalog, name);
    const row: MutableRow = { id: idValue(type, idNumber(type, FIRST_FILLER + this.#made)) };
    this.#rows.get(name)!.push(row);
    this.#fillers.add(row);
    if (++this.#made > MOST_FILLERS) this.isExhausted = true;
    if (this.isExhausted) return row;
    this.complete(row, this.#catalog.collections.get(name)!, [...around, row]);
    return row;
  }

  /** Gives the row what it lacks. */
  complete(row: MutableRow, { name, fields, relations }: CatalogCollection, given: readonly Row[] = []): void {
    const around = given.length === 0 && this.#fillers.has(row) ? [row] : given;
    for (const field of fields.values())
      if (own(row, field.name) == null) row[field.name] = field.required ? (this.value(name, field) ?? null) : null;
    for (const relation of relations.values())
      if (relation.kind === 'belongs_to' && own(row, relation.name) == null)
        row[relation.name] = relation.required ? this.reference(name, relation, around) : null;
  }
}

/** Some records differ in the value. Fillers do in all. */
const isUniqueWithin = ({ uniqueWithin, uniqueKey }: Pick<CatalogField, 'uniqueWithin' | 'uniqueKey'>): boolean =>
  uniqueWithin !== undefined || uniqueKey !== undefined;

const knownFillers = new WeakMap<CatalogField, Scalar | undefined>();

function leastValue(field: CatalogField): Scalar | undefined {
  if (!knownFillers.has(field)) knownFillers.set(field, leastValues(field, 1)[0]);
  return knownFillers.get(field);
}

/** The least values of a field; an enum has no others. */
function leastValues(field: CatalogField, count: number): readonly Scalar[] {
  const { type, enum: names, scale } = field;
  if (names !== undefined) return names;
  const domain = domainOf(type);
  // Rules ask such a value only whether it is there.
  if (domain === undefined) return ['{}'];
  const element = elementOf(type);
  if (element !== undefined) {
    const [least] = leastValues({ name: field.name, column: '', type: element, required: true } as CatalogField, 1);
    return [listText(Array<Scalar>(Number(field.min ?? 0)).fill(least!))];
  }
  const { low, high, limits, isWhole } = boundsOf(field);
  if (domain.kind !== 'text') {
    const step = scale === undefined ? 1n : 10n ** BigInt(DECIMAL_PLACES - scale);
    return valuesWithin(domain, { low, high, isWhole, step }, count);
  }
  const length = Math.max(limits.min ?? 0, 0);
  return Array.from({ length: count }, (_, i) => (i === 0 ? 'a'.repeat(length) : String(i).padStart(length, 'a')));
}
