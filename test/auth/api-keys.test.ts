// @module-tag long
/** API keys over their life: who makes them, what they open, and what ends them. */
import { once } from 'node:events';
import { request } from 'node:http';
import { beforeAll, describe, expect, test } from 'vitest';
import { raw, sql, uuid } from '../../src/sql.ts';
import { describeOnBoth, type User } from '../support/service.ts';
import { until } from '../support/until.ts';
import { GUESTS_SCHEMA, newApiKey, withKey } from './keyed.ts';
import { codeOf } from './people.ts';

const FORM = /^bylaw_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}_[A-Za-z0-9_-]{43}[0-9A-Za-z]{6}$/;
const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);

describeOnBoth(
  'API keys',
  (service) => {
    let admin: User;
    let lead: User;
    let reader: User;
    let shelf: string;
    let book: string;
    beforeAll(async () => {
      [admin, lead, reader] = await Promise.all([service.user('admin'), service.user('lead'), service.user('reader')]);
      const writer = await service.user('writer');
      shelf = (await writer.client.post('/api/shelves', { data: { name: 'oak' } })).body.data.id;
      book = (await writer.client.post('/api/books', { data: { title: 'Emma', shelf } })).body.data.id;
    });
    const create = (maker: User, body: object) => maker.client.post('/api/auth/keys', body);

    describe('making', () => {
      test('a new key is shown with its secret once, and opens what its roles allow', async () => {
        const answer = await create(lead, { name: 'nightly', roles: ['writer', 'writer'] });
        expect([answer.status, answer.headers.get('cache-control')]).toEqual([201, 'no-store']);
        const { data, secret } = answer.body;
        expect(secret).toMatch(FORM);
        const key = {
          id: expect.any(String),
          name: 'nightly',
          roles: ['writer'],
          publishable: false,
          limit: null,
          addresses: null,
          origins: null,
          expires_at: null,
          last_used_at: null,
          created_at: time,
          created_by: lead.id,
          prefix: `bylaw_${data.id}`,
        };
        expect(data).toEqual(key);
        expect(secret.startsWith(`${data.prefix}_`)).toBe(true);
        const client = withKey(service, secret);
        expect((await client.get('/api/shelves')).body.data).toHaveLength(1);
        expect((await client.post('/api/books', { data: { title: 'Persuasion' } })).body.data.owner).toBeNull();
        const shown = await lead.client.get(`/api/auth/keys/${data.id}`);
        expect(shown.body).toEqual({ data: { ...key, last_used_at: time } });
        expect(shown.text).not.toContain(secret.slice(-40));
        expect((await lead.client.get('/api/auth/keys')).body.data.map(({ id }: { id: string }) => id)).toContain(
          data.id,
        );
      });

      test.each<[string, object, string]>([
        ['no name', { roles: ['reader'] }, '/name'],
        ['an empty name', { name: '', roles: ['reader'] }, '/name'],
        ['a long name', { name: 'x'.repeat(101), roles: ['reader'] }, '/name'],
        ['a name with a NUL', { name: 'a\0', roles: ['reader'] }, '/name'],
        ['no roles', { name: 'x' }, '/roles'],
        ['an empty list of roles', { name: 'x', roles: [] }, '/roles'],
        ['the role of guests', { name: 'x', roles: ['guest'] }, '/roles/0'],
        ['an unknown role', { name: 'x', roles: ['raeder'] }, '/roles/0'],
        ['an end in the past', { name: 'x', roles: ['reader'], expires_at: '2020-01-01T00:00:00Z' }, '/expires_at'],
        ['an end that is no time', { name: 'x', roles: ['reader'], expires_at: 'soon' }, '/expires_at'],
        ['an empty limit', { name: 'x', roles: ['reader'], limit: {} }, '/limit'],
        ['an unknown collection', { name: 'x', roles: ['reader'], limit: { boks: ['read'] } }, '/limit/boks'],
        ['an unknown action', { name: 'x', roles: ['reader'], limit: { books: ['see'] } }, '/limit/books/0'],
        ['no action', { name: 'x', roles: ['reader'], limit: { books: [] } }, '/limit/books'],
        ['no address', { name: 'x', roles: ['reader'], addresses: ['10.0.0.0/33'] }, '/addresses/0'],
        ['origins of a secret key', { name: 'x', roles: ['reader'], origins: ['https://a.example'] }, '/origins'],
        ['roles of a publishable key', { name: 'x', publishable: true, roles: ['reader'] }, '/roles'],
        ['a path as an origin', { name: 'x', publishable: true, origins: ['https://a.example/x'] }, '/origins/0'],
        ['an unknown key', { name: 'x', roles: ['reader'], role: 'reader' }, '/role'],
      ])('%s is an error at its place', async (_, body, pointer) => {
        const answer = await create(admin, body);
        expect([codeOf(answer), answer.body.errors.map((error: { pointer: string }) => error.pointer)]).toEqual([
          '422 validation_failed',
          [pointer],
        ]);
      });

      test('a name has at most 100 characters, however many units each one takes', async () => {
        const nameOf = async (name: string) => {
          const answer = await create(admin, { name, roles: ['reader'] });
          return answer.body.data?.name ?? answer.body.errors;
        };
        expect(await nameOf('🔑'.repeat(100))).toBe('🔑'.repeat(100));
        expect(await nameOf('🔑'.repeat(101))).toEqual([
          { pointer: '/name', code: 'invalid_value', detail: 'expected 1 to 100 characters' },
        ]);
      });

      test.each(['', 'x'.repeat(101), 'a\0'])('the command line makes no key of a wrong name', async (name) => {
        const made = service.app.auth.apiKeys.create({ name, roles: ['reader'] });
        await expect(made).rejects.toMatchObject({ errors: [{ pointer: '/name' }] });
      });

      test('each role needs a role of its maker that assigns it, and a publishable key needs all', async () => {
        expect(codeOf(await create(lead, { name: 'x', roles: ['writer', 'admin'] }))).toBe('403 forbidden');
        expect(codeOf(await create(reader, { name: 'x', roles: ['reader'] }))).toBe('403 forbidden');
        expect(codeOf(await create(lead, { name: 'x', publishable: true }))).toBe('403 forbidden');
        expect((await create(admin, { name: 'x', publishable: true })).status).toBe(201);
      });

      test('a user has at most 100 keys, also in a race', async () => {
        const maker = await service.user('lead');
        await newApiKey(service, maker.client);
        await service.app.db.run(sql`
          INSERT INTO "_auth_api_keys" (id, name, roles, publishable, bounds, secret_hash, created_at, created_by)
          SELECT gen_random_uuid(), name, roles, publishable, bounds, secret_hash, created_at, created_by
            FROM "_auth_api_keys", generate_series(1, 97)
           WHERE created_by = ${uuid(maker.id)}`);
        const answers = await Promise.all(
          Array.from({ length: 8 }, () => create(maker, { name: 'x', roles: ['reader'] })),
        );
        expect(answers.map(codeOf).toSorted()).toEqual([
          ...Array(2).fill('201 undefined'),
          ...Array(6).fill('409 too_many'),
        ]);
      });
    });

    describe('what a key is', () => {
      test('the id of a key is no user, for defaults and for rules', async () => {
        const { client } = await newApiKey(service, admin.client, { roles: ['writer'] });
        const own = await client.post('/api/cards', { data: { text: 'mine' } });
        expect([codeOf(own), own.body.errors[0].pointer]).toEqual(['422 validation_failed', '/data/owner']);
        expect((await client.get('/api/users')).body.data).toEqual([]);
      });

      test('a key has no account and makes no keys', async () => {
        const { client, id } = await newApiKey(service, admin.client, { roles: ['admin'] });
        const asked: [string, string, object?][] = [
          ['GET', '/api/auth/me'],
          ['GET', '/api/auth/sessions'],
          ['POST', '/api/auth/logout'],
          ['POST', '/api/auth/keys', { name: 'x', roles: ['reader'] }],
          ['GET', '/api/auth/keys'],
          ['GET', `/api/auth/keys/${id}`],
          ['PATCH', `/api/auth/keys/${id}`, { name: 'y' }],
          ['POST', `/api/auth/keys/${id}/rotate`, {}],
          ['DELETE', `/api/auth/keys/${id}`],
          ['POST', '/api/auth/password', { password: 'x', new_password: 'y' }],
          ['POST', '/api/auth/email/verify/request'],
        ];
        for (const [method, path, json] of asked) {
          expect([path, codeOf(await client.send(method, path, { json }))]).toEqual([path, '403 forbidden']);
        }
      });

      test('roles of users are assigned by a key only if its limit names users', async () => {
        const change = { data: { roles: { add: ['writer'] } } };
        const path = `/api/users/${reader.id}`;
        const whole = await newApiKey(service, admin.client, { roles: ['admin'] });
        const every = await newApiKey(service, admin.client, { roles: ['admin'], limit: { '*': ['update', 'read'] } });
        expect(codeOf(await whole.client.patch(path, change))).toBe('403 forbidden');
        expect(codeOf(await every.client.patch(path, change))).toBe('403 forbidden');
        const named = await newApiKey(service, admin.client, {
          roles: ['admin'],
          limit: { users: ['update', 'read'] },
        });
        expect((await named.client.patch(path, change)).body.data.roles).toEqual(['reader', 'writer']);
        expect((await named.client.patch(path, { data: { roles: { set: ['reader'] } } })).status).toBe(200);
      });

      test.each([
        ['no limit', undefined],
        ['a limit of every collection', { '*': ['list', 'read', 'update'] }],
      ])('an administrator who was demoted gains nothing by a key with %s', async (_, limit) => {
        const demoted = await service.user('admin');
        const { id, client } = await newApiKey(service, demoted.client, { roles: ['admin'], limit });
        const path = `/api/users/${demoted.id}`;
        expect((await admin.client.patch(path, { data: { roles: { set: ['reader'] } } })).status).toBe(200);
        const narrow = (to: object) => demoted.client.patch(`/api/auth/keys/${id}`, { limit: to });
        for (const actions of [['read'], ['update'], ['list', 'update']]) {
          const { status, body } = await narrow({ users: actions });
          expect([status, body.errors.map(({ pointer }: { pointer: string }) => pointer)]).toEqual([
            422,
            ['/limit/users'],
          ]);
        }
        expect((await narrow({ users: ['list'], books: ['read'] })).status).toBe(200);
        expect(codeOf(await client.get('/api/auth/users'))).toBe('403 forbidden');
        expect(codeOf(await client.patch(path, { data: { roles: { add: ['admin'] } } }))).toBe('403 forbidden');
      });

      test('a key whose roles assign none narrows its limit to users', async () => {
        const { id } = await newApiKey(service, lead.client, { roles: ['reader'] });
        const limit = { users: ['read', 'update'] };
        expect((await lead.client.patch(`/api/auth/keys/${id}`, { limit })).body.data.limit).toEqual(limit);
      });

      test('a key administers by the actions of its limit, which the answer names', async () => {
        const reads = await newApiKey(service, admin.client, { roles: ['admin'], limit: { users: ['list', 'read'] } });
        const lists = await newApiKey(service, admin.client, { roles: ['admin'], limit: { users: ['list'] } });
        expect((await reads.client.get('/api/auth/users')).status).toBe(200);
        const detailOf = async (client: typeof reads.client, method: string) =>
          (await client.send(method, '/api/auth/users', method === 'POST' ? { json: {} } : {})).body.detail;
        const detail = (action: string) =>
          `a key ${action}s accounts only if its \`limit\` has \`${action}\` for \`users\``;
        expect(await detailOf(reads.client, 'POST')).toBe(detail('update'));
        expect(await detailOf(lists.client, 'GET')).toBe(detail('read'));
      });

      test('an idempotency key belongs to the API key', async () => {
        const [one, other] = [
          await newApiKey(service, admin.client, { roles: ['writer'] }),
          await newApiKey(service, admin.client, { roles: ['writer'] }),
        ];
        const post = (client: typeof one.client) =>
          client.post('/api/books', { data: { title: 'Twice' } }, { 'Idempotency-Key': 'same' });
        const ids = [await post(one.client), await post(one.client), await post(other.client)].map(
          ({ body }) => body.data.id,
        );
        expect([ids[0] === ids[1], ids[1] === ids[2]]).toEqual([true, false]);
      });

      test('the use of a key is recorded, at most once a minute', async () => {
        const { client, id } = await newApiKey(service, admin.client);
        const used = async () => (await admin.client.get(`/api/auth/keys/${id}`)).body.data.last_used_at;
        const setBack = (interval: string) =>
          service.app.db.run(sql`
            UPDATE "_auth_api_keys" SET last_used_at = last_used_at - ${raw(`interval '${interval}'`)} WHERE id = ${uuid(id)}`);
        const again = async () => {
          await service.app.auth.authenticator.sessionEnded(id);
          await client.get('/api/shelves');
        };
        await client.get('/api/shelves');
        await setBack('50 seconds');
        const before = await used();
        await again();
        expect(await used()).toBe(before);
        await setBack('20 seconds');
        await again();
        expect((await used()) > before).toBe(true);
      });
    });

    describe('bounds', () => {
      test('a limit bounds what roles allow: related records, pages, batches and questions too', async () => {
        const { client } = await newApiKey(service, admin.client, {
          roles: ['writer'],
          limit: { books: ['list', 'read'], wishes: ['create'] },
        });
        expect((await client.get(`/api/books/${book}`)).status).toBe(200);
        expect((await client.get('/api/books?expand=shelf')).body.data[0].expand).toEqual({ shelf: null });
        expect(codeOf(await client.get('/api/shelves'))).toBe('403 forbidden');
        expect(codeOf(await client.get(`/api/shelves/${shelf}`))).toBe('403 forbidden');
        expect(codeOf(await client.post('/api/shelves/query', {}))).toBe('403 forbidden');
        expect(codeOf(await client.post('/api/books/aggregate', { measures: { n: 'count()' } }))).not.toBe(
          '403 forbidden',
        );
        expect(codeOf(await client.post('/api/books', { data: { title: 'x' } }))).toBe('403 forbidden');
        expect(codeOf(await client.patch(`/api/books/${book}`, { data: { title: 'x' } }))).toBe('403 forbidden');
        expect(codeOf(await client.delete(`/api/books/${book}`))).toBe('403 forbidden');
        const operations = [
          { op: 'create', collection: 'wishes', data: { text: 'x' } },
          { op: 'delete', collection: 'books', id: book },
        ];
        const batch = await client.post('/api/batch', { operations });
        expect([codeOf(batch), batch.body.errors.length]).toEqual(['403 forbidden', 0]);
        expect((await client.get(`/api/books/${book}/can`)).body.data).toMatchObject({ update: false, delete: false });
        expect((await client.get(`/api/books?shelf=${shelf}`)).body.data).toHaveLength(1);
        expect(codeOf(await client.get('/api/files'))).toBe('403 forbidden');
      });

      test('an explanation about a key equals the decision of the routes, and is no use of the key', async () => {
        const limit = { books: ['list', 'read'], wishes: ['create', 'list'] };
        const { id, client } = await newApiKey(service, admin.client, { roles: ['writer'], limit });
        const ask = (question: object) => admin.client.post('/api/_explain', { as: { key: id }, ...question });
        const asked = async (question: object) => {
          const { status, body, text } = await ask(question);
          if (status !== 200) throw new Error(text);
          return body.data;
        };
        const before = (await admin.client.get(`/api/auth/keys/${id}`)).body.data.last_used_at;
        const explained = [
          await asked({ collection: 'books', action: 'read', id: book }),
          await asked({ collection: 'books', action: 'update', id: book }),
          await asked({ collection: 'books', action: 'delete', id: book }),
          await asked({ collection: 'shelves', action: 'read', id: shelf }),
          await asked({ collection: 'wishes', action: 'create', data: { text: 'of a key' } }),
        ];
        expect((await admin.client.get(`/api/auth/keys/${id}`)).body.data.last_used_at).toBe(before);
        const answers = [
          await client.get(`/api/books/${book}`),
          await client.patch(`/api/books/${book}`, { data: {} }),
          await client.delete(`/api/books/${book}`),
          await client.get(`/api/shelves/${shelf}`),
          await client.post('/api/wishes', { data: { text: 'of a key' } }),
        ];
        expect(explained.map(({ status, beyond_limit }) => [status, beyond_limit])).toEqual([
          [200, false],
          [403, true],
          [403, true],
          [403, true],
          [201, false],
        ]);
        expect(answers.map(({ status }) => status)).toEqual(explained.map(({ status }) => status));
        const [event] = await service.app.auth.admin.audit({ event: 'explained', limit: 1 });
        expect(event).toMatchObject({ user_id: null, detail: { callers: [id], collection: 'wishes' } });
        expect(
          codeOf(await lead.client.post('/api/_explain', { as: { key: id }, collection: 'books', action: 'list' })),
        ).toBe('403 forbidden');
        await admin.client.delete(`/api/auth/keys/${id}`);
        for (const key of [id, 'no-id'])
          expect(codeOf(await ask({ as: { key }, collection: 'books', action: 'list' }))).toBe('404 not_found');
      });

      test('a limit of every collection makes a key that only reads', async () => {
        const { client } = await newApiKey(service, admin.client, {
          roles: ['writer'],
          limit: { '*': ['list', 'read'] },
        });
        expect((await client.get('/api/books?expand=shelf')).body.data[0].expand.shelf.name).toBe('oak');
        expect(codeOf(await client.post('/api/shelves', { data: { name: 'x' } }))).toBe('403 forbidden');
      });

      test('a key is narrowed, never widened', async () => {
        const { id } = await newApiKey(service, lead.client, { limit: { books: ['list', 'read'], '*': ['list'] } });
        const edit = (body: object) => lead.client.patch(`/api/auth/keys/${id}`, body);
        expect(
          (await edit({ name: 'renamed', limit: { books: ['read'], shelves: ['list'] } })).body.data,
        ).toMatchObject({
          name: 'renamed',
          limit: { books: ['read'], shelves: ['list'] },
        });
        const errorsOf = async (body: object) =>
          (await edit(body)).body.errors.map((error: { pointer: string }) => error.pointer);
        expect(await errorsOf({ limit: { books: ['read', 'list'] } })).toEqual(['/limit/books']);
        expect(await errorsOf({ limit: { '*': ['read'] } })).toEqual(['/limit/*']);
        expect(await errorsOf({ limit: null })).toEqual(['/limit']);
        expect((await edit({ expires_at: '2900-01-01T00:00:00+02:00' })).body.data.expires_at).toBe(
          '2899-12-31T22:00:00.000000Z',
        );
        expect(await errorsOf({ expires_at: '2900-01-01T00:00:00Z' })).toEqual(['/expires_at']);
        expect(await errorsOf({ expires_at: null })).toEqual(['/expires_at']);
        expect(await errorsOf({ expires_at: '2020-01-01T00:00:00Z' })).toEqual(['/expires_at']);
      });

      test('a key is good from its addresses only', async () => {
        const near = await newApiKey(service, admin.client, { addresses: ['203.0.113.0/24', '127.0.0.0/8', '::1'] });
        const far = await newApiKey(service, admin.client, { addresses: ['203.0.113.0/24'] });
        expect((await near.client.get('/api/shelves')).status).toBe(200);
        expect(codeOf(await far.client.get('/api/shelves'))).toBe('403 forbidden');
      });
    });

    describe('the end of a key', () => {
      test('a rotation ends the old secret, at once or after the overlap', async () => {
        const key = await newApiKey(service, admin.client);
        const rotate = (body: object) => admin.client.post(`/api/auth/keys/${key.id}/rotate`, body);
        const first = await rotate({ overlap: 60 });
        expect([first.status, first.headers.get('cache-control')]).toEqual([200, 'no-store']);
        const status = async (secret: string) => (await withKey(service, secret).get('/api/shelves')).status;
        for (let i = 0; i < 3; i++)
          expect([await status(key.secret), await status(first.body.secret)]).toEqual([200, 200]);
        const second = (await rotate({})).body.secret;
        expect([await status(key.secret), await status(first.body.secret), await status(second)]).toEqual([
          401, 401, 200,
        ]);
        for (const overlap of [-1, 604_801, 1.5, '1h'])
          expect(codeOf(await rotate({ overlap }))).toBe('422 validation_failed');
      });

      test('each former secret is good for its own overlap, until a rotation without one', async () => {
        const key = await newApiKey(service, admin.client);
        const rotate = async (overlap: number) =>
          (await admin.client.post(`/api/auth/keys/${key.id}/rotate`, { overlap })).body.secret as string;
        const statuses = (secrets: readonly string[]) =>
          Promise.all(secrets.map(async (secret) => (await withKey(service, secret).get('/api/shelves')).status));
        const first = await rotate(600);
        const [second, third] = [await rotate(1), await rotate(600)];
        // The present secret of each concurrent rotation is promised to stay good as well.
        const secrets = [key.secret, second, third, ...(await Promise.all([rotate(600), rotate(600), rotate(600)]))];
        expect(await statuses(secrets)).toEqual(Array(6).fill(200));
        await until('the end of an overlap', async () => (await statuses([first]))[0] === 401);
        expect(await statuses(secrets)).toEqual(Array(6).fill(200));
        const last = await rotate(0);
        expect(await statuses([...secrets, last])).toEqual([...Array(6).fill(401), 200]);
      });

      test('a key has at most 20 former secrets, and a rotation without an overlap ends them', async () => {
        const key = await newApiKey(service, admin.client);
        const rotate = (overlap: number) => admin.client.post(`/api/auth/keys/${key.id}/rotate`, { overlap });
        let secret = '';
        for (let i = 0; i < 20; i++) secret = (await rotate(600)).body.secret;
        const status = async (each: string) => (await withKey(service, each).get('/api/shelves')).status;
        expect(codeOf(await rotate(600))).toBe('409 too_many');
        expect([await status(key.secret), await status(secret)]).toEqual([200, 200]);
        expect((await rotate(0)).status).toBe(200);
        expect((await rotate(600)).status).toBe(200);
      });

      test('a revoked key, an expired one, and a key whose maker is disabled or deleted open nothing', async () => {
        const makers = await Promise.all([service.user('lead'), service.user('lead')]);
        const [revoked, expired, disabled, deleted] = await Promise.all([
          newApiKey(service, admin.client),
          newApiKey(service, admin.client, { expires_at: '2900-01-01T00:00:00Z' }),
          ...makers.map(({ client }) => newApiKey(service, client)),
        ]);
        const keys = [revoked!, expired!, disabled!, deleted!];
        // Three times, so that the service remembers the texts that it compared.
        for (const { client } of [...keys, ...keys, ...keys])
          expect((await client.get('/api/shelves')).status).toBe(200);
        expect((await admin.client.delete(`/api/auth/keys/${revoked!.id}`)).status).toBe(204);
        await service.app.db.run(sql`UPDATE "_auth_api_keys" SET expires_at = now() WHERE id = ${uuid(expired!.id)}`);
        await service.app.auth.admin.setDisabled(makers[0]!.email, true);
        await service.app.db.run(sql`DELETE FROM "users" WHERE id = ${uuid(makers[1]!.id)}`);
        await service.app.auth.authenticator.userChanged(makers[1]!.id);
        await service.app.auth.authenticator.sessionEnded(expired!.id);
        const answers = await Promise.all(keys.map(({ client }) => client.get('/api/shelves')));
        expect(answers.map(codeOf)).toEqual(Array(4).fill('401 invalid_token'));
        await service.app.auth.admin.setDisabled(makers[0]!.email, false);
        expect((await disabled!.client.get('/api/shelves')).status).toBe(200);
      });

      test('a link that a key signed ends with the key', async () => {
        const form = new FormData();
        form.append('file', new Blob(['text'], { type: 'text/plain' }), 'a.txt');
        const sent = await fetch(`${service.url}/api/files`, {
          method: 'POST',
          body: form,
          headers: admin.client.headers,
        });
        const file = ((await sent.json()) as { data: { id: string } }).data.id;
        const key = await newApiKey(service, admin.client, { roles: ['admin'] });
        const denied = await key.client.post(`/api/files/${file}/link`);
        expect(codeOf(denied)).toBe('404 not_found');
        const { links } = service.app.files;
        const open = (fileId: string, kind: 'key' | 'session') => {
          const { token } = links.make({ fileId, kind, sessionId: key.id, userId: key.id });
          return service.anonymous.get(`/api/files/${fileId}/content?token=${token}`);
        };
        expect(codeOf(await open(file, 'key'))).toBe('404 not_found');
        expect(codeOf(await open(file, 'session'))).toBe('401 invalid_token');
        await admin.client.delete(`/api/auth/keys/${key.id}`);
        expect(codeOf(await open(file, 'key'))).toBe('401 invalid_token');
      });

      test("another user's key and a missing one are the same 404, and an admin has all", async () => {
        const key = await newApiKey(service, admin.client);
        const own = await newApiKey(service, lead.client);
        const ids = [key.id, '01890000-0000-7000-8000-000000000000', 'x'];
        const asked = ids.flatMap((id) => [
          lead.client.get(`/api/auth/keys/${id}`),
          lead.client.patch(`/api/auth/keys/${id}`, { name: 'x' }),
          lead.client.post(`/api/auth/keys/${id}/rotate`, {}),
          lead.client.delete(`/api/auth/keys/${id}`),
        ]);
        expect((await Promise.all(asked)).map(codeOf)).toEqual(Array(12).fill('404 not_found'));
        expect((await key.client.get('/api/shelves')).status).toBe(200);
        const all = (await admin.client.get('/api/auth/keys')).body.data.map(({ id }: { id: string }) => id);
        expect([all.includes(own.id), all.includes(key.id)]).toEqual([true, true]);
        const mine = (await lead.client.get('/api/auth/keys')).body.data;
        expect(new Set(mine.map(({ created_by }: { created_by: string }) => created_by))).toEqual(new Set([lead.id]));
        expect((await admin.client.delete(`/api/auth/keys/${own.id}`)).status).toBe(204);
        const events = await service.app.auth.admin.audit({ event: 'api_key_revoked', limit: 10 });
        expect(events.find(({ detail }) => detail?.key === own.id)).toMatchObject({
          user_id: lead.id,
          actor_id: admin.id,
        });
      });
    });

    describe('publishable keys', () => {
      test('the bearer is a guest: it sees what is open, and owns nothing', async () => {
        const { client } = await newApiKey(service, admin.client, { publishable: true, roles: undefined });
        expect((await client.get('/api/books')).body.data.map(({ title }: { title: string }) => title)).toContain(
          'Emma',
        );
        expect((await client.get('/api/shelves')).body.data).toHaveLength(1);
        expect((await client.post('/api/wishes', { data: { text: 'more' } })).status).toBe(201);
        expect(codeOf(await client.get('/api/cards'))).toBe('403 forbidden');
        expect(codeOf(await client.post('/api/books', { data: { title: 'x' } }))).toBe('403 forbidden');
        expect(codeOf(await client.get('/api/auth/me'))).toBe('403 forbidden');
        expect(codeOf(await client.post('/api/auth/logout'))).toBe('403 forbidden');
      });

      test('visitors of other networks have idempotency keys of their own', async () => {
        const { secret } = await newApiKey(service, admin.client, { publishable: true, roles: undefined });
        const wish = async (localAddress: string, text: string): Promise<number> => {
          const asked = request(`${service.url}/api/wishes`, {
            method: 'POST',
            localAddress,
            headers: {
              Authorization: `Bearer ${secret}`,
              'Content-Type': 'application/json',
              'Idempotency-Key': 'wish-1',
            },
          });
          asked.end(JSON.stringify({ data: { text } }));
          const [answer] = await once(asked, 'response');
          answer.resume();
          return answer.statusCode;
        };
        const statuses = [await wish('127.0.0.1', 'a'), await wish('127.0.0.2', 'b'), await wish('127.0.0.1', 'b')];
        expect(statuses).toEqual([201, 201, 422]);
      });

      test('a browser lets its page ask and read, and no other page', async () => {
        const [page, other] = ['https://shop.example', 'https://evil.example'];
        const { client } = await newApiKey(service, admin.client, {
          publishable: true,
          roles: undefined,
          origins: [page],
        });
        const preflight = await service.anonymous.send('OPTIONS', '/api/wishes', {
          headers: {
            Origin: page,
            'Access-Control-Request-Method': 'POST',
            'Access-Control-Request-Headers': 'authorization,content-type',
          },
        });
        const corsOf = ({ headers }: { headers: Headers }) => [
          headers.get('access-control-allow-origin'),
          headers.get('access-control-allow-credentials'),
        ];
        expect([preflight.status, ...corsOf(preflight)]).toEqual([204, page, null]);
        expect(preflight.headers.get('access-control-allow-headers')).toMatch(/Authorization, Content-Type/);
        expect(preflight.headers.get('vary')).toMatch(/Origin/);
        expect(corsOf(await client.get('/api/shelves', { Origin: page }))).toEqual([page, null]);
        expect(corsOf(await client.get('/api/cards', { Origin: page }))).toEqual([page, null]);
        expect(corsOf(await client.get('/api/shelves', { Origin: other }))).toEqual([null, null]);
        expect(corsOf(await reader.client.get('/api/shelves', { Origin: page }))).toEqual([null, null]);
        expect(corsOf(await service.anonymous.get('/api/shelves', { Origin: page }))).toEqual([null, null]);
      });

      test('pages of other origins may not send it', async () => {
        const { client } = await newApiKey(service, admin.client, {
          publishable: true,
          roles: undefined,
          origins: ['https://shop.example'],
        });
        const from = async (origin: string) => codeOf(await client.get('/api/shelves', { Origin: origin }));
        expect((await client.get('/api/shelves')).status).toBe(200);
        expect([await from('https://shop.example'), await from('https://evil.example'), await from('null')]).toEqual([
          '200 undefined',
          '403 cross_origin',
          '403 cross_origin',
        ]);
      });
    });
  },
  { schema: GUESTS_SCHEMA },
);
