/** How many related records one answer may hold: expands within expands multiply. */
import { Refusal } from '../../refusal.ts';

const MOST_RELATED = 25_000;

export class RowBudget {
  #left = MOST_RELATED;

  get left(): number {
    return this.#left;
  }

  /** Throws `query_too_expensive`. */
  take(rows: number): void {
    this.#left -= rows;
    if (this.#left >= 0) return;
    throw new Refusal(
      'query_too_expensive',
      `the expands hold more than ${MOST_RELATED} related records; ask for fewer by \`limit\``,
    );
  }
}
