/** The turns of callers on the one connection of the embedded engine. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { asCaller } from '../../../src/caller.ts';
import type { Database, ReadOptions } from '../../../src/database/contract.ts';
import { raw } from '../../../src/sql.ts';
import { openEmbeddedDatabase } from '../../support/embedded.ts';

let db: Database;
beforeAll(async () => {
  db = await openEmbeddedDatabase();
});
afterAll(() => db?.close());

const ask = (id: string, text: string, options: ReadOptions): Promise<unknown> =>
  asCaller({ id, isKept: false }, () => db.rows(raw(text), options));
const SLOW = "SELECT count(*) FROM generate_series(1, 400000) AS n WHERE n::text LIKE '%1%'";

it.each(['quick', 'query'] as const)(
  'five %s reads in a row wait for one slow read of another caller',
  async (lane) => {
    const read = () => ask('bob', 'SELECT 1', { lane, limitMs: 2_000 });
    for (let i = 0; i < 3; i++) await read();
    const events: string[] = [];
    const slow = [1, 2, 3].map(() => ask('ann', SLOW, { lane: 'slow' }).then(() => events.push('slow')));
    for (let i = 0; i < 5; i++) {
      await read();
      events.push('read');
    }
    await Promise.all(slow);
    expect(events.slice(0, events.lastIndexOf('read')).filter((event) => event === 'slow').length).toBeLessThan(2);
  },
);
