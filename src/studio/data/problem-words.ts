/** Errors in the words of people: the problem of the service, or a lost connection. */
import { isBylawError } from '../../client/client.ts';
import { wording } from '../en.ts';

export interface ShownProblem {
  readonly text: string;
  /** Messages by the field of `data` that they are about. */
  readonly fields: Readonly<Record<string, string>>;
  /** Messages about other parts of the request. */
  readonly others: readonly string[];
  readonly status: number | undefined;
  readonly requestId: string | undefined;
}

export function shownProblemOf(error: unknown): ShownProblem {
  if (!isBylawError(error)) {
    // `fetch` rejects with a TypeError where no service answers.
    const text = error instanceof TypeError ? wording.offline : String(error);
    return { text, fields: {}, others: [], status: undefined, requestId: undefined };
  }
  const { message, errors, status, fields, requestId } = error;
  const others = errors.filter(({ pointer }) => pointer?.startsWith('/data/') !== true).map(({ detail }) => detail);
  return { text: message, fields, others: others.filter((detail) => detail !== message), status, requestId };
}
