/**
 * Two databases that differ only in what a caller may not see give the same answers, byte for byte, cursors and errors included,
 * by the same statements, each of which finds as many rows.
 */
import type { Database, Reader } from '../../../src/database/contract.ts';
import type { Row } from '../../../src/policy/types.ts';
import { readsData, readsNext } from '../../../src/policy/visit.ts';
import type { Data, Id } from '../../oracle/database.ts';
import type { Random } from '../random.ts';
import type { FuzzCaller, StockedWorld } from './caller.ts';
import { aroundDifference } from './difference.ts';
import { type Change, HiddenChanges } from './hidden-changes.ts';
import { MOST_COUNTED } from './small-counts.ts';

/** A body of a query or of an aggregate. */
export interface Question {
  readonly kind: 'query' | 'aggregate';
  readonly body: Row;
}
interface Tainted {
  /** The present rows of the database. */
  readonly data: Data;
  readonly changes: number;
  /** Questions that took too long before the changes or after them: the clock decided, so these compare nothing. */
  readonly expensive: number;
  /** In words. */
  readonly found?: string;
}
/** A question, for a report, and its answer; empty: it took too long. */
type Asked = readonly [string, string];

export class TaintCheck {
  readonly #world: StockedWorld;
  readonly #caller: FuzzCaller;
  readonly #random: Random;

  constructor(world: StockedWorld, caller: FuzzCaller, random: Random) {
    this.#world = world;
    this.#caller = caller;
    this.#random = random;
  }

  async run(questions: readonly Question[]): Promise<Tainted> {
    const before = this.#world.data;
    const hidden = new HiddenChanges(this.#world, this.#caller, this.#random);
    const { data, changes } = hidden.make(before);
    if (changes.length === 0) return { data, changes: 0, expensive: 0 };
    const { name } = this.#caller.collection;
    const ids = [...new Set([...before.rows.get(name)!, ...data.rows.get(name)!].map(({ id }) => id as Id))];
    const ask = async (): Promise<readonly Asked[]> => {
      const answers: Asked[] = [];
      for (const question of questions) answers.push(await this.#answer(question));
      for (const id of ids) answers.push(await this.#read(id));
      return [...answers, await this.#list()];
    };
    const first = await ask();
    for (const change of changes) await hidden.perform(change);
    const second = await ask();
    const isTimely = (i: number): boolean => first[i]![1] !== '' && second[i]![1] !== '';
    const expensive = second.filter((_, i) => !isTimely(i)).length;
    const at = second.findIndex(([, answer], i) => answer !== first[i]![1] && isTimely(i));
    const found = at < 0 ? {} : { found: differenceIn(changes, first[at]!, second[at]!) };
    return { data, changes: changes.length, expensive, ...found };
  }

  // -------------------------------------------------------------- the answers

  #answer({ kind, body }: Question): Promise<Asked> {
    const { doors, stocked } = this.#world;
    const { collection } = this.#caller;
    // The view does not compare the outcome of an open rule.
    const isOpen = this.#caller.rules.update.some(({ meant }) => readsNext(meant) || readsData(meant));
    const asked = isOpen ? { ...body, ...(kind === 'query' && { capabilities: false }) } : body;
    return this.#watched(JSON.stringify(asked), async (db) => {
      const records = doors.createRecords(db, stocked.schema, { statisticsOf: () => undefined });
      if (kind === 'aggregate')
        return records.aggregate(this.#caller.access(), doors.aggregateRequestOf(asked, stocked.schema, collection));
      const request = doors.queryRequestOf(asked, stocked.schema, collection);
      const page = await records.list(this.#caller.access(), request);
      // The planner's figure is that of tables and their statistics, and is given only where nothing is hidden.
      const isPlanned = page.totalIsEstimate === true && page.total !== MOST_COUNTED;
      return isPlanned ? { ...page, total: 'planned' } : page;
    });
  }

  /** The record with its ETag. */
  #read(id: Id): Promise<Asked> {
    const { doors, stocked } = this.#world;
    const asked = { id, relations: [...this.#caller.collection.relations.values()] };
    return this.#watched(`record ${id}`, (db) =>
      doors.createRecords(db, stocked.schema, { statisticsOf: () => undefined }).read(this.#caller.access(), asked),
    );
  }

  #list(): Promise<Asked> {
    const { doors, stocked } = this.#world;
    const asked = { limit: 100, offset: 0, count: 'exact' } as const;
    return this.#watched('list', (db) =>
      doors.createRecords(db, stocked.schema, { statisticsOf: () => undefined }).list(this.#caller.access(), asked),
    );
  }

  /** With the statements that it took, and how many rows each found. An error by its code. */
  async #watched(what: string, ask: (db: Database) => Promise<unknown>): Promise<Asked> {
    const { db } = this.#world.stocked;
    const statements: string[] = [];
    const watch =
      (send: Reader['rows']): Reader['rows'] =>
      async (statement, options) => {
        const rows = await send(statement, options);
        // How a plan is printed depends on the statistics.
        const found = statement.text.startsWith('EXPLAIN') ? 'a plan' : rows.length;
        // The lists of ids come in the order in which rows lie on disk, and what is left of a budget in that of answers.
        const lists = statement.params.flatMap(({ value }) => (Array.isArray(value) ? [value.toSorted()] : []));
        statements.push(JSON.stringify([statement.text, lists, found]));
        return rows;
      };
    const reader: Reader = {
      rows: watch(db.rows),
      run: db.run,
    };
    const answer = await ask({ ...db, replicaFor: () => reader }).catch((error: unknown) => {
      const { code } = error as { readonly code?: string };
      if (code === undefined) throw error;
      return { code };
    });
    const isExpensive = (answer as { readonly code?: string }).code === 'query_too_expensive';
    return [what, isExpensive ? '' : JSON.stringify([answer, statements.toSorted()])];
  }
}

function differenceIn(changes: readonly Change[], [question, before]: Asked, [, after]: Asked): string {
  return [
    'DISAGREEMENT: an answer depends on what is hidden',
    `  question    ${question}`,
    `  changed     ${JSON.stringify(changes)}`,
    `  before      ${aroundDifference(before, after)}`,
    `  after       ${aroundDifference(after, before)}`,
  ].join('\n');
}
