/**
 * The pipeline. A policy is parsed and checked once; each request specialises it; each signature of
 * requests is lowered once.
 *
 *   text ─parse→ Expr ─check→ Checked ─guard→ Checked ─plan→ Planned ─bind→ signature and values ─lower→ Condition ─emit→ predicate and SQL
 */
import { PolicyError } from '../../grammar/policy-error.ts';
import { assume, BODY_PART } from './assume.ts';
import { examineErrors } from './check/checker.ts';
import { type Roots, STORED_ROOTS, WRITTEN_ROOTS } from './condition.ts';
import { closures } from './emit/closures.ts';
import { javascript } from './emit/javascript.ts';
import { guardLostReferences } from './lower/lost-references.ts';
import { lower } from './lower/lower.ts';
import type { Signature } from './lower/lowering-context.ts';
import { bind, requestPlanOf } from './lower/specialise.ts';
import { CachedResidual, PROCESS_MEMORY, ResidualCache, type ResidualMemory, residualOf } from './residual.ts';
import type { Action, Catalog, Checked, Policy, PolicyRequest, Residual, RuleParts } from './types.ts';
import { readsData, readsNext } from './visit.ts';

export interface CatalogPlace {
  readonly catalog: Catalog;
  readonly collection: string;
  readonly action: Action;
}
export interface EmitOptions {
  /** Default true. False where `new Function` is forbidden. */
  readonly codegen?: boolean;
  /** Holds the residuals of this policy beside those of others. Default: one memory for the process. */
  readonly memory?: ResidualMemory;
}
export interface CheckedPolicy {
  readonly checked: Checked;
  readonly text: string;
  /** Default: `text`. */
  readonly source?: string;
  /** Default: `text` is the condition. */
  readonly parts?: RuleParts;
  readonly catalog: Catalog;
  readonly action?: Action;
  /** The collection of the rule, if it is about rows that are kept: the records that they refer to may be gone. */
  readonly kept?: string;
}

/** Throws PolicyError with every error of the text. */
export function compilePolicy(text: string, place: CatalogPlace, options?: EmitOptions): Policy {
  // Parse and check: syntax, names and types
  const { checked, issues } = examineErrors(text, place);
  if (checked === undefined || issues.length > 0) throw new PolicyError(text, issues);

  return compileChecked({ checked, text, catalog: place.catalog, action: place.action }, options);
}

/** The rest of the pipeline, for a tree that is checked already. */
export function compileChecked(policy: CheckedPolicy, options: EmitOptions = {}): Policy {
  const { checked, text, source = text, parts = { roles: [], when: text }, catalog, action, kept } = policy;
  const { codegen = true, memory = PROCESS_MEMORY } = options;

  // Guard and plan: find what the request alone decides, and number its values
  const plan = requestPlanOf(guardLostReferences(checked, { catalog, kept }));
  const namesNext = readsNext(checked);
  const isCreate = action === 'create';
  const needsNext = namesNext && !isCreate;
  const roots = isCreate ? WRITTEN_ROOTS : STORED_ROOTS;
  const cache = new ResidualCache(memory);

  function specialise(request: PolicyRequest): Residual {
    // Bind: read the request's values; how they turned out is the signature
    const binding = bind(plan, request);
    const { signature } = binding;
    return residualOf(cache.get(signature) ?? cache.add(signature, lowered(binding, roots)), binding);
  }

  function lowered({ states, decided }: Signature, roots: Roots): CachedResidual {
    // Lower to conditions without negation, simplified
    const signature = { states, decided };
    const cond = lower(plan.tree, { catalog, signature, roots });

    // Emit: JavaScript and SQL are written when first asked for
    const predicate = codegen ? javascript(cond) : closures(cond);
    const written = () => lowered(signature, WRITTEN_ROOTS);
    return new CachedResidual({ cond, slots: plan.slots.length, predicate, needsNext, written });
  }

  const beforeBody = readsData(checked)
    ? compileChecked({ text, checked: assume(checked, true, BODY_PART), catalog, kept })
    : undefined;
  return { text, source, parts, checked, namesNext, beforeBody, specialise };
}
