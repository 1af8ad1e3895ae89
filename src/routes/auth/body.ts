/** Bodies of the authentication routes: small, and nothing in them that is not asked for. Not a route. */
import type { Context } from 'koa';
import { z } from 'zod';
import type { App } from '../../http/app.ts';
import { AUTH_BODY_LIMIT, pointerPart } from '../../http/body.ts';
import { type Fault, Problem } from '../../problem.ts';

export { emailAddress as email } from '../../auth/email-address.ts';
/** Whether it is good enough is the auth room's to say; a long one is refused there as well, before any work. */
export const password = z.string('expected a text');
export const token = z.string('expected a text').min(1, 'expected a token').max(4096, 'expected a token');

/** Throws what reading a body throws, and `validation_failed` with every fault. */
export async function readBody<T extends z.ZodRawShape>(
  ctx: Context,
  app: App,
  shape: T,
): Promise<z.infer<z.ZodObject<T>>> {
  const body = await app.readJson(ctx, AUTH_BODY_LIMIT);
  const result = z.strictObject(shape).safeParse(body);
  if (result.success) return result.data as z.infer<z.ZodObject<T>>;
  throw new Problem('validation_failed', 'the body is not as this route takes it', {
    errors: result.error.issues.flatMap((issue) => faultsOf(issue, body)),
  });
}

function faultsOf(issue: z.core.$ZodIssue, body: unknown): readonly Fault[] {
  const pointer = issue.path.map((part) => `/${pointerPart(String(part))}`).join('');
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      pointer: `${pointer}/${pointerPart(key)}`,
      code: 'unknown_key',
      detail: 'this route does not take that',
    }));
  }
  if (issue.code === 'invalid_type' && issue.path.length === 0) {
    return [{ pointer, code: 'not_an_object', detail: 'expected an object' }];
  }
  const isMissing = issue.path.length === 1 && !Object.hasOwn(body as object, issue.path[0]!);
  if (isMissing) return [{ pointer, code: 'required', detail: issue.message }];
  const code = issue.code === 'invalid_type' ? 'wrong_type' : 'invalid_value';
  return [{ pointer, code, detail: issue.message }];
}
