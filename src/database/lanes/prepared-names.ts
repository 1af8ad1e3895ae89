import { BoundedMap } from '../../bounded-map.ts';

/**
 * Executions after which PostgreSQL may keep one plan for all values of a prepared statement (its documentation of
 * PREPARE).
 */
const PLANNED_TIMES = 5;

interface Prepared {
  readonly name: string;
  uses: number;
}

/** The statements that are prepared on one connection, by their names. */
export class PreparedNames {
  readonly #prepared: BoundedMap<string, Prepared>;
  /** Names that may be prepared or not. Closing an unknown name is not an error. */
  readonly #doubtful = new Set<string>();

  constructor(most: number) {
    this.#prepared = new BoundedMap(most);
  }

  /**
   * Returns undefined if the name is prepared; else the names to close before the caller prepares it, itself among
   * them. Unlike DEALLOCATE, the message Close works in a failed transaction too. A statement that `isPlannedAnew` is
   * prepared again every few executions.
   */
  use(name: string, isPlannedAnew: boolean): readonly string[] | undefined {
    const known = this.#prepared.get(name);
    if (known !== undefined && !(isPlannedAnew && known.uses >= PLANNED_TIMES)) {
      known.uses++;
      return undefined;
    }
    this.#doubtful.add(name);
    const dropped = this.#prepared.set(name, { name, uses: 1 });
    if (dropped !== undefined) this.#doubtful.add(dropped.name);
    const closed = [...this.#doubtful];
    this.#doubtful.clear();
    return closed;
  }

  /** After an error. */
  forget(name: string): void {
    this.#prepared.delete(name);
    this.#doubtful.add(name);
  }
}
