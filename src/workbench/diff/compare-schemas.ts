/** The change of every rule between two schemas, each with one world that shows it. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Budget } from '../../policy/analyse/solve/search.ts';
import {
  type Found,
  findWorld,
  type RulesPlace,
  relationOf,
  type SolverQuestion,
} from '../../policy/analyse/solve/solve.ts';
import type { TriedCaller } from '../../policy/analyse/solve/standing.ts';
import { decides, type World } from '../../policy/analyse/solve/world.ts';
import type { Catalog, Policy } from '../../policy/types.ts';
import { askedPlace } from '../../schema/model/kept/soft-delete.ts';
import type { Role, Schema } from '../../schema/model/model.ts';
import { newlyPassing, type WriteRules } from '../compare-checks.ts';
import { type Ask, decidedBySql, ReplayDisagreement } from '../decided-by-sql.ts';
import { livingWorld } from '../living-world.ts';
import { smallestWorld } from '../smallest-world.ts';
import type { WorldAnswer } from '../world-test.ts';
import { MergedCatalog } from './merged-catalog.ts';
import { type NamedViolation, type PairSide, type RulePair, rulePairsOf } from './rule-pairs.ts';
import { settingsChanges } from './settings-changes.ts';

type ChangeVerdict = 'same' | 'narrower' | 'wider' | 'both' | 'unknown' | 'added' | 'removed';
/** The gains and losses of a caller. Null: unknown. */
export interface CallerChange {
  readonly gains: boolean | null;
  readonly loses: boolean | null;
}
export interface RuleExample {
  readonly world: World;
  readonly catalog: Catalog;
  /** The question that the world answers. */
  readonly asking: SolverQuestion;
  /** The checks that the record fails: those of the old schema where it newly passes, of the new one where it newly fails. */
  readonly failedChecks: readonly string[];
  /** The answer under the new schema. */
  readonly answer: WorldAnswer;
}
export interface RuleChange {
  readonly collection: string;
  /** An action; `read salary`, `write salary` for the rules of a field; `create checks`, `update checks`. */
  readonly action: string;
  readonly verdict: ChangeVerdict;
  readonly wider?: RuleExample;
  readonly narrower?: RuleExample;
  readonly callers: Readonly<Record<string, CallerChange>>;
}
export interface SchemaDifference {
  /** Changes of roles, registration, the time zone, checks and messages, in words. */
  readonly settings: readonly string[];
  readonly changes: readonly RuleChange[];
  /** A guest gains or loses something, though the new schema admits none. */
  readonly isOfGuests: boolean;
}
export interface DiffOptions {
  /** Milliseconds for a pair of rules. */
  readonly budget: number;
  readonly ask: Ask;
}

export async function compareSchemas(old: Schema, changed: Schema, options: DiffOptions): Promise<SchemaDifference> {
  const merged = new MergedCatalog(old, changed);
  const changes: RuleChange[] = [];
  for (const pair of rulePairsOf(old, changed, merged)) {
    changes.push(await new PairDiff(merged, pair, options).change());
    // A service answers other requests between two pairs.
    await nextTurn();
  }
  const isOfGuests = !changed.guests && changes.some(({ callers }) => isAffected(callers.guest));
  return { settings: settingsChanges(old, changed, merged), changes, isOfGuests };
}

/** A side over the merged catalog. */
interface MovedSide extends WriteRules {
  readonly named: readonly NamedViolation[];
}
type BothSides = readonly [old: MovedSide, changed: MovedSide];

class PairDiff {
  readonly #merged: MergedCatalog;
  readonly #pair: RulePair;
  readonly #options: DiffOptions;
  readonly #place: RulesPlace;

  constructor(merged: MergedCatalog, pair: RulePair, options: DiffOptions) {
    this.#merged = merged;
    this.#pair = pair;
    this.#options = options;
    this.#place = askedPlace(pair, merged.catalog);
  }

  async change(): Promise<RuleChange> {
    const { collection, name, old, changed } = this.#pair;
    const place = { collection, action: name, callers: {} };
    if (old === undefined) return { ...place, verdict: 'added' };
    if (changed === undefined) return { ...place, verdict: 'removed' };
    const [before, after] = [this.#moved(old, true), this.#moved(changed, false)];
    if (before === undefined || after === undefined) return { ...place, verdict: 'unknown' };
    const sides: BothSides = [before, after];
    const first = this.#compared(sides);
    // The first pairs of a process also wait for the solver to be compiled.
    const { wider, narrower } = isDecided(first) ? first : this.#compared(sides);
    const verdict = relationOf(wider.kind, narrower.kind);
    if (verdict === 'same') return { ...place, verdict };
    const callers = this.#callers(sides);
    const least = (kind: keyof CallerFound, otherwise: Found): World | undefined => {
      const worlds = [...callers.map(([, found]) => found[kind]), otherwise];
      return worlds.flatMap((found) => (found.kind === 'world' ? [found.world] : []))[0];
    };
    const [more, less] = [least('gains', wider), least('loses', narrower)];
    return {
      ...place,
      verdict,
      ...(more !== undefined && { wider: await this.#example(more, sides, true) }),
      ...(less !== undefined && { narrower: await this.#example(less, sides, false) }),
      callers: Object.fromEntries(
        callers.map(([name, { gains, loses }]) => [name, { gains: isFound(gains), loses: isFound(loses) }]),
      ),
    };
  }

  #compared([old, changed]: BothSides): BothFound {
    const budget = new Budget(this.#options.budget);
    return {
      wider: this.#newly(old, changed, { budget }),
      narrower: this.#newly(changed, old, { budget }),
    };
  }

  /** A request that the second side allows, and the first does not. */
  #newly(from: MovedSide, to: MovedSide, options: Parameters<typeof findWorld>[2]): Found {
    const asking = this.#askingOf(from, to);
    const found = findWorld(this.#place, asking, options);
    if (found.kind !== 'unknown' || this.#pair.isOfChecks || to.violations.length === 0) return found;
    // The checks may be what cannot be decided: the rules alone say less.
    const byRules = findWorld(this.#place, { ...asking, deniedBy: from.allowedBy }, options);
    const isFailing = byRules.kind === 'world' && decides(to.violations, byRules.world, this.#place.catalog);
    return isFailing ? found : byRules;
  }

  #askingOf(from: MovedSide, to: MovedSide): SolverQuestion {
    if (this.#pair.isOfChecks) return newlyPassing(from, to);
    return { allowedBy: to.allowedBy, deniedBy: [...from.allowedBy, ...to.violations] };
  }

  #moved({ rules, violations }: PairSide, isOld: boolean): MovedSide | undefined {
    const moved = (policy: Policy): readonly Policy[] => {
      const own = this.#merged.policy(policy, this.#place, isOld);
      return own === undefined ? [] : [own];
    };
    const allowedBy = rules.flatMap(moved);
    const named = violations.flatMap(({ check, violation }) =>
      moved(violation).map((each) => ({ check, violation: each })),
    );
    if (allowedBy.length < rules.length || named.length < violations.length) return undefined;
    return { allowedBy, named, violations: named.map(({ violation }) => violation) };
  }

  /** INVARIANT: an example is reported only if SQL decides it in the same way. */
  async #example(found: World, [old, changed]: BothSides, isWider: boolean): Promise<RuleExample> {
    const { catalog } = this.#place;
    const [from, to] = isWider ? [old, changed] : [changed, old];
    const asking = this.#askingOf(from, to);
    const world = smallestWorld(found, asking, { catalog });
    const { allowedBy, deniedBy, alsoAllowedBy = [] } = asking;
    const lists = [allowedBy, ...alsoAllowedBy, deniedBy];
    const decisions = await decidedBySql(world, lists, { catalog, ask: this.#options.ask });
    if (!decisions.every((isAllowed, i) => isAllowed === i < lists.length - 1))
      throw new ReplayDisagreement(world, catalog);
    const failed = this.#pair.isOfChecks
      ? from.named.filter(({ violation }) => decides([violation], world, catalog))
      : [];
    const isRefusedByCheck = failed.length > 0 && decides(changed.allowedBy, world, catalog);
    return {
      world: livingWorld(world),
      catalog,
      asking,
      failedChecks: failed.map(({ check }) => check),
      answer: isWider ? 'yes' : isRefusedByCheck ? 422 : 'no',
    };
  }

  /** Each kind of caller, those with the least roles first. */
  #callers([old, changed]: BothSides): readonly (readonly [string, CallerFound])[] {
    const { roles } = this.#merged.catalog;
    const included = (role: string): number => (roles.get(role) as Partial<Role>).includes?.length ?? 0;
    const kinds: readonly (readonly [string, TriedCaller])[] = [
      ['guest', { kind: 'guest' }],
      ['signed_in', { kind: 'user', roles: [] }],
      ...[...roles.keys()]
        .toSorted((a, b) => included(a) - included(b))
        .map((role) => [role, { kind: 'user', roles: [role] }] as const),
    ];
    const newly = (kind: TriedCaller, from: MovedSide, to: MovedSide): Found =>
      this.#newly(from, to, { budget: new Budget(this.#options.budget), callers: [kind] });
    return kinds.map(([name, kind]) => [name, { gains: newly(kind, old, changed), loses: newly(kind, changed, old) }]);
  }
}

interface CallerFound {
  readonly gains: Found;
  readonly loses: Found;
}
/** Perhaps affected, too. */
const isAffected = (change: CallerChange | undefined): boolean =>
  change !== undefined && (change.gains !== false || change.loses !== false);

const isFound = ({ kind }: Found): boolean | null => (kind === 'unknown' ? null : kind === 'world');

interface BothFound {
  readonly wider: Found;
  readonly narrower: Found;
}
const isDecided = ({ wider, narrower }: BothFound): boolean => relationOf(wider.kind, narrower.kind) !== 'unknown';
