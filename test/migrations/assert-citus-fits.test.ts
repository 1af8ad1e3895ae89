/** A start rejects a Citus cluster that cannot keep distributed collections. The test plays the cluster's answers. */
import { describe, expect, it } from 'vitest';
import { isCitus } from '../../src/database/citus.ts';
import type { Cells } from '../../src/database/contract.ts';
import { assertCitusFits } from '../../src/migrations/tenant-tables.ts';

const answering = (...cells: Cells) => ({ rows: async (): Promise<Cells[]> => [cells] });

describe('a cluster', () => {
  it.each([
    ['a worker', ['3', '100', '2'], /this is a worker of a Citus cluster; expected its coordinator: give DATABASE_URL/],
    [
      'without two-phase slots',
      ['0', '0', '2'],
      /`max_prepared_transactions` is 0.*expected at least `max_connections`/,
    ],
    ['without nodes for rows', ['0', '100', '0'], /no node for their rows; add a worker \(SELECT citus_add_node\(/],
    ['a worker without slots: the address comes first', ['3', '0', '0'], /this is a worker/],
    ['that gives no answer', [], /this is a worker/],
  ])('%s is refused with what to do', async (_, cells, message) => {
    await expect(assertCitusFits(answering(...cells))).rejects.toMatchObject({
      name: 'CitusUnfit',
      message: expect.stringMatching(message),
    });
  });

  it('a fit cluster is accepted', async () => {
    await expect(assertCitusFits(answering('0', '100', '1'))).resolves.toBeUndefined();
  });

  it.each([
    ['t', true],
    ['f', false],
  ])('the extension makes a server a cluster (%s): %s', async (cell, isCluster) => {
    expect(await isCitus(answering(cell))).toBe(isCluster);
  });
});
