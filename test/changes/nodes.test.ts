/** Several nodes on one PostgreSQL: each reads the log for itself, wakes the others, and prunes what is not needed. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ChangeFeeds } from '../../src/changes/change-feeds.ts';
import { ChangeLog } from '../../src/changes/change-log.ts';
import { pruneLog } from '../../src/changes/log-pruning.ts';
import type { Database } from '../../src/database/contract.ts';
import { openDatabase } from '../../src/database/open-database.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { decide } from '../../src/policy/access.ts';
import type { Schema } from '../../src/schema/model/model.ts';
import { raw } from '../../src/sql.ts';
import { FeedCaller } from '../fuzz/changes/feed-caller.ts';
import { feedRequest, ignore, noFeedObserver as observer, manyPlaces as places } from '../support/feed-observer.ts';
import { hasPostgres, postgresUrl, schemaOf } from '../support/store-world.ts';
import { until } from '../support/until.ts';

const schema: Schema = schemaOf(`
collections:
  notes: { changes: { retention: 1h }, fields: { title: string }, access: { list: true } }
`);
const caller = new FeedCaller(schema, { id: '00000001-0000-4000-8000-000000000000', roles: [] }, decide);

describe.skipIf(!hasPostgres)('feeds on two nodes', () => {
  const databases: Database[] = [];
  const nodes: ChangeFeeds[] = [];
  beforeAll(async () => {
    const url = await postgresUrl();
    for (let i = 0; i < 2; i++) {
      const db = await openDatabase({ url, poolSize: 2, pipelines: 1 });
      if (i === 0) await applyMigration(db, schema);
      databases.push(db);
      nodes.push((await ChangeFeeds.open({ db, schema, place: 'here', places, observer, onError: ignore }))!);
    }
  });
  afterAll(async () => {
    for (const node of nodes) await node.close();
    for (const db of databases) await db.close();
  });

  const subscribe = async (node: ChangeFeeds, since?: string, waits: (() => Promise<void>)[] = []) => {
    const seen: string[] = [];
    const positions: string[] = [];
    node.subscribe(feedRequest(caller, 'notes', since), {
      send: ({ type, data }, position) => {
        seen.push(type === 'enter' ? (JSON.parse(`{${data}}`).record.title as string) : `${type}${data}`);
        positions.push(position);
      },
      beat: ignore,
      // A reader is behind once it has an event.
      lags: () => seen.length > 0 && waits.length > 0,
      drained: async () => (seen.length > 0 ? waits.shift()?.() : undefined),
      end: ignore,
    });
    await until('a ready stream', () => seen.includes('ready'));
    return { seen, positions };
  };
  const insert = (title: string) => `INSERT INTO notes (id, title) VALUES (gen_random_uuid(), '${title}')`;

  test('a write through one node, or through none, reaches the subscribers of both', async () => {
    const [one, two] = [await subscribe(nodes[0]!), await subscribe(nodes[1]!)];
    await databases[0]!.run(raw(insert('a')));
    nodes[0]!.wake();
    await until('an event on both', () => one.seen.includes('a') && two.seen.includes('a'));
    await databases[1]!.run(raw(insert('b')));
    await until('an event without news', () => one.seen.includes('b') && two.seen.includes('b'));
    expect([one.seen, two.seen]).toEqual([
      ['ready', 'a', 'b'],
      ['ready', 'a', 'b'],
    ]);
  });

  test('a transaction that commits late is neither skipped nor waited for, also over a resume at the other node', async () => {
    const session = await databases[0]!.openSession!();
    await session.run(raw('BEGIN'));
    await session.run(raw(insert('late')));
    const { seen, positions } = await subscribe(nodes[0]!);
    await databases[0]!.run(raw(insert('early')));
    await nodes[0]!.look();
    expect(seen).toEqual(['ready', 'early']);
    await session.run(raw('COMMIT'));
    await session.close();
    await nodes[0]!.look();
    expect(seen).toEqual(['ready', 'early', 'late']);
    expect((await subscribe(nodes[1]!, positions[1])).seen).toEqual(['late', 'ready']);
    expect((await subscribe(nodes[1]!, positions[2])).seen).toEqual(['ready']);
  });

  test('a stream that resumes at a node with older news goes on from its positions there', async () => {
    await subscribe(nodes[1]!);
    await databases[0]!.run(raw(insert('news')));
    await nodes[0]!.look();
    const { positions } = await subscribe(nodes[0]!);
    const resumed = await subscribe(nodes[1]!, positions[0]);
    await databases[0]!.run(raw(insert('next')));
    for (const node of nodes) await node.look();
    expect(resumed.seen).toEqual(['ready', 'next']);
    expect((await subscribe(nodes[0]!, resumed.positions[1])).seen).toEqual(['ready']);
  });

  test('a long replay has one event for each record and commit, and a slow reader receives no state that is hidden since', async () => {
    const { positions } = await subscribe(nodes[0]!);
    await databases[0]!.transaction(async (tx) => {
      await tx.run(raw(`INSERT INTO notes (id, title) SELECT gen_random_uuid(), 'long' FROM generate_series(1, 600)`));
      await tx.run(raw(`UPDATE notes SET title = 'longer' WHERE title = 'long'`));
    });
    const { seen } = await subscribe(nodes[1]!, positions[0]);
    expect([seen.length, new Set(seen)]).toEqual([601, new Set(['longer', 'ready'])]);
    const waits: (() => Promise<void>)[] = [
      async () => {
        await databases[0]!.run(raw(`DELETE FROM notes WHERE title = 'longer'`));
        await new Promise((resolve) => setTimeout(resolve, 300));
      },
    ];
    const slow = await subscribe(nodes[1]!, positions[0], waits);
    expect(slow.seen.filter((each) => each === 'longer')).toHaveLength(1);
    await until('a leave', () => slow.seen.length > 2);
    expect(slow.seen.slice(0, 3)).toEqual(['longer', 'ready', expect.stringMatching(/^leave/)]);
  });

  test('a pruned log, and another life of it, give a reset', async () => {
    const { positions } = await subscribe(nodes[0]!);
    const log = new ChangeLog(databases[0]!);
    for (let times = 0; times < 2; times++) await pruneLog(databases[0]!, 0);
    expect(await databases[0]!.rows(raw('SELECT seq FROM bylaw_changes'))).toEqual([]);
    expect((await subscribe(nodes[1]!, positions[0])).seen).toEqual(['reset"reason":"position"', 'ready']);
    const { positions: latest } = await subscribe(nodes[0]!);
    await log.open('elsewhere');
    expect((await subscribe(nodes[1]!, latest[0])).seen).toEqual(['reset"reason":"position"', 'ready']);
  });
});
