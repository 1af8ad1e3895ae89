// @module-tag partitions
/** "Who may", and the order of checks. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Client } from '../support/client.ts';
import { idsOf, NOBODY, outcomeOf, saidBy } from '../support/records.ts';
import { describeOnBoth, type User } from '../support/service.ts';

const SCHEMA = readFileSync(join(import.meta.dirname, 'bylaw.yaml'), 'utf8');

describeOnBoth(
  'permitted callers',
  (service) => {
    let ann: User;
    let bob: User;
    let guest: User;
    let root: User;
    const make = async (who: User, collection: string, data: object): Promise<string> => {
      const { status, body, text } = await who.client.post(`/api/${collection}`, { data });
      if (status !== 201) throw new Error(text);
      return body.data.id;
    };
    const note = (who: User, data: object = {}) => make(who, 'notes', { text: 't', ...data });
    beforeAll(async () => {
      [ann, bob, guest, root] = await Promise.all([
        service.user(),
        service.user(),
        service.user('guest'),
        service.user('admin'),
      ]);
    });

    describe('without a valid credential', () => {
      const routes = [
        ['GET', '/api/things'],
        ['POST', '/api/things'],
        ['GET', `/api/things/${NOBODY}`],
        ['PATCH', '/api/things/x'],
        ['DELETE', `/api/things/${NOBODY}`],
        ['GET', '/api/nothing'],
        ['PUT', '/api/things'],
        ['GET', '/api/closed'],
        ['GET', '/api/users'],
        ['GET', '/api/auth/me'],
        ['GET', '/api/auth/sessions'],
        ['POST', '/api/auth/logout'],
      ] as const;
      const asks = async (client: Client, method: string, path: string, headers: Record<string, string> = {}) => {
        const answer = await client.send(method, path, { headers });
        return [
          answer.status,
          answer.body?.code,
          answer.headers.get('www-authenticate')?.split(/[ ,]/)[0],
          answer.headers.get('content-type')?.split(';')[0],
        ];
      };
      for (const [method, path] of routes)
        test(`${method} ${path}`, async () => {
          const problem = 'application/problem+json';
          expect(await asks(service.anonymous, method, path)).toEqual([401, 'unauthenticated', 'Bearer', problem]);
          for (const bad of [
            'Bearer x',
            'Bearer',
            'Bearer ',
            `Bearer ${ann.token}x`,
            `Bearer ${ann.token} ${ann.token}`,
          ])
            expect([
              bad,
              ...(await asks(service.anonymous, method, path, { Authorization: bad, Cookie: ann.cookie })),
            ]).toEqual([bad, 401, 'invalid_token', 'Bearer', problem]);
          expect(await asks(service.anonymous, method, path, { Cookie: 'svc_session=x' })).toEqual([
            401,
            'unauthenticated',
            'Bearer',
            problem,
          ]);
          expect(await asks(service.anonymous, method, path, { Cookie: 'svc_session=' })).toEqual([
            401,
            'unauthenticated',
            'Bearer',
            problem,
          ]);
        });
      test('the scheme is read in any letter case', async () => {
        expect((await service.anonymous.get('/api/things', { Authorization: `bearer ${ann.token}` })).status).toBe(200);
        expect((await service.anonymous.get('/api/things', { Authorization: 'Basic eDp5' })).status).toBe(401);
      });
      test('a token in the query is ignored', async () =>
        expect((await service.anonymous.get(`/api/things?access_token=${ann.token}`)).status).toBe(401));
    });

    describe('a cookie', () => {
      const write = async (headers: Record<string, string>) =>
        outcomeOf(
          await service.anonymous.post('/api/things', { data: { title: 'c' } }, { Cookie: ann.cookie, ...headers }),
        );
      const refused = [403, 'cross_origin'];
      test('a cookie works among others', async () => {
        expect((await service.anonymous.get('/api/things', { Cookie: `a=b; ${ann.cookie}; c=d` })).status).toBe(200);
        expect(await write({})).toEqual([201, undefined]);
      });
      for (const site of ['cross-site', 'same-site', 'nonsense'])
        test(`a cookie from ${site} writes nothing`, async () =>
          expect(await write({ 'Sec-Fetch-Site': site })).toEqual(refused));
      for (const site of ['same-origin', 'none'])
        test(`a cookie from ${site} writes, with any Origin`, async () =>
          expect((await write({ 'Sec-Fetch-Site': site, Origin: 'http://evil.example' }))[0]).toBe(201));
      for (const origin of ['http://evil.example', 'null', 'https://127.0.0.1', 'http://127.0.0.1'])
        test(`a cookie with ${origin} writes nothing`, async () =>
          expect(await write({ Origin: origin })).toEqual(refused));
      test('a cookie with its own origin writes', async () =>
        expect((await write({ Origin: service.url }))[0]).toBe(201));
      test('a cookie reads from anywhere; a bearer token writes from anywhere', async () => {
        expect(
          (await service.anonymous.get('/api/things', { Cookie: ann.cookie, 'Sec-Fetch-Site': 'cross-site' })).status,
        ).toBe(200);
        expect(
          (
            await ann.client.post(
              '/api/things',
              { data: { title: 'c' } },
              { Cookie: bob.cookie, 'Sec-Fetch-Site': 'cross-site' },
            )
          ).status,
        ).toBe(201);
      });
      test('a cookie does not decide beside a bearer token', async () => {
        const me = await service.anonymous.get('/api/auth/me', {
          Authorization: `Bearer ${ann.token}`,
          Cookie: bob.cookie,
        });
        expect(me.body.user.id).toBe(ann.id);
      });
      test('a cookie logs out from its own site only', async () => {
        const eve = await service.user();
        expect(
          outcomeOf(
            await service.anonymous.post('/api/auth/logout', undefined, {
              Cookie: eve.cookie,
              Origin: 'http://evil.example',
            }),
          ),
        ).toEqual(refused);
        const gone = await service.anonymous.post('/api/auth/logout', undefined, { Cookie: eve.cookie });
        expect([gone.status, gone.text, gone.headers.getSetCookie()[0]]).toEqual([
          204,
          '',
          expect.stringMatching(/^svc_session=;/),
        ]);
        expect((await eve.client.get('/api/auth/me')).status).toBe(401);
      });
    });

    test('an action with no rule is denied to everyone', async () => {
      for (const { client } of [ann, root]) {
        expect(outcomeOf(await client.get('/api/closed'))).toEqual([403, 'forbidden']);
        expect(outcomeOf(await client.post('/api/closed', { data: {} }))).toEqual([403, 'forbidden']);
        for (const method of ['GET', 'PATCH', 'DELETE'])
          expect(outcomeOf(await client.send(method, `/api/closed/${NOBODY}`))).toEqual([403, 'forbidden']);
      }
    });

    describe('hidden is missing', () => {
      let hidden: string;
      beforeAll(async () => {
        hidden = await note(bob);
      });
      const sendings = [
        ['GET', undefined, {}],
        ['HEAD', undefined, {}],
        ['GET', undefined, { 'If-None-Match': '*' }],
        ['PATCH', { data: { text: 'x' } }, {}],
        ['PATCH', { data: {} }, {}],
        ['PATCH', { data: { nothing: 1 } }, {}],
        ['PATCH', { nothing: {} }, {}],
        ['PATCH', { data: { text: 'x' } }, { 'If-Match': '"x"' }],
        ['DELETE', undefined, {}],
        ['DELETE', undefined, { 'If-Match': '*' }],
      ] as const;
      for (const [method, json, headers] of sendings)
        test(`${method} ${JSON.stringify(json)} ${JSON.stringify(headers)}`, async () => {
          const [there, not] = await Promise.all(
            [hidden, NOBODY].map((id) =>
              ann.client.send(method, `/api/notes/${id}`, { headers, ...(json === undefined ? {} : { json }) }),
            ),
          );
          expect(saidBy(there!)).toEqual(saidBy(not!));
        });
      test('a hidden record is missing as a relation', async () => {
        const secret = await make(bob, 'marks', { secret: true });
        const thing = await make(ann, 'things', { title: 'r' });
        const badge = await make(bob, 'badges', { secret: true });
        const plain = (answer: object) => JSON.stringify(answer).replaceAll(/[0-9a-f-]{36}/g, 'id');
        for (const data of [(id: string) => ({ marks: { add: [id] } }), (id: string) => ({ marks: { set: [id] } })]) {
          const [there, not] = await Promise.all(
            [secret, NOBODY].map((id) => ann.client.patch(`/api/things/${thing}`, { data: data(id) })),
          );
          expect([there!.status, plain(saidBy(there!))]).toEqual([422, plain(saidBy(not!))]);
        }
        const [there, not] = await Promise.all(
          [badge, NOBODY].map((id) => ann.client.patch(`/api/things/${thing}`, { data: { badge: id } })),
        );
        expect([there!.status, plain(saidBy(there!))]).toEqual([422, plain(saidBy(not!))]);
        const [keeper, nobody] = await Promise.all(
          [secret, NOBODY].map((id) => ann.client.post('/api/parts', { data: { keeper: id } })),
        );
        expect([keeper!.status, plain(saidBy(keeper!))]).toEqual([422, plain(saidBy(nobody!))]);
        for (const data of [{ marks: { remove: [secret, NOBODY] } }])
          expect((await ann.client.patch(`/api/things/${thing}`, { data })).status).toBe(200);
      });
    });

    describe('rules that depend on the record', () => {
      test('lists omit a hidden record, reads are 404, a readable record is 403', async () => {
        const [open, draft] = [await note(bob, { state: 'open' }), await note(bob)];
        const listed = idsOf((await ann.client.get(`/api/notes?owner=${bob.id}&limit=100`)).body.data);
        expect([listed.includes(open), listed.includes(draft)]).toEqual([true, false]);
        for (const method of ['PATCH', 'DELETE']) {
          const json = method === 'PATCH' ? { json: { data: { text: 'x' } } } : {};
          expect(outcomeOf(await ann.client.send(method, `/api/notes/${open}`, json))).toEqual([403, 'forbidden']);
          expect(outcomeOf(await ann.client.send(method, `/api/notes/${draft}`, json))).toEqual([404, 'not_found']);
        }
        expect((await bob.client.get(`/api/notes/${open}`)).body.data.text).toBe('t');
        expect(outcomeOf(await bob.client.delete(`/api/notes/${open}`))).toEqual([403, 'forbidden']);
        expect((await bob.client.delete(`/api/notes/${draft}`)).status).toBe(204);
        expect((await root.client.delete(`/api/notes/${open}`)).status).toBe(204);
      });
      test('a query key opens a route for one record, once', async () => {
        const draft = await note(bob);
        expect((await ann.client.get(`/api/notes/${draft}?key=sesame`)).status).toBe(200);
        expect((await ann.client.get(`/api/notes/${draft}?key=sesame&other=1&other=2&__proto__=1`)).status).toBe(200);
        expect(outcomeOf(await ann.client.get(`/api/notes/${draft}?key=sesame&key=sesame`))).toEqual([
          404,
          'not_found',
        ]);
        expect(outcomeOf(await ann.client.patch(`/api/notes/${draft}?key=sesame`, { data: { text: 'x' } }))).toEqual([
          403,
          'forbidden',
        ]);
      });
      test('the rules reject a create by its values, after its errors', async () => {
        expect(outcomeOf(await ann.client.post('/api/notes', { data: { text: 'x', owner: ann.id } }))).toEqual([
          201,
          undefined,
        ]);
        expect(outcomeOf(await ann.client.post('/api/notes', { data: { text: 'x', level: 10 } }))).toEqual([
          403,
          'forbidden',
        ]);
        expect(outcomeOf(await ann.client.post('/api/notes', { data: { owner: bob.id } })).slice(0, 2)).toEqual([
          422,
          'validation_failed',
        ]);
        expect(outcomeOf(await root.client.post('/api/notes', { data: { text: 'x', owner: null } }))[0]).toBe(422);
      });
      test('an update cannot give a record away, and the answer shows it only to readers', async () => {
        const mine = await note(root, { state: 'open' });
        expect(outcomeOf(await root.client.patch(`/api/notes/${mine}`, { data: { owner: ann.id } }))).toEqual([
          403,
          'forbidden',
        ]);
        expect((await ann.client.get(`/api/notes/${mine}`)).body.data.owner).toBe(root.id);
        const given = await root.client.post('/api/mine', { data: { owner: ann.id } });
        expect([given.status, given.body, given.headers.get('location')]).toEqual([
          201,
          { data: { id: expect.any(String) } },
          `/api/mine/${given.body.data.id}`,
        ]);
      });
      test('rules read @next and @request.data', async () => {
        const id = await make(ann, 'flows', {});
        const patch = async (data: object) => outcomeOf(await ann.client.patch(`/api/flows/${id}`, { data }));
        expect(outcomeOf(await ann.client.post('/api/flows', { data: { state: 'open' } }))).toEqual([403, 'forbidden']);
        expect(await patch({ state: 'shut' })).toEqual([403, 'forbidden']);
        expect(await patch({ state: 'open' })).toEqual([200, undefined]);
        expect(await patch({ state: 'draft' })).toEqual([403, 'forbidden']);
        expect(await patch({ state: 'shut' })).toEqual([200, undefined]);
        expect((await ann.client.get(`/api/flows/${id}`)).body.data.state).toBe('shut');
        expect(outcomeOf(await ann.client.delete(`/api/flows/${id}`))).toEqual([403, 'forbidden']);
      });
      test('rules read the query of a list', async () => {
        const ann = await service.user();
        const id = await make(ann, 'mine', { text: 'a' });
        await make(bob, 'mine', {});
        expect(idsOf((await ann.client.get(`/api/mine?owner_id=${ann.id}`)).body.data)).toEqual([id]);
        expect(idsOf((await ann.client.get(`/api/mine?owner_id=${ann.id.toUpperCase()}`)).body.data)).toEqual([id]);
        for (const query of ['', `?owner_id=${bob.id}`, `?owner=${ann.id}`])
          expect(outcomeOf(await ann.client.get(`/api/mine${query}`))).toEqual([403, 'forbidden']);
      });
    });

    describe('the order of checks', () => {
      const said = async (method: string, path: string, who = guest, sending: object = {}) =>
        outcomeOf(await who.client.send(method, path, sending)).slice(0, 2);
      const text = { raw: '{', headers: { 'Content-Type': 'text/plain' } };
      const broken = { raw: '{', headers: { 'Content-Type': 'application/json' } };
      const huge = { raw: 'x'.repeat(1_048_577), headers: { 'Content-Type': 'application/json' } };
      test('the order of checks equals that of the interface', async () => {
        expect(await said('PUT', '/api/nothing')).toEqual([404, 'not_found']);
        expect(await said('PUT', '/api/closed')).toEqual([405, 'method_not_allowed']);
        for (const sending of [text, broken, huge]) {
          expect(await said('POST', '/api/notes', guest, sending)).toEqual([403, 'forbidden']);
          expect(await said('PATCH', `/api/notes/${NOBODY}`, guest, sending)).toEqual([403, 'forbidden']);
        }
        for (const path of [`/api/notes/${NOBODY}`, '/api/notes/x']) {
          expect(await said('PATCH', path, ann, text)).toEqual([415, 'unsupported_media_type']);
          expect(await said('PATCH', path, ann, huge)).toEqual([413, 'too_large']);
          expect(await said('PATCH', path, ann, broken)).toEqual([400, 'malformed_json']);
          expect(await said('PATCH', path, ann, { json: { data: { nothing: 1 } } })).toEqual([404, 'not_found']);
        }
        const [open, mine] = [await note(bob, { state: 'open' }), await note(ann)];
        expect(await said('PATCH', `/api/notes/${open}`, ann, { json: { data: { nothing: 1 } } })).toEqual([
          403,
          'forbidden',
        ]);
        expect(
          await said('PATCH', `/api/notes/${mine}`, ann, {
            json: { data: { nothing: 1 } },
            headers: { 'If-Match': '"x"' },
          }),
        ).toEqual([422, 'validation_failed']);
        expect(
          await said('PATCH', `/api/notes/${mine}`, ann, {
            json: { data: { text: 'x' } },
            headers: { 'If-Match': '"x"' },
          }),
        ).toEqual([412, 'changed']);
        expect(await said('PATCH', `/api/notes/${mine}`, ann, { json: { data: {} } })).toEqual([400, 'patch_empty']);
        const held = await make(ann, 'things', { title: 'a', code: `held-${service.kind}` });
        const other = await make(ann, 'things', { title: 'b' });
        const taken = { data: { code: `held-${service.kind}` } };
        expect(
          await said('PATCH', `/api/things/${other}`, ann, { json: taken, headers: { 'If-Match': '"x"' } }),
        ).toEqual([412, 'changed']);
        expect(await said('PATCH', `/api/things/${other}`, ann, { json: taken })).toEqual([409, 'unique_violation']);
        expect(await said('PATCH', `/api/things/${held}`, ann, { json: taken })).toEqual([200, undefined]);
      });
    });
  },
  { schema: SCHEMA },
);
