// @module-tag partitions
/** Patch and delete: "Writes" of the interface. */
import { beforeAll, describe, expect, test } from 'vitest';
import type { Answer } from '../support/client.ts';
import { idsOf, makeTag, NOBODY, outcomeOf } from '../support/records.ts';
import { describeRoutes, makePeople, ROUTES_SCHEMA, type User } from '../support/service.ts';

describeRoutes(
  'changes',
  (service) => {
    let ann: User;
    let bob: User;
    let ed: User;
    let root: User;
    beforeAll(async () => {
      ({ ann, bob, ed, root } = await makePeople(service));
    });
    const make = async (collection: string, data: object, user = ann): Promise<Answer['body']> => {
      const { status, body, text } = await user.client.post(`/api/${collection}`, { data });
      if (status !== 201) throw new Error(text);
      return body.data;
    };
    const post = (data: object = {}, user = ann) => make('posts', { title: 't', ...data }, user);
    const patch = (id: string, data: object, user = ann) => user.client.patch(`/api/posts/${id}`, { data });

    describe('patch', () => {
      test('changes what it names, and answers the record and its tag', async () => {
        const before = await post({ score: 1 });
        const { status, headers, body } = await patch(before.id, { score: 2, slug: null });
        expect([status, body.data]).toEqual([200, { ...before, score: 2, updated_at: body.data.updated_at }]);
        expect(body.data.updated_at > before.updated_at).toBe(true);
        expect(headers.get('etag')).toBe((await ann.client.get(`/api/posts/${before.id}`)).headers.get('etag'));
      });

      test('an empty patch, unknown and read-only fields change nothing', async () => {
        const before = await post();
        expect(outcomeOf(await patch(before.id, {}))).toEqual([400, 'patch_empty']);
        expect(outcomeOf(await patch(before.id, { score: 5, nope: 1 }))).toEqual([
          422,
          'validation_failed',
          '/data/nope unknown_field',
        ]);
        expect(outcomeOf(await patch(before.id, { score: 5, updated_at: before.updated_at }))).toEqual([
          422,
          'validation_failed',
          '/data/updated_at read_only',
        ]);
        expect(outcomeOf(await patch(before.id, { title: null, author: null }))).toEqual([
          422,
          'validation_failed',
          '/data/title required',
          '/data/author required',
        ]);
        expect((await ann.client.get(`/api/posts/${before.id}`)).body.data).toEqual(before);
      });

      test('set, add and remove, in that order, in one write', async () => {
        const [a, b, c] = [await makeTag(service), await makeTag(service), await makeTag(service)];
        const { id, updated_at } = await post();
        const members = async (tags: object) => {
          const { body, text } = await ann.client.patch(`/api/posts/${id}?expand=tags`, { data: { tags } });
          return body.data === undefined ? text : idsOf(body.data.expand.tags);
        };
        expect(await members({ add: [b, a, b] })).toEqual([a, b]);
        expect(await members({ remove: [a, c] })).toEqual([b]);
        expect(await members({ set: [a], add: [c], remove: [a] })).toEqual([c]);
        expect(await members({ set: [] })).toEqual([]);
        expect((await ann.client.get(`/api/posts/${id}`)).body.data.updated_at > updated_at).toBe(true);
      });

      test('a change of members is a change of the record', async () => {
        const { id } = await post();
        const etag = (await ann.client.get(`/api/posts/${id}`)).headers.get('etag');
        const changed = await patch(id, { tags: { add: [await makeTag(service)] } });
        expect(changed.headers.get('etag')).not.toBe(etag);
      });

      test('set leaves members that the caller may not read', async () => {
        const [seen, unseen] = [await makeTag(service), await makeTag(service)];
        const { id } = await post({ tags: { set: [seen, unseen] } });
        await ann.client.patch(`/api/tags/${unseen}`, { data: { hidden: true } });
        await patch(id, { tags: { set: [] } });
        const { app } = service;
        expect(idsOf((await ann.client.get(`/api/posts/${id}?expand=tags`)).body.data.expand.tags)).toEqual([]);
        const { sql, param } = await import('../../src/sql.ts');
        await app.db.run(sql`UPDATE /* every tenant */ tags SET hidden = false WHERE id = ${param('uuid', unseen)}`);
        expect(idsOf((await ann.client.get(`/api/posts/${id}?expand=tags`)).body.data.expand.tags)).toEqual([unseen]);
      });

      test('has_many is never written', async () => {
        const { id } = await post();
        expect(outcomeOf(await patch(id, { comments: { add: [] } }))).toEqual([
          422,
          'validation_failed',
          '/data/comments read_only',
        ]);
      });

      test('a has_one moves the reference, and lets go of the one before', async () => {
        const [first, second] = [await make('covers', { url: '1' }), await make('covers', { url: '2' })];
        const { id } = await post({ cover: first.id });
        expect((await patch(id, { cover: second.id })).body.data.cover).toBe(second.id);
        expect((await ann.client.get(`/api/covers/${first.id}`)).body.data.post).toBeNull();
        const other = await post({ cover: second.id });
        expect(other.cover).toBe(second.id);
        expect((await ann.client.get(`/api/posts/${id}`)).body.data.cover).toBeNull();
        expect((await patch(other.id, { cover: null })).body.data.cover).toBeNull();
      });

      test('a has_one that the caller may not read or change', async () => {
        const theirs = await make('covers', { url: 'bob' }, bob);
        const { id } = await post();
        expect(outcomeOf(await patch(id, { cover: theirs.id }))).toEqual([
          422,
          'validation_failed',
          '/data/cover not_found',
        ]);
      });

      test('a record cannot be given away by a rule that must hold before and after', async () => {
        const { id } = await post();
        expect(outcomeOf(await patch(id, { author: bob.id }))).toEqual([
          422,
          'validation_failed',
          '/data/author not_found',
        ]);
        expect(outcomeOf(await patch(id, { author: ann.id.toUpperCase() }))).toEqual([200, undefined]);
      });

      test('the answer holds the record only where the caller may read the result', async () => {
        const { id } = await post({ status: 'published' });
        const { status, body, headers } = await ed.client.patch(`/api/posts/${id}`, { data: { status: 'draft' } });
        expect([status, body, headers.get('etag')]).toEqual([200, { data: { id } }, null]);
      });
    });

    describe('If-Match', () => {
      test('refuses what has changed since, takes a list and *', async () => {
        const { id } = await post();
        const path = `/api/posts/${id}`;
        const etag = (await ann.client.get(path)).headers.get('etag')!;
        expect((await ann.client.patch(path, { data: { score: 1 } }, { 'If-Match': `"x", ${etag}` })).status).toBe(200);
        expect(outcomeOf(await ann.client.patch(path, { data: { score: 2 } }, { 'If-Match': etag }))).toEqual([
          412,
          'changed',
        ]);
        expect(outcomeOf(await ann.client.delete(path, { 'If-Match': etag }))).toEqual([412, 'changed']);
        expect(
          outcomeOf(
            await ann.client.patch(
              path,
              { data: { score: 2 } },
              { 'If-Match': `W/${(await ann.client.get(path)).headers.get('etag')}` },
            ),
          ),
        ).toEqual([412, 'changed']);
        expect((await ann.client.get(path)).body.data.score).toBe(1);
        expect((await ann.client.patch(path, { data: { score: 3 } }, { 'If-Match': '*' })).status).toBe(200);
        expect(
          (await ann.client.delete(path, { 'If-Match': (await ann.client.get(path)).headers.get('etag')! })).status,
        ).toBe(204);
      });

      test('the tag of a create and of a patch is the tag of a read', async () => {
        const created = await ann.client.post('/api/posts', { data: { title: 't' } });
        const path = created.headers.get('location')!;
        expect(created.headers.get('etag')).toBe((await ann.client.get(path)).headers.get('etag'));
      });
    });

    describe('delete', () => {
      test('answers 204 without a body; the record is gone', async () => {
        const { id } = await post();
        const { status, text } = await ann.client.delete(`/api/posts/${id}`);
        expect([status, text]).toEqual([204, '']);
        expect((await ann.client.get(`/api/posts/${id}`)).status).toBe(404);
        expect((await ann.client.delete(`/api/posts/${id}`)).status).toBe(404);
      });

      test('restrict, set_null, and the links of a many_to_many', async () => {
        const tag = await makeTag(service);
        const cover = await make('covers', { url: 'x' });
        const { id } = await post({ tags: { set: [tag] }, cover: cover.id });
        const comment = await make('comments', { text: 'x', post: id });
        expect(outcomeOf(await ann.client.delete(`/api/posts/${id}`))).toEqual([409, 'still_referenced']);
        await ann.client.delete(`/api/comments/${comment.id}`);
        expect((await ann.client.delete(`/api/posts/${id}`)).status).toBe(204);
        expect((await ann.client.get(`/api/covers/${cover.id}`)).body.data.post).toBeNull();
        const next = await post({ tags: { set: [tag] } });
        expect((await ann.client.delete(`/api/tags/${tag}`)).status).toBe(204);
        expect((await ann.client.get(`/api/posts/${next.id}?expand=tags`)).body.data.expand.tags).toEqual([]);
      });

      test('a set_null is a change of the record that it empties', async () => {
        const category = await make('categories', { name: `n${Math.random()}` }, ed);
        const before = await post({ category: category.id });
        expect((await ed.client.delete(`/api/categories/${category.id}`)).status).toBe(204);
        const after = (await ann.client.get(`/api/posts/${before.id}`)).body.data;
        expect(after.category).toBeNull();
        expect(after.updated_at > before.updated_at).toBe(true);
      });

      test('a condition on the record', async () => {
        const { id } = await post({ status: 'published' });
        expect(outcomeOf(await ann.client.delete(`/api/posts/${id}`))).toEqual([403, 'forbidden']);
        expect(outcomeOf(await bob.client.delete(`/api/posts/${id}`))).toEqual([403, 'forbidden']);
        expect((await root.client.delete(`/api/posts/${id}`)).status).toBe(204);
        expect(outcomeOf(await root.client.delete(`/api/posts/${NOBODY}`))).toEqual([404, 'not_found']);
      });
    });

    describe('Idempotency-Key', () => {
      const key = (): string => `key-${Math.random()}`;
      const count = async (title: string) => (await ann.client.get(`/api/posts?title=${title}`)).body.data.length;

      test('the same key and body make one record and one answer', async () => {
        const headers = { 'Idempotency-Key': key() };
        const title = `once${Math.random()}`;
        const [first, ...others] = await Promise.all(
          Array.from({ length: 5 }, () => ann.client.post('/api/posts', { data: { title } }, headers)),
        );
        for (const other of others) {
          expect([other.status, other.text, other.headers.get('location'), other.headers.get('etag')]).toEqual([
            201,
            first!.text,
            first!.headers.get('location'),
            first!.headers.get('etag'),
          ]);
        }
        expect(await count(title)).toBe(1);
      });

      test('another body is a mismatch; another user or path is another key', async () => {
        const headers = { 'Idempotency-Key': key() };
        expect((await ann.client.post('/api/posts', { data: { title: 'a' } }, headers)).status).toBe(201);
        expect(outcomeOf(await ann.client.post('/api/posts', { data: { title: 'b' } }, headers))).toEqual([
          422,
          'idempotency_mismatch',
        ]);
        expect((await bob.client.post('/api/posts', { data: { title: 'b' } }, headers)).status).toBe(201);
        expect((await ann.client.post('/api/tags', { data: { name: 'b' } }, headers)).status).toBe(201);
      });

      test('errors are not kept', async () => {
        const headers = { 'Idempotency-Key': key() };
        expect((await ann.client.post('/api/posts', { data: {} }, headers)).status).toBe(422);
        expect((await ann.client.post('/api/posts', { data: { title: 'now' } }, headers)).status).toBe(201);
      });

      test.each(['', 'a b', 'é', 'x'.repeat(256)])('%j is not a key', async (given) => {
        expect(
          outcomeOf(await ann.client.post('/api/posts', { data: { title: 'x' } }, { 'Idempotency-Key': given })),
        ).toEqual([400, 'invalid_parameter', 'Idempotency-Key invalid_parameter']);
      });
    });
  },
  { schema: ROUTES_SCHEMA },
);
