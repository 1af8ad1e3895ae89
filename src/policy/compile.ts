/**
 * The pipeline: the text of a policy becomes a policy; a policy and a request become a residual; a residual is a predicate and a SQL condition.
 */

import { PolicyError, type PolicyIssue } from '../../grammar/errors.ts';
import { parse } from '../../grammar/parser.ts';
import { check } from './check/check.ts';
import { composed, generated } from './emit/predicate.ts';
import { lower } from './lower/lower.ts';
import { bind, planOf } from './lower/specialise.ts';
import { type PolicyResidual, Shape, Shapes } from './residual.ts';
import type { Action, Catalog, Checked, Policy, PolicyRequest, Scope } from './types.ts';

export interface Place {
  readonly catalog: Catalog;
  readonly collection: string;
  readonly action: Action;
}
export interface CompileOptions {
  /** Default true. False where `new Function` is forbidden. */
  readonly codegen?: boolean;
}
export interface CheckedPolicy {
  readonly checked: Checked;
  readonly text: string;
  /** Default: `text`. */
  readonly source?: string;
  readonly catalog: Catalog;
  readonly action?: Action;
}

/** Throws PolicyError with every error of the text. */
export function compile(text: string, place: Place, options?: CompileOptions): Policy {
  const { expr, issues: spelling } = parse(text);
  if (expr === undefined) throw new PolicyError(text, spelling);
  const { checked, issues: meaning } = check(expr, { ...place, text });
  const errors = [...spelling, ...meaning].filter(isError);
  if (checked === undefined || errors.length > 0) throw new PolicyError(text, errors);
  return compileChecked({ checked, text, catalog: place.catalog, action: place.action }, options);
}

const isError = ({ severity }: PolicyIssue): boolean => severity === 'error';

/** The rest of the pipeline, for a tree that was checked already. */
export function compileChecked(
  { checked, text, source = text, catalog, action }: CheckedPolicy,
  { codegen = true }: CompileOptions = {},
): Policy {
  const plan = planOf(checked);
  const namesNext = speaksOfNext(checked);
  // On create the resulting record is the record.
  const needsNext = namesNext && action !== 'create';
  const shapes = new Shapes((binding) => {
    const cond = lower(plan.tree, { catalog, signature: binding });
    return new Shape({ cond, plan, predicateOf: codegen ? generated : composed, needsNext });
  });
  return {
    text,
    source,
    checked,
    namesNext,
    specialise(request: PolicyRequest): PolicyResidual {
      const binding = bind(plan, request);
      return shapes.of(binding).with(binding);
    },
  };
}

function speaksOfNext(checked: Checked): boolean {
  const isNext = ({ kind }: Scope): boolean => kind === 'next';
  switch (checked.kind) {
    case 'const':
      return false;
    case 'and':
    case 'or':
      return checked.items.some(speaksOfNext);
    case 'not':
      return speaksOfNext(checked.item);
    case 'compare':
      return [checked.left, checked.right].some((operand) => operand.kind === 'column' && isNext(operand.scope));
    case 'is null':
      return checked.operand.kind === 'column' && isNext(checked.operand.scope);
    case 'quantified':
      return isNext(checked.path.scope) || speaksOfNext(checked.condition);
  }
}
