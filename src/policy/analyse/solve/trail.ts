/** Remembers changes, so that a search can take them back. */
export class Trail {
  readonly #undo: (() => void)[] = [];

  get mark(): number {
    return this.#undo.length;
  }

  undoTo(mark: number): void {
    while (this.#undo.length > mark) this.#undo.pop()!();
  }

  set<T extends object, K extends keyof T>(holder: T, key: K, value: T[K]): void {
    const before = holder[key];
    if (before === value) return;
    holder[key] = value;
    this.#undo.push(() => {
      holder[key] = before;
    });
  }

  put<K, V>(map: Map<K, V>, key: K, value: V): void {
    const before = map.get(key);
    map.set(key, value);
    this.#undo.push(() => {
      if (before === undefined) map.delete(key);
      else map.set(key, before);
    });
  }

  push<T>(list: T[], item: T): void {
    list.push(item);
    this.#undo.push(() => {
      list.pop();
    });
  }
}
