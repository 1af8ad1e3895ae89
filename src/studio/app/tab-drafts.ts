/** The drafts that this tab keeps for a user: of forms, policies and tests. Another user begins without them. */
const PREFIX = 'bylaw-studio:';
const OWNER = `${PREFIX}user`;

/** Drops the drafts of any other user. */
export function keepDraftsOf(user: string): void {
  try {
    if (sessionStorage.getItem(OWNER) === user) return;
    for (const key of Object.keys(sessionStorage)) if (key.startsWith(PREFIX)) sessionStorage.removeItem(key);
    sessionStorage.setItem(OWNER, user);
  } catch {
    // Storage may be forbidden: the tab keeps nothing.
  }
}
