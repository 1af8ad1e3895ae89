/** Makes a value at the first call. Later calls return the same for any arguments. */
export function memoized<T, A extends readonly unknown[]>(make: (...args: A) => T): (...args: A) => T {
  let made: { readonly value: T } | undefined;
  return (...args) => {
    made ??= { value: make(...args) };
    return made.value;
  };
}

/** Makes a value for each key at the first call with it; the value ends with the key. For pure functions of the key. */
export function memoizedBy<K extends object, V extends object | string | boolean>(make: (key: K) => V): (key: K) => V {
  const known = new WeakMap<K, V>();
  return (key) => {
    let value = known.get(key);
    if (value === undefined) {
      value = make(key);
      known.set(key, value);
    }
    return value;
  };
}
