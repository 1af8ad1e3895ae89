// @module-tag long
// @module-tag partitions
/** "Success" and "Writes" of the interface: bodies, relations, versions, repeated requests. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { idsOf, NOBODY, outcomeOf } from '../support/records.ts';
import { describeOnBoth, type User } from '../support/service.ts';

const SCHEMA = readFileSync(join(import.meta.dirname, 'bylaw.yaml'), 'utf8');
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;

describeOnBoth(
  'writes',
  (service) => {
    let ann: User;
    let bob: User;
    const make = async (who: User, collection: string, data: object = {}): Promise<string> => {
      const { status, body, text } = await who.client.post(`/api/${collection}`, { data });
      if (status !== 201) throw new Error(text);
      return body.data.id;
    };
    const thing = (data: object = {}) => make(ann, 'things', { title: 't', ...data });
    const patch = (id: string, data: object, query = '') => ann.client.patch(`/api/things/${id}${query}`, { data });
    const marksOf = async (who: User, id: string) =>
      idsOf((await who.client.get(`/api/things/${id}?expand=marks`)).body.data.expand.marks);
    beforeAll(async () => {
      [ann, bob] = await Promise.all([service.user(), service.user()]);
    });

    test('a record is flat, and the same in every answer', async () => {
      const made = await ann.client.post('/api/things?expand=marks,badge,parts,owner', { data: { title: 't' } });
      const record = {
        id: expect.any(String),
        created_at: expect.stringMatching(TIME),
        updated_at: made.body.data.created_at,
        title: 't',
        code: null,
        kind: 'one',
        slug: null,
        n: null,
        x: null,
        ok: false,
        at: null,
        owner: ann.id,
        badge: null,
      };
      const me = (await ann.client.get('/api/auth/me')).body.user;
      expect([made.status, made.headers.get('location'), made.body]).toEqual([
        201,
        `/api/things/${made.body.data.id}`,
        { data: { ...record, expand: { marks: [], badge: null, parts: [], owner: me } } },
      ]);
      const read = await ann.client.get(`/api/things/${made.body.data.id}`);
      expect([read.status, read.body, read.headers.get('etag')]).toEqual([
        200,
        { data: record },
        expect.stringMatching(/^"[!#-~]+"$/),
      ]);
      const changed = await patch(made.body.data.id, { title: 'u', n: 5, kind: null });
      expect([changed.status, changed.body, changed.headers.get('etag')]).toEqual([
        200,
        { data: { ...record, title: 'u', n: 5, kind: null, updated_at: expect.stringMatching(TIME) } },
        expect.stringMatching(/^"[!#-~]+"$/),
      ]);
      expect(changed.body.data.updated_at > read.body.data.updated_at).toBe(true);
      expect(changed.headers.get('etag')).not.toBe(read.headers.get('etag'));
      expect((await ann.client.get(`/api/things?id=${made.body.data.id}`)).body.data).toEqual([changed.body.data]);
      const gone = await ann.client.delete(`/api/things/${made.body.data.id}`);
      expect([gone.status, gone.text]).toEqual([204, '']);
      for (const again of [
        await ann.client.delete(`/api/things/${made.body.data.id}`),
        await patch(made.body.data.id, { title: 'v' }),
      ])
        expect(outcomeOf(again)).toEqual([404, 'not_found']);
    });

    test('required, default and unique treat null alike', async () => {
      expect(outcomeOf(await ann.client.post('/api/things', { data: {} })).slice(0, 2)).toEqual([
        422,
        'validation_failed',
      ]);
      expect(outcomeOf(await ann.client.post('/api/things', { data: { title: null } })).slice(0, 2)).toEqual([
        422,
        'validation_failed',
      ]);
      const id = await thing({ code: `u-${service.kind}`, owner: null, kind: null });
      expect((await ann.client.get(`/api/things/${id}`)).body.data).toMatchObject({ owner: null, kind: null });
      expect(outcomeOf(await patch(id, { title: null })).slice(0, 2)).toEqual([422, 'validation_failed']);
      const taken = await ann.client.post('/api/things', { data: { title: 't', code: `u-${service.kind}` } });
      expect([
        taken.status,
        taken.body.code,
        taken.body.errors?.map(({ pointer }: { pointer: string }) => pointer),
      ]).toEqual([409, 'unique_violation', ['/data/code']]);
      await Promise.all([thing({ code: null }), thing({ code: null })]);
      const race = await Promise.all(
        [1, 2, 3].map(() => ann.client.post('/api/things', { data: { title: 't', code: `r-${service.kind}` } })),
      );
      expect(race.map(({ status }) => status).sort()).toEqual([201, 409, 409]);
    });

    test('a patch with nothing fails', async () => {
      const id = await thing();
      expect(outcomeOf(await patch(id, {}))).toEqual([400, 'patch_empty']);
      for (const data of [
        { id },
        { created_at: '2024-01-01T00:00:00Z' },
        { updated_at: null },
        { title: 'ok', nothing: 1 },
        { title: 'ok', parts: { add: [] } },
        { owner_id: ann.id },
        { __proto__: null, constructor: 1 },
      ])
        expect(outcomeOf(await patch(id, data)).slice(0, 2)).toEqual([422, 'validation_failed']);
      expect((await ann.client.get(`/api/things/${id}`)).body.data.title).toBe('t');
    });

    describe('many_to_many', () => {
      test('a write applies set, add and remove, in that order', async () => {
        const [a, b, c, secret] = [
          await make(ann, 'marks'),
          await make(ann, 'marks'),
          await make(ann, 'marks'),
          await make(bob, 'marks', { secret: true }),
        ];
        const id = await thing({ marks: { add: [b, a, a.toUpperCase()] } });
        expect(await marksOf(ann, id)).toEqual([a, b]);
        await bob.client.patch(`/api/things/${id}`, { data: { marks: { add: [secret] } } });
        expect(await marksOf(ann, id)).toEqual([a, b]);
        expect(await marksOf(bob, id)).toEqual([a, b, secret]);
        const before = await ann.client.get(`/api/things/${id}`);
        const changed = await patch(id, { marks: { set: [a, b], add: [c, c], remove: [a, NOBODY] } }, '?expand=marks');
        expect([changed.status, idsOf(changed.body.data.expand.marks)]).toEqual([200, [b, c]]);
        expect(changed.body.data.updated_at > before.body.data.updated_at).toBe(true);
        expect(changed.headers.get('etag')).not.toBe(before.headers.get('etag'));
        expect(await marksOf(bob, id)).toEqual([b, c, secret]);
        expect((await patch(id, { marks: { set: [] } })).status).toBe(200);
        expect(await marksOf(bob, id)).toEqual([secret]);
        const filter = async (who: User, query: string) =>
          idsOf((await who.client.get(`/api/things?${query}`)).body.data);
        expect(await filter(ann, `marks_any=${secret}`)).toEqual([]);
        expect(await filter(bob, `marks_any=${secret}`)).toEqual([id]);
        expect((await patch(id, { marks: { remove: [secret] } })).status).toBe(200);
        // Hidden members stay, also when a stranger removes them.
        expect(await marksOf(bob, id)).toEqual([secret]);
        expect((await bob.client.delete(`/api/marks/${secret}`)).status).toBe(204);
        expect((await ann.client.delete(`/api/marks/${b}`)).status).toBe(204);
      });
      for (const [operation, pointer] of [
        [{}, '/data/marks'],
        [{ set: null }, '/data/marks/set'],
        [{ set: 'x' }, '/data/marks/set'],
        [{ add: [1] }, '/data/marks/add/0'],
        [{ add: [null] }, '/data/marks/add/0'],
        [{ remove: ['x'] }, '/data/marks/remove/0'],
        [{ set: [], other: [] }, '/data/marks/other'],
        [[NOBODY], '/data/marks'],
        [null, '/data/marks'],
        [NOBODY, '/data/marks'],
      ] as const)
        test(JSON.stringify(operation), async () => {
          const { status, body } = await patch(await thing(), { marks: operation });
          expect([status, body.code, body.errors.map((each: { pointer: string }) => each.pointer)]).toEqual([
            422,
            'validation_failed',
            [pointer],
          ]);
        });
      for (const operation of [{ set: [] }, { add: [] }, { remove: [] }, { set: [], add: [], remove: [] }])
        test(`the operation ${JSON.stringify(operation)} is invalid`, async () =>
          expect((await patch(await thing(), { marks: operation })).status).toBe(200));
    });

    describe('has_one', () => {
      test('a has_one moves, on create too, and can be cleared', async () => {
        const [x, y] = [await make(ann, 'badges'), await make(ann, 'badges')];
        const [one, two] = [await thing({ badge: x }), await thing()];
        const badge = async (id: string) => (await ann.client.get(`/api/things/${id}`)).body.data.badge;
        const thingOf = async (id: string) => (await ann.client.get(`/api/badges/${id}`)).body.data.thing;
        expect([await badge(one), await thingOf(x)]).toEqual([x, one]);
        expect((await patch(two, { badge: x })).body.data.badge).toBe(x);
        expect([await badge(one), await badge(two), await thingOf(x)]).toEqual([null, x, two]);
        expect((await patch(two, { badge: y })).body.data.badge).toBe(y);
        expect([await thingOf(x), await thingOf(y)]).toEqual([null, two]);
        expect((await patch(two, { badge: null })).body.data.badge).toBe(null);
        expect(await thingOf(y)).toBe(null);
        expect((await patch(two, { badge: null })).status).toBe(200);
      });
      test('a has_one requires permission to update the changed records, and shows readable ones', async () => {
        const [bobs, secret, mine] = [
          await make(bob, 'badges'),
          await make(bob, 'badges', { secret: true }),
          await make(ann, 'badges'),
        ];
        const id = await thing();
        expect(outcomeOf(await patch(id, { badge: bobs }))).toEqual([403, 'forbidden']);
        expect(outcomeOf(await patch(id, { badge: secret })).slice(0, 2)).toEqual([422, 'validation_failed']);
        expect((await bob.client.patch(`/api/things/${id}`, { data: { badge: secret } })).body.data.badge).toBe(secret);
        expect((await ann.client.get(`/api/things/${id}?expand=badge`)).body.data).toMatchObject({
          badge: null,
          expand: { badge: null },
        });
        expect((await ann.client.get(`/api/things?badge=${secret}`)).body.data).toEqual([]);
        expect(idsOf((await bob.client.get(`/api/things?badge=${secret}`)).body.data)).toEqual([id]);
        // Ann would have to let go of one that she may not update.
        const moved = await patch(id, { badge: mine });
        expect([403, 409]).toContain(moved.status);
        expect((await bob.client.get(`/api/things/${id}`)).body.data.badge).toBe(secret);
        expect((await ann.client.get(`/api/badges/${mine}`)).body.data.thing).toBe(null);
      });
      test('a second reference is reported as taken', async () => {
        const id = await thing();
        await make(ann, 'badges', { thing: id });
        expect(outcomeOf(await ann.client.post('/api/badges', { data: { thing: id } })).slice(0, 2)).toEqual([
          409,
          'unique_violation',
        ]);
      });
    });

    test('a delete follows on_delete', async () => {
      const [id, keeper] = [await thing(), await make(ann, 'marks')];
      const [part, kept, badge] = [
        await make(ann, 'parts', { thing: id }),
        await make(ann, 'parts', { keeper }),
        await make(ann, 'badges', { thing: id }),
      ];
      expect((await ann.client.delete(`/api/things/${id}`)).status).toBe(204);
      expect((await ann.client.get(`/api/parts/${part}`)).status).toBe(404);
      expect((await ann.client.get(`/api/badges/${badge}`)).body.data.thing).toBe(null);
      expect(outcomeOf(await ann.client.delete(`/api/marks/${keeper}`)).slice(0, 2)).toEqual([409, 'still_referenced']);
      expect((await ann.client.delete(`/api/parts/${kept}`)).status).toBe(204);
      expect((await ann.client.delete(`/api/marks/${keeper}`)).status).toBe(204);
    });

    test('a record expands readable records only, in id order', async () => {
      const id = await thing();
      const [p, q] = [await make(ann, 'parts', { thing: id }), await make(bob, 'parts', { thing: id })];
      const hidden = await make(bob, 'parts', { thing: id, secret: true });
      const parts = async (who: User) =>
        idsOf((await who.client.get(`/api/things/${id}?expand=parts`)).body.data.expand.parts);
      expect([await parts(ann), await parts(bob)]).toEqual([
        [p, q],
        [p, q, hidden],
      ]);
      expect((await ann.client.get(`/api/things?parts_any=${hidden}`)).body.data).toEqual([]);
      expect(idsOf((await ann.client.get(`/api/things?parts_any=${q}`)).body.data)).toEqual([id]);
      const bobs = await make(bob, 'things', { title: 'b' });
      expect((await ann.client.get(`/api/things/${bobs}?expand=owner`)).body.data).toMatchObject({
        owner: bob.id,
        expand: { owner: null },
      });
      expect(idsOf((await ann.client.get(`/api/things?owner_id=${bob.id}`)).body.data)).toEqual([bobs]);
    });

    describe('versions', () => {
      const send = (method: string, id: string, headers: Record<string, string>) =>
        ann.client.send(method, `/api/things/${id}`, {
          headers,
          ...(method === 'PATCH' ? { json: { data: { title: 'w' } } } : {}),
        });
      const tagOf = async (id: string) => (await ann.client.get(`/api/things/${id}`)).headers.get('etag')!;
      test('If-Match compares versions', async () => {
        const id = await thing();
        const old = await tagOf(id);
        for (const make of [
          (tag: string) => tag,
          (tag: string) => `"x", ${tag}`,
          (tag: string) => `${tag},"y"`,
          () => '*',
          (tag: string) => `"a,b" , ${tag}`,
          (tag: string) => `W/"z", ${tag}`,
        ])
          expect((await send('PATCH', id, { 'If-Match': make(await tagOf(id)) })).status).toBe(200);
        const now = await tagOf(id);
        for (const tag of [old, '"x"', `W/${now}`, now.replaceAll('"', ''), '""', `"x${now.slice(1)}`])
          for (const method of ['PATCH', 'DELETE'])
            expect([tag, ...outcomeOf(await send(method, id, { 'If-Match': tag }))]).toEqual([tag, 412, 'changed']);
        expect(outcomeOf(await send('PATCH', NOBODY, { 'If-Match': '*' }))).toEqual([404, 'not_found']);
        expect((await send('DELETE', id, { 'If-Match': now })).status).toBe(204);
      });
      test('If-None-Match compares tags', async () => {
        const id = await thing();
        const tag = await tagOf(id);
        for (const given of [tag, `W/${tag}`, `"x", ${tag}`, '*'])
          for (const method of ['GET', 'HEAD']) {
            const { status, text, headers } = await send(method, id, { 'If-None-Match': given });
            expect([given, status, text, headers.get('etag')]).toEqual([given, 304, '', tag]);
          }
        for (const given of ['"x"', tag.replaceAll('"', '')])
          expect((await send('GET', id, { 'If-None-Match': given })).status).toBe(200);
      });
      test('the first writer wins of two with the same tag', async () => {
        const id = await thing();
        const tag = await tagOf(id);
        expect(
          (await Promise.all([1, 2, 3].map(() => send('PATCH', id, { 'If-Match': tag }))))
            .map(({ status }) => status)
            .sort(),
        ).toEqual([200, 412, 412]);
      });
    });

    describe('Idempotency-Key', () => {
      const post = (key: string, title = 'i', who = ann, path = '/api/things') =>
        who.client.post(path, { data: { title } }, { 'Idempotency-Key': key });
      test('a key creates one record, for concurrent requests too', async () => {
        const answers = await Promise.all([1, 2, 3, 4].map(() => post('k1')));
        for (const { status, text, headers } of answers)
          expect([status, text, headers.get('location')]).toEqual([
            201,
            answers[0]!.text,
            answers[0]!.headers.get('location'),
          ]);
        expect(outcomeOf(await post('k1', 'j')).slice(0, 2)).toEqual([422, 'idempotency_mismatch']);
        expect((await post('k1', 'i', bob)).body.data.id).not.toBe(answers[0]!.body.data.id);
      });
      test('a key does not keep errors', async () => {
        expect((await post('k2', '')).status).toBe(422);
        expect((await post('k2')).status).toBe(201);
      });
      for (const key of ['', 'a b', 'a'.repeat(256), 'ä'])
        test(`the key ${key.slice(0, 5)} is invalid`, async () =>
          expect(outcomeOf(await post(key)).slice(0, 2)).toEqual([400, 'invalid_parameter']));
      test('a key may have 255 characters', async () => expect((await post('~'.repeat(255))).status).toBe(201));
    });
  },
  { schema: SCHEMA },
);
