/** The drafts that this tab keeps for a user: of forms, policies and tests. Another user begins without them. */
const DRAFT_PREFIX = 'bylaw-studio:';
const DRAFT_USER = `${DRAFT_PREFIX}user`;

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
