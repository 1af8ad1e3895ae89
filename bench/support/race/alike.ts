/** Checks that servers give the same answers: only then are they comparable. */
import { isDeepStrictEqual } from 'node:util';

export interface Answered {
  readonly status: number;
  readonly body: unknown;
}

/** Throws unless all have the same status and body, but for the members of records named `differs`. */
export function mustBeAlike(answers: readonly Answered[], differs: readonly string[] = []): void {
  const without = new Set(differs);
  const comparable = answers.map(({ status, body }) => ({ status, body: comparableOf(body, without) }));
  if (comparable.every((answer) => isDeepStrictEqual(answer, comparable[0]))) return;
  throw new Error(
    `the servers answer differently, so there is nothing to compare: ${JSON.stringify(comparable, null, 1)}`,
  );
}

/** Instants are compared to the millisecond, which is all that the types of the usual server hold. */
function comparableOf(value: unknown, without: ReadonlySet<string>): unknown {
  if (typeof value === 'string' && /^\d{4}-\d\d-\d\dT/.test(value)) return Math.floor(Date.parse(value));
  if (Array.isArray(value)) return value.map((item) => comparableOf(item, without));
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).filter(([name]) => !without.has(name));
  return Object.fromEntries(members.map(([name, item]) => [name, comparableOf(item, without)]).sort());
}
