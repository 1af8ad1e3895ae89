/**
 * Errors reported to the caller as problem details (RFC 9457). Any room throws them; the one error
 * door in http/ writes them. A leaf.
 */
import type { ErrorDetail } from './client/bylaw-error.ts';

export type { ErrorDetail };

/** Every code that a client can receive. The OpenAPI document and the error door read this table. */
export const PROBLEMS = {
  malformed_request: { status: 400, title: 'The request is not valid HTTP' },
  malformed_json: { status: 400, title: 'The body is not valid JSON' },
  malformed_multipart: { status: 400, title: 'The body is not valid multipart/form-data' },
  filter_unknown_key: { status: 400, title: 'A filter names an unknown key' },
  filter_invalid_value: { status: 400, title: 'The value of a filter does not fit its field' },
  filter_required: { status: 400, title: 'A filter on the tenant is required' },
  filter_invalid: { status: 400, title: 'The filter of a query is not valid' },
  invalid_cursor: { status: 400, title: 'The cursor belongs to another query' },
  query_too_expensive: { status: 400, title: 'The query is too expensive' },
  filter_duplicate_key: { status: 400, title: 'A filter is given twice' },
  invalid_parameter: { status: 400, title: 'A parameter is not valid' },
  unknown_expand: { status: 400, title: '`expand` names an unknown relation' },
  patch_empty: { status: 400, title: 'A patch needs at least one field' },
  oauth_failed: { status: 400, title: 'The sign-in at the provider failed' },
  unauthenticated: { status: 401, title: 'Sign in first' },
  invalid_token: { status: 401, title: 'The token is not valid' },
  invalid_credentials: { status: 401, title: 'The email or the password is wrong' },
  refresh_reused: { status: 401, title: 'The refresh token was used before' },
  forbidden: { status: 403, title: 'Not allowed' },
  cross_origin: { status: 403, title: 'The request comes from another site' },
  registration_closed: { status: 403, title: 'Registration is closed' },
  email_unverified: { status: 403, title: 'The email is not verified' },
  oauth_denied: { status: 403, title: 'The sign-in was declined' },
  not_found: { status: 404, title: 'Not found' },
  method_not_allowed: { status: 405, title: 'The method is not allowed here' },
  not_acceptable: { status: 406, title: 'No format that Accept allows is available' },
  request_timeout: { status: 408, title: 'The request took too long to arrive' },
  unique_violation: { status: 409, title: 'The value is taken' },
  conflict: { status: 409, title: 'The record excludes another one' },
  email_taken: { status: 409, title: 'The email is taken' },
  still_referenced: { status: 409, title: 'The record is still referenced' },
  account_exists: { status: 409, title: 'An account with this email exists' },
  too_many: { status: 409, title: 'There are too many' },
  last_credential: { status: 409, title: 'No way to sign in would be left' },
  last_admin: { status: 409, title: 'No admin would be left' },
  changed: { status: 412, title: 'The record has changed' },
  too_large: { status: 413, title: 'The body is too large' },
  unsupported_media_type: { status: 415, title: 'The body has an unsupported media type' },
  range_not_satisfiable: { status: 416, title: 'The range lies outside the content' },
  expectation_failed: { status: 417, title: 'The expectation cannot be met' },
  validation_failed: { status: 422, title: 'A value is not valid' },
  transition_refused: { status: 422, title: 'The value cannot follow the stored one' },
  idempotency_mismatch: { status: 422, title: 'The idempotency key was used for another request' },
  rate_limited: { status: 429, title: 'Too many requests' },
  headers_too_large: { status: 431, title: 'The request headers are too large' },
  internal: { status: 500, title: 'Internal server error' },
  not_implemented: { status: 501, title: 'The transfer coding is not implemented' },
  unavailable: { status: 503, title: 'The service is temporarily unavailable' },
} as const satisfies Readonly<Record<string, { readonly status: number; readonly title: string }>>;

export type ProblemCode = keyof typeof PROBLEMS;

/** A key as a part of a JSON pointer (RFC 6901). */
export const pointerPart = (key: string): string => key.replaceAll('~', '~0').replaceAll('/', '~1');

/** Entries of `errors` that a response shows; beyond them, `error_count` is the number of all. */
export const MAX_SHOWN_ERRORS = 100;
/**
 * Suggestions ("did you mean …") in a response: each compares a name with every other, so only the
 * first few get one.
 */
export const MAX_SUGGESTIONS = 10;
/**
 * Counts as an error beyond the shown ones, so that hostile input cannot make us write text that is
 * never shown.
 */
export const UNSHOWN_ERROR: ErrorDetail = { code: 'unshown', detail: '' };

export function addError(errors: ErrorDetail[], error: ErrorDetail): void {
  errors.push(errors.length < MAX_SHOWN_ERRORS ? error : UNSHOWN_ERROR);
}

/** An error in a text: its place is in UTF-16 units. */
interface TextIssue {
  readonly code: string;
  readonly message: string;
  readonly span: TextSpan;
  readonly fix?: { readonly span: TextSpan; readonly replacement: string } | undefined;
}
export type TextPlace = Pick<ErrorDetail, 'offset' | 'length' | 'fix'>;
interface TextSpan {
  readonly start: number;
  readonly end: number;
}

export function textPlace({ span, fix }: Pick<TextIssue, 'span' | 'fix'>): TextPlace {
  const place = { offset: span.start, length: span.end - span.start };
  if (fix === undefined) return place;
  const { start, end } = fix.span;
  return { ...place, fix: { offset: start, length: end - start, replacement: fix.replacement } };
}

/** `pointer`: of the text. */
export const textError = (pointer: string, issue: TextIssue): ErrorDetail => ({
  pointer,
  code: issue.code,
  detail: issue.message,
  ...textPlace(issue),
});

const MAX_ECHO = 64;
/** A name that the caller made up, short enough to repeat in a message. */
export const echo = (name: string): string =>
  name.length <= MAX_ECHO ? name : `${name.slice(0, MAX_ECHO).toWellFormed()}…`;

interface ProblemDetails {
  readonly errors?: readonly ErrorDetail[];
  readonly headers?: Readonly<Record<string, string>>;
  /** The index of the operation of a batch that failed. */
  readonly operation?: number | undefined;
  readonly cause?: unknown;
}

export class Problem extends Error {
  readonly code: ProblemCode;
  readonly status: number;
  /** The first `MAX_SHOWN_ERRORS`. */
  readonly errors: readonly ErrorDetail[];
  readonly errorCount: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly operation: number | undefined;

  constructor(code: ProblemCode, detail: string, more: ProblemDetails = {}) {
    super(detail, { cause: more.cause });
    this.name = 'Problem';
    this.code = code;
    this.status = PROBLEMS[code].status;
    this.errors = more.errors?.slice(0, MAX_SHOWN_ERRORS) ?? [];
    this.errorCount = more.errors?.length ?? 0;
    this.headers = more.headers ?? {};
    this.operation = more.operation;
  }
}

/** A problem that is one error. */
export const problemOfError = (code: ProblemCode, error: ErrorDetail, cause?: unknown): Problem =>
  new Problem(code, error.detail, { errors: [error], cause });
