/**
 * A map of limited size: a full one drops the entry that was used least recently; uses before it
 * was half full do not count.
 */
export class BoundedMap<K, V> {
  /** In the order of use, once it is half full. */
  readonly #map = new Map<K, V>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#map.size;
  }

  get(key: K): V | undefined {
    const value = this.#map.get(key);
    // A used entry moves to the end once the map is half full; an earlier order is not worth its time.
    if (value === undefined || this.#map.size <= this.#max / 2) return value;
    this.#map.delete(key);
    this.#map.set(key, value);
    return value;
  }

  /** Returns the value that was dropped to make room. */
  set(key: K, value: V): V | undefined {
    let dropped: V | undefined;
    if (!this.#map.delete(key) && this.#map.size >= this.#max) {
      const [oldest] = this.#map;
      if (oldest !== undefined) {
        dropped = oldest[1];
        this.#map.delete(oldest[0]);
      }
    }
    this.#map.set(key, value);
    return dropped;
  }

  delete(key: K): boolean {
    return this.#map.delete(key);
  }

  clear(): void {
    this.#map.clear();
  }

  entries(): IterableIterator<[K, V]> {
    return this.#map.entries();
  }
}
