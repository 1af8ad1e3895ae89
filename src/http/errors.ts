/** The one error door: whatever was thrown becomes problem details (RFC 9457), and nothing of the inside gets out. */
import type { Context, Next } from 'koa';
import type { Logger } from 'pino';
import { Problem, type ProblemCode } from '../problem.ts';
import { requestIdOf } from './request-id.ts';

const TITLES: Readonly<Record<ProblemCode, string>> = {
  malformed_request: 'The request is not HTTP as this service reads it',
  malformed_json: 'The body is not JSON as this service reads it',
  malformed_multipart: 'The body is not multipart/form-data as this service reads it',
  filter_unknown_key: 'A filter names what the collection does not have',
  filter_invalid_value: 'A filter has a value that its field cannot have',
  filter_duplicate_key: 'A filter is given twice',
  invalid_parameter: 'A parameter is not valid',
  unknown_expand: 'What is to be expanded does not exist',
  patch_empty: 'A patch needs at least one field',
  oauth_failed: 'The sign-in at the provider failed',
  unauthenticated: 'Sign in first',
  invalid_token: 'The access token is not valid',
  invalid_credentials: 'The email or the password is wrong',
  refresh_reused: 'The refresh token was used before',
  forbidden: 'Not allowed',
  cross_origin: 'The request comes from another site',
  oauth_denied: 'The sign-in was declined',
  not_found: 'Not found',
  method_not_allowed: 'The method is not allowed here',
  not_acceptable: 'The answer cannot be what Accept asks for',
  request_timeout: 'The request took too long to arrive',
  unique_violation: 'The value is taken',
  email_taken: 'The email is taken',
  still_referenced: 'The record is still referenced',
  account_exists: 'An account with this email exists',
  changed: 'The record has changed',
  too_large: 'The body is too large',
  unsupported_media_type: 'The body has another type than expected',
  range_not_satisfiable: 'The range is outside the content',
  expectation_failed: 'What Expect asks for cannot be met',
  validation_failed: 'The body is not valid',
  idempotency_mismatch: 'The idempotency key was used for another request',
  rate_limited: 'Too many requests',
  headers_too_large: 'The head of the request is too large',
  internal: 'An error of the server',
  unavailable: 'The service cannot answer now',
};

export interface ErrorDoorOptions {
  readonly log: Logger;
  /** What a thrown thing of another room means, e.g. an unreachable database; undefined: a defect. */
  readonly translate: (error: unknown) => Problem | undefined;
}

export function errorDoor({ log, translate }: ErrorDoorOptions) {
  return async (ctx: Context, next: Next): Promise<void> => {
    try {
      await next();
    } catch (error) {
      const problem = error instanceof Problem ? error : (translate(error) ?? internal(error));
      if (problem.code === 'internal') logDefect(log, ctx, error);
      writeProblem(ctx, problem);
    }
  };
}

const internal = (cause: unknown): Problem =>
  new Problem('internal', 'an unexpected error; its details are in the log of the server under this request id', {
    cause,
  });

function logDefect(log: Logger, ctx: Context, error: unknown): void {
  const { name, message, stack, code }: Error & { code?: unknown } =
    error instanceof Error ? error : new Error(String(error));
  log.error({ request_id: requestIdOf(ctx), error: { name, message, stack, code } }, 'defect');
}

/** The body is the same, byte for byte but the request id, for equal problems. */
export function writeProblem(ctx: Context, problem: Problem): void {
  // What a handler had set for an answer that does not go out.
  for (const name of [
    'ETag',
    'Location',
    'Preference-Applied',
    'Content-Disposition',
    'Last-Modified',
    'Content-Range',
    'Accept-Ranges',
  ]) {
    ctx.remove(name);
  }
  ctx.status = problem.status;
  ctx.set('Cache-Control', 'no-store');
  if (problem.status === 401) ctx.set('WWW-Authenticate', challengeOf(problem));
  if (problem.status === 429 || problem.status === 503) ctx.set('Retry-After', '1');
  ctx.set(problem.headers as Record<string, string>);
  ctx.type = 'application/problem+json';
  ctx.body = detailsOf(problem, requestIdOf(ctx));
}

/** The body of the answer. */
export function detailsOf({ code, status, message, errors }: Problem, requestId: string): string {
  return JSON.stringify({
    type: `urn:bylaw:${code}`,
    title: TITLES[code],
    status,
    detail: message,
    code,
    request_id: requestId,
    errors,
  });
}

/** RFC 6750, section 3. */
const challengeOf = ({ code }: Problem): string =>
  code === 'invalid_token' ? 'Bearer error="invalid_token"' : 'Bearer';
