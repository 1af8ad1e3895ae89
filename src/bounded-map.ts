/**
 * A map of limited weight: a full one drops the entries that were used least recently; uses before it
 * was half full do not count. Each entry weighs 1, unless the map is given a scale.
 */
export class BoundedMap<K, V> {
  /** In the order of use, once it is half full. */
  readonly #map = new Map<K, V>();
  readonly #max: number;
  readonly #weigh: ((key: K) => number) | undefined;
  #weight = 0;

  constructor(max: number, weigh?: (key: K) => number) {
    this.#max = max;
    this.#weigh = weigh;
  }

  get size(): number {
    return this.#map.size;
  }

  get(key: K): V | undefined {
    const value = this.#map.get(key);
    // A used entry moves to the end once the map is half full; an earlier order is not worth its time.
    if (value === undefined || this.#weight <= this.#max / 2) return value;
    this.#map.delete(key);
    this.#map.set(key, value);
    return value;
  }

  /** Returns the last value that was dropped to make room. */
  set(key: K, value: V): V | undefined {
    if (this.#weight > this.#max / 2 ? !this.#map.delete(key) : !this.#map.has(key))
      this.#weight += this.#weigh?.(key) ?? 1;
    const dropped = this.#weight > this.#max ? this.#dropOldest() : undefined;
    this.#map.set(key, value);
    return dropped;
  }

  #dropOldest(): V | undefined {
    let dropped: V | undefined;
    for (const [oldest, value] of this.#map) {
      if (this.#weight <= this.#max) break;
      this.delete(oldest);
      dropped = value;
    }
    return dropped;
  }

  delete(key: K): boolean {
    const isDeleted = this.#map.delete(key);
    if (isDeleted) this.#weight -= this.#weigh?.(key) ?? 1;
    return isDeleted;
  }

  clear(): void {
    this.#map.clear();
    this.#weight = 0;
  }

  entries(): IterableIterator<[K, V]> {
    return this.#map.entries();
  }
}
