/** Keys of the open page, by what is pressed. */
export const pageKeys = new Map<string, () => void>();

/** For an effect of a page: returns the function that ends it. */
export function onPageKey(key: string, run: () => void): () => void {
  pageKeys.set(key, run);
  return () => pageKeys.delete(key);
}
