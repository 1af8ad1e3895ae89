/** Makes a value at the first call. Later calls return the same for any arguments. */
export function memoized<T, A extends readonly unknown[]>(make: (...args: A) => T): (...args: A) => T {
  let made: { readonly value: T } | undefined;
  return (...args) => {
    made ??= { value: make(...args) };
    return made.value;
  };
}
