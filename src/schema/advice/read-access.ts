/** The rules of the file → compiled policies. Every error is reported at its characters in the file. */
import { markOfWhole } from '../../../grammar/intended.ts';
import type { PolicyIssue } from '../../../grammar/policy-error.ts';
import { missedKeys } from '../../policy/analyse/missed-keys.ts';
import { subsumes } from '../../policy/analyse/subsumes.ts';
import { examine } from '../../policy/check/checker.ts';
import { hasAnyRole } from '../../policy/check/roles-condition.ts';
import { UNNEEDED_MARK } from '../../policy/check/warnings/warning-list.ts';
import { compileChecked } from '../../policy/compile.ts';
import { deletedName } from '../../policy/deleted-names.ts';
import type { Action, Catalog, Checked, Policy, RuledAction } from '../../policy/types.ts';
import { allOperandsOf, isOfInstant } from '../../policy/visit.ts';
import { cutByComment, type DocumentPath, type Finding, pathText } from '../file/issue.ts';
import { type CollectionShape, NAME, type RULE_KEYS, type RuleShape, type RulesShape } from '../file/shape.ts';
import type { SourceText } from '../file/source.ts';
import { valueAt } from '../file/validate.ts';
import { builtInAccess } from '../model/built-in.ts';
import type { Bare } from '../model/collections.ts';
import { filterKeysOf } from '../model/filter-keys.ts';
import { missingIndexes } from '../model/indexes.ts';
import { deletedCatalogOf } from '../model/kept/soft-delete.ts';
import { LIST_WORDS } from '../model/list-parameters.ts';
import type { Collection, MemberAccess } from '../model/model.ts';
import { adviceFor, type WordAdvice } from '../model/policy-words.ts';
import { knownRole } from '../model/settings/settings.ts';

export interface AccessReading {
  readonly source: SourceText;
  readonly catalog: Catalog;
  readonly broken: ReadonlySet<string>;
  /** The roles that strangers can get by themselves. */
  readonly publicRoles: ReadonlySet<string>;
}
interface RuleReading extends AccessReading {
  readonly collection: string;
  readonly action: Action;
  readonly path: DocumentPath;
  /** The rules are those of a field or belongs_to. */
  readonly isOfMember?: boolean;
  /** The rules are those for `restore`. */
  readonly isRestore?: boolean;
  /** Leaves out warnings of other codes. Default: none. */
  readonly warns?: (code: string) => boolean;
}

export function readAccess(
  collection: Bare,
  shape: CollectionShape | undefined,
  context: AccessReading,
): Collection['access'] {
  const given = shape?.access as RulesByKey | undefined;
  const path = ['collections', collection.name, 'access'];
  if (collection.kind === 'users' && given?.create !== undefined) {
    const message = 'users are created by registration only, so a rule for `create` is never evaluated; remove it';
    context.source.report({ code: 'no_such_action', message, path: [...path, 'create'], at: 'key' });
  }
  if (given?.view !== undefined) mustStandAlone(given, path, context);
  const read = (action: Action): readonly Policy[] => {
    const place = { ...context, collection: collection.name, action };
    if (given === undefined) return builtInPolicies(collection, { ...place, path });
    const key = ruleKey(action, given);
    const policies = readPolicies(given[key], { ...place, path: [...path, key] });
    if (action === 'list') {
      warnOfIndexes(policies, { ...context, collection });
      warnOfQueryKeys(policies, { ...context, collection });
      if (shape?.changes) warnOfTime(policies, context);
    }
    return policies.map(({ policy }) => policy);
  };
  const list = read('list');
  // The rules of a `view` are read, and their issues reported, once.
  const isView = given?.view !== undefined;
  return {
    list,
    read: isView ? list : read('read'),
    create: read('create'),
    update: read('update'),
    delete: read('delete'),
  };
}

/** The rules for `restore`, which see a deleted record with the time of its deletion. */
export function readRestore(
  { name, softDelete }: Bare,
  shape: CollectionShape | undefined,
  context: AccessReading,
): Pick<Collection, 'softDelete'> {
  if (softDelete === undefined) return {};
  const catalog = deletedCatalogOf(context.catalog, name);
  const path = ['collections', name, 'access', 'restore'];
  const given = (shape?.access as RulesByKey | undefined)?.restore;
  const place = { ...context, catalog, collection: deletedName(name), action: 'read', path, isRestore: true } as const;
  const rules = readPolicies(given, place);
  return { softDelete: { ...softDelete, restore: rules.map(({ policy }) => policy) } };
}

/** The rules of fields and belongs_to. Policies are checked as those of `read` and of `update`. */
export function readMemberAccess(
  collection: Bare,
  shape: CollectionShape | undefined,
  context: AccessReading,
): Collection['memberAccess'] {
  const given = [
    ...Object.entries(shape?.fields ?? {}).map(([name, member]) => ({ part: 'fields', name, member })),
    ...Object.entries(shape?.relations ?? {}).map(([name, member]) => ({ part: 'relations', name, member })),
  ];
  const read = given.flatMap(({ part, name, member }) => {
    const access = typeof member === 'object' && 'access' in member ? member.access : undefined;
    // A member that could not be declared is reported as that.
    const isDeclared = collection.fields.has(name) || collection.relations.has(name);
    if (access === undefined || !isDeclared) return [];
    const path = ['collections', collection.name, part, name, 'access'];
    const policiesOf = (key: 'read' | 'write') =>
      access[key] === undefined
        ? undefined
        : readPolicies(access[key], {
            ...context,
            collection: collection.name,
            action: key === 'read' ? 'read' : 'update',
            path: [...path, key],
            isOfMember: true,
          }).map(({ policy }) => policy);
    return [[name, memberRules(policiesOf('read'), policiesOf('write'), context)] as const];
  });
  return new Map(read);
}

function memberRules(
  read: readonly Policy[] | undefined,
  update: readonly Policy[] | undefined,
  { catalog }: AccessReading,
): MemberAccess {
  // On create, `@record` and `@next` are both the record as it would be stored.
  const create = update?.map(({ text, source, parts, checked, message }) => ({
    ...compileChecked({ text, source, parts, checked, catalog, action: 'create' }),
    ...(message !== undefined && { message }),
  }));
  return { ...(read && { read }), ...(create && { create }), ...(update && { update }) };
}

type RulesByKey = Partial<Record<(typeof RULE_KEYS)[number], RulesShape>>;

/** The path of an action's rules. */
const ruleKey = (action: RuledAction, given: RulesByKey): (typeof RULE_KEYS)[number] =>
  given.view !== undefined && (action === 'list' || action === 'read') ? 'view' : action;

function mustStandAlone(given: RulesByKey, path: DocumentPath, { source }: AccessReading): void {
  for (const key of ['list', 'read'] as const) {
    if (given[key] === undefined) continue;
    const message = `\`view\` is \`list\` and \`read\`; expected either \`view\` or \`${key}\`, not both`;
    source.report({ code: 'view_conflict', message, path: [...path, key], at: 'key' });
  }
}

export interface PlacedPolicy {
  readonly policy: Policy;
  readonly path: DocumentPath;
}

/** `path`: of the list of rules. */
function readPolicies(rules: RulesShape | undefined, place: RuleReading): readonly PlacedPolicy[] {
  const read = ruleShapes(rules).flatMap((rule, i) => {
    const path = rulePath(rules, place.path, i);
    const policy = readRule(rule, { ...place, path });
    return policy === undefined ? [] : [{ policy, path }];
  });
  // A wrong rule may be replaced here by one that always holds.
  if (!place.source.hasErrors) warnOfIdle(read, place);
  return read;
}

/** More rules than this are not compared: the number of pairs grows with the square. */
const COMPARED_RULES = 24;

function warnOfIdle(rules: readonly PlacedPolicy[], { source }: AccessReading): void {
  if (rules.length > COMPARED_RULES) return;
  rules.forEach(({ policy, path }, i) => {
    const by = rules.findIndex((other, j) => {
      if (j === i || !subsumes(other.policy.checked, policy.checked)) return false;
      // The later of two equivalent rules is idle.
      return j < i || !subsumes(policy.checked, other.policy.checked);
    });
    const idleBy = rules[by];
    if (idleBy === undefined) return;
    const other = pathText(idleBy.path.slice(-2));
    const message = `this rule allows nothing that \`${other}\` does not allow already; remove one of them`;
    source.report({ code: 'idle_rule', severity: 'warning', message, path });
  });
}

function warnOfIndexes(
  rules: readonly PlacedPolicy[],
  { source, catalog, collection }: AccessReading & { readonly collection: Bare },
): void {
  for (const { policy, path } of rules) {
    const missing = missingIndexes(policy, { catalog, collection: collection.name, fields: collection.fields });
    if (missing.length === 0) continue;
    const fields = missing.map((name) => `\`${name}\``).join(' and ');
    const isBuiltIn = missing.every((name) => collection.fields.get(name)?.readOnly === true);
    const advice = isBuiltIn ? `\`index: [${missing.join(', ')}]\` to the collection` : '`index: true`';
    const message = `without an index on ${fields}, a list of \`${collection.name}\` reads the whole table; add ${advice}`;
    source.report({ code: 'unindexed', severity: 'warning', message, path: source.conditionPath(path) });
  }
}

/** A list refuses query keys that it does not know, so a rule that needs one never allows a list. */
function warnOfQueryKeys(
  rules: readonly PlacedPolicy[],
  { source, collection }: AccessReading & { readonly collection: Bare },
): void {
  const keys = filterKeysOf(collection);
  for (const { policy, path } of rules) {
    const missed = missedKeys(policy.checked, (key) => keys.has(key) || LIST_WORDS.includes(key));
    if (missed.length === 0) continue;
    const named = missed.map((key) => `\`${key}\``).join(' and ');
    const what = missed.length === 1 ? `${named}, which is not a filter` : `${named}, which are not filters`;
    const { name } = collection;
    const message = `this rule needs the query key ${what} of \`${name}\`: a plain list refuses it; only POST /api/${name}/query can meet it`;
    source.report({ code: 'list_never_met', severity: 'warning', message, path: source.conditionPath(path) });
  }
}

/** A feed tells of changes, and none happens when the time comes. */
function warnOfTime(rules: readonly PlacedPolicy[], { source }: AccessReading): void {
  for (const { policy, path } of rules) {
    if (!allOperandsOf(policy.checked).some(isOfInstant)) continue;
    const message =
      'this rule depends on the time, and the feed tells only of changes: it shows a record until the next one; ' +
      'let the client list again, or let a program set a field when the time comes';
    source.report({ code: 'feed_time', severity: 'warning', message, path: source.conditionPath(path) });
  }
}

function builtInPolicies({ kind }: Bare, place: RuleReading): readonly Policy[] {
  const rules = builtInAccess(kind)[place.action] ?? [];
  return rules.flatMap((rule) => readRule(rule, place) ?? []);
}

function ruleShapes(rules: RulesShape | undefined): readonly RuleShape[] {
  if (rules === undefined) return [];
  if (Array.isArray(rules)) return rules;
  return [typeof rules === 'object' ? rules : { when: rules }];
}

/** The path of a rule: rules of a list are numbered, a single policy is at its action. */
const rulePath = (rules: RulesShape | undefined, path: DocumentPath, i: number): DocumentPath =>
  Array.isArray(rules) ? [...path, i] : path;

/** The context of advice about rules, beside the collections. */
export interface AdviceContext extends Pick<AccessReading, 'source' | 'publicRoles'> {
  /** The collections as the file has them. */
  readonly shapes: Readonly<Record<string, CollectionShape | undefined>>;
}
type Shapes = Pick<AdviceContext, 'shapes'>;

/** The path of the rule with the index `i`. */
interface RuleOfAction {
  readonly collection: string;
  readonly action: RuledAction;
  readonly index: number;
}

export function rulePlace({ collection, action, index: i }: RuleOfAction, { shapes }: Shapes): DocumentPath {
  const access = (shapes[collection]?.access ?? {}) as RulesByKey;
  const key = ruleKey(action, access);
  return rulePath(access[key], ['collections', collection, 'access', key], i);
}

/** The path of rule `i` of a field or belongs_to. */
interface RuleOfMember {
  readonly collection: string;
  readonly member: string;
  readonly key: 'read' | 'write';
  readonly index: number;
}

export function memberRulePlace({ collection, member, key, index: i }: RuleOfMember, { shapes }: Shapes): DocumentPath {
  const shape = shapes[collection];
  const part = shape?.fields !== undefined && Object.hasOwn(shape.fields, member) ? 'fields' : 'relations';
  const given = valueAt(shape, [part, member, 'access', key]) as RulesShape | undefined;
  return rulePath(given, ['collections', collection, part, member, 'access', key], i);
}

/** A rule without `roles` or without `when` has no condition of that kind. */
function readRule(rule: RuleShape, place: RuleReading): Policy | undefined {
  const { source, path, catalog } = place;
  const { roles, when, message: reason } = rule;
  if (roles === undefined && when === undefined) {
    return source.report({ code: 'empty_rule', message: 'a rule needs `roles`, `when` or both', path, at: 'key' });
  }
  const report = source.report.bind(source);
  const known = (roles ?? []).filter((role, i) =>
    knownRole(role, { path: [...path, 'roles', i], roles: catalog.roles, report }),
  );
  const at = source.conditionPath(path);
  const condition = when === undefined ? undefined : readWhen(String(when), { ...place, path: at, roles: known });
  if (known.length < (roles?.length ?? 0) || (when !== undefined && condition === undefined)) return undefined;
  if (reason !== undefined && isNeverTold(place)) source.report(messageNeverTold(path));
  const policy = policyOf([...new Set(known)], condition, place);
  return reason === undefined ? policy : { ...policy, message: reason };
}

/** A record that a rule for `read` denies is a 404, and a value is left out. The rules of a `view` are those of `list`. */
const isNeverTold = ({ action }: RuleReading): boolean => action === 'read';

const messageNeverTold = (path: DocumentPath): Finding => ({
  code: 'message_never_told',
  severity: 'warning',
  message:
    'a message comes with a 403, and a rule for `read` denies with a 404, or leaves the value out; remove the message',
  path: [...path, 'message'],
  at: 'key',
});

/** The text of `when` and its checked tree. */
export interface CheckedText {
  readonly text: string;
  readonly checked: Checked;
}

interface WhenPlace extends RuleReading {
  /** The roles beside the condition. */
  readonly roles: readonly string[];
}

export function readWhen(text: string, place: WhenPlace): CheckedText | undefined {
  const { source, path, warns = () => true } = place;
  if (source.cutByComment(path)) {
    return source.reportCut(cutByComment(path));
  }
  const { checked, issues } = examine(text, place);
  const advice = checked === undefined ? wordAdvice(text, place) : undefined;
  if (advice !== undefined) {
    return source.report({ code: issues[0]!.code, ...advice, path });
  }
  // Advice about the whole rule, which comes later, may need the mark at its start.
  const mark = markOfWhole(text);
  const unneeded = mark && issues.find(({ code, span }) => code === UNNEEDED_MARK && span.start === mark.start);
  if (mark !== undefined) {
    const finding = unneeded && { code: UNNEEDED_MARK, severity: unneeded.severity, message: unneeded.message, path };
    source.markRule(path, finding && { finding, span: mark });
  }
  for (const issue of issues)
    if (
      issue !== unneeded &&
      !speaksOfBroken(issue, text, place.broken) &&
      (issue.severity === 'error' || warns(issue.code))
    )
      reportPolicy(issue, place);
  const failed = issues.some(({ severity }) => severity === 'error');
  return checked === undefined || failed ? undefined : { text, checked };
}

function wordAdvice(text: string, { catalog, collection, path }: RuleReading): WordAdvice | undefined {
  if (!NAME.test(text)) return undefined;
  const { roles, collections } = catalog;
  return adviceFor(text, { roles, collection: collections.get(collection), isWhen: path.at(-1) === 'when' });
}

/** `roles` and `when` are joined as trees, so that spans point into the text that the author wrote. */
export function policyOf(
  roles: readonly string[],
  when: CheckedText | undefined,
  { catalog, action }: Pick<RuleReading, 'catalog' | 'action'>,
): Policy {
  if (when === undefined) return compileChecked({ ...hasAnyRole(roles), parts: { roles }, catalog, action });
  if (roles.length === 0) return compileChecked({ ...when, catalog, action });
  const before = `${when.text}\nand (`;
  const any = hasAnyRole(roles, before.length);
  const source = `${before}${any.text})`;
  const checked: Checked = {
    kind: 'and',
    items: [any.checked, when.checked],
    span: { start: 0, end: source.length },
  };
  const parts = { roles, when: when.text };
  return compileChecked({ checked, text: `(${any.text}) and (${when.text})`, source, parts, catalog, action });
}

/** The error is about a name whose declaration is wrong, which is reported there. */
function speaksOfBroken({ span }: PolicyIssue, text: string, broken: ReadonlySet<string>): boolean {
  if (broken.size === 0) return false;
  return text
    .slice(span.start, span.end)
    .split(/[^A-Za-z0-9_]+/)
    .some((word) => broken.has(word));
}

function reportPolicy({ code, severity, message, span, fix }: PolicyIssue, { source, path }: RuleReading): void {
  source.reportWithin({ code, severity, message, path }, span, fix);
}
