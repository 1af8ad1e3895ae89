/**
 * The budget of one answer of records: the time of all its statements, the related records that it holds, because expands
 * within expands multiply, and its bytes, because records that share a related one each hold a copy of it.
 */
import {
  type Cells,
  type Lane,
  type Reader,
  type ReadOptions,
  ROWS_TOO_LARGE,
  StoreError,
} from '../database/contract.ts';
import { laneQueue } from '../database/lanes/queue.ts';
import type { FairQueue, Leave } from '../fair-queue.ts';
import { Refusal } from '../refusal.ts';
import type { Schema } from '../schema/model/model.ts';
import { Sql } from '../sql.ts';
import { type JsonText, utf8BytesOf } from './json-pieces.ts';

const MOST_RELATED = 25_000;
/** UTF-8 bytes of one unit of UTF-16. */
const BYTES_OF_CHARACTER = 3;

export interface BudgetOptions {
  readonly schema: Pick<Schema, 'limits'>;
  readonly reader: Pick<Reader, 'rows'>;
  /** The lane of statements that state no other. */
  readonly lane?: Lane;
  /** The limit of the answer. Default: that of the schema. */
  readonly mostBytes?: number;
}

/** Bytes of its rows, as the database sends them, above which a read is large. */
const LARGE = 1_048_576;
/** The large reads at a time, whose rows and texts are in memory together: one thread makes the texts anyway. */
const largeReads = laneQueue({ places: 2 });
/**
 * Rows hold what the answer shows, and members that only sort or join them. A statement that finds more bytes than so
 * many answers have is refused while they arrive.
 */
const ROWS_PER_ANSWER = 2;

/** Thrown by a large read that has no place. */
class LargeReadWaits extends Error {}

/**
 * Reads within a budget. A read that turns out large needs one of a few places: where none is free, it lets go of its
 * rows and begins again once it has one. So a caller who asks for much at a time waits, and memory stays.
 */
export async function readWithinBudget<T>(
  options: BudgetOptions,
  read: (budget: ReadBudget) => Promise<T>,
): Promise<T> {
  const budget = new ReadBudget(options, largeReads);
  try {
    return await read(budget);
  } catch (error) {
    if (!(error instanceof LargeReadWaits)) throw error;
  } finally {
    budget.leave?.();
  }
  return largeReads.serve(() => read(new ReadBudget(options)));
}

export class ReadBudget {
  readonly #options: BudgetOptions;
  readonly #end: number;
  readonly #mostBytes: number;
  readonly #places: FairQueue | undefined;
  /** Ends the place of a large read. */
  leave: Leave | undefined;
  #related = MOST_RELATED;
  #read = 0;

  /** @param places of large reads; undefined: the read has its place, or must not wait. */
  constructor(options: BudgetOptions, places?: FairQueue) {
    this.#options = options;
    this.#places = places;
    this.#mostBytes = options.mostBytes ?? options.schema.limits.answer;
    this.#end = performance.now() + options.schema.limits.queryTime * 1000;
  }

  /** Throws `query_too_expensive`. */
  async rows(statement: Sql, options: ReadOptions = {}): Promise<readonly Cells[]> {
    const { reader, lane = 'quick' } = this.#options;
    const answer = this.#mostBytes;
    const limitMs = this.#end - performance.now();
    if (limitMs < 1) throw readTooSlow();
    const { most = Number.POSITIVE_INFINITY } = statement.rowBytes ?? {};
    const rowBytes = { most: Math.min(most, ROWS_PER_ANSWER * answer), read: 0 };
    let rows: readonly Cells[];
    try {
      const bounded = new Sql(statement.shape, statement.params, rowBytes);
      rows = await reader.rows(bounded, { lane, ...options, limitMs });
    } catch (error) {
      throw error instanceof StoreError && error.kind === 'time_limit' ? readTooSlow() : error;
    }
    if (statement.rowBytes !== undefined) statement.rowBytes.read = rowBytes.read;
    if (rows === ROWS_TOO_LARGE && rowBytes.read <= most) throw answerTooLarge(answer);
    this.#read += rowBytes.read;
    if (this.#read > LARGE) this.#needPlace();
    return rows;
  }

  #needPlace(): void {
    if (this.#places === undefined || this.leave !== undefined) return;
    this.leave = this.#places.enterAtOnce();
    if (this.leave === undefined) throw new LargeReadWaits();
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
    const answer = this.#mostBytes;
    const fitting: T[] = [];
    // Counting would copy each text once more, so bytes are counted where the most that the texts can have is too many.
    let most = 0;
    let counted = 0;
    let bytes = 0;
    for (const text of texts) {
      fitting.push(text);
      most += text.length * BYTES_OF_CHARACTER + 1;
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
