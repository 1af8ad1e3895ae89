/** The compiler in the page. A chunk of its own: only `load-editor.ts` imports it. */
import { parse } from '../../../grammar/parser.ts';
import type { PolicyIssue } from '../../../grammar/policy-error.ts';
import { print } from '../../../grammar/printer.ts';
import { type Completion, completions } from '../../policy/analyse/completions.ts';
import { examine } from '../../policy/check/checker.ts';
import { GUEST_ROW } from '../../policy/check/guests.ts';
import { STORED_ROOTS, WRITTEN_ROOTS } from '../../policy/condition.ts';
import { lower } from '../../policy/lower/lower.ts';
import { bind, requestPlanOf } from '../../policy/lower/specialise.ts';
import { catalogFromDocument, type PolicyCatalog } from '../../policy/request/catalog-document.ts';
import type { Action, PolicyRequest, Row } from '../../policy/types.ts';
import { MADE_UP_ID } from '../data/made-up-id.ts';

export interface ToolPlace {
  readonly catalog: PolicyCatalog;
  readonly collection: string;
  /** `filter`: of a list, which has no names of the request and no conditions. */
  readonly action: Action | 'filter';
  /** The roles beside the condition. Default: none. */
  readonly roles?: readonly string[];
  /** The rule is one of a field or a belongs_to. */
  readonly isOfMember?: boolean;
}
export { type ColouredSpan, colouredSpans } from './token-colours.ts';
export type { Completion, PolicyIssue };
/** The verdict of the caller alone; `depends`: the record decides. */
export type RoleVerdict = 'allow' | 'deny' | 'depends';

function catalogPlace({ catalog: document, action, ...place }: ToolPlace) {
  const catalog = catalogFromDocument(document);
  if (action !== 'filter') return { ...place, catalog, action };
  const { conditions, ...names } = catalog;
  return { ...place, catalog: names, action: 'list', params: {} } as const;
}

export const issuesOf = (text: string, place: ToolPlace): readonly PolicyIssue[] =>
  examine(text, catalogPlace(place)).issues;

export const completionsAt = (text: string, offset: number, place: ToolPlace): readonly Completion[] =>
  completions(text, offset, {
    ...catalogPlace(place),
    queryKeys: place.catalog.collections[place.collection]?.filters ?? [],
  });

/** Undefined where the text has errors. */
export function formatted(text: string, { action }: ToolPlace): string | undefined {
  const { expr } = parse(text, action === 'filter' ? 'filter' : 'policy');
  return expr && print(expr);
}

/** `roles`: the caller's roles and their included ones. Empty: a guest. */
export function verdictOf(text: string, roles: readonly string[], place: ToolPlace): RoleVerdict {
  const { catalog, action } = catalogPlace(place);
  const { checked } = examine(text, catalogPlace(place));
  if (checked === undefined) return 'deny';
  const isGuest = roles.length === 0;
  const auth: Row = isGuest ? GUEST_ROW : { id: MADE_UP_ID, email: 'made-up@example.org', roles };
  const request: PolicyRequest = {
    auth,
    kind: isGuest ? 'guest' : 'user',
    query: {},
    now: new Date().toISOString().replace('Z', '000Z'),
  };
  const plan = requestPlanOf(checked);
  const { states, decided } = bind(plan, request);
  const roots = action === 'create' ? WRITTEN_ROOTS : STORED_ROOTS;
  const condition = lower(plan.tree, { catalog, signature: { states, decided }, roots });
  if (condition.kind !== 'const') return 'depends';
  return condition.value ? 'allow' : 'deny';
}
