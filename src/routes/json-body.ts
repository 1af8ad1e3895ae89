/** Reads small JSON bodies of a fixed shape before the handler runs. Not a route. */
import { z } from 'zod';
import { counted } from '../counted.ts';
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
      const result = schema.safeParse(body, { error: messageOf, reportInput: true });
      if (result.success) return result.data as z.infer<z.ZodObject<T>>;
      throw new Problem('validation_failed', 'the body does not have the shape that this route takes', {
        errors: result.error.issues.flatMap(issueErrors),
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

function issueErrors(issue: z.core.$ZodIssue): readonly ErrorDetail[] {
  const { path } = issue;
  const pointer = path.map((part) => `/${pointerPart(String(part))}`).join('');
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      pointer: `${pointer}/${pointerPart(key)}`,
      code: 'unknown_key',
      detail: 'unknown key',
    }));
  }
  if (issue.code === 'invalid_type' && path.length === 0) {
    return [{ pointer, code: 'not_an_object', detail: 'expected an object' }];
  }
  // JSON has no undefined.
  if (issue.input === undefined) return [{ pointer, code: 'required', detail: issue.message }];
  if (issue.code === 'invalid_union') {
    const meant = issue.errors.find((errors) => !errors.some(isOfAnotherType));
    if (meant !== undefined) return meant.flatMap((each) => issueErrors({ ...each, path: [...path, ...each.path] }));
  }
  const code = issue.code === 'invalid_type' ? 'wrong_type' : 'invalid_value';
  return [{ pointer, code, detail: issue.message }];
}

/** The value itself has another type, so this branch of a union was not meant. */
const isOfAnotherType = ({ code, path }: z.core.$ZodIssue): boolean => code === 'invalid_type' && path.length === 0;

/** The message of an issue where the shape gives none. */
function messageOf(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return `expected ${jsonTypeName(issue.expected)}`;
    case 'invalid_union':
      return `expected ${issue.errors.flatMap((errors) => errors.map(expectedType)).join(' or ')}`;
    case 'invalid_value':
      return `expected one of ${issue.values.join(', ')}`;
    case 'too_big':
      return `expected at most ${boundText(issue.maximum, issue.origin)}`;
    case 'too_small':
      return `expected at least ${boundText(issue.minimum, issue.origin)}`;
    default:
      return 'expected another value';
  }
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  array: 'a list',
  boolean: 'bool',
  object: 'an object',
  record: 'an object',
};
const jsonTypeName = (type: string): string => TYPE_NAMES[type] ?? type;
const expectedType = (issue: z.core.$ZodIssue): string =>
  jsonTypeName(issue.code === 'invalid_type' ? issue.expected : 'another value');

const COUNTED_UNITS: Readonly<Record<string, string>> = { array: 'element', string: 'character' };
function boundText(bound: number | bigint, origin: string): string {
  const unit = COUNTED_UNITS[origin];
  return unit === undefined ? String(bound) : counted(bound, unit);
}
