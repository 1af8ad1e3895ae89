/** The emails of callers whom the address names by their ids, as far as an answer had them. */
import { signal } from '@preact/signals';

export interface NamedUser {
  readonly id: string;
  readonly email: string;
}

const emails = signal<ReadonlyMap<string, string>>(new Map());

export function noteUsers(users: readonly (NamedUser | null)[]): void {
  const unknown = users.filter((user) => user !== null && emails.peek().get(user.id) !== user.email);
  if (unknown.length === 0) return;
  emails.value = new Map([...emails.peek(), ...unknown.map((user) => [user!.id, user!.email] as const)]);
}

/** The email of a user, and any other caller as it is. */
export const callerName = (caller: string): string => emails.value.get(caller) ?? caller;
