/** The statements that are prepared on one connection, by their names. */

/** A connection of the driver; its types leave this out. */
export interface PreparingConnection {
  readonly parsedStatements: Record<string, string>;
  readonly submittedNamedStatements: Record<string, string>;
  close(message: { readonly type: 'S'; readonly name: string }): void;
}

/**
 * Times that PostgreSQL makes a plan for the values of a prepared statement; afterwards it may keep
 * one for all values (its documentation of PREPARE).
 */
const PLANNED_TIMES = 5;

export class PreparedNames {
  readonly #connection: PreparingConnection;
  readonly #most: number;
  /** How often each was used; the least recently used first. */
  readonly #uses = new Map<string, number>();
  /** Whether they are prepared is unknown. Closing an unknown name is not an error. */
  readonly #doubtful = new Set<string>();

  constructor(connection: PreparingConnection, most: number) {
    this.#connection = connection;
    this.#most = most;
  }

  /**
   * Whether the name is prepared; if not, the next message of `gathering` must prepare it. What it
   * displaces is closed there. A statement that `isPlannedAnew` is prepared again in time.
   */
  use(name: string, gathering: PreparingConnection, isPlannedAnew: boolean): boolean {
    const uses = this.#uses.get(name);
    const isPrepared = uses !== undefined && !(isPlannedAnew && uses >= PLANNED_TIMES);
    this.#uses.delete(name);
    this.#uses.set(name, isPrepared ? uses + 1 : 1);
    if (isPrepared) return true;
    this.#doubtful.add(name);
    if (this.#uses.size > this.#most) this.#evict();
    for (const each of this.#doubtful) this.#close(each, gathering);
    this.#doubtful.clear();
    return false;
  }

  /** After an error. */
  forget(name: string): void {
    this.#uses.delete(name);
    this.#doubtful.add(name);
  }

  #evict(): void {
    const [oldest] = this.#uses.keys();
    this.#uses.delete(oldest!);
    this.#doubtful.add(oldest!);
  }

  /**
   * Statements in flight still find it. Unlike DEALLOCATE, the message works in a failed
   * transaction too.
   */
  #close(name: string, gathering: PreparingConnection): void {
    delete this.#connection.parsedStatements[name];
    delete this.#connection.submittedNamedStatements[name];
    gathering.close({ type: 'S', name });
  }
}
