/**
 * THE list of warnings about a policy's text: their codes, which never change, and their documentation
 * (docs/warnings.md). A warning says what the policy does; the author changes it, or marks it as intended.
 */
import type { PolicyIssue } from '../../../../grammar/policy-error.ts';
import type { Action } from '../../types.ts';

interface WarningDoc {
  /** A policy that has it. */
  readonly example: string;
  /** The schema of the example admits guests. */
  readonly guests?: true;
  /** The action of the example, where it matters. */
  readonly action?: Action;
  /** The effect, as a sentence. */
  readonly effect: string;
  /** The text to write instead, or what to consider. */
  readonly instead: string;
}

const WARNINGS = {
  next_alone: {
    example: '@next.owner = @request.auth.id',
    action: 'update',
    effect:
      'a rule that names `@next` is evaluated once, and this one tests only the resulting record: anyone may take any record over',
    instead: '`@record.owner = @request.auth.id`, which holds before and after, or a condition on `@record` beside it',
  },
  no_caller: {
    example: 'changed_only(@record.title)',
    action: 'update',
    effect: 'a rule for update or delete, or a branch of one, names no caller: everyone who is signed in meets it',
    instead: 'a condition on `@request.auth`, or `roles`',
  },
  guests_write: {
    example: '@record.status = "draft"',
    action: 'create',
    guests: true,
    effect: 'the schema admits guests, and callers who are not signed in meet a rule for a write',
    instead: '`roles` beside the condition, with `guest` among them if it is meant',
  },
  guests_pass: {
    example: 'not (@request.auth.roles contains "admin")',
    guests: true,
    effect: 'a guest has no role but `guest`, and so passes a test for the lack of another',
    instead: '`roles` beside the condition',
  },
  query_decides: {
    example: '@request.query.admin = "true" or @record.owner = @request.auth.id',
    effect: 'the rule, or a branch of it, depends on the query string alone, which the caller chooses',
    instead: 'a condition on `@request.auth` or `@record` beside it',
  },
  null_in_body: {
    example: '@request.data.owner is null and @record.owner = @request.auth.id',
    action: 'update',
    effect: 'an explicit `null` in the body passes, and clears the member',
    instead: '`not changed(@record.owner)`',
  },
  separate_elements: {
    example:
      'any(@record.team.memberships as m, m.user = @request.auth.id) and any(@record.team.memberships as m, m.role = "owner")',
    effect: 'two different elements may meet the two conditions',
    instead: 'one `any` with both conditions',
  },
  any_differs: {
    example: 'any(@record.team.memberships as m, m.user != @request.auth.id)',
    effect: 'one other element is enough, so this is true nearly always',
    instead: '`none(@record.team.memberships as m, m.user = @request.auth.id)`',
  },
  variable_unused: {
    example: 'any(@record.tags as t, @record.pinned)',
    effect: 'the condition does not name its variable, so any element meets it',
    instead: 'a condition on the variable, or `true` to ask for any element',
  },
  email_domain: {
    example: '@request.auth.email_verified and @request.auth.email ends with "acme.com"',
    effect: 'addresses of other domains match: `ann@evil-acme.com`, `@acme.com.evil.org`, `admin@evil.org`',
    instead: '`@request.auth.email ends with "@acme.com"`',
  },
  email_unverified: {
    example: '@request.auth.email ends with "@acme.com"',
    effect: 'anyone can register with an address that is not theirs',
    instead: '`@request.auth.email_verified and` before it',
  },
  always_true: {
    example: '@record.status = "draft" or @record.status != "draft"',
    effect: 'a condition holds for every record and request, or for every one where its value is present',
    instead: '`true`, or the condition that was meant',
  },
  never_true: {
    example: 'count(@record.tags) < 0',
    effect: 'no record and no request meets the condition',
    instead: 'the condition that was meant',
  },
  never_allows: {
    example: '@record.title is null or @record.score = 1.5',
    effect: 'the whole rule is never true',
    instead: '`false`',
  },
  redundant: {
    example: '@record.pinned or (@record.pinned and @record.score > 5)',
    effect: 'a clause changes nothing beside another one',
    instead: 'the rule without it',
  },
  same_operands: {
    example: '@record.score = @record.score',
    effect: 'both sides are the same value',
    instead: '`is not null`',
  },
  negation_of_nullable: {
    example: '@record.team.name != "x"',
    effect: 'a value that can be absent is negated, and absence denies',
    instead: '`… is not null and …`, or `… is null or …` to allow what is absent',
  },
  needle_from_request: {
    example: '@record.title contains @request.query.q',
    effect: 'every string contains the empty string, so an empty parameter meets this',
    instead: '`@request.query.q != "" and` before it',
  },
  date_as_text: {
    example: '@request.query.since > "2026-01-01"',
    effect: 'strings are compared, not datetimes',
    instead: 'a comparison of the parameter with a datetime field or `@now`',
  },
  anonymous_only: {
    example: '@request.auth.id is null',
    effect: 'rules are not evaluated for callers who are not signed in',
    instead: 'the rule without it',
  },
  all_of_none: {
    example: 'all(@record.tags as t, t.label = "ok")',
    effect: '`all` is true over no elements',
    instead: '`any(@record.tags as t, true) and` before it',
  },
  enum_unknown: {
    example: '@record.status = "publishd"',
    effect: 'the enum does not have the value',
    instead: 'a value of the enum',
  },
  enum_order: {
    example: '@record.status > "draft"',
    effect: 'values of an enum are ordered as strings, not in the order of the list',
    instead: '`@record.status in [...]`',
  },
  mixed_logic: {
    example: '@record.pinned or @record.status = "draft" and @record.score > 5',
    effect: '`and` binds more tightly than `or`, which readers overlook',
    instead: 'parentheses, which `bylaw fmt` writes',
  },
  intended_unneeded: {
    example: '/* intended: as it was */ @record.pinned',
    effect: 'the mark silences nothing, or has no reason',
    instead: 'no mark, or a reason behind the colon',
  },
} as const satisfies Readonly<Record<string, WarningDoc>>;

export type WarningCode = keyof typeof WARNINGS;
export const WARNING_DOCS: Readonly<Record<WarningCode, WarningDoc>> = WARNINGS;

export const UNNEEDED_MARK: WarningCode = 'intended_unneeded';

export interface Warning extends Omit<PolicyIssue, 'severity'> {
  readonly code: WarningCode;
}
