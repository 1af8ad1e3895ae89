/**
 * The budget of one query: its statements share the time that the schema gives it, and its answer
 * holds a bounded number of related records, because expands within expands multiply.
 */
import { type Cells, type Reader, StoreError } from '../../database/contract.ts';
import { Refusal } from '../../refusal.ts';
import type { Sql } from '../../sql.ts';
import type { Store } from '../access-context.ts';

const MOST_RELATED = 25_000;

export class QueryBudget {
  readonly #reader: Reader;
  readonly #end: number;
  #related = MOST_RELATED;

  constructor({ schema }: Pick<Store, 'schema'>, reader: Reader) {
    this.#reader = reader;
    this.#end = performance.now() + schema.limits.queryTime * 1000;
  }

  /** Throws `query_too_expensive`. Plain lists are not delayed: slow statements have connections of their own. */
  async rows(statement: Sql): Promise<readonly Cells[]> {
    const left = this.#end - performance.now();
    if (left < 1) throw tooExpensive();
    try {
      return await this.#reader.rows(statement, { lane: 'slow', limitMs: left });
    } catch (error) {
      throw error instanceof StoreError && error.kind === 'time_limit' ? tooExpensive() : error;
    }
  }

  /** The related records that the answer may still hold. */
  get related(): number {
    return this.#related;
  }

  /** Throws `query_too_expensive`. */
  takeRelated(records: number): void {
    this.#related -= records;
    if (this.#related >= 0) return;
    throw new Refusal(
      'query_too_expensive',
      `the expands hold more than ${MOST_RELATED} related records; ask for fewer by \`limit\``,
    );
  }
}

const tooExpensive = (): Refusal =>
  new Refusal('query_too_expensive', 'the query takes too long; ask for less, or filter and sort by indexed fields');
