/** The session: loading, signed out, or signed in with the schema as far as it is the caller's. */
import { computed, signal } from '@preact/signals';
import { service } from '../data/api-service.ts';
import { type ShownProblem, shownProblemOf } from '../data/problem-words.ts';
import { fetchSchema, type ServedCollection, type ServedSchema } from '../data/schema-answer.ts';
import { ROOT } from './page-address.ts';
import { keepDraftsOf } from './tab-drafts.ts';

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
    const served = await fetchSchema();
    keepDraftsOf(served.me.id);
    session.value = { kind: 'signed-in', schema: served };
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

export async function signOut(): Promise<void> {
  await service.logout();
  // Nothing of the former user stays: not in memory, and not in a page that the browser keeps for the way back.
  session.value = { kind: 'signed-out' };
  location.assign(ROOT);
}
