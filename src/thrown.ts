/** Reads a thrown value, which need not be an Error. */

/** Returns `ENOENT`, `EADDRINUSE`, `ERR_JWT_EXPIRED`, …; undefined if the value has no code. */
export const codeOf = (thrown: unknown): unknown =>
  typeof thrown === 'object' && thrown !== null && 'code' in thrown ? thrown.code : undefined;

export const reasonOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown));
