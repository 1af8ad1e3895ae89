/** The one error door: turns every thrown value into problem details (RFC 9457) without leaking internals. */
import type { Context } from 'koa';
import type { Logger } from 'pino';
import { isOfDeletedUser } from '../../auth/auth-tables.ts';
import { QueueFull, StoreError } from '../../database/contract.ts';
import { isSchemaMoved } from '../../database/to-store-error.ts';
import { StorageUnavailable } from '../../files/storage/storage.ts';
import { PROBLEMS, Problem } from '../../problem.ts';
import { Refusal } from '../../refusal.ts';
import { forbiddenProblem, notFoundProblem } from '../gate.ts';

/** Answers with the error; logs it if it is a defect. */
export function answerError(ctx: Context, error: unknown, log: Logger): void {
  const problem = error instanceof Problem ? error : (translated(error) ?? internal(error));
  if (problem.code === 'internal' || isSchemaMoved(error)) logDefect(log, ctx, error);
  writeProblem(ctx, problem);
}

/** Maps errors of other rooms to problems; undefined: a defect. */
function translated(error: unknown): Problem | undefined {
  if (error instanceof Refusal) return problemOf(error);
  if (error instanceof QueueFull) {
    const headers = { 'Retry-After': String(error.retryAfter) };
    if (error.isOwn) {
      const detail = `too many of your requests wait for each other; try again in ${error.retryAfter} s`;
      return new Problem('rate_limited', detail, { headers, cause: error });
    }
    const detail = `too many requests wait for the database; try again in ${error.retryAfter} s`;
    return new Problem('unavailable', detail, { headers, cause: error });
  }
  if (error instanceof StoreError) return problemOfStore(error);
  if (isSchemaMoved(error)) {
    // Other nodes can serve the request.
    const detail = 'the schema of the database is not the one that this node serves; try again shortly';
    return new Problem('unavailable', detail, { cause: error });
  }
  if (error instanceof StorageUnavailable) {
    return new Problem('unavailable', 'the storage of files cannot be reached; try again shortly', { cause: error });
  }
  if (error instanceof URIError) return notFoundProblem();
  return undefined;
}

function problemOfStore(error: StoreError): Problem | undefined {
  // Only sessions write such rows: a sign-in locks the user before.
  if (isOfDeletedUser(error)) return new Problem('unauthenticated', 'the user no longer exists', { cause: error });
  switch (error.kind) {
    case 'unavailable':
    // A time limit that no route turned into an error of its own is a limit of the service.
    case 'time_limit':
      return new Problem('unavailable', 'the database cannot be reached; try again shortly', { cause: error });
    // Rules of an adopted table that are checked at the commit, which no write of a record waits for.
    case 'unique':
      return new Problem('unique_violation', 'a value must be unique, and another record has it', { cause: error });
    case 'exclusion':
      return new Problem('conflict', 'another record excludes this one', { cause: error });
    case 'raised':
      return new Problem('validation_failed', 'a rule of the database rejected the record', { cause: error });
    default:
      return undefined;
  }
}

/** Returns the problem that reports a refusal of the records room. */
export function problemOf({ code, message, errors }: Refusal): Problem {
  switch (code) {
    case 'not_found':
      return notFoundProblem();
    case 'forbidden':
      return forbiddenProblem(errors, message);
    case 'validation_failed':
    case 'transition_refused':
    case 'unique_violation':
    case 'conflict':
    case 'still_referenced':
    case 'changed':
    case 'last_admin':
    case 'idempotency_mismatch':
    case 'invalid_cursor':
    case 'query_too_expensive':
      return new Problem(code, message, { errors });
  }
}

const internal = (cause: unknown): Problem =>
  new Problem('internal', 'an unexpected error; its details are in the log of the server under this request id', {
    cause,
  });

function logDefect(log: Logger, ctx: Context, error: unknown): void {
  const { name, message, stack, code }: Error & { code?: unknown } =
    error instanceof Error ? error : new Error(String(error));
  log.error({ request_id: ctx.state.requestId, error: { name, message, stack, code } }, 'defect');
}

/** Headers that a handler set for the response it could not finish. */
const UNFINISHED_HEADERS = [
  'ETag',
  'Content-Encoding',
  'Location',
  'Preference-Applied',
  'Content-Disposition',
  'Last-Modified',
  'Content-Range',
  'Accept-Ranges',
];

/** Equal problems give byte-identical bodies, except for the request id. */
function writeProblem(ctx: Context, problem: Problem): void {
  for (const name of UNFINISHED_HEADERS) ctx.remove(name);
  ctx.status = problem.status;
  ctx.set('Cache-Control', 'no-store');
  if (problem.status === 401) ctx.set('WWW-Authenticate', challengeOf(problem));
  // A problem with a longer time has it in headers of its own.
  if (problem.status === 429 || problem.status === 503) ctx.set('Retry-After', '1');
  ctx.set(problem.headers as Record<string, string>);
  ctx.type = 'application/problem+json';
  ctx.body = detailsOf(problem, ctx.state.requestId);
}

/** The response body. */
export function detailsOf(problem: Problem, requestId: string): string {
  const { code, status, message, errors, errorCount, operation } = problem;
  return JSON.stringify({
    type: `urn:bylaw:${code}`,
    title: PROBLEMS[code].title,
    status,
    detail: message,
    code,
    request_id: requestId,
    operation,
    errors,
    ...(errorCount > errors.length ? { error_count: errorCount } : {}),
  });
}

/** RFC 6750, section 3. */
const challengeOf = ({ code }: Problem): string =>
  code === 'invalid_token' ? 'Bearer error="invalid_token"' : 'Bearer';
