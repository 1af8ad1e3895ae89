/** The bounds on streams: of one caller, and of a node. */
import { expect, test } from 'vitest';
import { StreamCounts } from '../../src/changes/stream-places.ts';
import { streamBoundsOf } from '../../src/service/stream-bounds.ts';
import { schemaOf } from '../support/store-world.ts';

test('places are counted for each caller and for all, and those of a worker that ended are free', () => {
  const [all, worker] = [new StreamCounts(), new StreamCounts()];
  const bounds = { user: 3, node: 5 };
  const take = (share: string, count: number) => all.take(share, count, bounds);
  worker.add('ann', 2);
  expect([take('ann', 2), take('ann', 2), take('ann', 1), take('bob', 3), take('bob', 2)]).toEqual([
    undefined,
    'user',
    undefined,
    'node',
    undefined,
  ]);
  all.subtract(worker);
  expect([take('ann', 3), take('ann', 2), take('cid', 1)]).toEqual(['user', undefined, 'node']);
});

test('streams leave a quarter of the connections to other requests', () => {
  const limited = (feeds: string) =>
    streamBoundsOf(schemaOf(`limits: { feeds: { ${feeds} } }\ncollections: {}\n`), { maxConnections: 100 });
  expect([limited(''), limited('user: 7, node: 75')]).toEqual([
    { user: 20, node: 75 },
    { user: 7, node: 75 },
  ]);
  expect(() => limited('node: 76')).toThrow(
    'limits.feeds.node is 76, and 75 of the 100 connections of BYLAW_MAX_CONNECTIONS may be streams; raise BYLAW_MAX_CONNECTIONS, or lower the limit',
  );
});
