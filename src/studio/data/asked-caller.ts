/** The caller of a question, as the service takes it. */
import { schema } from '../app/session-state.ts';
import { MADE_UP_ID } from './made-up-id.ts';

const ROLE_PREFIX = 'role:';

const isRole = (name: string): boolean => schema.value?.roles?.some((role) => role.name === name) === true;

/** The name of a caller in an address: `role:NAME`, which no email and no id is. */
export const askedAs = (caller: string): string => (isRole(caller) ? `${ROLE_PREFIX}${caller}` : caller);

/** A role is asked about as a user who has it, and no record; others are an email, an id or `guest`. */
export function askedCaller(caller: string): string | object {
  const name = caller.startsWith(ROLE_PREFIX) ? caller.slice(ROLE_PREFIX.length) : caller;
  return isRole(name) ? { roles: [name], id: MADE_UP_ID } : caller;
}
