/** The service drops the slow statements of a client who has left before it sends them. */
import { request } from 'node:http';
import { expect, test } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import { currentCaller, type QueuedCaller } from '../../src/queued-caller.ts';
import { describeOnOne } from '../support/service.ts';
import { until } from '../support/until.ts';

/** The counts of requests, held until the gate opens. */
const counts: { readonly caller: QueuedCaller; readonly isAnswered: Promise<boolean> }[] = [];
let gate = Promise.withResolvers<void>();

const held = async (db: Database): Promise<Database> => {
  const rows: Database['rows'] = (statement, options) => {
    const caller = currentCaller();
    if (options?.lane !== 'slow' || caller.isKept) return db.rows(statement, options);
    const answer = gate.promise.then(() => db.rows(statement, options));
    const isAnswered = answer.then(
      () => true,
      () => false,
    );
    counts.push({ caller, isAnswered });
    return answer;
  };
  return { ...db, rows, replicaFor: () => ({ rows, run: db.run }) };
};

describeOnOne(
  'a client who leaves',
  (service) => {
    test('a service drops the count of a client who has left, and gives that of one who waits', async () => {
      counts.length = 0;
      gate = Promise.withResolvers();
      const { token, client } = await service.user();
      const headers = { authorization: `Bearer ${token}`, prefer: 'count=exact' };
      const leaving = request(`${service.url}/api/documents`, { headers, agent: false });
      leaving.on('error', () => undefined);
      leaving.end();
      await until('the first count is asked for', async () => counts.length === 1);
      const staying = client.get('/api/documents', { Prefer: 'count=exact' });
      await until('the second count is asked for', async () => counts.length === 2);
      leaving.destroy();
      await until('the service has seen it', async () => counts[0]!.caller.hasLeft!());
      gate.resolve();
      expect(await Promise.all(counts.map(({ isAnswered }) => isAnswered))).toEqual([false, true]);
      expect((await staying).body.page.total).toBe(0);
    });
  },
  { watch: held },
);
