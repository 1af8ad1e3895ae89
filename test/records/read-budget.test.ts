/** The memory of reads: large ones take turns at a few places, and rows that no answer holds are refused. */
import { describe, expect, test } from 'vitest';
import { type Cells, ROWS_TOO_LARGE } from '../../src/database/contract.ts';
import { asCaller } from '../../src/queued-caller.ts';
import { readWithinBudget } from '../../src/records/read-budget.ts';
import { raw, type Sql } from '../../src/sql.ts';

const LIMITS = { body: 1, answer: 16 * 1024 * 1024, queryTime: 60, writeTime: 5 };
const ROW: Cells = ['x'.repeat(2 * 1024 * 1024)];
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** The database counts the bytes of the rows that it sends. */
function sent(rows: readonly Cells[], { rowBytes }: Sql): readonly Cells[] {
  rowBytes!.read = rows.flat().reduce((sum, cell) => sum + (cell?.length ?? 0), 0);
  return rows;
}

/** Reads one large row by a statement, and holds it until `release`. */
class LargeRead {
  statements = 0;
  /** The rows are in memory. */
  isHolding = false;
  readonly done: Promise<string>;
  readonly #released = Promise.withResolvers<void>();

  constructor(caller: string, rows: readonly Cells[] = [ROW]) {
    const reader = {
      rows: async (statement: Sql) => {
        expect(statement.rowBytes!.most).toBe(2 * LIMITS.answer);
        this.statements++;
        return sent(rows, statement);
      },
    };
    this.done = asCaller({ id: caller, isKept: false }, () =>
      readWithinBudget({ schema: { limits: LIMITS as never }, reader }, async (budget) => {
        await budget.rows(raw('SELECT 1'));
        this.isHolding = true;
        await this.#released.promise;
        return caller;
      }),
    );
  }

  async release(): Promise<string> {
    this.#released.resolve();
    return this.done;
  }
}

describe('large reads', () => {
  test('two large reads are in memory at a time, and callers take turns at their places', async () => {
    const [first, second, ...flood] = Array.from({ length: 4 }, () => new LargeRead('ann'));
    await settled();
    const other = new LargeRead('bob');
    await settled();
    const holding = () => [first, second, ...flood, other].map((read) => read!.isHolding);
    expect(holding()).toEqual([true, true, false, false, false]);
    expect(await first!.release()).toBe('ann');
    await settled();
    // Bob is next, although Ann asked for four at once.
    expect(holding()).toEqual([true, true, false, false, true]);
    expect(await second!.release()).toBe('ann');
    await settled();
    expect(holding()).toEqual([true, true, true, false, true]);
    await Promise.all([...flood, other].map((read) => read!.release()));
    expect([first, second, ...flood, other].map((read) => read!.statements)).toEqual([1, 1, 2, 2, 2]);
  });

  test('small reads need no place', async () => {
    const reads = Array.from({ length: 10 }, () => new LargeRead('ann', [['small']]));
    await settled();
    expect(reads.every(({ isHolding, statements }) => isHolding && statements === 1)).toBe(true);
    await Promise.all(reads.map((read) => read.release()));
  });

  test('a read that fails leaves its place', async () => {
    const fail = () =>
      readWithinBudget(
        { schema: { limits: LIMITS as never }, reader: { rows: async (statement) => sent([ROW], statement) } },
        async (budget) => {
          await budget.rows(raw('SELECT 1'));
          throw new Error('broken');
        },
      );
    for (let i = 0; i < 5; i++) await expect(fail()).rejects.toThrow('broken');
    const read = new LargeRead('ann');
    await settled();
    expect([read.isHolding, read.statements]).toEqual([true, 1]);
    await read.release();
  });

  test('rows beyond what an answer can hold are too expensive', async () => {
    const read = new LargeRead('ann', ROWS_TOO_LARGE);
    await expect(read.done).rejects.toMatchObject({ code: 'query_too_expensive' });
  });
});
