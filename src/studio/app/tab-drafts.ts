/** The drafts that this tab keeps for a user: of forms, policies and tests. Another user begins without them. */
import { useState } from 'preact/hooks';

const DRAFT_PREFIX = 'bylaw-studio:';
const DRAFT_USER = `${DRAFT_PREFIX}user`;

/** The draft as it was kept; undefined: none. */
export function keptTabDraft<Draft>(name: string): Draft | undefined {
  try {
    return JSON.parse(sessionStorage.getItem(DRAFT_PREFIX + name) ?? 'null') ?? undefined;
  } catch {
    return undefined;
  }
}

/** @param draft undefined: the tab keeps none */
export function keepTabDraft(name: string, draft: unknown): void {
  try {
    if (draft === undefined) sessionStorage.removeItem(DRAFT_PREFIX + name);
    else sessionStorage.setItem(DRAFT_PREFIX + name, JSON.stringify(draft));
  } catch {
    // Storage may be forbidden or full: the page has the draft as long as it is open.
  }
}

/** State that the tab keeps under the name, if it has one. @param first also what ends the draft */
export function useTabDraft<Draft>(name: string | undefined, first: Draft): readonly [Draft, (draft: Draft) => void] {
  const [draft, setDraft] = useState(() => (name === undefined ? undefined : keptTabDraft<Draft>(name)) ?? first);
  const change = (changed: Draft): void => {
    setDraft(changed);
    if (name !== undefined) keepTabDraft(name, changed === first ? undefined : changed);
  };
  return [draft, change];
}

/** Drops the drafts of any other user. */
export function keepDraftsOf(user: string): void {
  try {
    if (sessionStorage.getItem(DRAFT_USER) === user) return;
    for (const key of Object.keys(sessionStorage)) if (key.startsWith(DRAFT_PREFIX)) sessionStorage.removeItem(key);
    sessionStorage.setItem(DRAFT_USER, user);
  } catch {
    // Storage may be forbidden: the tab keeps nothing.
  }
}
