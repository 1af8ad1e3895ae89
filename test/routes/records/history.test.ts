/** The history of a record shows who changed it and how, of each state no more than the reader may see of it. */
import { beforeAll, expect, test } from 'vitest';
import { pruneHistory } from '../../../src/records/history.ts';
import { ident, param, raw, type Sql, sql, uuid } from '../../../src/sql.ts';
import { TENANT } from '../../support/cluster/distributed-schema.ts';
import { describeOnOne, describeRoutes, type User } from '../../support/service.ts';

const OF_TENANT = raw(` AND _tenant = '${TENANT}'`);

const SCHEMA = `
roles: [member, editor]
register: { roles: [member] }
collections:
  users: { access: { view: true } }
  folders:
    fields: { name: string }
    relations: { marks: { kind: has_many, collection: marks, via: folder } }
    access: { view: true, create: true, delete: true }
  marks:
    fields: { name: string }
    relations: { folder: { kind: belongs_to, collection: folders, on_delete: cascade } }
    access: { view: true, create: true }
  notes:
    history: { keep: 400d }
    fields:
      title: { type: string, required: true }
      score: int
      price: { type: decimal, precision: 12, scale: 2 }
      due: datetime
      done: bool
      published: { type: bool, default: true }
      salary: { type: int, access: { read: { roles: [editor] } } }
      secret: { type: string, access: { read: '@record.owner = @request.auth.id' } }
      hush: { type: string, access: { read: 'all(@record.folder.marks as m, m.name = "ok") or @record.score = 9' } }
      aside: { type: string, access: { read: '@record.score is null' } }
      beyond: { type: string, access: { read: '@record.level < 5' } }
      level: { type: int, required: true, default: 1 }
      early: { type: string, access: { read: '@record.updated_at != "2020-01-01T00:00:00Z"' } }
      late: { type: string, access: { read: '@record.updated_at > @now - 30d' } }
    relations:
      owner: { kind: belongs_to, collection: users, default: '@request.auth.id' }
      folder: { kind: belongs_to, collection: folders, on_delete: set_null }
      cover: { kind: has_one, collection: covers, via: note }
    access:
      view: '@record.owner = @request.auth.id or @record.published = true'
      create: true
      update: true
      delete: true
  kinds:
    history: true
    fields:
      text: string
      flag: bool
      whole: int
      real: float
      big: bigint
      price: { type: decimal, precision: 12, scale: 2 }
      at: datetime
      day: date
      time: time
      key: uuid
      raw: bytes
      meta: json
      place: point
      names: { type: list, of: string }
      counts: { type: list, of: int }
      sizes: { type: list, of: float }
      flags: { type: list, of: bool }
      days: { type: list, of: date }
      times: { type: list, of: datetime }
    access: { view: true, create: true }
  covers:
    history: true
    fields: { name: string }
    relations: { note: { kind: belongs_to, collection: notes, on_delete: cascade } }
    access: { view: true, create: true, update: true, delete: true }
`;

describeRoutes(
  'histories',
  (service) => {
    let ann: User;
    let bob: User;
    let ed: User;
    beforeAll(async () => {
      [ann, bob, ed] = await Promise.all([service.user(), service.user(), service.user('editor', 'member')]);
    });
    const make = async (data: object, user = ann, collection = 'notes'): Promise<string> => {
      const { body, status, text } = await user.client.post(`/api/${collection}`, { data });
      if (status !== 201) throw new Error(text);
      return body.data.id;
    };
    const patch = async (id: string, data: object, user = ann): Promise<void> => {
      const { status, text } = await user.client.patch(`/api/notes/${id}`, { data });
      if (status !== 200) throw new Error(text);
    };
    const entriesOf = (id: string): Sql => {
      const { table } = service.app.schema.collections.get('notes')!.history!;
      const rows = sql`${ident(table ?? 'bylaw_history')} AS h WHERE h.record = ${uuid(id)}::text`;
      return table === undefined ? rows : sql`${rows}${OF_TENANT}`;
    };
    const entriesTable = (): Sql =>
      ident(service.app.schema.collections.get('notes')!.history!.table ?? 'bylaw_history');
    /** The updates among the entries. */
    const changesOf = (id: string): Sql => {
      const isDivided = service.app.schema.collections.get('notes')!.history?.table !== undefined;
      return sql`record = ${uuid(id)}::text AND before IS NOT NULL${isDivided ? OF_TENANT : raw('')}`;
    };
    const createOf = (id: string): Sql => {
      const isDivided = service.app.schema.collections.get('notes')!.history?.table !== undefined;
      return sql`record = ${uuid(id)}::text AND before IS NULL${isDivided ? OF_TENANT : raw('')}`;
    };
    const past = async (id: string, user = ann, query = '') => {
      const { body, status, text } = await user.client.get(`/api/notes/${id}/history${query}`);
      if (status !== 200) throw new Error(text);
      return body;
    };

    test('a create and each update are entries, with who, when, and both sides of what changed', async () => {
      const id = await make({ title: 'one', score: 1, price: '1.50' });
      await patch(id, { title: 'two', due: '2026-01-02T03:04:05Z', done: true }, bob);
      const { data, page } = await past(id);
      expect(page).toEqual({ limit: 20, next_before: null });
      expect(data).toMatchObject([
        {
          by: bob.id,
          action: 'update',
          changed: ['title', 'due', 'done'],
          before: { id, title: 'one', due: null, done: null },
          after: { id, title: 'two', due: '2026-01-02T03:04:05.000000Z', done: true },
        },
        { by: ann.id, action: 'create', before: null, after: { title: 'one', score: 1, price: '1.50', owner: ann.id } },
      ]);
      expect(Math.abs(Date.parse(data[0].at) - Date.now())).toBeLessThan(60_000);
      expect(data[0].entry).toBeGreaterThan(data[1].entry);
      const { body } = await ann.client.get(`/api/notes/${id}`);
      expect(data[0].after.due).toBe(body.data.due);
      expect(data[1].after.price).toBe(body.data.price);
    });

    test('an update that changes nothing, and one that is refused, are no entries', async () => {
      const id = await make({ title: 'same' });
      await patch(id, { title: 'same' });
      await ann.client.patch(`/api/notes/${id}`, { data: { title: null } });
      expect((await past(id)).data.length).toBe(1);
    });

    test('a batch, a set_null and, but on a cluster, another program are entries', async () => {
      const folder = await make({ name: 'f' }, ann, 'folders');
      const id = await make({ title: 'in a folder', folder });
      const { status } = await bob.client.post('/api/batch', {
        operations: [{ op: 'update', collection: 'notes', id, data: { score: 5 } }],
      });
      expect(status).toBe(200);
      await ed.client.delete(`/api/folders/${folder}`);
      const isDivided = service.app.schema.collections.get('notes')!.history?.table !== undefined;
      if (!isDivided) await service.app.db.run(sql`UPDATE notes SET score = 6 WHERE id = ${uuid(id)}`);
      const { data } = await past(id);
      expect(data.map(({ by, changed }: { by: string; changed: string[] }) => [by, changed])).toEqual([
        ...(isDivided ? [] : [[null, ['score']]]),
        [ed.id, ['folder']],
        [bob.id, ['score']],
        [ann.id, expect.any(Array)],
      ]);
    });

    test('a field that the reader may not read of a state, or of the record now, is in no entry', async () => {
      const id = await make({ title: 'fields', salary: 100, secret: 'of ann' });
      await patch(id, { salary: 200, title: 'more' });
      const mine = JSON.stringify((await past(id)).data);
      expect(mine).not.toContain('salary');
      expect(mine).toContain('of ann');
      const editors = (await past(id, ed)).data;
      expect(editors[0]).toMatchObject({
        changed: ['title', 'salary'],
        before: { salary: 100 },
        after: { salary: 200 },
      });
      expect(JSON.stringify(editors)).not.toContain('of ann');
      await patch(id, { owner: bob.id, secret: 'of bob' });
      const { data } = await past(id, bob);
      expect(JSON.stringify(data)).not.toContain('of ann');
      expect(data[0].after).toMatchObject({ secret: 'of bob' });
      expect(JSON.stringify((await past(id)).data)).not.toContain('of ');
    });

    test('a state in which the reader could not read the record is not shown', async () => {
      const id = await make({ title: 'a draft', published: false });
      await patch(id, { title: 'still a draft' });
      expect((await bob.client.get(`/api/notes/${id}/history`)).status).toBe(404);
      await patch(id, { title: 'public', published: true });
      const { data } = await past(id, bob);
      expect(data).toMatchObject([{ action: 'update', before: null, after: { title: 'public', published: true } }]);
      expect(JSON.stringify(data)).not.toContain('draft');
      expect((await past(id)).data.length).toBe(3);
    });

    test('a rule for all records of a reference does not hold for a state whose reference is gone', async () => {
      const folder = await make({ name: 'strict' }, ann, 'folders');
      await make({ name: 'no', folder }, ann, 'marks');
      const id = await make({ title: 'kept', hush: 'a whisper', score: 1, folder });
      await patch(id, { hush: 'a word' });
      await patch(id, { hush: 'a shout', score: 9 });
      const shown = JSON.stringify((await past(id)).data);
      expect(shown).toContain('a shout');
      expect((await ann.client.delete(`/api/folders/${folder}`)).status).toBe(204);
      const text = JSON.stringify((await past(id)).data);
      expect(text).toContain('a shout');
      for (const hidden of ['a whisper', 'a word']) expect(`${shown}${text}`).not.toContain(hidden);
    });

    test('a field that is shown of one side alone is shown whole, so that none is known by its absence', async () => {
      const id = await make({ title: 'same', score: 7, published: false });
      await patch(id, { published: true });
      const [entry] = (await past(id, bob)).data;
      expect(entry).toMatchObject({ before: null, after: { title: 'same', score: 7, published: true } });
      expect(entry.changed).toEqual(expect.arrayContaining(['title', 'score', 'published']));
      expect((await past(id)).data[0].changed).toEqual(['published']);
    });

    test('values of every type are shown as the record shows them', async () => {
      const values = {
        ...{
          text: 'é"\\',
          flag: false,
          whole: -5,
          real: 1e-7,
          big: '9007199254740993',
          price: '12.50',
          at: '2026-01-02T03:04:05.6Z',
        },
        ...{ day: '2026-01-31', time: '09:30:00.25', key: '0190B0A0-0000-7000-8000-000000000001', raw: 'aGVsbG8=' },
        ...{ meta: { b: [1.5, 12345678901234567890n.toString()], a: null }, place: { lat: 52.1, lng: 4.25 } },
        ...{ names: ['a,b', '{"}', ''], counts: [1, -2], sizes: [0.1, 3], flags: [true, false], days: ['2026-01-31'] },
        times: ['2026-01-02T03:04:05Z'],
      };
      const id = await make(values, ann, 'kinds');
      const { body } = await ann.client.get(`/api/kinds/${id}`);
      const { data } = (await ann.client.get(`/api/kinds/${id}/history`)).body;
      const { updated_at: _, ...record } = body.data;
      expect(data[0].after).toEqual(record);
    });

    test('a state with a value that its field does not hold since a change of type is hidden', async () => {
      const id = await make({ title: 'typed', score: 1, done: true });
      await patch(id, { title: 'later' });
      const images = `before = before || '{"score": "1,\\"x\\":1"}', after = after || '{"done": "true"}'`;
      await service.app.db.run(sql`UPDATE ${entriesTable()} SET ${raw(images)} WHERE ${changesOf(id)}`);
      expect(await past(id)).toMatchObject({ data: [{ action: 'create', after: { title: 'typed' } }] });
    });

    test('a text that no field could have printed is hidden, whatever its type', async () => {
      const id = await make({ text: 'here' }, ann, 'kinds');
      for (const text of ['["x"]', '', '{', '{"a', '{"a\\\\', 'x{', '[0:1]', '(', '\\\\x', '1,', '"']) {
        const { table } = service.app.schema.collections.get('kinds')!.history!;
        const others = sql`key NOT IN ('id', 'created_at', 'updated_at')`;
        await service.app.db.run(sql`
          UPDATE ${ident(table ?? 'bylaw_history')} AS h
             SET after = h.after || (SELECT jsonb_object_agg(key, ${param('text', text)}) FROM jsonb_each(h.after) WHERE ${others})
           WHERE h.record = ${uuid(id)}::text${table === undefined ? raw('') : OF_TENANT}`);
        expect((await ann.client.get(`/api/kinds/${id}/history`)).body.data).toEqual([]);
      }
    });

    test('a rule that reads a field does not hold for a state from before the field', async () => {
      const id = await make({ title: 'old', aside: 'first aside', beyond: 'first beyond' });
      await patch(id, { aside: 'second aside', beyond: 'second beyond' });
      const known = JSON.stringify((await past(id)).data);
      for (const shown of ['first aside', 'first beyond']) expect(known).toContain(shown);
      const images = `before = before - '{score,level}'::text[]`;
      await service.app.db.run(sql`UPDATE ${entriesTable()} SET ${raw(images)} WHERE ${changesOf(id)}`);
      const [entry] = (await past(id)).data;
      expect(JSON.stringify(entry)).not.toContain('first');
      expect(entry.after).toMatchObject({ aside: 'second aside', beyond: 'second beyond' });
    });

    test('the `updated_at` of a state is the time of the entry that wrote it, and unknown where none is kept', async () => {
      const id = await make({ title: 'timed', early: 'early one', late: 'late one' });
      await patch(id, { title: 'later', early: 'early two', late: 'late two' });
      const texts = async (): Promise<string> => JSON.stringify((await past(id)).data);
      for (const shown of ['late one', 'early one']) expect(await texts()).toContain(shown);
      await service.app.db.run(sql`UPDATE ${entriesTable()} SET at = '2026-01-01T00:00:00Z' WHERE ${createOf(id)}`);
      expect(await texts()).toContain('late two');
      expect(await texts()).not.toContain('late one');
      await service.app.db.run(sql`DELETE FROM ${entriesTable()} WHERE ${createOf(id)}`);
      const text = await texts();
      expect(text).toContain('late two');
      for (const hidden of ['late one', 'early one']) expect(text).not.toContain(hidden);
    });

    test('a record that is hidden, deleted or missing has no history', async () => {
      const id = await make({ title: 'gone' });
      await ann.client.delete(`/api/notes/${id}`);
      for (const each of [id, '01900000-0000-7000-8000-000000000000'])
        expect((await ann.client.get(`/api/notes/${each}/history`)).status).toBe(404);
      expect((await ann.client.get('/api/folders/x/history')).status).toBe(404);
      const rows = await service.app.db.rows(sql`
        SELECT h.by, h.before IS NOT NULL, h.after IS NULL
          FROM ${entriesOf(id)}
         ORDER BY seq DESC LIMIT 1`);
      expect(rows[0]).toEqual([ann.id, 't', 't']);
    });

    test('pages follow each other', async () => {
      const id = await make({ title: 'pages', score: 0 });
      for (let i = 1; i < 5; i++) await patch(id, { score: i });
      const first = await past(id, ann, '?limit=2');
      expect(first.data.map(({ after }: { after: { score: number } }) => after.score)).toEqual([4, 3]);
      const second = await past(id, ann, `?limit=2&before=${first.page.next_before}`);
      expect(second.data.map(({ after }: { after: { score: number } }) => after.score)).toEqual([2, 1]);
      const last = await past(id, ann, `?limit=2&before=${second.page.next_before}`);
      expect([last.data.length, last.page.next_before]).toEqual([1, null]);
    });

    test.each(['limit=0', 'limit=101', 'before=x', 'limit=1&limit=2', 'offset=1'])('%s is 400', async (query) => {
      const id = await make({ title: 'parameters' });
      expect((await ann.client.get(`/api/notes/${id}/history?${query}`)).status).toBe(400);
    });

    test('entries end when the collection keeps them no longer', async () => {
      const id = await make({ title: 'old' });
      const { history: kept } = service.app.schema.collections.get('notes')!;
      const table = ident(kept?.table ?? 'bylaw_history');
      const old = sql`at = now() - interval '401 days' WHERE record = ${uuid(id)}::text`;
      await service.app.db.run(sql`UPDATE ${table} SET ${old}${kept?.table === undefined ? raw('') : OF_TENANT}`);
      await make({ title: 'new' });
      await pruneHistory(service.app.db, service.app.schema);
      expect((await past(id)).data).toEqual([]);
      const [row] = await service.app.db.rows(
        sql`SELECT count(*) > 0 FROM ${table}${kept?.table === undefined ? raw('') : sql` WHERE true${OF_TENANT}`}`,
      );
      expect(row).toEqual(['t']);
    });
  },
  { schema: SCHEMA },
);

describeOnOne(
  'histories of records with int keys',
  (service) => {
    test('rules of members read the records that a state refers to', async () => {
      const { client } = await service.user();
      const make = async (collection: string, data: object): Promise<number> =>
        (await client.post(`/api/${collection}`, { data })).body.data.id;
      const shelf = await make('shelves', { open: true });
      await make('labels', { shelf });
      const box = await make('boxes', { shelf, shown: 'a', hidden: 'b', counted: 'c' });
      const { body } = await client.get(`/api/boxes/${box}/history`);
      expect(body.data).toMatchObject([{ action: 'create', after: { id: box, shelf, shown: 'a', counted: 'c' } }]);
      expect(body.data[0].after).not.toHaveProperty('hidden');
    });
  },
  {
    schema: `
roles: { member: {}, admin: {} }
register: { roles: [member] }
collections:
  users: { access: { view: true } }
  shelves:
    id: { type: int }
    fields: { open: bool }
    relations: { labels: { kind: has_many, collection: labels, via: shelf } }
    access: { view: true, create: true }
  labels:
    id: { type: int }
    relations: { shelf: { kind: belongs_to, collection: shelves, required: true } }
    access: { view: true, create: true }
  boxes:
    id: { type: int }
    history: true
    fields:
      shown: { type: string, access: { read: '@record.shelf.open = true' } }
      hidden: { type: string, access: { read: '@record.shelf.open is null' } }
      counted: { type: string, access: { read: 'count(@record.shelf.labels) = 1' } }
    relations: { shelf: { kind: belongs_to, collection: shelves, required: true } }
    access: { view: true, create: true }
`,
  },
);

describeOnOne(
  'the size of a history',
  (service) => {
    test('a page with more bytes than an answer may have is refused, and a smaller one is not', async () => {
      const { client } = await service.user();
      const text = (letter: string): string => letter.repeat(20_000);
      const { id } = (await client.post('/api/texts', { data: { text: text('a') } })).body.data;
      for (const letter of ['b', 'c', 'd']) await client.patch(`/api/texts/${id}`, { data: { text: text(letter) } });
      const refused = await client.get(`/api/texts/${id}/history`);
      expect([refused.status, refused.body.code]).toEqual([400, 'query_too_expensive']);
      const page = await client.get(`/api/texts/${id}/history?limit=1`);
      expect(page.body.data[0].after.text).toBe(text('d'));
    });
  },
  {
    schema: `
roles: { member: {} }
register: { roles: [member] }
limits: { answer: 64KiB }
collections:
  texts:
    history: true
    fields: { text: string }
    access: { view: true, create: true, update: true }
`,
  },
);
