/**
 * Warns of rules of two collections that read each other's records otherwise than over one reference: writes of both at
 * the same instant may each see the other's record as it was, and both be allowed. Writes over one reference run in turn.
 */
import type { Checked, CheckedOperand, RowScope, ToManyPath, ToOneStep } from '../../policy/types.ts';
import { operandsOf, ownMemberOf, partsOf } from '../../policy/visit.ts';
import { type DocumentPath, pathText } from '../file/issue.ts';
import type { Collection } from '../model/model.ts';
import { pathOfCheck } from '../rules/checks.ts';
import { placedPolicies } from './privilege-escalation.ts';
import type { AdviceContext } from './read-access.ts';

/** A part of another collection that a rule reads by way of the written record. */
interface OtherRead {
  readonly collection: string;
  /** Undefined: which records refer to that of the rule. */
  readonly member: string | undefined;
  /** The only reference between both records, by the collection and the name of its belongs_to. */
  readonly reference: string | undefined;
}

interface PlacedWriteRule {
  readonly path: DocumentPath;
  readonly reads: readonly OtherRead[];
  /** A rule for creating or deleting judges no write of a member that another record has. */
  readonly isOfUpdate: boolean;
}

export function warnOfRacingRules(collections: ReadonlyMap<string, Collection>, context: AdviceContext): void {
  const names = [...collections.keys()];
  const rules = new Map([...collections].map(([name, each]) => [name, placedRulesIn(each, context)]));
  for (const [i, one] of names.entries())
    for (const other of names.slice(i + 1)) {
      const race = raceOf({ name: one, rules: rules.get(one)! }, { name: other, rules: rules.get(other)! });
      if (race === undefined) continue;
      const [own, opposite] = race;
      const message =
        `the rule reads records of \`${other}\`, and the rule \`${pathText(opposite.path.slice(1))}\` those of \`${one}\`: ` +
        'writes of both at the same instant may each see the other record as it was, and both be allowed; ' +
        'let them read each other over one reference, or keep the fact in one collection';
      context.source.report({ code: 'rules_race', severity: 'warning', message, path: own.path });
    }
}

interface RuledCollection {
  readonly name: string;
  readonly rules: readonly PlacedWriteRule[];
}

function raceOf(one: RuledCollection, other: RuledCollection): readonly [PlacedWriteRule, PlacedWriteRule] | undefined {
  for (const own of one.rules)
    for (const opposite of other.rules) {
      const there = readsOfChanges(own, other.name, opposite);
      const back = readsOfChanges(opposite, one.name, own);
      if (there.some((a) => back.some((b) => a.reference === undefined || a.reference !== b.reference)))
        return [own, opposite];
    }
  return undefined;
}

/** The parts of the collection that the rule reads, and that a write of the other rule can change. */
const readsOfChanges = (
  rule: PlacedWriteRule,
  collection: string,
  { isOfUpdate }: PlacedWriteRule,
): readonly OtherRead[] =>
  rule.reads.filter((read) => read.collection === collection && (isOfUpdate || read.member === undefined));

function placedRulesIn(collection: Collection, context: AdviceContext): readonly PlacedWriteRule[] {
  const { name, access, checks } = collection;
  const reading = new Set([...access.list, ...access.read]);
  const ofReaders = new Set([...collection.memberAccess.values()].flatMap(({ read = [] }) => read));
  const ofUpdate = new Set([
    ...access.update,
    ...[...collection.memberAccess.values()].flatMap(({ update = [] }) => update),
  ]);
  const ofAccess = [...placedPolicies(collection, context)]
    .filter(({ policy }) => !reading.has(policy) && !ofReaders.has(policy))
    .map(({ policy, path }) => ({
      path,
      reads: [...otherReads(policy.checked, name)],
      isOfUpdate: ofUpdate.has(policy),
    }));
  const ofChecks = checks.map((check) => ({
    path: pathOfCheck(name, check),
    reads: check.violated.update.flatMap(({ checked }) => [...otherReads(checked, name)]),
    isOfUpdate: true,
  }));
  return [...ofAccess, ...ofChecks];
}

const otherReads = (checked: Checked, own: string): Iterable<OtherRead> =>
  [...heldReads(checked, new Set())].filter(({ collection }) => collection !== own);

/** @param held the variables whose elements belong to the written record */
function* heldReads(checked: Checked, held: ReadonlySet<string>): Iterable<OtherRead> {
  if (checked.kind === 'quantified') {
    yield* readsOfMany(checked, held);
    return;
  }
  for (const operand of operandsOf(checked)) yield* readsOfOperand(operand, held);
  for (const part of partsOf(checked)) yield* heldReads(part, held);
}

function* readsOfOperand(operand: CheckedOperand, held: ReadonlySet<string>): Iterable<OtherRead> {
  if (operand.kind === 'count') yield* readsOfMany(operand, held);
  if (operand.kind !== 'column' || !isOfHeld(operand.scope, held)) return;
  yield* ofSteps(operand, ownMemberOf({ ...operand, steps: [] }));
}

function* readsOfMany({ path, variable, condition }: CountedElements, held: ReadonlySet<string>): Iterable<OtherRead> {
  const isOfRecord = isOfHeld(path.scope, held);
  const reference = referenceOfMany(path);
  const { relation } = path;
  if (isOfRecord) {
    yield* ofSteps(path, undefined);
    // Links change with the record that has them.
    if (relation.kind === 'has_many') yield { collection: relation.collection, member: undefined, reference };
  }
  const inside = isOfRecord && variable !== undefined ? new Set([...held, variable]) : held;
  for (const read of heldReads(condition, inside)) {
    const isOfElement = read.collection === relation.collection && read.reference === OF_ELEMENT;
    yield isOfElement ? { ...read, reference } : read;
  }
}

interface CountedElements {
  readonly path: ToManyPath;
  readonly variable?: string | undefined;
  readonly condition: Checked;
}

/** In the place of a reference, until the path to the elements is known. */
const OF_ELEMENT = '';

const isOfHeld = (scope: RowScope, held: ReadonlySet<string>): boolean =>
  scope.kind === 'record' || scope.kind === 'next' || (scope.kind === 'variable' && held.has(scope.name));

interface ReadWalk {
  readonly scope: RowScope;
  readonly collection: string;
  readonly steps: readonly ToOneStep[];
}

/** The members that the steps read of each record on the way, and the last one. */
function* ofSteps({ scope, collection, steps }: ReadWalk, last: string | undefined): Iterable<OtherRead> {
  const isOfElement = scope.kind === 'variable';
  if (isOfElement) {
    const first = steps[0]?.relation.name ?? last;
    if (first !== undefined) yield { collection, member: first, reference: OF_ELEMENT };
  }
  for (const [i, { relation }] of steps.entries()) {
    const reference = i === 0 && !isOfElement ? referenceOf(steps[0]!) : undefined;
    const next = steps[i + 1]?.relation;
    // A partner is found by the reference that it has.
    if (relation.kind === 'has_one') yield { collection: relation.collection, member: relation.via, reference };
    const member = next === undefined ? last : next.name;
    if (member !== undefined) yield { collection: relation.collection, member, reference };
  }
}

const referenceOf = ({ from, relation }: ToOneStep): string =>
  relation.kind === 'belongs_to' ? `${from}.${relation.name}` : `${relation.collection}.${relation.via}`;

const referenceOfMany = ({ scope, steps, relation }: ToManyPath): string | undefined =>
  scope.kind !== 'variable' && steps.length === 0 && relation.kind === 'has_many'
    ? `${relation.collection}.${relation.via}`
    : undefined;
