/**
 * Rules of two collections that read each other: an item needs an open order, and an order closes when no item is open.
 * Each of two writes at once would see the other's record as it was before, and both be allowed. So the record that is
 * referred to is one place with the records that refer to it.
 */
import { memoizedBy } from '../../../memoized.ts';
import type { Checked, RowScope, ToManyPath, ToOneStep } from '../../../policy/types.ts';
import { allOperandsOf, operandsOf, ownMemberOf, partsOf } from '../../../policy/visit.ts';
import type { BelongsTo, Collection, Schema } from '../../../schema/model/model.ts';

export interface ReferringRelation {
  readonly collection: Collection;
  readonly via: BelongsTo;
}
export interface MutualReads {
  readonly referrer: ReferringRelation;
  readonly referred: Collection;
  /** The members of the referrer that rules of the other collection read. */
  readonly ofReferrer: ReadonlySet<string>;
  /** The members of the other collection that rules of the referrer read. */
  readonly ofReferred: ReadonlySet<string>;
}

export const mutualReads: (schema: Schema) => readonly MutualReads[] = memoizedBy((schema) =>
  [...schema.collections.values()].flatMap((collection) =>
    [...collection.relations.values()].flatMap((via) =>
      via.kind === 'belongs_to' ? readsOf(schema, { collection, via }) : [],
    ),
  ),
);

function readsOf({ collections }: Schema, referrer: ReferringRelation): readonly MutualReads[] {
  const { collection, via } = referrer;
  const referred = collections.get(via.collection)!;
  if (referred === collection) return [];
  const ofReferred = readThrough(referrer);
  const ofReferrer = readsOfReferrers(referred, referrer);
  return ofReferred.size > 0 && ofReferrer.size > 0 ? [{ referrer, referred, ofReferrer, ofReferred }] : [];
}

interface WriteRule {
  readonly checked: Checked;
  /** A rule by which records are created; a check is none. */
  readonly isOfCreate: boolean;
}

export function writeRulesOf({ access, memberAccess, checks, softDelete }: Collection): readonly WriteRule[] {
  const members = [...memberAccess.values()];
  const ofCreate = [...access.create, ...members.flatMap(({ create = [] }) => create)];
  const ofOthers = [
    ...access.update,
    ...access.delete,
    ...(softDelete?.restore ?? []),
    ...members.flatMap(({ update = [] }) => update),
    ...checks.flatMap(({ violated }) => [...violated.create, ...violated.update]),
  ];
  return [
    ...ofCreate.map(({ checked }) => ({ checked, isOfCreate: true })),
    ...ofOthers.map(({ checked }) => ({ checked, isOfCreate: false })),
  ];
}

const readsOfRules = (collection: Collection): readonly RuleRead[] =>
  writeRulesOf(collection).flatMap(({ checked }) => [...readsIn(checked)]);

/** True if a rule for deleting reads records that refer to the one that goes. */
export const readsReferrers: (collection: Collection) => boolean = memoizedBy((collection) =>
  collection.access.delete.some(({ checked }) => [...readsIn(checked)].some(isOfReferrer)),
);

const isOfReferrer = ({ scope, steps, many }: RuleRead): boolean =>
  isOfWrittenRecord(scope) &&
  (steps.length === 0 ? many?.path.relation.kind === 'has_many' : steps[0]!.relation.kind === 'has_one');

/** The members of the record that the relation leads to, which rules of the referrer read. */
function readThrough({ collection, via }: ReferringRelation): ReadonlySet<string> {
  const members = new Set<string>();
  for (const { scope, steps, member } of readsOfRules(collection)) {
    const [first, second] = steps;
    if (!isOfWrittenRecord(scope) || first?.relation.name !== via.name) continue;
    const name = second?.relation.name ?? member;
    if (name !== undefined) members.add(name);
  }
  return members;
}

/** The members of the records that refer by the relation, which rules of the collection read; with the relation itself. */
function readsOfReferrers(
  collection: Collection,
  { collection: { name }, via }: ReferringRelation,
): ReadonlySet<string> {
  const members = new Set<string>();
  for (const { scope, steps, member, many } of readsOfRules(collection)) {
    if (!isOfWrittenRecord(scope)) continue;
    const [first, second] = steps;
    const relation = first?.relation ?? many?.path.relation;
    if (relation === undefined || !('via' in relation)) continue;
    if (relation.collection !== name || relation.via !== via.name) continue;
    members.add(via.name);
    const own = first === undefined ? membersOfElements(many!.condition, name) : [second?.relation.name ?? member];
    for (const each of own) if (each !== undefined) members.add(each);
  }
  return members;
}

const membersOfElements = (condition: Checked, collection: string): readonly (string | undefined)[] =>
  allOperandsOf(condition).flatMap((operand) =>
    operand.kind === 'column' && operand.scope.kind === 'variable' && operand.collection === collection
      ? [ownMemberOf(operand)]
      : [],
  );

const isOfWrittenRecord = ({ kind }: RowScope): boolean => kind === 'record' || kind === 'next';

/** A value, or records, that a rule reads at the end of some steps. */
interface RuleRead {
  readonly scope: RowScope;
  readonly steps: readonly ToOneStep[];
  /** The member after the steps; undefined: the id. */
  readonly member: string | undefined;
  readonly many?: { readonly path: ToManyPath; readonly condition: Checked };
}

function* readsIn(checked: Checked): Iterable<RuleRead> {
  if (checked.kind === 'quantified') yield readOfMany(checked.path, checked.condition);
  for (const operand of operandsOf(checked)) {
    if (operand.kind === 'count') yield readOfMany(operand.path, operand.condition);
    if (operand.kind !== 'column') continue;
    const { scope, steps } = operand;
    yield { scope, steps, member: ownMemberOf({ ...operand, steps: [] }) };
  }
  for (const part of partsOf(checked)) yield* readsIn(part);
}

const readOfMany = (path: ToManyPath, condition: Checked): RuleRead => ({
  scope: path.scope,
  steps: path.steps,
  member: path.relation.name,
  many: { path, condition },
});
