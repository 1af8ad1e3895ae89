/** The names by which the triggers of histories and their readers know each other. */

/** Entries of all collections. */
export const RECORD_HISTORY_TABLE = 'bylaw_history';
/** A setting of the transaction: the principal who writes. */
export const HISTORY_ACTOR = 'bylaw.by';
/** An entry has a time of its own. */
export const NOT_IN_HISTORY: ReadonlySet<string> = new Set(['updated_at']);
