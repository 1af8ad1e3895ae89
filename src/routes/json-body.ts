/** Reads small JSON bodies of a fixed shape before the handler runs. Not a route. */
import { z } from 'zod';
import type { Json, Shape } from '../describe/operation.ts';
import { AUTH_BODY_LIMIT } from '../http/body.ts';
import { type ErrorDetail, Problem, pointerPart } from '../problem.ts';
import type { Body } from './define-route.ts';

/** Reads an object with these keys and no other. Throws `validation_failed` with every error. */
export function jsonBody<T extends z.ZodRawShape>(shape: T, limit = AUTH_BODY_LIMIT): Body<z.infer<z.ZodObject<T>>> {
  const schema = z.strictObject(shape);
  const { $schema: _, ...json } = z.toJSONSchema(schema, { io: 'input' });
  return {
    type: 'application/json',
    shape: () => json as Json,
    async read(ctx, app) {
      const body = await app.readJson(ctx, limit);
      const result = schema.safeParse(body);
      if (result.success) return result.data as z.infer<z.ZodObject<T>>;
      throw new Problem('validation_failed', 'the body does not have the shape that this route takes', {
        errors: result.error.issues.flatMap((issue) => issueErrors(issue, body)),
      });
    },
  };
}

/** The body with a value that the documentation shows and its console sends. */
export const withExample = <T>(body: Body<T>, example: Json | Shape): Body<T> => ({
  ...body,
  shape: (scope) => ({
    ...body.shape(scope),
    examples: [typeof example === 'function' ? example(scope) : example],
  }),
});

function issueErrors(issue: z.core.$ZodIssue, body: unknown): readonly ErrorDetail[] {
  const pointer = issue.path.map((part) => `/${pointerPart(String(part))}`).join('');
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      pointer: `${pointer}/${pointerPart(key)}`,
      code: 'unknown_key',
      detail: 'unknown key',
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
