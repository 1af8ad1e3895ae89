/** The change of every rule between two schemas, each with one world that shows it. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { TriedCaller } from '../../policy/analyse/solve/asked-request.ts';
import { Budget } from '../../policy/analyse/solve/search.ts';
import { compareRules, findWorld, type Rules, type RulesPlace } from '../../policy/analyse/solve/solve.ts';
import type { World } from '../../policy/analyse/solve/world.ts';
import { compile } from '../../policy/compile.ts';
import { ACTIONS, type Action, type Policy } from '../../policy/types.ts';
import type { Collection, Schema } from '../../schema/model/model.ts';
import { type Ask, decidedBySql, ReplayDisagreement } from '../replay.ts';
import { MergedCatalog } from './merged-catalog.ts';

type ChangeVerdict = 'same' | 'narrower' | 'wider' | 'both' | 'unknown' | 'added' | 'removed';
/** The gains and losses of a caller. Null: unknown. */
export interface CallerChange {
  readonly gains: boolean | null;
  readonly loses: boolean | null;
}
export interface RuleChange {
  readonly collection: string;
  /** An action, or `read salary`, `write salary` for the rules of a field. */
  readonly action: string;
  readonly verdict: ChangeVerdict;
  readonly wider?: World;
  readonly narrower?: World;
  readonly callers: Readonly<Record<string, CallerChange>>;
}
export interface SchemaDifference {
  /** Changes of roles and registration, in words. */
  readonly settings: readonly string[];
  readonly changes: readonly RuleChange[];
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
  return { settings: settingsChanges(old, changed), changes };
}

interface RulePair {
  readonly collection: string;
  readonly name: string;
  readonly action: Action;
  /** Undefined: the collection, or the member, does not exist. */
  readonly old: readonly Policy[] | undefined;
  readonly changed: readonly Policy[] | undefined;
}

function rulePairsOf(old: Schema, changed: Schema, merged: MergedCatalog): readonly RulePair[] {
  const before = new Map([...old.collections.values()].map((each) => [merged.nameOf(each.name), each]));
  const names = [...new Set([...changed.collections.keys(), ...before.keys()])];
  return names.flatMap((name) => {
    const [a, b] = [before.get(name), changed.collections.get(name)];
    const actions = ACTIONS.map((action) => ({
      collection: name,
      name: action,
      action,
      old: a?.access[action],
      changed: b?.access[action],
    }));
    return [...actions, ...memberPairs(name, [a, b], merged)];
  });
}

function memberPairs(
  collection: string,
  [old, changed]: readonly [Collection | undefined, Collection | undefined],
  merged: MergedCatalog,
): readonly RulePair[] {
  if (old === undefined || changed === undefined) return [];
  const before = new Map([...old.memberAccess].map(([name, access]) => [merged.memberOf(old.name, name), access]));
  const members = [...new Set([...before.keys(), ...changed.memberAccess.keys()])];
  return members.flatMap((member) =>
    (['read', 'update'] as const).flatMap((action) => {
      const rules = [before.get(member)?.[action], changed.memberAccess.get(member)?.[action]] as const;
      if (rules[0] === undefined && rules[1] === undefined) return [];
      const name = `${action === 'read' ? 'read' : 'write'} ${member}`;
      const open = [compile('true', { catalog: merged.catalog, collection, action })];
      // Without rules of its own, the record's rules decide about the member.
      return [{ collection, name, action, old: rules[0] ?? open, changed: rules[1] ?? open }];
    }),
  );
}

class PairDiff {
  readonly #merged: MergedCatalog;
  readonly #pair: RulePair;
  readonly #options: DiffOptions;
  readonly #place: RulesPlace;

  constructor(merged: MergedCatalog, pair: RulePair, options: DiffOptions) {
    this.#merged = merged;
    this.#pair = pair;
    this.#options = options;
    this.#place = { catalog: merged.catalog, collection: pair.collection, action: pair.action };
  }

  async change(): Promise<RuleChange> {
    const { collection, name, old, changed } = this.#pair;
    const place = { collection, action: name, callers: {} };
    if (old === undefined) return { ...place, verdict: 'added' };
    if (changed === undefined) return { ...place, verdict: 'removed' };
    const rules = [this.#moved(old, true), this.#moved(changed, false)] as const;
    const [before, after] = rules;
    if (before === undefined || after === undefined) return { ...place, verdict: 'unknown' };
    const compared = () => compareRules(this.#place, [before, after], { budget: this.#budget() });
    const first = compared();
    // The first pairs of a process also wait for the solver to be compiled.
    const found = first.verdict === 'unknown' ? compared() : first;
    for (const [world, expected] of [
      [found.wider, [false, true]],
      [found.narrower, [true, false]],
    ] as const)
      if (world !== undefined) await this.#replay(world, [before, after], expected);
    const callers = found.verdict === 'same' ? {} : this.#callers([before, after]);
    return { ...place, ...found, callers };
  }

  #budget(): Budget {
    return new Budget(this.#options.budget);
  }

  #moved(rules: readonly Policy[], isOld: boolean): Rules | undefined {
    const moved = rules.map((rule) => this.#merged.policy(rule, this.#place, isOld));
    return moved.some((rule) => rule === undefined) ? undefined : (moved as Rules);
  }

  async #replay(world: World, rules: readonly [Rules, Rules], expected: readonly boolean[]): Promise<void> {
    const decisions = await decidedBySql(world, rules, { catalog: this.#merged.catalog, ask: this.#options.ask });
    if (decisions.some((decision, i) => decision !== expected[i])) throw new ReplayDisagreement(world);
  }

  #callers([old, changed]: readonly [Rules, Rules]): Readonly<Record<string, CallerChange>> {
    const kinds: readonly (readonly [string, TriedCaller])[] = [
      ['guest', { kind: 'guest' }],
      ['signed_in', { kind: 'user', roles: [] }],
      ...[...this.#merged.catalog.roles.keys()].map((role) => [role, { kind: 'user', roles: [role] }] as const),
    ];
    const can = (kind: TriedCaller, allowedBy: Rules, deniedBy: Rules): boolean | null => {
      const options = { budget: this.#budget(), callers: [kind] };
      const found = findWorld(this.#place, { allowedBy, deniedBy }, options);
      return found.kind === 'unknown' ? null : found.kind === 'world';
    };
    return Object.fromEntries(
      kinds.map(([name, kind]) => [name, { gains: can(kind, changed, old), loses: can(kind, old, changed) }]),
    );
  }
}

// ---------------------------------------------------------------- roles and registration

function settingsChanges(old: Schema, changed: Schema): readonly string[] {
  const lines: string[] = [];
  const names = new Set([...old.roles.keys(), ...changed.roles.keys()]);
  for (const name of names) {
    const [a, b] = [old.roles.get(name), changed.roles.get(name)];
    if (a === undefined) lines.push(`role \`${name}\` is added`);
    else if (b === undefined) lines.push(`role \`${name}\` is removed`);
    else lines.push(...listChanges(`role \`${name}\` includes`, a.includes, b.includes));
    if (a !== undefined && b !== undefined)
      lines.push(...listChanges(`role \`${name}\` assigns`, a.assigns, b.assigns));
  }
  if (old.guests !== changed.guests) lines.push(`guests are ${changed.guests ? 'admitted' : 'no longer admitted'}`);
  lines.push(
    ...listChanges('a second factor is required for', [...old.secondFactorRoles], [...changed.secondFactorRoles]),
  );
  lines.push(...listChanges('registration gives', old.register.roles, changed.register.roles));
  return lines;
}

function listChanges(subject: string, old: readonly string[], changed: readonly string[]): readonly string[] {
  const more = changed.filter((name) => !old.includes(name)).map((name) => `${subject} \`${name}\``);
  const less = old.filter((name) => !changed.includes(name)).map((name) => `${subject} \`${name}\` no longer`);
  return [...more, ...less];
}
