/** Expr → Checked: every name resolved, every type known. All errors are found in one walk. */
import { parse } from '../../../grammar/parser.ts';
import { type PolicyIssue, replacing } from '../../../grammar/policy-error.ts';
import { MOST_ISSUES } from '../../../grammar/read-tokens.ts';
import type {
  Call,
  Compare,
  CountCall,
  Elements,
  Expr,
  IsNullTest,
  Name,
  Operand,
  Path,
  Quantified,
  TruthLiteral,
} from '../../../grammar/syntax.ts';
import { equal, equalityOf } from '../operators.ts';
import { isTruth } from '../scalar-types.ts';
import type { CheckContext, Checked, CountOperand, NamedCondition, ToManyPath } from '../types.ts';
import { elementsPath, isRolesOfCaller } from '../visit.ts';
import { resolveAncestors } from './ancestors.ts';
import { checkChange, isChange } from './changed.ts';
import { checkCompare } from './comparisons.ts';
import { bindArgument, callsIn, unboundParameter, unknownCondition, wrongArguments } from './condition-calls.ts';
import { paramOf, readAsGiven } from './params.ts';
import { type Bound, boundTo, type CheckerPlace, type CheckIssue } from './place.ts';
import { withProvenFixes } from './proven-fixes.ts';
import { mayBeAbsent, resolve } from './resolve.ts';
import type { Comparing } from './sides.ts';
import { excessOf, sizeOf } from './size.ts';
import { warnings } from './warnings/warnings.ts';

export interface CheckResult {
  /** Given unless an issue is an error; the issues may include warnings. */
  readonly checked?: Checked;
  readonly issues: readonly PolicyIssue[];
}

/** The checked tree of an expression without syntax errors. */
export function checkExpr(expr: Expr, context: CheckContext): CheckResult {
  const result = checkTree(expr, context, NO_OPERANDS);
  return result.issues.length === 0 ? result : { ...result, issues: helpfulFixes(result.issues, context) };
}

/** Turns a text into a checked tree, and reports errors of the grammar and of the types together. */
export function examine(text: string, context: Omit<CheckContext, 'text'>): CheckResult {
  const { checked, issues } = examineOnce(text, context);
  if (issues.length === 0) return { ...(checked && { checked }), issues };
  return { ...(checked && { checked }), issues: helpfulFixes(issues, { ...context, text }) };
}

const helpfulFixes = (issues: readonly PolicyIssue[], context: CheckContext): readonly PolicyIssue[] =>
  withProvenFixes(issues, context.text, (fixed) => examineOnce(fixed, context).issues);

/** Does the same as `examine`, but reports no warnings. */
export const examineErrors = (text: string, context: Omit<CheckContext, 'text'>): CheckResult =>
  examine(text, { ...context, errorsOnly: true });

/** Does the same as `examine`, but does not try the fixes. */
export function examineOnce(text: string, context: Omit<CheckContext, 'text'>): CheckResult {
  const { expr, tree, broken, issues } = parse(text, context.params === undefined ? 'policy' : 'filter');
  if (tree === undefined) return { issues };
  const result = checkTree(tree, { ...context, text }, broken);
  if (expr !== undefined) return result;
  const errors = [...issues, ...result.issues.filter((issue) => issue.severity === 'error')];
  return { issues: errors.sort((a, b) => a.span.start - b.span.start).slice(0, MOST_ISSUES) };
}

// ---------------------------------------------------------------- the walk

const NO_OPERANDS: ReadonlySet<Operand> = new Set();

function checkTree(expr: Expr, context: CheckContext, broken: ReadonlySet<Operand>): CheckResult {
  const walk = new Checker(context, broken);
  const checked = walk.whole(expr);
  if (checked === undefined || walk.issues.length > 0) return { issues: walk.issues.slice(0, MOST_ISSUES) };
  return { checked, issues: isReviewed(context) ? warnings(expr, checked, context) : [] };
}

/** A filter is written by the client, for one request. */
const isReviewed = ({ params, errorsOnly }: CheckContext): boolean => params === undefined && errorsOnly !== true;

type Variables = ReadonlyMap<string, Bound>;

class Checker {
  readonly issues: PolicyIssue[] = [];
  readonly #context: CheckContext;
  readonly #broken: ReadonlySet<Operand>;
  readonly #names = new Set<string>();
  /** The call in the author's own text that is being expanded. */
  #calling: Call | undefined;

  constructor(context: CheckContext, broken: ReadonlySet<Operand>) {
    this.#context = context;
    this.#broken = broken;
  }

  whole(expr: Expr): Checked | undefined {
    const { catalog, parameters = [] } = this.#context;
    const [call] = callsIn(expr);
    const excess = call && excessOf(sizeOf(expr, catalog));
    if (call !== undefined && excess !== undefined) {
      const message = `more than ${excess.what} once \`${call.name.name}\` and the other named conditions are expanded`;
      return this.#report({ code: excess.code, message, span: call.span });
    }
    return this.expr(expr, new Map(parameters.map((parameter) => [parameter.name, unboundParameter(parameter)])));
  }

  /** `undefined` if an error in it was reported. */
  expr(expr: Expr, variables: Variables): Checked | undefined {
    switch (expr.kind) {
      case 'and':
      case 'or': {
        const items = expr.items.map((item) => this.expr(item, variables));
        return allOf(items) ? { kind: expr.kind, items, span: expr.span } : undefined;
      }
      case 'not': {
        const item = this.expr(expr.item, variables);
        return item && { kind: 'not', item, span: expr.span };
      }
      case 'compare':
        return this.#compare(expr, variables);
      case 'is null':
        return this.#isNull(expr, variables);
      case 'quantified':
        return this.#quantified(expr, variables);
      case 'call':
        return this.#call(expr, variables);
      case 'truth':
        return this.#truth(expr, variables);
    }
  }

  #place(variables: Variables): CheckerPlace {
    const { catalog, collection, action, params, onUnknown } = this.#context;
    const isBody = this.#context.parameters !== undefined;
    const report = (issue: CheckIssue): undefined => this.#report(issue);
    return { catalog, collection, action, variables, isBody, params, onUnknown, report };
  }

  /** An error in an expanded body is reported at the call, with the part of the body that causes it. */
  #report(issue: CheckIssue): undefined {
    const { source } = issue.span;
    if (source === undefined || this.#calling === undefined) {
      this.issues.push({ severity: 'error', ...issue });
      return;
    }
    const { name, span } = this.#calling;
    const part = source.slice(issue.span.start, issue.span.end);
    const message = `${issue.message}, in \`${part}\` of the condition \`${name.name}\``;
    this.issues.push({ severity: 'error', code: issue.code, message, span });
  }

  #comparing(variables: Variables): Comparing {
    return {
      ...this.#place(variables),
      text: this.#context.text,
      freshName: (name) => this.#unique(name),
      count: (count) => this.#count(count, variables),
    };
  }

  #isFull(): boolean {
    return this.issues.length >= MOST_ISSUES;
  }

  #compare(expr: Compare, variables: Variables): Checked | undefined {
    if (this.#isFull() || this.#broken.has(expr.left) || this.#broken.has(expr.right)) return undefined;
    return checkCompare(expr, this.#comparing(variables));
  }

  #isNull({ operand, negated, span }: IsNullTest, variables: Variables): Checked | undefined {
    if (this.#isFull() || this.#broken.has(operand)) return undefined;
    if (operand.kind === 'param') {
      const param = paramOf(operand, this.#place(variables));
      return param && { kind: 'is null', negated, operand: readAsGiven(param), span };
    }
    const path = this.#pathOnly(operand);
    const named = path && resolve(path, this.#place(variables));
    if (named === undefined) return undefined;
    if (named.kind === 'query') return { kind: 'is null', negated, operand: readAsGiven(named), span };
    const isList = named.kind === 'to many' || (named.kind === 'request' && isRolesOfCaller(named));
    if (!isList) return { kind: 'is null', negated, operand: named, span };
    const message =
      named.kind === 'to many'
        ? 'a to-many relation is never null; `none(… as x, true)` tests that it is empty'
        : 'a list is never null';
    const bound =
      named.kind === 'to many' && path!.steps.length === named.used ? this.#emptiness(path!, negated) : undefined;
    this.#report({ code: 'null_of_list', message, span: operand.span, ...replacing(span, bound) });
    return undefined;
  }

  #emptiness(path: Path, negated: boolean): string {
    const { source = this.#context.text } = path.span;
    return `${negated ? 'any' : 'none'}(${source.slice(path.span.start, path.span.end)} as x, true)`;
  }

  #pathOnly(operand: Operand): Path | undefined {
    if (operand.kind === 'path') return operand;
    if (operand.kind === 'ancestors') {
      const message = 'ancestors are never null; test the path that they begin at';
      return this.#report({ code: 'null_of_list', message, span: operand.span });
    }
    if (operand.kind === 'count') {
      const message = 'a count is absent only where a step before its relation is; expected `is null` of that step';
      return this.#report({ code: 'null_of_count', message, span: operand.span });
    }
    return this.#report({ code: 'null_of_literal', message: 'only a path can be null', span: operand.span });
  }

  // -------------------------------------------------------------- named conditions

  #call(call: Call, variables: Variables): Checked | undefined {
    if (this.#isFull() || call.args.some((argument) => this.#broken.has(argument))) return undefined;
    if (isChange(call)) return checkChange(call, this.#place(variables));
    const { conditions = new Map<string, NamedCondition>() } = this.#context.catalog;
    const condition = conditions.get(call.name.name);
    if (condition === undefined) {
      const { source = this.#context.text } = call.span;
      return this.#report(unknownCondition(call, [...conditions.keys()], source));
    }
    const { parameters } = condition;
    if (call.args.length !== parameters.length) return this.#report(wrongArguments(call, condition));
    const place = this.#place(variables);
    const bound = parameters.map((parameter, i) => bindArgument(parameter, call.args[i]!, place));
    if (bound.includes(undefined)) return undefined;
    const outer = this.#calling;
    this.#calling ??= call;
    const names = parameters.map(({ name }, i) => [name, bound[i]!] as const);
    const checked = this.expr(condition.expr, new Map(names));
    this.#calling = outer;
    return checked;
  }

  #truth({ operand, span }: TruthLiteral, variables: Variables): Checked | undefined {
    if (operand.kind === 'bool') return { kind: 'const', value: operand.value, span };
    if (this.#isFull() || this.#broken.has(operand)) return undefined;
    const truth = { kind: 'bool', value: true, span } as const;
    if (operand.kind === 'param')
      return this.#compare(
        { kind: 'compare', op: equalityOf(true), opSpan: span, left: operand, right: truth, span },
        variables,
      );
    if (operand.kind === 'ancestors') return this.#report(this.#notBool(operand, true));
    if (operand.kind !== 'path') {
      const message = 'a value alone is not a condition; expected a comparison';
      return this.#report({ code: 'condition_expected', message, span });
    }
    const named = resolve(operand, this.#place(variables));
    if (named === undefined) return undefined;
    if (named.kind !== 'query' && named.kind !== 'to many' && isTruth(named.type))
      return equal(named, { ...truth, kind: 'literal', type: 'bool', list: false }, span);
    return this.#report(this.#notBool(operand, named.kind === 'to many'));
  }

  #notBool({ span }: Elements, toMany: boolean): CheckIssue {
    const path = this.#context.text.slice(span.start, span.end);
    const replacement = toMany ? `any(${path} as x, true)` : `${path} is not null`;
    const message = `\`${path}\` is not a bool, so it is not a condition by itself; expected a comparison, such as \`${replacement}\``;
    return { code: 'condition_expected', message, span, ...replacing(span, replacement) };
  }

  // -------------------------------------------------------------- quantifiers

  #quantified(expr: Quantified, variables: Variables): Checked | undefined {
    const { quantifier, path, variable, span } = expr;
    if (this.#isFull()) return undefined;
    const taken = variables.has(variable.name);
    if (taken) this.#report(shadowing(variable, variables));
    const relation = this.#broken.has(path) ? undefined : this.#toMany(path, variables);
    // Without the relation, the names after the variable cannot be checked.
    if (relation === undefined || taken) return undefined;
    const unique = this.#unique(variable.name);
    const inner = new Map(variables).set(variable.name, boundTo(relation, unique));
    const condition = this.expr(expr.condition, inner);
    return condition && { kind: 'quantified', quantifier, path: relation, variable: unique, condition, span };
  }

  /** Without a condition every element counts. */
  #count({ path, variable, condition, span }: CountCall, variables: Variables): CountOperand | undefined {
    const taken = variable !== undefined && variables.has(variable.name);
    if (taken) this.#report(shadowing(variable, variables));
    const toMany = this.#broken.has(path) ? undefined : this.#toMany(path, variables);
    if (toMany === undefined || taken) return undefined;
    const unique = this.#unique(variable?.name ?? 'element');
    const operand = {
      kind: 'count',
      path: toMany,
      variable: unique,
      type: 'int',
      nullable: mayBeAbsent(toMany) || toMany.relation.kind === 'ancestors',
      span,
    } as const;
    if (variable === undefined || condition === undefined)
      return { ...operand, condition: { kind: 'const', value: true, span } };
    const inner = this.expr(condition, new Map(variables).set(variable.name, boundTo(toMany, unique)));
    return inner && { ...operand, condition: inner };
  }

  #toMany(path: Elements, variables: Variables): ToManyPath | undefined {
    if (path.kind === 'ancestors')
      return this.#broken.has(path.path) ? undefined : resolveAncestors(path, this.#place(variables))?.path;
    const named = resolve(path, this.#place(variables));
    if (named === undefined) return undefined;
    if (named.kind === 'to many' && named.used === path.steps.length) return named.path;
    const elements = named.kind === 'column' ? elementsPath(named) : undefined;
    if (elements !== undefined) return elements;
    const isHeld = named.kind === 'request' && named.list;
    const message = isHeld
      ? 'a quantifier ranges over a relation or a list of a record; for a list of the request, expected `contains` or `in`'
      : named.kind === 'to many'
        ? 'a quantifier ranges over one to-many relation; nothing may follow it, but another quantifier may stand inside'
        : 'a quantifier ranges over a to-many relation or a list; this is a single value, which can be compared directly';
    const span = named.kind === 'to many' ? { start: named.path.span.end, end: path.span.end } : path.span;
    return this.#report({ code: 'to_many_expected', message, span });
  }

  /** Sibling quantifiers may use one name; in the checked tree each has its own. */
  #unique(name: string): string {
    let unique = name;
    for (let i = 2; this.#names.has(unique); i++) unique = `${name}_${i}`;
    this.#names.add(unique);
    return unique;
  }
}

const allOf = (items: readonly (Checked | undefined)[]): items is readonly Checked[] =>
  items.every((item) => item !== undefined);

function shadowing({ name, span }: Name, variables: Variables): CheckIssue {
  const free = [2, 3, 4, 5, 6, 7, 8].map((i) => `${name}${i}`).find((each) => !variables.has(each));
  const message = `\`${name}\` is bound already by an outer quantifier; expected another name${free ? `, such as \`${free}\`` : ''}`;
  return { code: 'variable_shadowed', message, span, ...(free !== undefined && { suggestion: free }) };
}
