// @module-tag long
/** Several processes with one database: one of them files and sends, and another goes on where it ended. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ChangeFeeds } from '../../src/changes/change-feeds.ts';
import type { Database } from '../../src/database/contract.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { decide } from '../../src/policy/access.ts';
import type { Schema } from '../../src/schema/model/model.ts';
import { startOptions } from '../../src/service/system-tables.ts';
import { raw, sql, text } from '../../src/sql.ts';
import { listEvents, retryEvents } from '../../src/webhooks/webhook-rows.ts';
import { Webhooks } from '../../src/webhooks/webhooks.ts';
import { FeedCaller } from '../fuzz/changes/feed-caller.ts';
import { ignore, noFeedObserver as observer, manyPlaces as places } from '../support/feed-observer.ts';
import { schemaFrom } from '../support/service.ts';
import { KINDS, openKind } from '../support/store-world.ts';
import { until } from '../support/until.ts';
import { Receiver } from './receiver.ts';

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const receiver = await Receiver.start();
afterAll(() => receiver.stop());

const schemaWith = (rule: string): Schema =>
  schemaFrom(
    `
collections:
  notes: { changes: { retention: 1h }, fields: { title: string }, access: { list: '${rule}' } }
webhooks:
  notes: { url: '${receiver.url}/notes', as: any, secret_env: SECRET }
  down: { url: 'http://127.0.0.1:1/closed', collection: notes, as: any, secret_env: SECRET }
`,
    { SECRET },
  );
const schema = schemaWith('@record.title is not null');

describe.each(KINDS)('the webhooks of several processes (%s)', (kind) => {
  let db: Database;
  let feeds: ChangeFeeds;
  beforeAll(async () => {
    db = await openKind(kind);
    await applyMigration(db, schema, startOptions());
    feeds = (await ChangeFeeds.open({ db, schema, place: 'here', places, observer, onError: ignore }))!;
  });
  afterAll(async () => {
    await feeds.close();
    await db.close();
  });

  const start = (of: Schema = schema, allowsPrivate = true): Webhooks => {
    const caller = new FeedCaller(of, { id: '00000001-0000-4000-8000-000000000000', roles: [] }, decide);
    return new Webhooks({
      db,
      schema: of,
      allowsPrivate,
      userAgent: 'bylaw/test',
      accessOf: async () => caller.ask('notes'),
      observer: { onSent: ignore },
      warn: ignore,
      onError: (what, error) => {
        throw new Error(what, { cause: error });
      },
    });
  };
  const write = (title: string): Promise<unknown> =>
    db.run(
      sql`INSERT INTO notes (id, title, created_at, updated_at) VALUES (gen_random_uuid(), ${text(title)}, now(), now())`,
    );
  const titles = (): readonly string[] =>
    receiver.at('/notes').map(({ body }) => body.data.record?.title ?? body.data.reason);
  const arrives = (title: string): Promise<void> => until(`${title} arrives`, () => titles().includes(title));
  const isHeld = async (): Promise<boolean> => {
    const [row] = await db.rows(
      raw('SELECT count(*) FROM bylaw_webhooks WHERE holder IS NOT NULL AND position IS NOT NULL'),
    );
    return row![0] === '2';
  };

  test('a change that came while no process ran is sent by the next one', async () => {
    const first = start();
    await until('the webhooks are held', isHeld);
    await write(`${kind} one`);
    await arrives(`${kind} one`);
    await first.close();
    await write(`${kind} two`);
    const second = start();
    await arrives(`${kind} two`);
    await write(`${kind} three`);
    await arrives(`${kind} three`);
    await second.close();
    const own = titles().filter((title) => title.startsWith(kind));
    expect(own).toEqual([`${kind} one`, `${kind} two`, `${kind} three`]);
  });

  test('two processes send each event once', async () => {
    const both = [start(), start()];
    await until('the webhooks are held', isHeld);
    for (let i = 0; i < 20; i++) await write(`${kind} both ${i}`);
    await arrives(`${kind} both 19`);
    await Promise.all(both.map((each) => each.look()));
    for (const each of both) await each.close();
    const own = titles().filter((title) => title.startsWith(`${kind} both`));
    expect(own.length).toBe(20);
  });

  test('the events of a receiver that is down wait, are listed, and are sent again by hand', async () => {
    const listed = await listEvents(db, { webhook: 'down' });
    expect(listed.length).toBeGreaterThan(20);
    expect(listed.some(({ error }) => error === 'the connection failed (ECONNREFUSED)')).toBe(true);
    expect(new Set(listed.map(({ state }) => state))).toEqual(new Set(['waiting']));
    const [oldest] = listed;
    await db.run(sql`UPDATE bylaw_webhook_events SET given_up_at = now() WHERE id::text = ${text(oldest!.id)}`);
    expect((await listEvents(db, { isGivenUp: true })).map(({ id }) => id)).toEqual([oldest!.id]);
    const failed = listed.filter(({ attempts }) => attempts > 0);
    expect(await retryEvents(db, 'down')).toBeGreaterThanOrEqual(failed.length);
    expect(await listEvents(db, { isGivenUp: true })).toEqual([]);
    const again = new Map((await listEvents(db, { webhook: 'down' })).map((event) => [event.id, event]));
    for (const { id, filed_at } of failed) expect(again.get(id)!.filed_at > filed_at).toBe(true);
  });

  test('an address of a private network receives nothing', async () => {
    await db.run(raw('DELETE FROM bylaw_webhook_events'));
    const careful = start(schema, false);
    await until('the webhooks are held', isHeld);
    await write(`${kind} private`);
    await until('both are refused', async () => {
      const refused = (await listEvents(db, {})).filter(({ error }) => error?.startsWith('the address is not one'));
      return refused.length === 2;
    });
    await careful.close();
    expect(titles()).not.toContain(`${kind} private`);
    await db.run(raw('DELETE FROM bylaw_webhook_events'));
  });

  test('a change of the rules, and a truncated table, ask the receiver to list again', async () => {
    const other = start(schemaWith('@record.title != "hidden"'));
    await arrives('schema');
    await other.close();
    const third = start();
    await until('the webhooks are held', isHeld);
    await third.look();
    await db.run(raw('TRUNCATE notes CASCADE'));
    await arrives('bulk');
    await third.close();
  });
});
