// @module-tag long
/** Deleted records are found under a rule for `restore` alone, and come back as they were. */
import { beforeAll, expect, test } from 'vitest';
import { applyMigration } from '../../../src/migrations/apply-migration.ts';
import { parseSchema } from '../../../src/schema/load.ts';
import { startOptions } from '../../../src/service/system-tables.ts';
import { raw, sql, uuid } from '../../../src/sql.ts';
import { TENANT } from '../../support/cluster/distributed-schema.ts';
import { describeOnOne, describeRoutes, type User } from '../../support/service.ts';

const OF_TENANT = ` WHERE tenant_id = '${TENANT}'`;

const SCHEMA = `
roles: [member, keeper]
register: { roles: [member] }
collections:
  users: { access: { view: true } }
  tags:
    fields: { label: { type: string, required: true } }
    access: { view: true, create: true, delete: true }
  folders:
    fields: { name: { type: string, required: true }, full: { type: bool, required: true, default: false } }
    relations: { pinned: { kind: many_to_many, collection: notes } }
    access: { view: true, create: true, update: true, delete: true }
  notes:
    soft_delete: true
    changes: true
    fields:
      title: { type: string, required: true, search: true }
      code: { type: string, unique: true }
      secret: { type: string, access: { read: '@record.owner = @request.auth.id' } }
      locked: { type: bool, required: true, default: false }
      due_at: { type: datetime, required: true, default: '@now' }
      topic: { type: string, required: true, default: Général, search: true }
    relations:
      owner: { kind: belongs_to, collection: users, default: '@request.auth.id' }
      folder: { kind: belongs_to, collection: folders, on_delete: cascade }
      tags: { kind: many_to_many, collection: tags }
      comments: { kind: has_many, collection: comments, via: note }
    access:
      view: '@record.locked = false or @record.owner = @request.auth.id'
      create: true
      update: '@record.owner = @request.auth.id'
      delete: '@record.owner = @request.auth.id'
      restore: [{ when: '@record.owner = @request.auth.id and @record.deleted_at > @now - 30d' }, { roles: [keeper] }]
    checks:
      fits: { when: '@next.folder.full = false or @request.auth.roles contains "keeper"', message: the folder is full, fields: [folder] }
  comments:
    fields: { text: string }
    relations: { note: { kind: belongs_to, collection: notes, on_delete: cascade } }
    access: { view: '@record.note.title is not null', create: true }
`;

describeRoutes(
  'soft deletion',
  (service) => {
    let ann: User;
    let bob: User;
    let kim: User;
    const isDivided = (): boolean => service.app.schema.collections.get('notes')!.tenantLayout !== null;
    beforeAll(async () => {
      [ann, bob, kim] = await Promise.all([service.user(), service.user(), service.user('keeper', 'member')]);
    });
    const make = async (collection: string, data: object, user = ann): Promise<string> => {
      const { body, status, text } = await user.client.post(`/api/${collection}`, { data });
      if (status !== 201) throw new Error(text);
      return body.data.id;
    };
    const remove = async (id: string, collection = 'notes'): Promise<void> => {
      const { status, text } = await ann.client.delete(`/api/${collection}/${id}`);
      if (status !== 204) throw new Error(text);
    };
    const deleted = (user: User, more: object = {}) => user.client.post('/api/notes/query', { deleted: true, ...more });
    const idsOf = ({ body }: Awaited<ReturnType<typeof deleted>>): readonly string[] =>
      body.data.map(({ id }: { id: string }) => id);

    test('a deleted record is found by no read, list, query, filter and relation', async () => {
      const id = await make('notes', { title: 'gone', code: 'gone' });
      await make('comments', { note: id, text: 'on it' });
      await remove(id);
      expect((await ann.client.get(`/api/notes/${id}`)).status).toBe(404);
      expect((await ann.client.patch(`/api/notes/${id}`, { data: { title: 'x' } })).status).toBe(404);
      expect((await ann.client.delete(`/api/notes/${id}`)).status).toBe(404);
      for (const path of ['/api/notes?title=gone', '/api/notes?filter=title%20contains%20%22gone%22'])
        expect((await ann.client.get(path)).body.data).toEqual([]);
      expect(idsOf(await ann.client.post('/api/notes/query', {}))).not.toContain(id);
      expect((await ann.client.get('/api/comments')).body.data).toEqual([]);
    });

    test('its owner and a keeper find it with the time of the deletion; another member does not', async () => {
      const id = await make('notes', { title: 'found', secret: 'mine' });
      await remove(id);
      const { body } = await deleted(ann, { filter: 'title = "found"', sort: ['-deleted_at'] });
      expect(body.data).toMatchObject([{ id, title: 'found', secret: 'mine', owner: ann.id }]);
      expect(Math.abs(Date.parse(body.data[0].deleted_at) - Date.now())).toBeLessThan(60_000);
      const seen = await deleted(kim, { filter: 'title = "found"' });
      expect(seen.body.data).toMatchObject([{ id, title: 'found' }]);
      expect(seen.text).not.toContain('mine');
      expect(idsOf(await deleted(bob))).toEqual([]);
      expect((await bob.client.post(`/api/notes/${id}/restore`)).status).toBe(404);
    });

    test('a list that is asked for deleted records names the query that finds them', async () => {
      const { status, body } = await ann.client.get('/api/notes?deleted=true');
      expect([status, body.detail]).toEqual([
        400,
        '`notes` has no filter `deleted`; `POST /api/notes/query` with `"deleted": true` finds deleted records',
      ]);
      expect((await ann.client.get('/api/tags?deleted=true')).body.detail).toBe('`tags` has no filter `deleted`');
    });

    test('a restored record is the former one, with its links, another version, and a place in the feed', async () => {
      const [kept, lost] = [await make('tags', { label: 'kept' }), await make('tags', { label: 'lost' })];
      const id = await make('notes', { title: 'Back', code: 'back', secret: 's', tags: { set: [kept, lost] } });
      const before = await ann.client.get(`/api/notes/${id}`);
      await remove(id);
      await ann.client.delete(`/api/tags/${lost}`);
      const { status, body, headers } = await ann.client.post(`/api/notes/${id}/restore`);
      expect(status).toBe(200);
      const { updated_at: _, ...same } = before.body.data;
      expect(body.data).toMatchObject({ ...same, created_at: before.body.data.created_at });
      expect(headers.get('etag')).not.toBe(before.headers.get('etag'));
      const { body: read } = await ann.client.get(`/api/notes/${id}?expand=tags`);
      expect(read.data.expand.tags.map((tag: { id: string }) => tag.id)).toEqual([kept]);
      expect((await ann.client.get('/api/notes?filter=title%20contains%20%22Back%22')).body.data.length).toBe(1);
      expect(idsOf(await deleted(kim))).not.toContain(id);
      expect((await ann.client.post(`/api/notes/${id}/restore`)).status).toBe(404);
      await remove(id);
      expect((await kim.client.post(`/api/notes/${id}/restore`)).status).toBe(200);
    });

    test('a record that gets a member back has another version', async () => {
      const id = await make('notes', { title: 'Pinned', code: 'pinned' });
      const path = `/api/folders/${await make('folders', { name: 'pins', pinned: { set: [id] } })}`;
      await remove(id);
      const { headers: without } = await ann.client.get(path);
      expect((await ann.client.post(`/api/notes/${id}/restore`)).status).toBe(200);
      const { headers } = await ann.client.get(path);
      expect(headers.get('etag')).not.toBe(without.get('etag'));
      const { body } = await ann.client.get(`${path}?expand=pinned`);
      expect(body.data.expand.pinned.map((note: { id: string }) => note.id)).toEqual([id]);
    });

    test('a value of a deleted record is free, and a restore that would take it twice is a conflict', async () => {
      const id = await make('notes', { title: 'one', code: 'taken' });
      await remove(id);
      const other = await make('notes', { title: 'two', code: 'taken' });
      const { status, body } = await ann.client.post(`/api/notes/${id}/restore`);
      expect([status, body.code, body.errors[0].pointer]).toEqual([409, 'unique_violation', '/data/code']);
      expect(idsOf(await deleted(ann))).toContain(id);
      await remove(other);
      expect((await ann.client.post(`/api/notes/${id}/restore`)).status).toBe(200);
    });

    test('records that a cascade deletes are kept, and come back only where what they refer to exists', async () => {
      const folder = await make('folders', { name: 'f' });
      const id = await make('notes', { title: 'inside', folder });
      await remove(folder, 'folders');
      expect((await ann.client.get(`/api/notes/${id}`)).status).toBe(404);
      expect(idsOf(await deleted(ann))).toContain(id);
      const { status, body } = await ann.client.post(`/api/notes/${id}/restore`);
      expect([status, body.errors[0].pointer]).toEqual([422, '/data/folder']);
      if (!isDivided()) await service.app.db.run(sql`DELETE FROM notes WHERE id = ${uuid(id)}`);
    });

    test('a record that fails a check comes back for no one whom the check binds', async () => {
      const folder = await make('folders', { name: 'narrow' });
      const id = await make('notes', { title: 'in it', folder });
      await remove(id);
      await ann.client.patch(`/api/folders/${folder}`, { data: { full: true } });
      const { status, body } = await ann.client.post(`/api/notes/${id}/restore`);
      const error = { pointer: '/data/folder', code: 'check_failed', check: 'fits', detail: 'the folder is full' };
      expect([status, body.code, body.errors]).toEqual([422, 'validation_failed', [error]]);
      expect((await ann.client.get(`/api/notes/${id}`)).status).toBe(404);
      // A caller without the rule learns nothing of it.
      expect((await bob.client.post(`/api/notes/${id}/restore`)).status).toBe(404);
      expect((await kim.client.post(`/api/notes/${id}/restore`)).status).toBe(200);
    });

    test('a rule for `restore` can end with time', async () => {
      const id = await make('notes', { title: 'long ago' });
      await remove(id);
      await service.app.db.run(
        raw(`UPDATE bylaw_deleted_notes SET deleted_at = now() - interval '31 days'${isDivided() ? OF_TENANT : ''}`),
      );
      expect(idsOf(await deleted(ann))).not.toContain(id);
      expect((await ann.client.post(`/api/notes/${id}/restore`)).status).toBe(404);
      expect((await kim.client.post(`/api/notes/${id}/restore`)).status).toBe(200);
    });

    test('pages of deleted records follow each other, and their cursor opens no other list', async () => {
      for (const title of ['p1', 'p2', 'p3']) await remove(await make('notes', { title: `page ${title}` }));
      const query = { filter: 'title contains "page p"', sort: ['title'], limit: 2 };
      const first = await deleted(ann, query);
      expect(first.body.data.map(({ title }: { title: string }) => title)).toEqual(['page p1', 'page p2']);
      const cursor = first.body.page.next_cursor;
      expect((await deleted(ann, { ...query, cursor })).body.data.length).toBe(1);
      expect((await ann.client.post('/api/notes/query', { ...query, cursor })).status).toBe(400);
    });

    test('a collection without soft deletion has neither', async () => {
      const { status, body } = await ann.client.post('/api/tags/query', { deleted: true });
      expect([status, body.errors[0].pointer]).toEqual([422, '/deleted']);
      const id = await make('tags', { label: 'hard' });
      await remove(id, 'tags');
      expect((await ann.client.post(`/api/tags/${id}/restore`)).status).toBe(404);
    });

    test('an idempotency key restores once and answers again, and keeps no error', async () => {
      const id = await make('notes', { title: 'once', secret: 'mine' });
      const restore = (key: string) =>
        ann.client.post(`/api/notes/${id}/restore`, undefined, { 'Idempotency-Key': key });
      expect((await restore('a')).status).toBe(404);
      await remove(id);
      const first = await restore('a');
      expect([first.status, first.body.data]).toMatchObject([200, { id, title: 'once', secret: 'mine' }]);
      expect((await ann.client.patch(`/api/notes/${id}`, { data: { title: 'later' } })).status).toBe(200);
      const again = await restore('a');
      expect([again.status, again.text, again.headers.get('etag')]).toEqual([
        200,
        first.text,
        first.headers.get('etag'),
      ]);
      expect((await restore('b')).status).toBe(404);
      await remove(id);
      expect((await restore('a')).body).toEqual({ data: { id } });
      expect(idsOf(await deleted(ann))).toContain(id);
      const raced = await Promise.all([1, 2, 3].map(() => restore('c')));
      expect(raced.map(({ status, text }) => [status, text])).toEqual(raced.map(() => [200, raced[0]!.text]));
      expect(raced[0]!.body.data).toMatchObject({ id, title: 'later' });
      const { status, body } = await restore('two words');
      expect([status, body.code, body.errors[0].parameter]).toEqual([400, 'invalid_parameter', 'Idempotency-Key']);
    });

    test('a caller who may not read the restored record gets its id under a key, too', async () => {
      const id = await make('notes', { title: 'hidden from its keeper', locked: true });
      await remove(id);
      const restore = () => kim.client.post(`/api/notes/${id}/restore`, undefined, { 'Idempotency-Key': 'hidden' });
      expect((await restore()).body).toEqual({ data: { id } });
      expect((await restore()).body).toEqual({ data: { id } });
    });

    test('a key restores only what its limit lets it create', async () => {
      // A key is of no tenant.
      if (isDivided()) return;
      const id = await make('notes', { title: 'by key' });
      await remove(id);
      const keyed = async (actions: readonly string[]) => {
        const request = { name: 'k', roles: ['keeper'], limit: { notes: actions } };
        const { secret } = await service.app.auth.apiKeys.create(request);
        return service.anonymous.with({ Authorization: `Bearer ${secret}` });
      };
      const reader = await keyed(['list', 'read']);
      expect((await reader.post('/api/notes/query', { deleted: true })).status).toBe(200);
      expect((await reader.post(`/api/notes/${id}/restore`)).status).toBe(403);
      const writer = await keyed(['list', 'create']);
      expect((await writer.post(`/api/notes/${id}/restore`)).body).toEqual({ data: { id } });
    });

    test('a member that became required after the deletion takes its default, or is missing', async () => {
      const { db } = service.app;
      const [id, untitled] = [await make('notes', { title: 'Early' }), await make('notes', { title: 'Untitled' })];
      for (const each of [id, untitled]) await remove(each);
      // As an optional field without a value was kept, and one that the collection did not have yet.
      const lose = (columns: string, of: string) =>
        db.run(
          raw(
            `UPDATE bylaw_deleted_notes SET ${columns} WHERE id = '${of}'${isDivided() ? ` AND tenant_id = '${TENANT}'` : ''}`,
          ),
        );
      await lose('due_at = NULL, topic = NULL, "topic~folded" = NULL', id);
      await lose('title = NULL, due_at = NULL', untitled);
      const { status, body } = await kim.client.post(`/api/notes/${id}/restore`);
      expect([status, body.data.topic]).toEqual([200, 'Général']);
      expect(Math.abs(Date.now() - Date.parse(body.data.due_at))).toBeLessThan(60_000);
      expect(
        (await ann.client.get(`/api/notes?filter=id%20%3D%20%22${id}%22%20and%20topic%20matches%20%22general%22`)).body
          .data.length,
      ).toBe(1);

      const refused = await kim.client.post(`/api/notes/${untitled}/restore`);
      expect([refused.status, refused.body.errors]).toEqual([
        422,
        [
          {
            pointer: '/data/title',
            code: 'required',
            detail:
              '`title` must have a value by now, and the deleted record has none; a default in the schema would give it one',
          },
        ],
      ]);
      expect(idsOf(await deleted(kim))).toContain(untitled);
      expect((await bob.client.post(`/api/notes/${untitled}/restore`)).status).toBe(404);
    });

    test('an older version deletes and restores a record with the values of a newer one', async () => {
      const { db, schema } = service.app;
      const run = (statement: string) => db.run(raw(statement));
      const early = await make('notes', { title: 'deleted before the newer version' });
      await remove(early);
      await run("ALTER TABLE notes ADD COLUMN extra text NOT NULL DEFAULT 'default', ADD COLUMN more text");
      await run('ALTER TABLE bylaw_deleted_notes ADD COLUMN extra text, ADD COLUMN more text');
      await applyMigration(db, schema, startOptions());
      const ids = [await make('notes', { title: 'full' }), await make('notes', { title: 'empty' })];
      const ofTenant = isDivided() ? `${OF_TENANT} AND` : ' WHERE';
      await run(`UPDATE notes SET extra = 'own', more = 'more'${ofTenant} id = '${ids[0]}'`);
      for (const id of ids) await remove(id);
      for (const id of [early, ...ids]) expect((await ann.client.post(`/api/notes/${id}/restore`)).status).toBe(200);
      const rows = await db.rows(
        raw(`SELECT title, extra, more FROM notes${ofTenant} id IN ('${early}', '${ids.join("', '")}') ORDER BY title`),
      );
      expect(rows).toEqual([
        ['deleted before the newer version', 'default', null],
        ['empty', 'default', null],
        ['full', 'own', 'more'],
      ]);
    });

    test('an older version deletes and restores a record with the links of a newer one', async () => {
      // The service keeps these links by its own statements, and only those that its schema has.
      if (isDivided()) return;
      const { db } = service.app;
      const newer = SCHEMA.replace(
        '      folder: { kind: belongs_to',
        '      marks: { kind: many_to_many, collection: tags }\n      near: { kind: many_to_many, collection: notes }\n$&',
      );
      await applyMigration(db, parseSchema(newer).schema!, startOptions());
      const [kept, lost] = [await make('tags', { label: 'kept' }), await make('tags', { label: 'lost' })];
      const [id, other] = [await make('notes', { title: 'marked' }), await make('notes', { title: 'near' })];
      const links = (table: string, one: string, another: string) =>
        db.run(sql`INSERT INTO ${raw(table)} (record_id, member_id) VALUES (${uuid(one)}, ${uuid(another)})`);
      for (const tag of [kept, lost]) await links('notes__marks', id, tag);
      await links('notes__near', id, other);
      await links('notes__near', other, id);
      await remove(id);
      await ann.client.delete(`/api/tags/${lost}`);
      expect((await ann.client.post(`/api/notes/${id}/restore`)).status).toBe(200);
      const linked = (table: string) => db.rows(raw(`SELECT record_id, member_id FROM ${table} ORDER BY record_id`));
      expect(await linked('notes__marks')).toEqual([[id, kept]]);
      expect(await linked('notes__near')).toEqual([
        [id, other],
        [other, id],
      ]);
    });
  },
  { schema: SCHEMA },
);

const TAGS_OF_EVERY_TEAM = `
collections:
  users:
    access: { view: true, update: { roles: [admin] } }
    relations: { team: { kind: belongs_to, collection: teams } }
  teams: { distribute: reference, fields: { name: string }, access: { view: true, create: true } }
  tags:
    distribute: reference
    soft_delete: true
    fields: { label: { type: string, access: { read: 'none(@record.group.marks as m, m.name = "secret")' } } }
    relations: { group: { kind: belongs_to, collection: groups, on_delete: cascade } }
    access:
      view: true
      create: true
      delete: true
      restore: '@record.group is null or all(@record.group.marks as m, m.name = "open")'
  tabs:
    distribute: reference
    soft_delete: true
    fields: { label: string }
    relations: { group: { kind: belongs_to, collection: groups, on_delete: cascade } }
    access: { view: true, create: true, delete: true, restore: true }
  groups:
    distribute: reference
    fields: { name: string }
    relations: { marks: { kind: has_many, collection: marks, via: group } }
    access: { view: true, create: true, delete: true }
  marks:
    distribute: reference
    fields: { name: string }
    relations: { group: { kind: belongs_to, collection: groups, on_delete: cascade } }
    access: { view: true, create: true }
  papers:
    distribute: { by: team }
    fields: { title: string }
    relations:
      team: { kind: belongs_to, collection: teams, required: true }
      tags: { kind: many_to_many, collection: tags }
    access:
      view: '@record.team = @request.auth.team'
      create: '@record.team = @request.auth.team'
`;

describeOnOne(
  'soft deletion of records without a tenant',
  (service) => {
    test('a rule for all records of a reference opens no deleted record whose reference is gone', async () => {
      const { client } = await service.user('admin');
      const make = async (collection: string, data: object): Promise<string> =>
        (await client.post(`/api/${collection}`, { data })).body.data.id;
      const group = await make('groups', { name: 'strict' });
      await make('marks', { name: 'secret', group });
      const [hidden, alone] = [await make('tags', { label: 'hidden', group }), await make('tags', { label: 'alone' })];
      expect((await client.delete(`/api/tags/${alone}`)).status).toBe(204);
      expect((await client.delete(`/api/groups/${group}`)).status).toBe(204);
      const { body, text } = await client.post('/api/tags/query', { deleted: true });
      expect(body.data.map(({ id }: { id: string }) => id)).toEqual([alone]);
      expect(text).not.toContain('hidden');
      expect((await client.post(`/api/tags/${hidden}/restore`)).status).toBe(404);
    });

    test('a filter finds a deleted record whose reference is gone as a rule would', async () => {
      const { client } = await service.user('admin');
      const make = async (collection: string, data: object): Promise<string> =>
        (await client.post(`/api/${collection}`, { data })).body.data.id;
      const group = await make('groups', { name: 'brief' });
      const [lost, alone] = [await make('tabs', { label: 'lost', group }), await make('tabs', { label: 'alone' })];
      expect((await client.delete(`/api/tabs/${alone}`)).status).toBe(204);
      expect((await client.delete(`/api/groups/${group}`)).status).toBe(204);
      const found = async (filter: string): Promise<readonly string[]> => {
        const { body } = await client.post('/api/tabs/query', { deleted: true, filter });
        return body.data.map(({ id }: { id: string }) => id).toSorted();
      };
      expect(await found('group.id is null')).toEqual([lost, alone].toSorted());
      for (const filter of ['none(group.marks as m, true)', 'count(group.marks) >= 0', 'group.id = group'])
        expect({ filter, found: await found(filter) }).toEqual({ filter, found: [] });
      expect(await found('group is not null')).toEqual([lost]);
    });

    test('a restore brings back the links of every tenant, and their papers have another version', async () => {
      const { client, id: user } = await service.user('admin');
      const make = async (collection: string, data: object): Promise<string> =>
        (await client.post(`/api/${collection}`, { data })).body.data.id;
      const tag = await make('tags', { label: 'blue' });
      const papers: { readonly team: string; readonly path: string }[] = [];
      const ofTeam = async (team: string): Promise<void> => {
        expect((await client.patch(`/api/users/${user}`, { data: { team } })).status).toBe(200);
      };
      for (const name of ['Acme', 'Bolt']) {
        const team = await make('teams', { name });
        await ofTeam(team);
        const paper = await make('papers', { title: name, team, tags: { set: [tag] } });
        papers.push({ team, path: `/api/papers/${paper}?expand=tags` });
      }
      const look = async () => {
        const seen = [];
        for (const { team, path } of papers) {
          await ofTeam(team);
          const { body, headers } = await client.get(path);
          seen.push({
            tags: body.data.expand.tags.map(({ id }: { id: string }) => id),
            etag: headers.get('etag'),
          });
        }
        return seen;
      };
      expect((await client.delete(`/api/tags/${tag}`)).status).toBe(204);
      const without = await look();
      expect(without.map(({ tags }) => tags)).toEqual([[], []]);
      expect((await client.post(`/api/tags/${tag}/restore`)).status).toBe(200);
      const back = await look();
      expect(back.map(({ tags }) => tags)).toEqual([[tag], [tag]]);
      for (const [i, { etag }] of back.entries()) expect(etag).not.toBe(without[i]!.etag);
    });
  },
  { schema: TAGS_OF_EVERY_TEAM },
);

const ROOMS = `
roles: [member]
register: { roles: [member] }
collections:
  users: { access: { view: true } }
  rooms:
    fields: { name: string }
    relations: { bookings: { kind: has_many, collection: bookings, via: room } }
    access: { view: true, create: true }
  bookings:
    soft_delete: true
    fields: { slot: int }
    relations: { room: { kind: belongs_to, collection: rooms, required: true } }
    access:
      view: true
      create: true
      delete: true
      restore: 'none(@record.room.bookings as b, b.slot = @record.slot)'
  folders:
    soft_delete: true
    fields:
      name: string
      open: { type: bool, required: true, default: true }
      secret: { type: string, access: { read: '@record.parent.owner = @request.auth.id' } }
    relations:
      owner: { kind: belongs_to, collection: users, default: '@request.auth.id' }
      parent: { kind: belongs_to, collection: folders, on_delete: set_null }
      children: { kind: has_many, collection: folders, via: parent }
    access:
      view: '@record.owner = @request.auth.id or @record.open = true'
      create: true
      update: true
      delete: true
      restore: '@record.parent.owner = @request.auth.id'
`;

describeRoutes(
  'deleted records beside living ones',
  (service) => {
    let ann: User;
    let bob: User;
    beforeAll(async () => {
      [ann, bob] = await Promise.all([service.user(), service.user()]);
    });
    const make = async (collection: string, data: object, user = ann): Promise<string> => {
      const { body, status, text } = await user.client.post(`/api/${collection}`, { data });
      if (status !== 201) throw new Error(text);
      return body.data.id;
    };
    const gone = async (collection: string, data: object, user = ann): Promise<string> => {
      const id = await make(collection, data, user);
      expect((await user.client.delete(`/api/${collection}/${id}`)).status).toBe(204);
      return id;
    };
    const query = async (collection: string, more: object, user = ann) =>
      (await user.client.post(`/api/${collection}/query`, { deleted: true, ...more })).body.data;
    const restored = async (collection: string, id: string, user = ann): Promise<number> =>
      (await user.client.post(`/api/${collection}/${id}/restore`)).status;

    test('a rule for `restore` that walks back to its collection reaches the living records', async () => {
      const room = await make('rooms', { name: 'one' });
      const [first, second] = [await gone('bookings', { room, slot: 1 }), await gone('bookings', { room, slot: 1 })];
      // Another deleted record has no slot.
      expect((await query('bookings', { filter: 'slot = 1' })).length).toBe(2);
      expect(await restored('bookings', first)).toBe(200);
      expect(await query('bookings', { filter: 'slot = 1' })).toEqual([]);
      expect(await restored('bookings', second)).toBe(404);
      expect((await ann.client.delete(`/api/bookings/${first}`)).status).toBe(204);
      expect(await restored('bookings', second)).toBe(200);
    });

    test('a rule for `restore` holds for restores that race', async () => {
      for (let round = 0; round < 4; round++) {
        const room = await make('rooms', { name: 'raced' });
        const ids = [];
        for (let i = 0; i < 4; i++) ids.push(await gone('bookings', { room, slot: 2 }));
        const statuses = await Promise.all(ids.map((id) => restored('bookings', id)));
        expect(statuses.toSorted()).toEqual([200, 404, 404, 404]);
      }
    });

    test('filters and expansions of deleted records reach the living ones that their caller may read', async () => {
      const [own, foreign] = [await make('folders', { name: 'own' }), await make('folders', { name: 'b' }, bob)];
      const below = await gone('folders', { name: 'below', parent: own, secret: 's' });
      const hidden = await gone('folders', { name: 'hidden', parent: foreign });
      await make('folders', { name: 'sibling', parent: own });
      await bob.client.patch(`/api/folders/${foreign}`, { data: { open: false } });
      expect(await query('folders', { expand: { parent: true } })).toMatchObject([
        { id: below, secret: 's', expand: { parent: { id: own, name: 'own' } } },
      ]);
      expect(await query('folders', { filter: 'parent.name = "own"' })).toHaveLength(1);
      expect(await query('folders', { filter: 'any(parent.children as c, c.name = "sibling")' })).toHaveLength(1);
      expect(await query('folders', { filter: 'any(parent.children as c, c.name = "below")' })).toEqual([]);
      expect(await query('folders', { filter: 'parent.name = "b"' }, bob)).toHaveLength(1);
      expect(await query('folders', { filter: 'parent.name = "b"' })).toEqual([]);
      expect(await restored('folders', hidden)).toBe(404);
      expect(await restored('folders', below)).toBe(200);
      expect(await restored('folders', hidden, bob)).toBe(200);
    });

    test('a filter that a deleted record does not have is an error at its place', async () => {
      const { status, body } = await ann.client.post('/api/folders/query', { deleted: true, filter: 'nam = "x"' });
      expect([status, body.errors]).toMatchObject([400, [{ pointer: '/filter', code: 'name_unknown' }]]);
    });
  },
  { schema: ROOMS },
);

test('a rule for `restore` cannot ask of members, which a deleted record has not', () => {
  const rule = SCHEMA.replace("@record.deleted_at > @now - 30d'", `none(@record.tags as t, t.label = "secret")'`);
  const { issues } = parseSchema(rule, 'test.yaml', {});
  expect(issues.map(({ code, path }) => [code, path])).toEqual([
    ['name_unknown', 'collections.notes.access.restore[0].when'],
  ]);
});
