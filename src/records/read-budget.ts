/**
 * The budget of one answer of records: the time of all its statements, the related records that it holds, because expands
 * within expands multiply, and its bytes, because records that share a related one each hold a copy of it.
 */
import { type Cells, type Lane, type Reader, type ReadOptions, StoreError } from '../database/contract.ts';
import { Refusal } from '../refusal.ts';
import type { Schema } from '../schema/model/model.ts';
import type { Sql } from '../sql.ts';
import { type JsonText, utf8BytesOf } from './json-pieces.ts';

const MOST_RELATED = 25_000;
/** UTF-8 bytes of one unit of UTF-16. */
const MOST_BYTES = 3;

export interface BudgetOptions {
  readonly schema: Pick<Schema, 'limits'>;
  readonly reader: Pick<Reader, 'rows'>;
  /** The lane of statements that state no other. */
  readonly lane?: Lane;
}

export class ReadBudget {
  readonly #options: BudgetOptions;
  readonly #end: number;
  #related = MOST_RELATED;

  constructor(options: BudgetOptions) {
    this.#options = options;
    this.#end = performance.now() + options.schema.limits.queryTime * 1000;
  }

  /** Throws `query_too_expensive`. */
  async rows(statement: Sql, options: ReadOptions = {}): Promise<readonly Cells[]> {
    const { reader, lane = 'quick' } = this.#options;
    const limitMs = this.#end - performance.now();
    if (limitMs < 1) throw readTooSlow();
    try {
      return await reader.rows(statement, { lane, ...options, limitMs });
    } catch (error) {
      throw error instanceof StoreError && error.kind === 'time_limit' ? readTooSlow() : error;
    }
  }

  /** The related records that the answer may still hold. */
  get related(): number {
    return this.#related;
  }

  /** Throws `query_too_expensive`. */
  takeRelated(records: number): void {
    this.#related -= records;
    if (this.#related < 0) {
      const detail = `the expands hold more than ${MOST_RELATED} related records; ask for fewer by \`limit\``;
      throw new Refusal('query_too_expensive', detail);
    }
  }

  /**
   * Joins texts, each copy of a shared record anew, and stops at the first that does not fit into an answer. Throws
   * `query_too_expensive`.
   */
  fitting<T extends JsonText>(texts: Iterable<T>): readonly T[] {
    const { answer } = this.#options.schema.limits;
    const fitting: T[] = [];
    // Counting would copy each text once more, so bytes are counted where the most that the texts can have is too many.
    let most = 0;
    let counted = 0;
    let bytes = 0;
    for (const text of texts) {
      fitting.push(text);
      most += text.length * MOST_BYTES + 1;
      if (most <= answer) continue;
      for (; counted < fitting.length; counted++) bytes += utf8BytesOf(fitting[counted]!) + 1;
      if (bytes > answer) throw answerTooLarge(answer);
      most = bytes;
    }
    return fitting;
  }
}

const readTooSlow = (): Refusal =>
  new Refusal('query_too_expensive', 'the read takes too long; ask for less, or filter and sort by indexed fields');

const answerTooLarge = (bytes: number): Refusal =>
  new Refusal(
    'query_too_expensive',
    `the answer would hold more than ${bytes} bytes; ask for fewer \`fields\`, a smaller \`limit\` or less \`expand\``,
  );
