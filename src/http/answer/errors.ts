/** The one error door: turns everything thrown into problem details (RFC 9457) without leaking internals. */
import type { Context } from 'koa';
import type { Logger } from 'pino';
import { PROBLEMS, Problem } from '../../problem.ts';
import { requestIdOf } from '../observe/request-id.ts';

export interface ErrorDoorOptions {
  readonly log: Logger;
  /** Maps errors of other rooms (an unreachable database) to problems; undefined means a defect. */
  readonly translate: (error: unknown) => Problem | undefined;
}

/** Answers with what was thrown. */
export function errorDoor({ log, translate }: ErrorDoorOptions) {
  return (ctx: Context, error: unknown): void => {
    const problem = error instanceof Problem ? error : (translate(error) ?? internal(error));
    if (problem.code === 'internal') logDefect(log, ctx, error);
    writeProblem(ctx, problem);
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

/** Equal problems give byte-identical bodies, except for the request id. */
function writeProblem(ctx: Context, problem: Problem): void {
  // Headers that a handler set for the response it could not finish.
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
