/** The rules of the file → compiled policies. Faults are placed at their characters in the file. */
import type { PolicyIssue } from '../../grammar/errors.ts';
import { PolicyError } from '../../grammar/errors.ts';
import { subsumes } from '../policy/analyse/subsumes.ts';
import { examine } from '../policy/check/check.ts';
import { compile, compileChecked } from '../policy/compile.ts';
import { ACTIONS, type Action, type Catalog, type Policy } from '../policy/types.ts';
import { builtInAccess } from './built-in.ts';
import type { Bare } from './collections.ts';
import { missingIndexes } from './indexes.ts';
import { type Path, pathText } from './issue.ts';
import type { Collection } from './model.ts';
import { knownRole } from './settings.ts';
import type { CollectionShape, RuleShape, RulesShape } from './shape.ts';
import type { SchemaSource } from './source.ts';

export interface AccessContext {
  readonly source: SchemaSource;
  readonly catalog: Catalog;
  readonly broken: ReadonlySet<string>;
}
interface RulePlace extends AccessContext {
  readonly collection: string;
  readonly action: Action;
  readonly path: Path;
}

export function readAccess(
  collection: Bare,
  shape: CollectionShape | undefined,
  context: AccessContext,
): Collection['access'] {
  const given = shape?.access as Partial<Record<Action, RulesShape>> | undefined;
  const path = ['collections', collection.name, 'access'];
  if (collection.kind === 'users' && given?.create !== undefined) {
    const message = 'users come into being by registration only: a rule for `create` would never be asked';
    context.source.report({ code: 'no_such_action', message, path: [...path, 'create'], at: 'key' });
  }
  const access = ACTIONS.map((action): readonly [Action, readonly Policy[]] => {
    const place = { ...context, collection: collection.name, action };
    if (given === undefined) return [action, builtInPolicies(collection, { ...place, path })];
    const rules = rulesOf(given[action]).map((rule, i) => {
      const at = pathOf(given[action], [...path, action], i);
      return { path: at, policy: readRule(rule, { ...place, path: at }) };
    });
    const policies = rules.flatMap(({ policy, path: at }) => (policy === undefined ? [] : [{ policy, path: at }]));
    warnOfIdle(policies, context);
    if (action === 'list') warnOfIndexes(policies, { ...context, collection });
    return [action, policies.map(({ policy }) => policy)];
  });
  return Object.fromEntries(access) as Record<Action, readonly Policy[]>;
}

interface Placed {
  readonly policy: Policy;
  readonly path: Path;
}

/** More than these are not compared with each other: the pairs grow with the square. */
const COMPARED_RULES = 24;

function warnOfIdle(rules: readonly Placed[], { source }: AccessContext): void {
  if (rules.length > COMPARED_RULES) return;
  rules.forEach(({ policy, path }, i) => {
    const by = rules.findIndex((other, j) => {
      if (j === i || !subsumes(other.policy.checked, policy.checked)) return false;
      // Of two that say the same, the later one is idle.
      return j < i || !subsumes(policy.checked, other.policy.checked);
    });
    if (by === -1) return;
    const message = `this rule allows nothing that \`${pathText(rules[by]!.path.slice(-2))}\` does not allow already; leave one of them out`;
    source.report({ code: 'idle_rule', severity: 'warning', message, path });
  });
}

function warnOfIndexes(
  rules: readonly Placed[],
  { source, catalog, collection }: AccessContext & { readonly collection: Bare },
): void {
  for (const { policy, path } of rules) {
    const missing = missingIndexes(policy, { catalog, collection: collection.name, fields: collection.fields });
    if (missing.length === 0) continue;
    const fields = missing.map((name) => `\`${name}\``).join(' and ');
    const message = `a list of \`${collection.name}\` reads the whole table for want of an index on ${fields}; add \`index: true\``;
    const at = source.has([...path, 'when']) ? [...path, 'when'] : path;
    source.report({ code: 'unindexed', severity: 'warning', message, path: at });
  }
}

function builtInPolicies({ kind }: Bare, place: RulePlace): readonly Policy[] {
  const rules = builtInAccess(kind)[place.action] ?? [];
  return rules.flatMap(
    ({ roles = [], when }) => policyOf({ roles, when: when === undefined ? undefined : String(when) }, place) ?? [],
  );
}

export function rulesOf(rules: RulesShape | undefined): readonly RuleShape[] {
  if (rules === undefined) return [];
  if (Array.isArray(rules)) return rules;
  return [typeof rules === 'object' ? rules : { when: rules }];
}

/** Of a rule: a list counts its rules, and a bare policy has no place below its action. */
const pathOf = (rules: RulesShape | undefined, path: Path, i: number): Path =>
  Array.isArray(rules) ? [...path, i] : path;

/** Where the text of a rule's policy stands. */
export const whenPath = (rules: RulesShape | undefined, path: Path): Path =>
  typeof rules === 'object' ? [...path, 'when'] : path;

const quoted = (name: string): string => JSON.stringify(name);

/** `roles` is any of them; without `roles` or `when`, that part is not there. */
function rolesText(roles: readonly string[]): string {
  return roles.map((role) => `@request.auth.roles contains ${quoted(role)}`).join(' or ');
}

function readRule(rule: RuleShape, place: RulePlace): Policy | undefined {
  const { source, path, catalog } = place;
  const { roles, when } = rule;
  if (roles === undefined && when === undefined) {
    source.report({ code: 'empty_rule', message: 'a rule needs `roles`, `when` or both', path, at: 'key' });
    return undefined;
  }
  const report = source.report.bind(source);
  const known = (roles ?? []).filter((role, i) =>
    knownRole(role, { path: [...path, 'roles', i], roles: catalog.roles, report }),
  );
  const at = source.has([...path, 'when']) ? [...path, 'when'] : path;
  const text = String(when ?? true);
  const valid = checkWhen(text, { ...place, path: at });
  if (!valid || known.length < (roles?.length ?? 0)) return undefined;
  return policyOf({ roles: known, when: when === undefined ? undefined : text }, place);
}

/** `true` where the text compiles. */
function checkWhen(text: string, place: RulePlace): boolean {
  const { source, path } = place;
  if (source.cutByComment(path)) {
    const message = 'YAML ends this text at ` #`, so the policy is not what it seems; put it into quotes';
    source.reportCut({ code: 'yaml_comment', message, path });
    return false;
  }
  const { checked, issues } = examine(text, place);
  for (const issue of issues) if (!speaksOfBroken(issue, text, place.broken)) reportPolicy(issue, place);
  return checked !== undefined && !issues.some(({ severity }) => severity === 'error');
}

/** What the fault is about was declared wrongly, which is reported where it is declared. */
function speaksOfBroken({ span }: PolicyIssue, text: string, broken: ReadonlySet<string>): boolean {
  if (broken.size === 0) return false;
  return text
    .slice(span.start, span.end)
    .split(/[^A-Za-z0-9_]+/)
    .some((word) => broken.has(word));
}

function reportPolicy({ code, severity, message, span, fix }: PolicyIssue, { source, path }: RulePlace): void {
  source.reportWithin({ code, severity, message, path }, span, fix);
}

interface Rule {
  readonly roles: readonly string[];
  readonly when: string | undefined;
}

/** One expression: `roles` are comparisons like any other. */
function policyOf({ roles, when }: Rule, place: RulePlace): Policy | undefined {
  if (when !== undefined && roles.length === 0) return compile(when, place);
  const text = when === undefined ? rolesText(roles) : `(${rolesText(roles)}) and (${when})`;
  try {
    return compile(text, place);
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error;
    return when === undefined ? overLimits(error, place) : joined({ roles, when }, place);
  }
}

function overLimits(error: PolicyError, { source, path }: RulePlace): undefined {
  for (const { code, message } of error.issues) source.report({ code, message, path: [...path, 'roles'] });
}

/** Limits hold for each `when`, so the two parts may be within them and their text not. */
function joined(
  { roles, when }: { readonly roles: readonly string[]; readonly when: string },
  place: RulePlace,
): Policy | undefined {
  const parts = [rolesText(roles), when].map((text) => ({ text, checked: examine(text, place).checked }));
  const items = parts.flatMap(({ checked }) => (checked === undefined ? [] : [checked]));
  if (items.length < parts.length) return undefined;
  const text = parts.map((part) => `(${part.text})`).join(' and ');
  const { catalog, action } = place;
  return compileChecked({
    checked: { kind: 'and', items, span: { start: 0, end: text.length } },
    text,
    catalog,
    action,
  });
}
