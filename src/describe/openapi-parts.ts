/** The pieces that OpenAPI documents are made of. */
import { PROBLEMS, type ProblemCode } from '../problem.ts';

export type Json = { [key: string]: unknown };

export const ref = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });
export const json = (schema: Json): Json => ({ content: { 'application/json': { schema } } });

/** `success`: responses by status. `problems`: what may be refused, answered by the shared problem responses. */
export function operation({ success, problems, ...rest }: Json): Json {
  const statuses = [...new Set(((problems ?? []) as readonly ProblemCode[]).map((code) => PROBLEMS[code].status))].sort(
    (a, b) => a - b,
  );
  const refused = Object.fromEntries(
    statuses.map((status) => [String(status), { $ref: `#/components/responses/Problem${status}` }]),
  );
  return { ...rest, responses: { ...(success as Json), ...refused } };
}
