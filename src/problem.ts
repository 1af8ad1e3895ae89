/** A refusal that the caller is told of: RFC 9457 problem details. Thrown anywhere, written by the one error door in http/. A leaf. */
export const PROBLEMS = {
  malformed_request: 400,
  malformed_json: 400,
  malformed_multipart: 400,
  filter_unknown_key: 400,
  filter_invalid_value: 400,
  filter_duplicate_key: 400,
  invalid_parameter: 400,
  unknown_expand: 400,
  patch_empty: 400,
  oauth_failed: 400,
  unauthenticated: 401,
  invalid_token: 401,
  invalid_credentials: 401,
  refresh_reused: 401,
  forbidden: 403,
  cross_origin: 403,
  oauth_denied: 403,
  not_found: 404,
  method_not_allowed: 405,
  not_acceptable: 406,
  request_timeout: 408,
  unique_violation: 409,
  email_taken: 409,
  still_referenced: 409,
  account_exists: 409,
  changed: 412,
  too_large: 413,
  unsupported_media_type: 415,
  range_not_satisfiable: 416,
  expectation_failed: 417,
  validation_failed: 422,
  idempotency_mismatch: 422,
  rate_limited: 429,
  headers_too_large: 431,
  internal: 500,
  unavailable: 503,
} as const;
export type ProblemCode = keyof typeof PROBLEMS;

/** One fault: where (`pointer` into the body, or `parameter`), what, and what to do. */
export interface Fault {
  readonly pointer?: string;
  readonly parameter?: string;
  readonly code: string;
  readonly detail: string;
}

export class Problem extends Error {
  readonly code: ProblemCode;
  readonly status: number;
  readonly errors: readonly Fault[];
  readonly headers: Readonly<Record<string, string>>;
  constructor(
    code: ProblemCode,
    detail: string,
    more: {
      readonly errors?: readonly Fault[];
      readonly headers?: Readonly<Record<string, string>>;
      readonly cause?: unknown;
    } = {},
  ) {
    super(detail, { cause: more.cause });
    this.name = 'Problem';
    this.code = code;
    this.status = PROBLEMS[code];
    this.errors = more.errors ?? [];
    this.headers = more.headers ?? {};
  }
}
