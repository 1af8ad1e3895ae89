/** Decides an expectation by the predicates of its rules, without a database and without Node, and says why. */

import { accessOf } from '../../explain/asked-access.ts';
import { type Clause, type ClauseSituation, clauseOf } from '../../policy/analyse/explanation.ts';
import type { Policy, PolicyRequest, Related, Row } from '../../policy/types.ts';
import type { Scalar } from '../../policy/values.ts';
import type { AccessContext } from '../../records/access-context.ts';
import { recordKeyIn } from '../../records/record-key.ts';
import { readInput } from '../../records/write/input.ts';
import { plannedCreate, storedRow } from '../../records/write/row-in-process.ts';
import { DELETED_AT, rulesOfAction } from '../../schema/model/kept/soft-delete.ts';
import type { Collection, MemberAction, Relation, Schema } from '../../schema/model/model.ts';
import type { Expectation } from './expectation.ts';
import type { TestWorld } from './test-world.ts';

/** The value of each part of a rule, for the records that it was asked about. */
export interface RuleJudgement {
  readonly rule: Policy;
  readonly isAllowed: boolean;
  readonly clauses: readonly Clause[];
}
export interface Judgement {
  /** Undefined: the data are not valid, so no rule was asked. */
  readonly isAllowed: boolean | undefined;
  readonly rules: readonly RuleJudgement[];
  /** The rules of the field that is read, or of the members that the write sets. */
  readonly members: readonly (readonly RuleJudgement[])[];
  /** The checks that a write fails which the rules allow, in the order of the schema. */
  readonly failed: readonly CheckJudgement[];
}
export interface CheckJudgement {
  readonly name: string;
  /** The rule that holds for the records that fail the check. */
  readonly violation: RuleJudgement;
}
export type OnValue = NonNullable<ClauseSituation['onValue']>;

export interface JudgePlace {
  readonly schema: Schema;
  readonly world: TestWorld;
  readonly now: string;
  /** Sees the value of every part of every rule. */
  readonly onValue?: OnValue | undefined;
  /** Sees which rules of an action held, or which checks of a write failed. */
  readonly onRules?: ((rules: readonly RuleJudgement[]) => void) | undefined;
  /** Rules in place of others; undefined: the rule is left out. Traces then have no clauses. */
  readonly substitutes?: ReadonlyMap<Policy, Policy | undefined>;
}

interface AskedRecords {
  readonly record: Row;
  readonly written?: Row;
  readonly isCreated?: boolean;
  /** Default: the rows of the world. */
  readonly related?: Related;
}

/** An expectation with its request and its records, which are the same under any rules. */
export interface PreparedExpectation {
  readonly expectation: Expectation;
  readonly request: PolicyRequest;
  /** Undefined: the data are not valid. */
  readonly records: AskedRecords | undefined;
  /** The answers of the rules that have no substitute. */
  readonly held: Map<Policy, boolean>;
}

/** The request and the records that rules are asked about. */
type AskedPredicate = Pick<PreparedExpectation, 'request' | 'held'> & { readonly records: AskedRecords };

export class PredicateJudge {
  readonly #place: JudgePlace;

  constructor(place: JudgePlace) {
    this.#place = place;
  }

  requestOf({ as, query, facts, session, data }: Expectation): PolicyRequest {
    const { world, now } = this.#place;
    const kind = as === 'guest' ? as : 'user';
    const caller = world.caller(as, session.second_factor === true);
    const { guest } = session;
    const auth =
      kind === 'guest'
        ? { ...caller, ...(guest !== undefined && { guest }) }
        : { ...caller, second_factor: false, ...session };
    return { auth, kind, facts, query, now, ...(data && { data }) };
  }

  collection(name: string): Collection {
    return this.#place.schema.collections.get(name)!;
  }

  judge(expectation: Expectation): Judgement {
    return this.judgePrepared(this.prepared(expectation));
  }

  prepared(expectation: Expectation): PreparedExpectation {
    const request = this.requestOf(expectation);
    return { expectation, request, records: this.#records(expectation, request), held: new Map() };
  }

  judgePrepared({ expectation, request, records, held }: PreparedExpectation): Judgement {
    const { collection, action, field, data = {} } = expectation;
    if (records === undefined) return { isAllowed: undefined, rules: [], members: [], failed: [] };
    const asked: AskedPredicate = { request, records, held };
    const rules = this.#rules(rulesOfAction(collection, action), asked);
    const own: MemberAction | undefined =
      action === 'read' || action === 'create' || action === 'update' ? action : undefined;
    const named = field === undefined ? (action === 'read' ? [] : Object.keys(data)) : [field];
    const members = named.flatMap((name) => {
      const policies = own === undefined ? undefined : collection.memberAccess.get(name)?.[own];
      return policies === undefined ? [] : [this.#rules(policies, asked)];
    });
    const isAllowed = [rules, ...members].every((each) => each.some((rule) => rule.isAllowed));
    // A record that the rules deny is not held to checks.
    const failed = isAllowed ? this.#failed(expectation, asked) : [];
    return { isAllowed, rules, members, failed };
  }

  #failed({ collection, action }: Expectation, asked: AskedPredicate): readonly CheckJudgement[] {
    if (action !== 'create' && action !== 'update' && action !== 'restore') return [];
    // A restored record is held to the checks of a new one.
    const write = action === 'restore' ? 'create' : action;
    const restored = { ...asked, records: { ...asked.records, related: this.#place.world } };
    const judged = collection.checks.flatMap(({ name, violated }) =>
      this.#judged(violated[write], restored).map((violation) => ({ name, violation })),
    );
    this.#seen(judged.map(({ violation }) => violation));
    return judged.filter(({ violation }) => violation.isAllowed);
  }

  /** The rows of the collection that the list shows, by their names. */
  listed(expectation: Expectation, names: readonly string[]): readonly string[] {
    return names.filter((record) => this.judge({ ...expectation, record }).isAllowed);
  }

  #rules(policies: readonly Policy[], asked: AskedPredicate): readonly RuleJudgement[] {
    const judged = this.#judged(policies, asked);
    this.#seen(judged);
    return judged;
  }

  #seen(judged: readonly RuleJudgement[]): void {
    if (this.#place.substitutes === undefined) this.#place.onRules?.(judged);
  }

  #judged(policies: readonly Policy[], asked: AskedPredicate): readonly RuleJudgement[] {
    const { substitutes } = this.#place;
    const { request, records, held } = asked;
    if (substitutes === undefined) return policies.map((rule) => this.#rule(rule, request, records));
    return policies.flatMap((rule) => {
      const other = substitutes.has(rule) ? substitutes.get(rule) : rule;
      if (other === undefined) return [];
      const isAllowed = (other === rule ? held.get(rule) : undefined) ?? this.#holds(other, request, records);
      if (other === rule) held.set(rule, isAllowed);
      return [{ rule: other, isAllowed, clauses: [] }];
    });
  }

  #rule(rule: Policy, request: PolicyRequest, records: AskedRecords): RuleJudgement {
    const { record, written, isCreated = false, related = this.#place.world } = records;
    const asked = (situation: Pick<ClauseSituation, 'record' | 'next' | 'isWritten'>): Clause =>
      clauseOf({ policy: rule, request, related, onValue: this.#place.onValue, ...situation });
    const isAllowed = this.#holds(rule, request, records);
    if (written === undefined) return { rule, isAllowed, clauses: [asked({ record, isWritten: isCreated })] };
    if (rule.namesNext) return { rule, isAllowed, clauses: [asked({ record, next: written })] };
    return { rule, isAllowed, clauses: [asked({ record }), asked({ record: written, isWritten: true })] };
  }

  #holds(rule: Policy, request: PolicyRequest, records: AskedRecords): boolean {
    const { record, written, related = this.#place.world } = records;
    const residual = rule.specialise(request);
    if (residual.verdict !== 'depends') return residual.verdict === 'allow';
    if (written === undefined) return residual.test(record, related);
    if (rule.namesNext) return residual.test(record, related, written);
    return residual.test(record, related) && residual.written.test(written, related);
  }

  // -------------------------------------------------------------- the records

  #records(expectation: Expectation, request: PolicyRequest): AskedRecords | undefined {
    const { schema, world } = this.#place;
    const { collection, record, action, data = {} } = expectation;
    if (action === 'restore') {
      const { deletedAt = this.#place.now } = expectation;
      const stored = world.row(collection.name, record!);
      const related = world.without(collection, stored.id as Scalar);
      return { record: { ...stored, [DELETED_AT]: deletedAt }, related };
    }
    const access = accessOf({ store: { schema }, collection, request, action });
    if (action === 'create') {
      const { written, errors } = plannedCreate({ access, store: { schema } }, data);
      return errors.length > 0 ? undefined : { record: written, isCreated: true };
    }
    const stored = world.row(collection.name, record!);
    if (action !== 'update') return { record: stored };
    const written = this.#written(access, stored, data);
    return written && { record: stored, written };
  }

  /** Undefined: the data are not valid. */
  #written(access: AccessContext, stored: Row, data: Row): Row | undefined {
    const { collection, now } = access;
    const input = readInput(this.#place.schema, access, { mode: 'update', data });
    if (input.errors.length > 0) return undefined;
    const held: Record<string, unknown> = { ...this.#place.world.heldBy(collection, String(stored.id)) };
    const idsOf = ({ collection: of }: Pick<Relation, 'collection'>, ids: readonly string[]): readonly Scalar[] =>
      ids.map((each) => recordKeyIn(this.#place.schema, of).value(each));
    for (const { relation, id } of input.hasOnes) held[relation.name] = id === null ? null : idsOf(relation, [id])[0];
    for (const { relation, set, add, remove } of input.links) {
      const before = set === undefined ? (held[relation.name] as readonly Scalar[]) : idsOf(relation, set);
      const left = before.filter((id) => !remove.includes(String(id)));
      held[relation.name] = [...new Set([...left, ...idsOf(relation, add)])];
    }
    const writing = { values: input.values, members: [], partners: [] };
    const updated_at = now > String(stored.updated_at) ? now : stored.updated_at;
    return { ...stored, ...storedRow(collection, writing, false), ...held, updated_at };
  }
}
