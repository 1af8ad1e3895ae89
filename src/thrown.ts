/** What a `catch` may ask of a value that was thrown, which need not be an Error. */

/** `ENOENT`, `EADDRINUSE`, `ERR_JWT_EXPIRED`, …; undefined where it has none. */
export const codeOf = (thrown: unknown): unknown =>
  typeof thrown === 'object' && thrown !== null && 'code' in thrown ? thrown.code : undefined;

export const reasonOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown));
