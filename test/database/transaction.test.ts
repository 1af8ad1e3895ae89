/** A transaction whose connection is lost. */
import { describe, expect, test } from 'vitest';
import type { Transaction } from '../../src/database/contract.ts';
import type { Lease, Turn } from '../../src/database/transaction.ts';
import { transact } from '../../src/database/transaction.ts';
import { param, raw, sql } from '../../src/sql.ts';

const LIMITS = 'SET LOCAL statement_timeout = 5000';
const LOST = Object.assign(new Error('read ECONNRESET'), { syscall: 'read' });

/** Connections that are lost at these commands, and what was sent on each. */
function connections(...lostAt: readonly (string | undefined)[]) {
  const sent: string[][] = [];
  const destroyed: boolean[] = [];
  const lease = async (): Promise<Lease> => {
    const lost = lostAt[sent.length];
    const own: string[] = [];
    sent.push(own);
    let isLost = false;
    const say = async (text: string): Promise<void> => {
      own.push(text);
      isLost ||= text === lost;
      if (isLost) throw LOST;
    };
    return {
      async send(...statements) {
        for (const { text } of statements) await say(text);
        const { text } = statements.at(-1)!;
        return { rows: [], tag: text === 'write' ? 'UPDATE 1' : text };
      },
      sendTogether: () => Promise.reject(new Error('not used')),
      release: (destroy) => destroyed.push(destroy),
    };
  };
  const run = (...texts: readonly string[]) =>
    transact(lease, async (tx) => {
      let count = 0;
      for (const text of texts) count = await tx.run(raw(text));
      return count;
    });
  return { sent, destroyed, lease, run };
}

test('a transaction whose first statement is lost starts again on another connection', async () => {
  const { sent, destroyed, run } = connections('BEGIN', 'write');
  expect(await run('write')).toBe(1);
  expect(sent.at(-1)).toEqual(['BEGIN', LIMITS, 'write', 'COMMIT']);
  expect(destroyed).toEqual([true, true, false]);
});

test('a transaction that hides the loss of its first statement commits nothing of it', async () => {
  const { sent, lease } = connections('write');
  await transact(lease, (tx) => tx.run(raw('write')).catch(() => 0));
  expect(sent).toEqual([
    ['BEGIN', LIMITS, 'write', 'ROLLBACK'],
    ['BEGIN', LIMITS, 'write', 'COMMIT'],
  ]);
});

test('a statement with parameters is sent with the beginning of its transaction, a text of several commands after it', async () => {
  const sends: (readonly string[])[] = [];
  const lease = async (): Promise<Lease> => ({
    async send(...statements) {
      const texts = statements.map(({ text }) => text);
      sends.push(texts);
      return { rows: [], tag: texts.at(-1)! };
    },
    sendTogether: () => Promise.reject(new Error('not used')),
    release: () => undefined,
  });
  const read = sql`SELECT ${param('int8', 1)}`;
  for (const first of [read, raw('one; two')])
    await transact(lease, async (tx) => {
      await tx.rows(first);
      await tx.rows(read);
    });
  expect(sends).toEqual([
    ['BEGIN', LIMITS, read.text],
    [read.text],
    ['COMMIT'],
    ['BEGIN', LIMITS],
    ['one; two'],
    [read.text],
    ['COMMIT'],
  ]);
});

test('a transaction without a statement sends nothing, done or failed', async () => {
  const { sent, destroyed, lease, run } = connections();
  expect(await run()).toBe(0);
  await expect(transact(lease, () => Promise.reject(new Error('of the work')))).rejects.toThrow('of the work');
  expect(sent).toEqual([[], []]);
  expect(destroyed).toEqual([false, false]);
});

test.each(['write', 'COMMIT'])('a transaction whose later answer to %s is lost is not repeated', async (command) => {
  const { sent, run } = connections(command);
  await expect(run('read', 'write')).rejects.toMatchObject({ kind: 'unavailable' });
  expect(sent).toHaveLength(1);
});

test('a transaction fails if no connection lasts', async () => {
  const { sent, run } = connections('BEGIN', 'BEGIN', 'BEGIN', 'BEGIN', 'BEGIN');
  await expect(run('write')).rejects.toMatchObject({ kind: 'unavailable' });
  expect(sent).toHaveLength(4);
});

describe('the only connection', () => {
  /** Leases of the only connection, which others wait for; its holder gives way once a slice of `mustLast` or less is over. */
  function only(mustLast: number) {
    const slices: number[] = [];
    const sent: string[] = [];
    const lease = async ({ sliceMs }: Turn): Promise<Lease> => {
      slices.push(sliceMs);
      return {
        async send(...statements) {
          sent.push(...statements.map(({ text }) => text));
          return { rows: [], tag: sent.at(-1)! };
        },
        sendTogether: () => Promise.reject(new Error('not used')),
        release: () => undefined,
        mustGiveWay: () => sliceMs < mustLast,
      };
    };
    return { slices, sent, lease };
  }

  test('a transaction that gives way is undone, and has more time at its next turn', async () => {
    const { slices, sent, lease } = only(400);
    await transact(lease, (tx) => tx.run(raw('write')));
    expect(slices).toEqual([50, 200, 400]);
    expect(sent).toEqual(['BEGIN', 'write', 'COMMIT']);
  });

  test('a transaction that hides the error of giving way commits nothing of that turn', async () => {
    const { sent, lease } = only(100);
    const work = async (tx: Transaction): Promise<string> => {
      await tx.run(raw('write')).catch(() => undefined);
      return 'done';
    };
    expect(await transact(lease, work)).toBe('done');
    expect(sent).toEqual(['BEGIN', 'write', 'COMMIT']);
  });

  test('concurrent statements of a transaction that gives way are all undone, and begin again', async () => {
    const { sent, lease } = only(100);
    await transact(lease, (tx) => Promise.all(['one', 'two'].map((text) => tx.run(raw(text)))));
    expect(sent).toEqual(['BEGIN', 'one', 'two', 'COMMIT']);
  });

  test('a transaction that has had its time is unavailable, and undone', async () => {
    const { sent, lease } = only(0);
    const late = transact(
      lease,
      async (tx) => {
        await tx.run(raw('write'));
        await new Promise((resolve) => setTimeout(resolve, 20));
        await tx.run(raw('late'));
      },
      { limitMs: 10 },
    );
    await expect(late).rejects.toMatchObject({ kind: 'unavailable' });
    expect(sent).toEqual(['BEGIN', 'write', 'ROLLBACK']);
  });
});
