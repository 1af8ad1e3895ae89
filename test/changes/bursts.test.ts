/** More entries of the log than one page holds, while subscribers listen: each receives its events, a page at a time. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ChangeFeeds } from '../../src/changes/change-feeds.ts';
import type { Database } from '../../src/database/contract.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { decide } from '../../src/policy/access.ts';
import { raw } from '../../src/sql.ts';
import { FeedCaller } from '../fuzz/changes/feed-caller.ts';
import { feedRequest, ignore, noFeedObserver as observer, manyPlaces as places } from '../support/feed-observer.ts';
import { KINDS, openKind, schemaOf } from '../support/store-world.ts';
import { until } from '../support/until.ts';

const schema = schemaOf(`
collections:
  users: { fields: { name: string } }
  teams: { fields: { name: string }, relations: { members: { kind: has_many, collection: members, via: team } } }
  members:
    relations:
      team: { kind: belongs_to, collection: teams, required: true, on_delete: cascade }
      user: { kind: belongs_to, collection: users, required: true }
  notes: { changes: true, fields: { title: string }, access: { list: true } }
  tasks:
    changes: true
    fields: { title: string }
    relations: { team: { kind: belongs_to, collection: teams } }
    access: { list: 'any(@record.team.members as m, m.user = @request.auth.id)' }
`);
const [ANN, BOB] = ['00000001-0000-4000-8000-000000000000', '00000002-0000-4000-8000-000000000000'];
const TEAM = '7e000000-0000-4000-8000-00000000000a';
const PAGES = { entries: 3, bytes: 4_000 };

describe.each(KINDS)('a burst of changes on %s', (kind) => {
  let db: Database;
  let feeds: ChangeFeeds;
  const errors: unknown[] = [];
  beforeAll(async () => {
    db = await openKind(kind);
    await applyMigration(db, schema);
    for (const id of [ANN, BOB]) await db.run(raw(`INSERT INTO users (id, email) VALUES ('${id}', '${id}@a.example')`));
    await db.run(raw(`INSERT INTO teams (id) VALUES ('${TEAM}')`));
    const onError = (_: string, error: unknown) => errors.push(error);
    feeds = (await ChangeFeeds.open({ db, schema, place: 'here', places, observer, onError, pages: PAGES }))!;
  });
  afterAll(async () => {
    await feeds.close();
    await db.close();
    expect(errors).toEqual([]);
  });

  const subscribe = async (collection: string, id = ANN, pace = { lags: () => false, drained: async () => {} }) => {
    const seen: string[] = [];
    const caller = new FeedCaller(schema, { id, roles: [] }, decide);
    feeds.subscribe(feedRequest(caller, collection), {
      send: ({ type, data }) => {
        const { record, reason } = JSON.parse(`{${data}}`);
        seen.push([type, record?.title ?? reason].filter((each) => each !== undefined).join(' '));
      },
      beat: ignore,
      ...pace,
      end: ignore,
    });
    await until('a ready stream', () => seen.includes('ready'));
    return seen;
  };
  const titles = (of: string, count: number): readonly string[] => Array.from({ length: count }, (_, i) => `${of}${i}`);
  const insert = (table: string, all: readonly string[], team = 'NULL'): string => {
    const [column, value] = table === 'tasks' ? [', team_id', `, ${team}`] : ['', ''];
    const rows = all.map((title) => `(gen_random_uuid(), '${title}'${value})`);
    return `INSERT INTO ${table} (id, title${column}) VALUES ${rows.join(', ')}`;
  };

  test('gives each event in its order, without a state that is hidden since, and no reset', async () => {
    const seen = await subscribe('notes');
    for (const each of ['a', 'b']) await db.run(raw(insert('notes', titles(each, 4))));
    await db.run(raw(`UPDATE notes SET title = title || '!' WHERE title IN ('a0', 'b3')`));
    await db.run(raw(`DELETE FROM notes WHERE title IN ('a1', 'b0')`));
    await feeds.look();
    const [left, shown] = [seen.filter((each) => each === 'leave'), seen.filter((each) => each !== 'leave')];
    const entered = [...titles('a', 4), ...titles('b', 4)].filter((each) => each !== 'a1' && each !== 'b0');
    expect(shown.slice(0, 7)).toEqual(['ready', ...entered.map((each) => `enter ${each}`)]);
    expect(shown.slice(7).toSorted()).toEqual(['change a0!', 'change b3!']);
    expect(left).toHaveLength(2);
  });

  test('gives a record that changed and was deleted its leave alone', async () => {
    const seen = await subscribe('notes');
    await db.run(raw(insert('notes', ['file'])));
    await feeds.look();
    await db.run(raw(`UPDATE notes SET title = 'renamed' WHERE title = 'file'`));
    await db.run(raw(`DELETE FROM notes WHERE title = 'renamed'`));
    await feeds.look();
    expect(seen).toEqual(['ready', 'enter file', 'leave']);
  });

  test('gives a commit one event for each record, though its entries are in several pages', async () => {
    const seen = await subscribe('notes');
    await db.transaction(async (tx) => {
      await tx.run(raw(insert('notes', titles('d', 4))));
      for (const sign of ['?', '!'])
        await tx.run(raw(`UPDATE notes SET title = left(title, 2) || '${sign}' WHERE title LIKE 'd%'`));
    });
    await feeds.look();
    expect(seen.slice(1).toSorted()).toEqual(titles('d', 4).map((each) => `enter ${each}!`));
  });

  test('resets those whose rules read a record that changes in a later page, and shows them nothing before', async () => {
    const [ann, bob] = [await subscribe('tasks', ANN), await subscribe('tasks', BOB)];
    await db.run(raw(insert('tasks', titles('hidden', 5), `'${TEAM}'`)));
    await db.run(raw(`INSERT INTO members (id, team_id, user_id) VALUES (gen_random_uuid(), '${TEAM}', '${ANN}')`));
    await db.run(raw(insert('tasks', titles('shown', 5), `'${TEAM}'`)));
    await feeds.look();
    expect([ann, bob]).toEqual([['ready', 'reset related'], ['ready']]);
    await db.run(raw(insert('tasks', titles('later', 5), `'${TEAM}'`)));
    await feeds.look();
    expect(ann.slice(2)).toEqual(titles('later', 5).map((each) => `enter ${each}`));
  });

  test('reads fewer records at once where they are large', async () => {
    const seen = await subscribe('notes');
    await db.run(
      raw(`INSERT INTO notes (id, title) SELECT gen_random_uuid(), repeat(i::text, 3000) FROM generate_series(1, 4) i`),
    );
    await feeds.look();
    expect(seen.slice(1).map((each) => each.slice(0, 7))).toEqual(['1', '2', '3', '4'].map((i) => `enter ${i}`));
    await db.run(raw('DELETE FROM notes'));
    await feeds.look();
  });

  test('leaves a reader who lags to its own pace, and holds up nobody for it', async () => {
    const waiting: (() => void)[] = [];
    let isFree = false;
    const drained = () => (isFree ? Promise.resolve() : new Promise<void>((resolve) => waiting.push(resolve)));
    const [slow, quick] = [
      await subscribe('notes', ANN, { lags: () => !isFree, drained }),
      await subscribe('notes', BOB),
    ];
    const all = titles('c', 10);
    await db.run(raw(insert('notes', all)));
    await feeds.look();
    const wanted = ['ready', ...all.map((each) => `enter ${each}`)];
    expect(quick).toEqual(wanted);
    expect(slow.length).toBeLessThan(wanted.length);
    await db.run(raw(insert('notes', ['last'])));
    await feeds.look();
    isFree = true;
    for (const each of waiting) each();
    await until('the last event', () => slow.includes('enter last'));
    expect(slow).toEqual([...wanted, 'enter last']);
  });
});
