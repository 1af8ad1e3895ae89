/** The session: loading, signed out, or signed in with the schema as far as it is the caller's. */
import { computed, signal } from '@preact/signals';
import { service } from '../data/api-service.ts';
import { type ShownProblem, shownProblemOf } from '../data/problem-words.ts';
import { fetchSchema, type ServedCollection, type ServedSchema } from '../data/schema-answer.ts';
import { ROOT } from './page-address.ts';

export type StudioSession =
  | { readonly kind: 'loading' | 'signed-out' }
  | { readonly kind: 'failed'; readonly problem: ShownProblem }
  | { readonly kind: 'signed-in'; readonly schema: ServedSchema };

export const session = signal<StudioSession>({ kind: 'loading' });
/** True after an answer 401 on an open page, which stays as it is. */
export const hasEnded = signal(false);

export const schema = computed(() => (session.value.kind === 'signed-in' ? session.value.schema : undefined));
/** The service gives roles to administrators only: also the role waits for a second factor, where it needs one. */
export const isAdminHere = computed(() => schema.value?.roles !== undefined);

export const collectionNamed = (name: string | undefined): ServedCollection | undefined =>
  schema.value?.collections.find((each) => each.name === name);

export async function loadSession(): Promise<void> {
  try {
    session.value = { kind: 'signed-in', schema: await fetchSchema() };
    hasEnded.value = false;
  } catch (error) {
    const problem = shownProblemOf(error);
    session.value = problem.status === 401 ? { kind: 'signed-out' } : { kind: 'failed', problem };
  }
}

/** The problem to show; an ended session asks for a sign-in beside it. */
export function noteProblem(error: unknown): ShownProblem {
  const problem = shownProblemOf(error);
  if (problem.status === 401) hasEnded.value = true;
  return problem;
}

/** Throws BylawError, SecondFactorNeeded. Another user's pages begin anew. */
export async function signIn(email: string, password: string): Promise<void> {
  await signedIn(await service.login({ email, password }));
}

/** Finishes a sign-in by the second factor. Throws BylawError. */
export async function finishSignIn(challenge: string, code: string): Promise<void> {
  const method = /^[0-9]{6}$/.test(code) ? 'totp' : 'recovery';
  await signedIn(await service.finishLogin({ challenge, method, code }));
}

async function signedIn({ id }: { readonly id?: unknown }): Promise<void> {
  const before = schema.peek()?.me.id;
  if (before === id) hasEnded.value = false;
  else await loadSession();
}

export async function signOut(): Promise<void> {
  await service.logout();
  // Nothing of the former user stays in memory.
  location.assign(ROOT);
}
