/** Decides the statements of a schema: proven, refuted by a world, or unknown. */

import { Budget } from '../../policy/analyse/solve/search.ts';
import { findWorld, type Rules, type RulesPlace, type SolverQuestion } from '../../policy/analyse/solve/solve.ts';
import type { TriedCaller } from '../../policy/analyse/solve/standing.ts';
import { beforeWrite, type World } from '../../policy/analyse/solve/world.ts';
import { compileChecked, compilePolicy } from '../../policy/compile.ts';
import type { Action, Checked, Policy, RuledAction } from '../../policy/types.ts';
import { readsData } from '../../policy/visit.ts';
import { askedPlace, rulesOfAction } from '../../schema/model/kept/soft-delete.ts';
import type { Collection, Schema, Statement, Who } from '../../schema/model/model.ts';
import { type Ask, decidedBySql, ReplayDisagreement } from '../decided-by-sql.ts';
import { livingWorld } from '../living-world.ts';
import { smallestWorld } from '../smallest-world.ts';
import { settledCheck } from './unchanged.ts';

export interface StatementResult {
  readonly statement: Statement;
  readonly verdict: 'proven' | 'refuted' | 'unknown';
  /** Given for a refuted statement: a caller, a request and a record of which it is not so. */
  readonly counterexample?: World;
  /** The action of the counterexample. */
  readonly action?: RuledAction;
  /** The question that the counterexample answers. */
  readonly asking?: SolverQuestion;
}
export interface ProveOptions {
  /** Milliseconds for a question to the solver. */
  readonly budget: number;
  /** Left out: the predicates alone decide a counterexample again. */
  readonly ask?: Ask | undefined;
}

/** Throws ReplayDisagreement. */
export async function proveStatements(schema: Schema, options: ProveOptions): Promise<readonly StatementResult[]> {
  const results: StatementResult[] = [];
  for (const statement of schema.statements) {
    const first = await new StatementProof(schema, statement, options).result();
    // The first questions of a process also wait for the solver to be compiled.
    results.push(first.verdict === 'unknown' ? await new StatementProof(schema, statement, options).result() : first);
  }
  return results;
}

class StatementProof {
  readonly #schema: Schema;
  readonly #statement: Statement;
  readonly #options: ProveOptions;
  readonly #collection: Collection;

  constructor(schema: Schema, statement: Statement, options: ProveOptions) {
    this.#schema = schema;
    this.#statement = statement;
    this.#options = options;
    this.#collection = schema.collections.get(statement.collection)!;
  }

  async result(): Promise<StatementResult> {
    const statement = this.#statement;
    let isUnknown = false;
    for (const { action, where } of statement.asked)
      for (const asking of this.#askings(action, where)) {
        const place = this.#placeOf(action);
        const found = asking && this.#find(place, asking);
        if (asking !== undefined && found?.kind === 'world') {
          const counterexample = smallestWorld(found.world, asking, { catalog: place.catalog, keepsRoles: true });
          await this.#replay(counterexample, asking, place);
          return { statement, verdict: 'refuted', counterexample: livingWorld(counterexample), action, asking };
        }
        isUnknown ||= found?.kind !== 'none';
      }
    return { statement, verdict: isUnknown ? 'unknown' : 'proven' };
  }

  #find(place: RulesPlace, asking: SolverQuestion) {
    return findWorld(place, asking, {
      budget: new Budget(this.#options.budget),
      callers: askedCallers(this.#statement.who),
    });
  }

  /** The questions whose worlds each refute the statement. Undefined: a question that cannot be asked. */
  #askings(action: RuledAction, where: Policy | undefined): readonly (SolverQuestion | undefined)[] {
    const { kind, member, implied } = this.#statement;
    const rules = rulesOfAction(this.#collection, action);
    const conditions = where === undefined ? [] : [{ policy: where, isTrue: true }];
    const ofMember = member === undefined ? undefined : this.#rulesOfMember(member, action);
    const alsoAllowedBy = ofMember === undefined ? [] : [ofMember];
    if (implied !== undefined)
      return implied.map((second) => {
        const policy = this.#afterwards(second, action);
        if (policy === undefined) return undefined;
        return { allowedBy: rules, deniedBy: [], alsoAllowedBy, conditions: [{ policy, isTrue: kind === 'never' }] };
      });
    if (kind === 'never') return [{ allowedBy: rules, deniedBy: [], alsoAllowedBy, conditions }];
    const everything = [compilePolicy('true', this.#placeOf(action))];
    return [rules, ...alsoAllowedBy].map((deniedBy) => ({ allowedBy: everything, deniedBy, conditions }));
  }

  #placeOf(action: RuledAction): RulesPlace {
    return askedPlace({ collection: this.#statement.collection, action }, this.#schema);
  }

  /** Undefined: the rules of the record decide about the member. */
  #rulesOfMember(member: string, action: RuledAction): Rules | undefined {
    const access = this.#collection.memberAccess.get(member);
    if (action === 'delete' || action === 'restore') return undefined;
    return access?.[action === 'list' ? 'read' : action];
  }

  /** The second action of `who can … can …`, as a condition on the record. Undefined: it depends on its own body. */
  #afterwards(second: Action, first: RuledAction): Policy | undefined {
    const { member } = this.#statement;
    const unions = [this.#collection.access[second], (member && this.#rulesOfMember(member, second)) || undefined];
    const trees = unions.flatMap((rules) => (rules === undefined ? [] : [unionTree(rules)]));
    if (second === 'update' && trees.some(readsData)) return undefined;
    const items = second === 'update' ? trees.map(settledCheck) : trees;
    const checked: Checked = { kind: 'and', items, span: UNPLACED };
    const action = first === 'create' ? 'create' : 'read';
    return compileChecked({ checked, text: `can ${second}`, catalog: this.#schema, action });
  }

  /** INVARIANT: a counterexample is reported only if SQL decides it in the same way. */
  async #replay(
    world: World,
    { allowedBy, deniedBy, alsoAllowedBy = [], conditions = [] }: SolverQuestion,
    { catalog }: RulesPlace,
  ): Promise<void> {
    const { ask } = this.#options;
    if (ask === undefined) return;
    const place = { catalog, ask };
    const decisions = await decidedBySql(world, [allowedBy, ...alsoAllowedBy, deniedBy], place);
    let isSame = decisions.every((isAllowed, i) => isAllowed === i < decisions.length - 1);
    for (const { policy, isTrue } of conditions) {
      const [isMet] = await decidedBySql(beforeWrite(policy, world), [[policy]], place);
      isSame &&= isMet === isTrue;
    }
    if (!isSame) throw new ReplayDisagreement(world, catalog);
  }
}

const UNPLACED = { start: 0, end: 0 };

const unionTree = (rules: Rules): Checked => ({
  kind: 'or',
  items: rules.map(({ checked }) => checked),
  span: UNPLACED,
});

function askedCallers(who: Who): readonly TriedCaller[] {
  switch (who.kind) {
    case 'guest':
      return [{ kind: 'guest' }];
    case 'anyone':
      return [{ kind: 'user' }, { kind: 'guest' }, { kind: 'key' }];
    case 'user':
      return [{ kind: 'user' }];
    case 'role':
      return who.without === undefined
        ? [{ kind: 'user', roles: [who.role] }]
        : [{ kind: 'user', held: who.role, lacked: who.without }];
  }
}
