/** A transaction whose connection is lost. */
import { expect, test } from 'vitest';
import type { Lease } from '../../src/database/transaction.ts';
import { transact } from '../../src/database/transaction.ts';
import { raw } from '../../src/sql.ts';

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
      async send({ text }) {
        await say(text);
        return { rows: [], tag: text === 'write' ? 'UPDATE 1' : text };
      },
      sendTogether: () => Promise.reject(new Error('not used')),
      release: (destroy) => destroyed.push(destroy),
    };
  };
  const run = () => transact(lease, (tx) => tx.run(raw('write')));
  return { sent, destroyed, run };
}

test('a transaction that was not begun starts again on another connection', async () => {
  const { sent, destroyed, run } = connections('BEGIN', 'BEGIN');
  expect(await run()).toBe(1);
  expect(sent.at(-1)).toEqual(['BEGIN', 'write', 'COMMIT']);
  expect(destroyed).toEqual([true, true, false]);
});

test.each(['write', 'COMMIT'])('a transaction whose answer to %s is lost is not repeated', async (command) => {
  const { sent, run } = connections(command);
  await expect(run()).rejects.toMatchObject({ kind: 'unavailable' });
  expect(sent).toHaveLength(1);
});

test('a transaction fails if no connection lasts', async () => {
  const { sent, run } = connections('BEGIN', 'BEGIN', 'BEGIN', 'BEGIN', 'BEGIN');
  await expect(run()).rejects.toMatchObject({ kind: 'unavailable' });
  expect(sent).toHaveLength(4);
});
