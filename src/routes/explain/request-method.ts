/** The method of the request that an action is asked about. Not a route. */
import type { Action } from '../../policy/types.ts';

export const METHOD_OF = {
  list: 'GET',
  read: 'GET',
  create: 'POST',
  update: 'PATCH',
  delete: 'DELETE',
} as const satisfies Readonly<Record<Action, string>>;
