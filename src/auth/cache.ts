/** A map that forgets what was added first when it is full. */
export class BoundedMap<K, V> {
  readonly #map = new Map<K, V>();
  readonly #max: number;
  constructor(max: number) {
    this.#max = max;
  }
  get size(): number {
    return this.#map.size;
  }
  get(key: K): V | undefined {
    return this.#map.get(key);
  }
  /** Returns what had to go. */
  set(key: K, value: V): V | undefined {
    let dropped: V | undefined;
    if (!this.#map.has(key) && this.#map.size >= this.#max) {
      const oldest = this.#map.keys().next().value as K;
      dropped = this.#map.get(oldest);
      this.#map.delete(oldest);
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
