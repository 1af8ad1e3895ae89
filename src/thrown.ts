/** Reads and handles thrown values, which need not be Errors. */

/** Returns `ENOENT`, `EADDRINUSE`, `ERR_JWT_EXPIRED`, …; undefined if the value has no code. */
export const codeOf = (thrown: unknown): unknown =>
  typeof thrown === 'object' && thrown !== null && 'code' in thrown ? thrown.code : undefined;

export const reasonOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown));

/** The errors of a path that its user can mend. */
const PATH_REASONS: ReadonlyMap<unknown, string> = new Map([
  ['ENOENT', 'it does not exist'],
  ['EISDIR', 'it is a folder; expected a file'],
  ['EEXIST', 'it is a file; expected a folder'],
  ['ENOTDIR', 'a part of its path is a file; expected a folder'],
  ['EACCES', 'this user has no right to it'],
]);

/** The reason why a path cannot be read or written. */
export const pathReasonOf = (thrown: unknown): string => PATH_REASONS.get(codeOf(thrown)) ?? reasonOf(thrown);

export const succeeds = (work: Promise<unknown>): Promise<boolean> =>
  work.then(
    () => true,
    () => false,
  );

/** Resolves with undefined if the file does not exist. */
export async function unlessMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
