/**
 * Runs rounds of work, one after the other. Callers during a round share the next, which begins after their call; it begins
 * also if the round before fails.
 */
export function inRounds<T>(work: () => Promise<T>): () => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  let next: Promise<T> | undefined;
  return () => {
    if (next === undefined) {
      next = last.then(() => {
        next = undefined;
        return work();
      });
      last = next.catch(() => undefined);
    }
    return next;
  };
}
