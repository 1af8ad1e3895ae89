// @module-tag long
// @module-tag partitions
/** Feeds of a collection whose records are hash partitions by tenant: the row triggers of a table are those of its partitions. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { raw } from '../../src/sql.ts';
import { outcomeOf } from '../support/records.ts';
import { describeOnOne, type User } from '../support/service.ts';
import { FeedClient } from './feed-client.ts';

const SCHEMA = `
roles: [member]
collections:
  teams: { distribute: reference, changes: true, fields: { name: string }, access: { view: true, create: true, delete: true } }
  tags: { distribute: reference, fields: { name: string }, access: { view: true, create: true } }
  notes:
    distribute: { by: team, lists: filtered }
    changes: true
    fields: { title: string, open: bool }
    relations:
      team: { kind: belongs_to, collection: teams, required: true, on_delete: cascade }
      tags: { kind: many_to_many, collection: tags }
    access: { view: '@record.open = true', create: true, update: true, delete: true }
`;

describeOnOne(
  'feeds of hash partitions',
  (service) => {
    let ann: User;
    let teams: readonly string[];
    let feeds: readonly FeedClient[];
    /** A program writes, and a request wakes the streams. */
    const run = async (statement: string): Promise<void> => {
      await service.app.db.run(raw(statement));
      await make('tags', { name: 'a tag' });
    };
    const make = async (collection: string, data: object): Promise<string> =>
      (await ann.client.post(`/api/${collection}`, { data })).body.data.id;
    const partitionOf = async (id: string) =>
      (await service.app.db.rows(raw(`SELECT tableoid::regclass::text FROM notes WHERE id = '${id}'`)))[0]![0];

    beforeAll(async () => {
      ann = await service.user();
      const names = Array.from({ length: 8 }, (_, i) => `team ${i}`);
      teams = await Promise.all(names.map((name) => make('teams', { name })));
      feeds = [teams[0], teams[1]].map((team) => new FeedClient(ann.client, `/api/notes/changes?team=${team}`));
      for (const feed of feeds) await feed.until('ready');
    });
    afterAll(() => {
      for (const feed of feeds) feed.close();
    });

    test('a stream needs the filter of its tenant', async () => {
      expect(outcomeOf(await ann.client.get('/api/notes/changes')).slice(0, 2)).toEqual([400, 'filter_required']);
    });

    test('each stream has the changes of its own tenant, by requests, links, programs and cascades', async () => {
      const [own, other] = feeds as [FeedClient, FeedClient];
      const id = await make('notes', { title: 'a', open: true, team: teams[0] });
      expect(await own.until('enter')).toMatchObject([['enter', { record: { id, title: 'a' } }]]);
      const tags = { add: [await make('tags', { name: 't' })] };
      await ann.client.patch(`/api/notes/${id}`, { data: { tags } });
      expect(await own.until('change')).toMatchObject([['change', { record: { id, title: 'a' } }]]);
      await run(`UPDATE notes SET title = 'by a program'`);
      expect(await own.until('change')).toMatchObject([['change', { record: { id, title: 'by a program' } }]]);
      await run(`UPDATE notes SET open = false`);
      expect(await own.until('leave')).toEqual([['leave', { id }]]);
      await run(`UPDATE notes SET open = true`);
      await own.until('enter');
      await run(`DELETE FROM teams WHERE id = '${teams[0]}'`);
      expect(await own.until('leave')).toEqual([['leave', { id }]]);
      expect(await other.rest()).toEqual([]);
    });

    test('a row that moves to another partition leaves the one tenant and enters the other, once', async () => {
      const id = await make('notes', { title: 'a', open: true, team: teams[1] });
      const before = await partitionOf(id);
      expect((await feeds[1]!.until('enter')).length).toBe(1);
      const moved: unknown[] = [];
      for (const team of teams.slice(2)) {
        await run(`UPDATE notes SET team_id = '${team}'`);
        moved.push(await partitionOf(id));
        if (moved.at(-1) !== before) break;
      }
      expect(moved.at(-1)).not.toBe(before);
      expect(await feeds[1]!.until('leave')).toEqual([['leave', { id }]]);
      await run(`UPDATE notes SET team_id = '${teams[1]}'`);
      expect(await feeds[1]!.until('enter')).toMatchObject([['enter', { record: { id } }]]);
      expect(await feeds[1]!.rest()).toEqual([]);
    });

    test('a truncation makes subscribers list again', async () => {
      const [[partition]] = (await service.app.db.rows(
        raw(`SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'notes'::regclass LIMIT 1`),
      )) as [[string]];
      for (const table of ['notes', partition]) {
        await run(`TRUNCATE ${table} CASCADE`);
        expect(await feeds[1]!.until('reset')).toEqual([['reset', { reason: 'bulk' }]]);
      }
    });
  },
  { schema: SCHEMA },
);
