/** "Who may" of the interface, and the order of checks. */
import { beforeAll, describe, expect, test } from 'vitest';
import type { Answer, Client } from '../../support/client.ts';
import { makeTag, NOBODY, outcomeOf, saidBy } from '../../support/records.ts';
import { describeRoutesOnOne, ROUTES_SCHEMA, type User } from '../../support/service.ts';

describeRoutesOnOne(
  'decisions',
  (service) => {
    let ann: User;
    let bob: User;
    let root: User;
    beforeAll(async () => {
      [ann, bob, root] = await Promise.all([service.user(), service.user(), service.user('admin')]);
    });
    const make = async (collection: string, data: object, user = ann): Promise<Answer['body']> => {
      const { status, body, text } = await user.client.post(`/api/${collection}`, { data });
      if (status !== 201) throw new Error(text);
      return body.data;
    };

    describe('credentials', () => {
      const bad = (headers: Record<string, string>) => service.anonymous.get('/api/posts', headers);
      test('none, a bad token and a bad cookie', async () => {
        for (const [headers, code, challenge] of [
          [{}, 'unauthenticated', 'Bearer'],
          [{ Authorization: 'Bearer nope' }, 'invalid_token', 'Bearer error="invalid_token"'],
          [{ Authorization: 'Bearer' }, 'invalid_token', 'Bearer error="invalid_token"'],
          [{ Authorization: `Bearer ${ann.token}x` }, 'invalid_token', 'Bearer error="invalid_token"'],
          [{ Authorization: 'Basic YTpi' }, 'unauthenticated', 'Bearer'],
          [{ Cookie: 'svc_session=nope' }, 'unauthenticated', 'Bearer'],
        ] as [Record<string, string>, string, string][]) {
          const answer = await bad(headers);
          expect(outcomeOf(answer)).toEqual([401, code]);
          expect(answer.headers.get('www-authenticate')).toBe(challenge);
        }
      });

      test('either of the two forms', async () => {
        expect((await bad({ Authorization: `bearer ${ann.token}` })).status).toBe(200);
        expect((await bad({ Cookie: ann.cookie })).status).toBe(200);
      });

      test('the bearer token decides, without a fallback', async () => {
        const { id } = await make('posts', { title: 'of ann' });
        const both = (token: string, cookie: string) =>
          service.anonymous.get(`/api/posts/${id}`, { Authorization: `Bearer ${token}`, Cookie: cookie });
        expect((await both(ann.token, bob.cookie)).status).toBe(200);
        expect((await both(bob.token, ann.cookie)).status).toBe(404);
        expect(outcomeOf(await both('bad', ann.cookie))).toEqual([401, 'invalid_token']);
      });

      test('no other path under /api reveals more to a stranger', async () => {
        for (const path of [
          '/api/posts',
          '/api/nope',
          '/api/nope/x',
          `/api/posts/${NOBODY}`,
          '/api/a/b/c',
          '/api/users',
          '/api/files',
          '/api/locked',
        ]) {
          for (const method of ['GET', 'POST', 'PATCH', 'DELETE', 'PUT', 'OPTIONS']) {
            expect([path, method, (await service.anonymous.send(method, path)).status]).toEqual([path, method, 401]);
          }
        }
      });
    });

    describe('a cookie and other sites', () => {
      const change = (headers: Record<string, string>) =>
        service.anonymous.post('/api/posts', { data: { title: 'x' } }, { Cookie: ann.cookie, ...headers });
      test.each([
        [{ 'Sec-Fetch-Site': 'same-origin' }, 201],
        [{ 'Sec-Fetch-Site': 'none' }, 201],
        [{}, 201],
        [{ 'Sec-Fetch-Site': 'same-site' }, 403],
        [{ 'Sec-Fetch-Site': 'cross-site' }, 403],
        [{ Origin: 'https://evil.example' }, 403],
        [{ Origin: 'null' }, 403],
        [{ 'Sec-Fetch-Site': 'cross-site', Origin: 'https://app.example' }, 201],
      ] as [Record<string, string>, number][])('%j → %i', async (headers, status) => {
        const answer = await change(headers);
        expect(answer.status).toBe(status);
        if (status === 403) expect(answer.body.code).toBe('cross_origin');
      });
      test('its own origin; reads; bearer tokens', async () => {
        expect((await change({ Origin: service.url })).status).toBe(201);
        expect(
          (await service.anonymous.get('/api/posts', { Cookie: ann.cookie, 'Sec-Fetch-Site': 'cross-site' })).status,
        ).toBe(200);
        expect(
          (await ann.client.post('/api/posts', { data: { title: 'x' } }, { 'Sec-Fetch-Site': 'cross-site' })).status,
        ).toBe(201);
        expect(
          outcomeOf(
            await service.anonymous.delete(`/api/posts/${NOBODY}`, {
              Cookie: ann.cookie,
              'Sec-Fetch-Site': 'cross-site',
            }),
          ),
        ).toEqual([403, 'cross_origin']);
      });
    });

    describe('the caller’s side', () => {
      const requests = (client: Client, collection: string, id: string): Record<string, () => Promise<Answer>> => ({
        list: () => client.get(`/api/${collection}`),
        read: () => client.get(`/api/${collection}/${id}`),
        create: () => client.post(`/api/${collection}`, { data: {} }),
        update: () => client.patch(`/api/${collection}/${id}`, { data: { name: 'x' } }),
        delete: () => client.delete(`/api/${collection}/${id}`),
      });

      test('an action with no rule is denied to everyone', async () => {
        for (const user of [ann, root]) {
          for (const [action, request] of Object.entries(requests(user.client, 'locked', NOBODY))) {
            expect([action, ...outcomeOf(await request())]).toEqual([action, 403, 'forbidden']);
          }
        }
      });

      test('a role that the caller lacks: for any record', async () => {
        const { id } = await make('vault', { secret: 's' }, root);
        for (const [action, request] of Object.entries(requests(ann.client, 'vault', id))) {
          expect([action, ...outcomeOf(await request())]).toEqual([action, 403, 'forbidden']);
        }
        expect((await root.client.get(`/api/vault/${id}`)).body.data.secret).toBe('s');
      });

      test('a request value that no record can mend', async () => {
        const { id } = await make('forms', { kind: 'open' });
        expect(outcomeOf(await ann.client.get('/api/forms'))).toEqual([403, 'forbidden']);
        expect((await ann.client.get(`/api/forms?owner_id=${ann.id}`)).body.data).toHaveLength(1);
        expect(outcomeOf(await ann.client.get(`/api/forms?owner_id=${bob.id}`))).toEqual([403, 'forbidden']);
        expect(outcomeOf(await ann.client.get(`/api/forms/${id}`))).toEqual([403, 'forbidden']);
        expect((await ann.client.get(`/api/forms/${id}?mode=full`)).status).toBe(200);
        expect(outcomeOf(await ann.client.get(`/api/forms/${id}?mode=full&mode=full`))).toEqual([403, 'forbidden']);
        expect(outcomeOf(await ann.client.delete(`/api/forms/${id}?sure=TRUE`))).toEqual([403, 'forbidden']);
        expect((await ann.client.delete(`/api/forms/${id}?sure=true`)).status).toBe(204);
      });

      test('a rule that reads the body', async () => {
        expect(outcomeOf(await ann.client.post('/api/forms', { data: { kind: 'closed' } }))).toEqual([
          403,
          'forbidden',
        ]);
        expect(outcomeOf(await ann.client.post('/api/forms', { data: {} }))).toEqual([403, 'forbidden']);
        expect(
          outcomeOf(
            await ann.client.send('POST', '/api/forms', { raw: '{', headers: { 'Content-Type': 'application/json' } }),
          ),
        ).toEqual([400, 'malformed_json']);
      });

      test('a rule that names @next is asked of the result', async () => {
        const { id } = await make('forms', { kind: 'open' });
        const { body } = await ann.client.patch(`/api/forms/${id}?mode=full`, { data: { note: 'n' } });
        expect(body.data.note).toBe('n');
        expect(outcomeOf(await ann.client.patch(`/api/forms/${id}?mode=full`, { data: { kind: 'shut' } }))).toEqual([
          403,
          'forbidden',
        ]);
        expect(outcomeOf(await ann.client.patch(`/api/forms/${id}`, { data: { kind: 'shut' } }))).toEqual([
          404,
          'not_found',
        ]);
      });
    });

    describe('hidden is indistinguishable from missing', () => {
      test('in every body and header', async () => {
        const { id } = await make('posts', { title: 'hidden' });
        const answers = async (which: string) => [
          await bob.client.get(`/api/posts/${which}`),
          await bob.client.get(`/api/posts/${which}?expand=tags`),
          await bob.client.patch(`/api/posts/${which}`, { data: { title: 'x' } }),
          await bob.client.patch(`/api/posts/${which}`, { data: { nope: 1 } }),
          await bob.client.send('PATCH', `/api/posts/${which}`, { json: { data: { title: 'x' }, more: 1 } }),
          await bob.client.send('PATCH', `/api/posts/${which}`, { json: {} }),
          await bob.client.patch(`/api/posts/${which}`, { data: { title: 'x' } }, { 'If-Match': '"x"' }),
          await bob.client.delete(`/api/posts/${which}`),
          await bob.client.delete(`/api/posts/${which}`, { 'If-Match': '"x"' }),
        ];
        const [hidden, missing, misspelt] = [await answers(id), await answers(NOBODY), await answers('nonsense')];
        expect(hidden.map(({ status }) => status)).toEqual(hidden.map(() => 404));
        expect(hidden.map(saidBy)).toEqual(missing.map(saidBy));
        expect(hidden.map(saidBy)).toEqual(misspelt.map(saidBy));
      });

      test('a change of a record that may only be read is 403', async () => {
        const { id } = await make('posts', { title: 'seen', status: 'published' });
        expect(outcomeOf(await bob.client.patch(`/api/posts/${id}`, { data: { title: 'x' } }))).toEqual([
          403,
          'forbidden',
        ]);
        expect(outcomeOf(await bob.client.patch(`/api/posts/${id}`, { data: { nope: 'x' } }))).toEqual([
          403,
          'forbidden',
        ]);
        expect(outcomeOf(await bob.client.delete(`/api/posts/${id}`))).toEqual([403, 'forbidden']);
      });
    });

    describe('the order of checks', () => {
      const send = (user: User, method: string, path: string, headers: Record<string, string> = {}, raw = '{') =>
        user.client.send(method, path, { raw, headers });

      test('401 · 404 · 405 · 403 · 415 · 413 · 400 · 404 · 403 · 422 · 412 · 409', async () => {
        const big = JSON.stringify({ data: { title: 'x'.repeat(1 << 20) } });
        const json = { 'Content-Type': 'application/json' };
        const { id: hidden } = await make('posts', { title: 'h' });
        const { id: seen } = await make('posts', { title: 's', status: 'published', slug: `s${Math.random()}` });
        const { slug } = await make('posts', { title: 's', slug: `t${Math.random()}` });
        expect((await service.anonymous.send('PUT', '/api/nope', { raw: '{' })).status).toBe(401);
        expect((await send(ann, 'PUT', '/api/nope')).status).toBe(404);
        expect((await send(ann, 'PUT', '/api/locked')).status).toBe(405);
        expect((await send(ann, 'POST', '/api/locked')).status).toBe(403);
        expect((await send(ann, 'POST', '/api/locked', json, big)).status).toBe(403);
        expect((await send(ann, 'POST', '/api/posts', { 'Content-Type': 'text/plain' }, big)).status).toBe(415);
        expect((await send(ann, 'POST', '/api/posts', json, big)).status).toBe(413);
        expect((await send(bob, 'PATCH', `/api/posts/${hidden}`, json)).status).toBe(400);
        expect((await send(bob, 'PATCH', `/api/posts/${hidden}`, json, '{"data":{}}')).status).toBe(400);
        expect((await send(bob, 'PATCH', `/api/posts/${hidden}`, json, '{"data":{"nope":1}}')).status).toBe(404);
        expect((await send(bob, 'PATCH', `/api/posts/${seen}`, json, '{"data":{"nope":1}}')).status).toBe(403);
        expect(
          (await send(ann, 'PATCH', `/api/posts/${seen}`, { ...json, 'If-Match': '"x"' }, '{"data":{"nope":1}}'))
            .status,
        ).toBe(422);
        expect(
          (
            await send(
              ann,
              'PATCH',
              `/api/posts/${seen}`,
              { ...json, 'If-Match': '"x"' },
              JSON.stringify({ data: { title: 'y' } }),
            )
          ).status,
        ).toBe(412);
        expect((await send(ann, 'PATCH', `/api/posts/${seen}`, json, JSON.stringify({ data: { slug } }))).status).toBe(
          409,
        );
      });

      test('on create, 422 comes before a refusal that needs the record’s values', async () => {
        const author = bob.id;
        expect((await ann.client.post('/api/posts', { data: { nope: 1, author } })).status).toBe(422);
      });
    });

    test('a new role and its loss act at once', async () => {
      const cid = await service.user('member');
      expect((await cid.client.get('/api/vault')).status).toBe(403);
      const give = await root.client.patch(`/api/users/${cid.id}`, { data: { roles: { add: ['admin'] } } });
      expect([give.status, give.body.data.roles]).toEqual([200, ['admin', 'member']]);
      expect((await cid.client.get('/api/vault')).status).toBe(200);
      await root.client.patch(`/api/users/${cid.id}`, { data: { roles: { set: ['member'] } } });
      expect((await cid.client.get('/api/vault')).status).toBe(403);
    });

    test('a tag that is hidden does not show in what is read', async () => {
      const tag = await makeTag(service, { hidden: true });
      expect(outcomeOf(await ann.client.get(`/api/tags/${tag}`))).toEqual([404, 'not_found']);
    });
  },
  { schema: `origins: ['https://app.example']\n${ROUTES_SCHEMA}` },
);
