/** Waits for `work`, for `ms` milliseconds at most; then gives the value of `onLate`, or throws its error. */
export async function withDeadline<T>(work: Promise<T>, ms: number, onLate: () => T | Promise<T>): Promise<T> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, ms);
  try {
    return await Promise.race([work, late.promise.then(onLate)]);
  } finally {
    clearTimeout(timer);
  }
}
