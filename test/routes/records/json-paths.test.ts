/** Typed paths into json fields: in rules, filters and sorts, and where the caller may not read the field. */
import { expect, it } from 'vitest';
import { idsOf, outcomeOf } from '../../support/records.ts';
import { describeOnBoth, type TestService, type User } from '../../support/service.ts';

const SCHEMA = `
roles: [member, editor]
register: { roles: [member] }
collections:
  users: { access: { read: true } }
  parts:
    fields:
      name: string
      meta: { type: json, column: Meta Data, paths: { color: string, size.w: int, size.h: float, sold: bool } }
    relations: { box: { kind: belongs_to, collection: boxes } }
    access:
      list: true
      read: true
      create: '@record.meta.size.w is null or @record.meta.size.w < 1000'
      update: '@record.meta.sold is null and @next.meta.color != "black"'
      delete: '@record.meta.sold = true'
  boxes:
    fields:
      info:
        type: json
        paths: { rank: int, owner: string }
        access: { read: [{ roles: [editor] }] }
    access: { list: true, read: true, create: true, update: '@record.info.owner = @request.auth.email' }
  notes:
    fields: { meta: { type: json, paths: { color: string } } }
    access: { list: '@record.meta.color is null or @record.meta.color = "open"', read: true, create: true }
`;

const values = [
  { color: 'red', size: { w: 5, h: 1.5 } },
  { color: 'Red', size: { w: '5', h: '1.5' } },
  { color: ['red'], size: { w: 5.5, h: 2 } },
  { color: '', size: { w: 9, h: -1 }, sold: true },
  { color: null, size: [5] },
  'red',
  null,
];

describeOnBoth(
  'typed paths of json',
  (service: TestService) => {
    let ids: readonly string[] = [];
    const named = async (user: User): Promise<void> => {
      if (ids.length > 0) return;
      const made: string[] = [];
      for (const meta of values) made.push((await user.client.post('/api/parts', { data: { meta } })).body.data.id);
      ids = made;
    };
    const found = async (user: User, body: object) => {
      const { status, body: answer, text } = await user.client.post('/api/parts/query', body);
      if (status !== 200) throw new Error(text);
      return idsOf(answer.data).map((id) => ids.indexOf(id as string));
    };

    it('a value of another type at the path is absent', async () => {
      const user = await service.user();
      await named(user);
      const filtered = (filter: string) => found(user, { filter });
      expect(await filtered('meta.color = "red"')).toEqual([0]);
      expect(await filtered('meta.color is null')).toEqual([2, 4, 5, 6]);
      expect(await filtered('meta.size.w = 5')).toEqual([0]);
      expect(await filtered('meta.size.w in [5, 9]')).toEqual([0, 3]);
      expect(await filtered('not (meta.size.w = 5)')).toEqual([3]);
      expect(await filtered('meta.size.h < 1.9')).toEqual([0, 3]);
      expect(await filtered('meta.sold')).toEqual([3]);
      expect(await filtered('meta.color starts with "R" or meta.color contains "d"')).toEqual([0, 1]);
      expect(idsOf((await user.client.get('/api/parts?filter=meta.color%20%3D%20%22Red%22')).body.data)).toEqual([
        ids[1],
      ]);
    });

    it('lists sort by a path, with pages', async () => {
      const user = await service.user();
      await named(user);
      expect(await found(user, { sort: ['meta.color'] })).toEqual([3, 1, 0, 2, 4, 5, 6]);
      expect(await found(user, { sort: ['-meta.size.h', 'id'] })).toEqual([2, 0, 3, 1, 4, 5, 6]);
      const seen: number[] = [];
      for (let cursor: string | null = null; ; ) {
        const page = await user.client.post('/api/parts/query', {
          sort: ['-meta.size.w'],
          limit: 2,
          ...(cursor !== null && { cursor }),
        });
        seen.push(...idsOf(page.body.data).map((id) => ids.indexOf(id as string)));
        cursor = page.body.page.next_cursor ?? null;
        if (cursor === null) break;
      }
      expect(seen.slice(0, 2)).toEqual([3, 0]);
      expect(seen.toSorted()).toEqual([0, 1, 2, 3, 4, 5, 6]);
    });

    it('rules read the stored value and the written one', async () => {
      const { client } = await service.user();
      const post = (meta: unknown) => client.post('/api/parts', { data: { meta } });
      expect(outcomeOf(await post({ size: { w: 1000 } }))).toEqual([403, 'forbidden']);
      expect((await post({ size: { w: 1000.5 } })).status).toBe(201);
      const made = await post({ color: 'blue' });
      const path = `/api/parts/${made.body.data.id}`;
      expect(outcomeOf(await client.patch(path, { data: { meta: { color: 'black' } } }))).toEqual([403, 'forbidden']);
      expect(outcomeOf(await client.patch(path, { data: { meta: { color: 1 } } }))).toEqual([403, 'forbidden']);
      expect(outcomeOf(await client.delete(path))).toEqual([403, 'forbidden']);
      expect((await client.patch(path, { data: { meta: { color: 'white', sold: true } } })).status).toBe(200);
      expect(outcomeOf(await client.patch(path, { data: { name: 'x' } }))).toEqual([403, 'forbidden']);
      expect((await client.delete(path)).status).toBe(204);
    });

    it('a path of a field that the caller may not read is absent, and so is one behind a relation', async () => {
      const [member, editor] = await Promise.all([service.user(), service.user('editor')]);
      const boxes: string[] = [];
      for (const rank of [2, 1])
        boxes.push(
          (await editor.client.post('/api/boxes', { data: { info: { rank, owner: member.email } } })).body.data.id,
        );
      const asked = async ({ client }: User, body: object) =>
        idsOf((await client.post('/api/boxes/query', body)).body.data).map((id) => boxes.indexOf(id as string));
      expect(await asked(editor, { filter: 'info.rank = 1' })).toEqual([1]);
      expect(await asked(member, { filter: 'info.rank = 1' })).toEqual([]);
      expect(await asked(member, { filter: 'info.rank is null' })).toEqual([0, 1]);
      expect(await asked(editor, { sort: ['info.rank'] })).toEqual([1, 0]);
      expect(await asked(member, { sort: ['info.rank'] })).toEqual([0, 1]);
      const part = (box: string) => editor.client.post('/api/parts', { data: { name: 'boxed', box } });
      const parts = [await part(boxes[0]!), await part(boxes[1]!)].map(({ body }) => body.data.id);
      const sorted = async ({ client }: User) =>
        idsOf(
          (await client.post('/api/parts/query', { filter: 'name = "boxed"', sort: ['box.info.rank', 'id'] })).body
            .data,
        );
      expect(await sorted(editor)).toEqual(parts.toReversed());
      expect(await sorted(member)).toEqual(parts);
      // A rule reads all stored values, for each caller.
      expect(
        (await member.client.patch(`/api/boxes/${boxes[0]}`, { data: { info: { rank: 3, owner: member.email } } }))
          .status,
      ).toBe(200);
      expect(outcomeOf(await editor.client.patch(`/api/boxes/${boxes[1]}`, { data: { info: null } }))).toEqual([
        403,
        'forbidden',
      ]);
    });

    it('records are grouped and measured by a path', async () => {
      const [member, editor] = await Promise.all([service.user(), service.user('editor')]);
      await named(member);
      const of = { filter: 'name is null and meta.size.h is not null', sort: ['n', 'w'] };
      const { body, text } = await member.client.post('/api/parts/aggregate', {
        ...of,
        group_by: ['meta.color'],
        measures: { n: 'count', w: 'sum(meta.size.w)', h: 'max(meta.size.h)' },
      });
      expect(body.data, text).toEqual([
        { 'meta.color': 'red', n: 1, w: 5, h: 1.5 },
        { 'meta.color': '', n: 1, w: 9, h: -1 },
        { 'meta.color': null, n: 1, w: null, h: 2 },
      ]);
      await editor.client.post('/api/boxes', { data: { info: { rank: 77 } } });
      const groups = async ({ client }: User) =>
        (await client.post('/api/boxes/aggregate', { group_by: ['info.rank'] })).body.data.map(
          (group: Record<string, unknown>) => group['info.rank'],
        );
      expect(await groups(editor)).toContain(77);
      expect(await groups(member)).toEqual([null]);
      const wrong = await member.client.post('/api/parts/aggregate', { group_by: ['meta.size'] });
      expect([wrong.status, wrong.text]).toEqual([422, expect.stringContaining('`meta` has no path `size`')]);
    });

    it('a filter decides no rule about the same path', async () => {
      const { client } = await service.user();
      const made: string[] = [];
      for (const meta of [{ color: 'red' }, { color: 'open' }, {}])
        made.push((await client.post('/api/notes', { data: { meta } })).body.data.id);
      const listed = async (filter: string) =>
        idsOf((await client.post('/api/notes/query', { filter })).body.data).map((id) => made.indexOf(id as string));
      expect(await listed('meta.color = "red"')).toEqual([]);
      expect(await listed('meta.color != "x"')).toEqual([1]);
      expect(await listed('meta.color = "open"')).toEqual([1]);
      expect(await listed('meta.color is null')).toEqual([2]);
    });

    it('an unknown path is an error with the known ones', async () => {
      const { client } = await service.user();
      const wrong = await client.post('/api/parts/query', { filter: 'meta.colour = "red"' });
      expect([wrong.status, wrong.text]).toEqual([400, expect.stringContaining('did you mean `color`?')]);
      const sort = await client.post('/api/parts/query', { sort: ['meta.size'] });
      expect([sort.status, sort.text]).toEqual([422, expect.stringContaining('`meta` has no path `size`')]);
      const whole = await client.post('/api/parts/query', { filter: 'name.x = 1' });
      expect(whole.text).toContain('is a value and has no parts');
    });
  },
  { schema: SCHEMA },
);
