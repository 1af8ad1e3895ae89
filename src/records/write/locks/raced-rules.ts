/**
 * Rules that read other records of their own collection: "at most three bookings of a room", "each person once in a team".
 * Two writes at once would each see the database without the other one, and both be allowed. So the writes of one place run
 * in turn. A rule for creating that only needs some record to exist takes no turn: no create can falsify it.
 */
import { memoizedBy } from '../../../memoized.ts';
import { livingName } from '../../../policy/deleted-names.ts';
import type { Checked, CheckedOperand, ToManyPath } from '../../../policy/types.ts';
import { allOperandsOf, operandsOf, ownMemberOf, partsOf } from '../../../policy/visit.ts';
import type { BelongsTo, Collection, Relation, Schema } from '../../../schema/model/model.ts';
import { mutualReads, type ReferringRelation, writeRulesOf } from './mutual-rules.ts';

export interface RulePlaces {
  /** Records with the same one of these are in one place. */
  readonly on: ReadonlySet<BelongsTo>;
  /** The same, where the rule reads the records that refer to the caller. */
  readonly ofCaller: ReadonlySet<BelongsTo>;
  /** The record is in one place with the records that refer to it by one of these. */
  readonly referrers: readonly ReferringRelation[];
  /** The whole collection is one place. */
  readonly isWhole: boolean;
  /** A new record is in no place. */
  readonly isEmpty: boolean;
  /** The members by which an update can change what the rule of another record reads. */
  readonly reads: ReadonlySet<string>;
}

export const rulePlacesOf = (schema: Schema, { name }: Collection): RulePlaces =>
  placesBySchema(schema)(schema.collections.get(name)!);

const placesBySchema = memoizedBy((schema: Schema) =>
  memoizedBy((collection: Collection): RulePlaces => new FoundPlaces(schema, collection)),
);

class FoundPlaces implements RulePlaces {
  readonly on = new Set<BelongsTo>();
  readonly ofCaller = new Set<BelongsTo>();
  readonly referrers: ReferringRelation[] = [];
  readonly reads = new Set<string>();
  isWhole = false;
  readonly #collection: Collection;
  /** The members of one related record of the collection, such as the parent. */
  readonly #ofOne = new Set<string>();

  constructor(schema: Schema, collection: Collection) {
    this.#collection = collection;
    for (const { checked, isOfCreate } of writeRulesOf(collection)) this.#add(checked, isOfCreate);
    // A rule of a child reads its parent, while one of the parent counts its children.
    if (!this.isEmpty) for (const member of this.#ofOne) this.reads.add(member);
    for (const { referrer, referred, ofReferrer, ofReferred } of mutualReads(schema)) {
      if (referrer.collection === collection) {
        this.on.add(referrer.via);
        for (const member of ofReferrer) this.reads.add(member);
      }
      if (referred === collection) {
        this.referrers.push(referrer);
        for (const member of ofReferred) this.reads.add(member);
      }
    }
  }

  get isEmpty(): boolean {
    return this.on.size + this.ofCaller.size === 0 && !this.isWhole;
  }

  /**
   * @param isOfCreate some element that meets a condition needs no turn
   * @param wanted the value of this part by which the rule holds
   */
  #add(checked: Checked, isOfCreate: boolean, wanted = true): void {
    switch (checked.kind) {
      case 'not':
        this.#add(checked.item, isOfCreate, !wanted);
        break;
      case 'quantified': {
        const { quantifier, path, condition } = checked;
        const isSome = (quantifier === 'any') === wanted;
        if (!(isOfCreate && isSome)) this.#addElements(path, condition);
        this.#add(condition, isOfCreate, quantifier === 'none' ? !wanted : wanted);
        break;
      }
      default:
        for (const operand of operandsOf(checked)) {
          this.#addCount(operand);
          this.#addOne(operand);
        }
        for (const part of partsOf(checked)) this.#add(part, isOfCreate, wanted);
    }
  }

  #addCount(operand: CheckedOperand): void {
    if (operand.kind !== 'count') return;
    this.#addElements(operand.path, operand.condition);
  }

  #addOne(operand: CheckedOperand): void {
    // A rule for `restore` is about a deleted record.
    if (operand.kind !== 'column' || livingName(operand.collection) !== this.#collection.name) return;
    const own = operand.steps.length > 0 ? ownMemberOf({ ...operand, steps: [] }) : undefined;
    if (own !== undefined) this.#ofOne.add(own);
  }

  #addElements(path: ToManyPath, condition: Checked): void {
    const { name } = this.#collection;
    if (path.relation.collection !== name) return;
    for (const operand of allOperandsOf(condition)) {
      if (operand.kind !== 'column' || operand.collection !== name || operand.scope.kind !== 'variable') continue;
      const member = ownMemberOf(operand);
      if (member !== undefined) this.reads.add(member);
    }
    this.#addPlace(path);
  }

  #addPlace({ relation, scope, steps }: ToManyPath): void {
    const { relations } = this.#collection;
    if (relation.kind === 'ancestors') this.reads.add(relation.via.name);
    const via = relation.kind === 'has_many' ? relations.get(relation.via) : undefined;
    const [first, second] = steps;
    const isHeld = scope.kind === 'record' || scope.kind === 'next';
    if (!isBelongsTo(via)) this.isWhole = true;
    else if (
      scope.kind === 'request' &&
      scope.operand.source === 'auth' &&
      scope.operand.name === 'id' &&
      first === undefined
    )
      this.ofCaller.add(via);
    else if (isHeld && first?.relation.name === via.name && second === undefined) this.on.add(via);
    else this.isWhole = true;
    if (isBelongsTo(via)) this.reads.add(via.name);
  }
}

const isBelongsTo = (relation: Relation | undefined): relation is BelongsTo => relation?.kind === 'belongs_to';
