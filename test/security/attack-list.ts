/** A01–A65: attacks that have worked on services of this kind, tried here over HTTP. */
import { upload } from '../files/sending.ts';
import { NOBODY, outcomeOf, saidBy } from '../support/records.ts';
import type { Attack } from './attack-world.ts';
import { sendRaw } from './raw.ts';

const REFUSED = [403, 'forbidden'];
const MISSING = [404, 'not_found'];
const statusOf = async (answer: Promise<{ readonly status: number }>): Promise<number> => (await answer).status;
const each = async <T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<readonly R[]> => {
  const results: R[] = [];
  for (const item of items) results.push(await work(item));
  return results;
};

const ACCESS: readonly Attack[] = [
  {
    id: 'A01',
    name: 'a guest at every door, with an id and without',
    attempt: ({ service, draft }) =>
      each(['/api/posts', `/api/posts/${draft}`, '/api/users', '/api/files', '/api/auth/me', '/api/nope'], (path) =>
        statusOf(service.anonymous.get(path)),
      ),
    expected: [401, 401, 401, 401, 401, 401],
  },
  {
    id: 'A02',
    name: 'both sides of a comparison missing',
    attempt: async ({ ann }) => {
      await ann.client.post('/api/forms', { data: { kind: 'open', owner: null } });
      return outcomeOf(await ann.client.get('/api/forms'));
    },
    expected: REFUSED,
  },
  {
    id: 'A03',
    name: 'operators as keys',
    attempt: ({ bob }) =>
      each(['AnD', 'oR', '$or', 'not', 'where', 'Filter', 'q'], async (key) =>
        outcomeOf(await bob.client.get(`/api/posts?${key}=1`)).slice(0, 2),
      ),
    expected: Array.from({ length: 7 }, () => [400, 'filter_unknown_key']),
  },
  {
    id: 'A04',
    name: 'keys that nest',
    attempt: ({ bob }) =>
      each(['author[email]', 'title[$ne]', 'tags_any[]', 'author.email.x'], async (key) =>
        outcomeOf(await bob.client.get(`/api/posts?${encodeURIComponent(key)}=1`)).slice(0, 2),
      ),
    expected: Array.from({ length: 4 }, () => [400, 'filter_unknown_key']),
  },
  {
    id: 'A05',
    name: 'null for what the server sets',
    attempt: ({ bob }) =>
      each(['id', 'created_at', 'updated_at', 'author'], (key) =>
        statusOf(bob.client.post('/api/posts', { data: { title: 'x', [key]: null } })),
      ),
    expected: [422, 422, 422, 422],
  },
  {
    id: 'A06',
    name: 'a chosen id',
    attempt: async ({ bob }) => outcomeOf(await bob.client.post('/api/posts', { data: { title: 'x', id: NOBODY } })),
    expected: [422, 'validation_failed', '/data/id read_only'],
  },
  {
    id: 'A07',
    name: "other people's sessions, and the tables behind them",
    attempt: async ({ ann, bob }) => {
      const { body } = await ann.client.get('/api/auth/sessions');
      const paths = [`/api/auth/sessions/${body.data[0].id}`, '/api/_auth_sessions/x', '/api/sessions/x'];
      return each(paths, (path) => statusOf(bob.client.delete(path)));
    },
    expected: [404, 404, 404],
  },
  {
    id: 'A08',
    name: 'a relation into internal tables',
    attempt: ({ ann }) =>
      each(['sessions', '_auth_accounts', 'accounts', '__proto__'], async (name) =>
        outcomeOf(await ann.client.get(`/api/users/${ann.id}?expand=${name}`)).slice(0, 2),
      ),
    expected: Array.from({ length: 4 }, () => [400, 'unknown_expand']),
  },
  {
    id: 'A10',
    name: 'a read within a write asks the rules of what it reads',
    attempt: async ({ ann, hiddenTag }) => {
      const data = { title: 'x', tags: { set: [hiddenTag] } };
      return outcomeOf(await ann.client.post('/api/posts?expand=tags', { data }));
    },
    expected: [422, 'validation_failed', '/data/tags/set/0 not_found'],
  },
  {
    id: 'A11',
    name: 'a record that vouches for itself',
    attempt: async ({ bob, rooms: [first] }) =>
      outcomeOf(await bob.client.post('/api/seats', { data: { room: first, kind: 'chief' } })),
    expected: REFUSED,
  },
  {
    id: 'A12',
    name: 'one rule for the record before, another for it after',
    attempt: async ({ bob, published }) =>
      outcomeOf(await bob.client.patch(`/api/posts/${published}`, { data: { author: bob.id } })),
    expected: REFUSED,
  },
  {
    id: 'A13',
    name: 'a role that assigns one role gives another',
    attempt: ({ ed }) =>
      each(['admin', 'nobody'], (role) =>
        statusOf(ed.client.patch(`/api/users/${ed.id}`, { data: { roles: { add: [role] } } })),
      ),
    expected: [403, 422],
  },
  {
    id: 'A14',
    name: 'a record moved into a place of others',
    attempt: async ({ bob, rooms: [first], bobsSeat }) =>
      outcomeOf(await bob.client.patch(`/api/seats/${bobsSeat}`, { data: { room: first } })),
    expected: REFUSED,
  },
  {
    id: 'A15',
    name: 'a delete of drafts races a change that publishes',
    attempt: async ({ ann }) => {
      const outcomes = await each([1, 2, 3, 4, 5, 6], async () => {
        const { id } = (await ann.client.post('/api/posts', { data: { title: 'raced' } })).body.data;
        const change = ann.client.patch(`/api/posts/${id}`, { data: { status: 'published' } });
        const [changed, deleted] = await Promise.all([change, ann.client.delete(`/api/posts/${id}`)]);
        const left = await statusOf(ann.client.get(`/api/posts/${id}`));
        return `${changed.status} ${deleted.status} ${left}`;
      });
      return outcomes.filter((outcome) => outcome !== '200 403 200' && outcome !== '404 204 404');
    },
    expected: [],
  },
  {
    id: 'A16',
    name: 'policy words as values of a filter',
    attempt: async ({ bob }) => [
      outcomeOf(await bob.client.get('/api/posts?author=@request.auth.id')).slice(0, 2),
      (await bob.client.get('/api/posts?title=@record.title')).body.data,
    ],
    expected: [[400, 'filter_invalid_value'], []],
  },
  {
    id: 'A17',
    name: 'privileges in a registration or a patch of oneself',
    attempt: async ({ service, bob }) => {
      const account = { email: `a17.${Date.now()}@example.org`, password: 'correct horse battery' };
      const registered = await each(['roles', 'email_verified', 'disabled', 'id'], (key) =>
        statusOf(service.anonymous.post('/api/auth/register', { ...account, [key]: ['admin'] })),
      );
      const patched = await each(
        [{ email_verified: true }, { disabled: false }, { password_hash: 'x' }, { roles: { add: ['admin'] } }],
        (data) => statusOf(bob.client.patch(`/api/users/${bob.id}`, { data })),
      );
      return [registered, patched];
    },
    expected: [
      [422, 422, 422, 422],
      [422, 422, 422, 403],
    ],
  },
  {
    id: 'A18',
    name: 'a changed id, and wildcards in a filter',
    attempt: async ({ ann, bob, published }) => [
      outcomeOf(await ann.client.patch(`/api/posts/${published}`, { data: { id: NOBODY } })),
      (await bob.client.get('/api/posts?title=%25')).body.data,
      (await bob.client.get('/api/posts?title=publishe_')).body.data,
    ],
    expected: [[422, 'validation_failed', '/data/id read_only'], [], []],
  },
  {
    id: 'A19',
    name: 'a collection without rules',
    attempt: ({ root }) =>
      each(['GET /api/locked', `GET /api/locked/${NOBODY}`, `DELETE /api/locked/${NOBODY}`], (line) => {
        const [method, path] = line.split(' ') as [string, string];
        return statusOf(root.client.send(method, path));
      }),
    expected: [403, 403, 403],
  },
];

const PROBES: readonly Attack[] = [
  {
    id: 'A20',
    name: 'a path through a relation',
    attempt: ({ bob }) =>
      each(['author.email', 'author[email]', 'author__email', 'cover.url'], async (key) =>
        outcomeOf(await bob.client.get(`/api/posts?${key}=x`)).slice(0, 2),
      ),
    expected: Array.from({ length: 4 }, () => [400, 'filter_unknown_key']),
  },
  {
    id: 'A21',
    name: 'a filter by what users are never shown',
    attempt: ({ root }) =>
      each(['password', 'password_hash', 'disabled', 'roles'], async (key) =>
        outcomeOf(await root.client.get(`/api/users?${key}=x`)).slice(0, 2),
      ),
    expected: Array.from({ length: 4 }, () => [400, 'filter_unknown_key']),
  },
  {
    id: 'A22',
    name: 'a filter through a hidden record',
    attempt: ({ bob, hiddenTag, cover }) =>
      each(
        [`tags_any=${hiddenTag}`, `cover=${cover}`],
        async (query) => (await bob.client.get(`/api/posts?${query}`)).body.data,
      ),
    expected: [[], []],
  },
  {
    id: 'A23',
    name: 'a hidden record and a missing one, by any filter',
    attempt: async ({ bob, hiddenTag }) => {
      const said = async (id: string) => saidBy(await bob.client.get(`/api/posts?tags_any=${id}`));
      return JSON.stringify(await said(hiddenTag)) === JSON.stringify(await said(NOBODY));
    },
    expected: true,
  },
  {
    id: 'A24',
    name: 'sorting by what is hidden',
    attempt: async ({ bob }) => {
      const unknown = await each(['order', 'orderBy', 'Sort'], async (key) =>
        outcomeOf(await bob.client.get(`/api/posts?${key}=author.email`)).slice(0, 2),
      );
      const listed = await each(['', 'sort=author.email', 'sort=-author.email'], async (query) => {
        const { body } = await bob.client.get(`/api/posts?limit=100&${query}`);
        return JSON.stringify(body.data.filter(({ author }: { author: string }) => author !== bob.id));
      });
      return [...unknown, new Set(listed).size];
    },
    expected: [...Array.from({ length: 3 }, () => [400, 'filter_unknown_key']), 1],
  },
  {
    id: 'A25',
    name: "a draft by its author's own filter",
    attempt: async ({ ann, bob }) => (await bob.client.get(`/api/posts?author=${ann.id}&status=draft`)).body.data,
    expected: [],
  },
  {
    id: 'A26',
    name: 'a page beyond what may be seen',
    attempt: async ({ bob }) => (await bob.client.get('/api/posts?status=draft&limit=100&offset=0')).body.page,
    expected: { limit: 100, offset: 0, has_more: false },
  },
  {
    id: 'A27',
    name: 'a taken unique value, asked for without permission',
    attempt: ({ bob, published }) =>
      each(['taken', 'free'], async (slug) =>
        outcomeOf(await bob.client.patch(`/api/posts/${published}`, { data: { slug } })),
      ),
    expected: [REFUSED, REFUSED],
  },
  {
    id: 'A28',
    name: 'a hash in what a user is shown',
    attempt: async ({ service, ann }) => {
      const { email, password } = ann;
      const login = await service.anonymous.post('/api/auth/login', { email, password });
      const me = await ann.client.get('/api/auth/me');
      return [login.text, me.text, (await ann.client.get('/api/users')).text].filter((text) =>
        /hash|argon2/.test(text),
      );
    },
    expected: [],
  },
  {
    id: 'A29',
    name: "other people's addresses",
    attempt: async ({ ann, bob }) => [
      (await bob.client.get('/api/users')).body.data.length,
      outcomeOf(await bob.client.get(`/api/users/${ann.id}`)),
    ],
    expected: [1, MISSING],
  },
  {
    id: 'A30',
    name: 'collections that exist, by the answers to a guest',
    attempt: ({ service }) =>
      each(['/api/posts', '/api/locked', '/api/nope'], (path) => statusOf(service.anonymous.get(path))),
    expected: [401, 401, 401],
  },
  {
    id: 'A31',
    name: 'the count of hidden records',
    attempt: async ({ bob }) => {
      const { body } = await bob.client.get('/api/posts?status=draft&limit=1', { Prefer: 'count=exact' });
      return body.page.total;
    },
    expected: 0,
  },
  {
    id: 'A32',
    name: 'work without bound',
    attempt: async ({ bob, published }) => {
      const ids = Array.from({ length: 1_001 }, () => NOBODY);
      const nested = `${'['.repeat(40)}${']'.repeat(40)}`;
      return [
        (await bob.client.post('/api/posts', { data: { title: 'x', tags: { set: ids } } })).status,
        (await bob.client.get('/api/posts?limit=101')).status,
        (await bob.client.get('/api/posts?offset=1000001')).status,
        (await bob.client.get(`/api/posts/${published}?expand=tags,tags`)).status,
        outcomeOf(
          await bob.client.send('POST', '/api/posts', { raw: nested, headers: { 'Content-Type': 'application/json' } }),
        ),
      ];
    },
    expected: [422, 400, 400, 400, [400, 'malformed_json']],
  },
  {
    id: 'A33',
    name: 'SQL in keys, values, ids and names',
    attempt: async ({ bob }) => {
      const sql = encodeURIComponent("x' OR 1=1; DROP TABLE posts; --");
      const paths = [`/api/posts?title=${sql}`, `/api/posts?${sql}=1`, `/api/posts/${sql}`, `/api/${sql}`];
      return each([...paths, `/api/posts?expand=${sql}`, `/api/posts?limit=${sql}`, '/api/posts'], (path) =>
        statusOf(bob.client.get(path)),
      );
    },
    expected: [200, 400, 404, 404, 400, 400, 200],
  },
  {
    id: 'A35',
    name: 'characters that end a literal',
    attempt: ({ ann }) =>
      each(
        ["'", '"', '\\', "\\'", '$$', '$1', '?', "E'\\''", '%', '_', '\n', '--', '/*', 'é😀', '\ufeffx'],
        async (title) => {
          const made = await ann.client.post('/api/posts', { data: { title } });
          const found = await ann.client.get(`/api/posts?title=${encodeURIComponent(title)}`);
          const same = made.body.data.title === title && found.body.data.length === 1;
          await ann.client.delete(`/api/posts/${made.body.data.id}`);
          return same ? undefined : title;
        },
      ).then((wrong) => wrong.filter((title) => title !== undefined)),
    expected: [],
  },
  {
    id: 'A38',
    name: 'names of the prototype, everywhere',
    attempt: async ({ bob }) => {
      const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty'];
      const json = { headers: { 'Content-Type': 'application/json' } };
      const statuses = await each(names, async (name) => [
        (await bob.client.get(`/api/${name}`)).status,
        (await bob.client.get(`/api/posts?${name}=1`)).status,
        (await bob.client.get(`/api/posts?expand=${name}`)).status,
        (
          await bob.client.send('POST', '/api/posts', {
            ...json,
            raw: `{"data":{"title":"x","${name}":{"admin":true}}}`,
          })
        ).status,
        (await bob.client.send('POST', '/api/auth/login', { ...json, raw: `{"${name}":1}` })).status,
      ]);
      return [statuses, ({} as { admin?: unknown }).admin];
    },
    expected: [Array.from({ length: 4 }, () => [404, 400, 400, 422, 422]), undefined],
  },
];

const ACCOUNTS: readonly Attack[] = [
  {
    id: 'A45',
    name: 'tokens after a logout',
    attempt: async ({ service }) => {
      const { token, cookie, client } = await service.user();
      const before = await statusOf(client.get('/api/auth/me'));
      await client.post('/api/auth/logout');
      return [
        before,
        await statusOf(service.anonymous.with({ Authorization: `Bearer ${token}` }).get('/api/auth/me')),
        await statusOf(service.anonymous.with({ Cookie: cookie }).get('/api/auth/me')),
      ];
    },
    expected: [200, 401, 401],
  },
  {
    id: 'A49',
    name: 'a token that was verified before its session ended',
    attempt: async ({ service }) => {
      const { client } = await service.user();
      await each([1, 2, 3], () => client.get('/api/posts'));
      const { body } = await client.get('/api/auth/sessions');
      await client.delete(`/api/auth/sessions/${body.data[0].id}`);
      return outcomeOf(await client.get('/api/posts'));
    },
    expected: [401, 'invalid_token'],
  },
  {
    id: 'A51',
    name: 'accounts that exist, by the answer to a login',
    attempt: async ({ service, ann }) => {
      const said = async (email: string) =>
        JSON.stringify(
          saidBy(await service.anonymous.post('/api/auth/login', { email, password: 'not the password' })),
        );
      return (await said(ann.email)) === (await said('nobody@example.org'));
    },
    expected: true,
  },
];

const FILES_AND_HTTP: readonly Attack[] = [
  {
    id: 'A55',
    name: 'what the server says of a file, on both doors',
    attempt: ({ ann, bob, file }) =>
      each(
        [{ owner: bob.id }, { size: 1 }, { sha256: 'x' }, { content_type: 'text/plain' }, { id: NOBODY }],
        async (data) => [
          (await upload(ann.client, { bytes: 'x', data })).status,
          (await ann.client.patch(`/api/files/${file}`, { data })).status,
        ],
      ),
    expected: Array.from({ length: 5 }, () => [422, 422]),
  },
  {
    id: 'A56',
    name: 'what a hidden file is',
    attempt: ({ bob, file }) =>
      each(['GET ', 'GET /content', 'HEAD /content', 'GET /content?width=64', 'POST /link', 'DELETE '], (line) => {
        const [method, rest] = line.split(' ') as [string, string];
        return statusOf(bob.client.send(method, `/api/files/${file}${rest}`));
      }),
    expected: [404, 404, 404, 404, 404, 404],
  },
  {
    id: 'A57',
    name: 'HTML and SVG as files, with parameters',
    attempt: ({ ann }) =>
      each(['text/html;charset=utf-8', 'image/svg+xml', 'TEXT/HTML ; x=y', 'application/xhtml+xml'], async (type) => {
        const { body } = await upload(ann.client, { bytes: '<svg xmlns="http://www.w3.org/2000/svg"/>', type });
        const { headers } = await ann.client.send('HEAD', `/api/files/${body.data.id}/content`);
        const policy = headers.get('content-security-policy') ?? '';
        const kind = headers.get('content-disposition')?.split(';')[0];
        return [kind, policy.includes('sandbox'), headers.get('x-content-type-options')];
      }),
    expected: Array.from({ length: 4 }, () => ['attachment', true, 'nosniff']),
  },
  {
    id: 'A58',
    name: 'ranges that multiply the content',
    attempt: ({ ann, file }) =>
      each(
        ['bytes=0-,0-,0-', `bytes=${'0-1,'.repeat(900)}0-1`, 'bytes=9-1', 'bytes=-0', 'bytes=99-'],
        async (Range) => {
          const answer = await ann.client.get(`/api/files/${file}/content`, { Range });
          return answer.text.length < 1_000 && [200, 206, 416].includes(answer.status);
        },
      ),
    expected: [true, true, true, true, true],
  },
  {
    id: 'A59',
    name: 'a link to a file: on other routes, for other files, after the logout',
    attempt: async ({ service, ann, file }) => {
      const { email, password } = ann;
      const { body } = await service.anonymous.post('/api/auth/login', { email, password });
      const session = service.anonymous.with({ Authorization: `Bearer ${body.access_token}` });
      const other = (await upload(ann.client, { bytes: 'x' })).body.data.id;
      const { search, pathname } = new URL((await session.post(`/api/files/${file}/link`)).body.url);
      const paths = [pathname, `/api/files/${file}`, `/api/files/${other}/content`, '/api/posts'];
      const before = await each(paths, (path) => statusOf(service.anonymous.get(path + search)));
      await session.post('/api/auth/logout');
      return [before, await statusOf(service.anonymous.get(pathname + search))];
    },
    expected: [[200, 401, 401, 401], 401],
  },
  {
    id: 'A61',
    name: 'a request that stops the process',
    attempt: async ({ service, bob }) => {
      const form = (disposition: string): string =>
        `--b\r\nContent-Disposition: form-data; ${disposition}\r\n\r\nx\r\n--b--\r\n`;
      const send = (disposition: string) =>
        bob.client.send('POST', '/api/files', {
          headers: { 'Content-Type': 'multipart/form-data; boundary=b' },
          raw: form(disposition),
        });
      const began = performance.now();
      const statuses = await each(
        [
          `name="file"; filename="${'\\'.repeat(60)}`,
          `name="file"; filename="${'\\'.repeat(3_000)}"`,
          `name="file"; filename="${'\\"'.repeat(1_500)}`,
          `name="file"${';'.repeat(3_000)}`,
          `name="file"; filename="${'. '.repeat(1_500)}x\u0000"`,
          `name="file"; filename="${'x'.repeat(5_000)}"`,
        ],
        (disposition) => statusOf(send(disposition)),
      );
      const alive = await statusOf(service.anonymous.get('/healthz'));
      return [statuses.every((status) => status === 201 || status === 400), alive, performance.now() - began < 30_000];
    },
    expected: [true, 200, true],
  },
  {
    id: 'A62',
    name: 'what operators read, from outside',
    attempt: async ({ service, draft }) => {
      const documents = (await service.anonymous.get('/openapi.json')).text;
      return [
        await statusOf(service.anonymous.get('/metrics', { 'X-Forwarded-For': '127.0.0.1' })),
        /@request\.|@record\./.test(documents),
        documents.includes(draft),
      ];
    },
    expected: [404, false, false],
  },
  {
    id: 'A63',
    name: 'hidden records by expand',
    attempt: async ({ bob, published, hiddenTag }) => {
      const { body, text } = await bob.client.get(`/api/posts/${published}?expand=cover,tags,author`);
      return [body.data.cover, body.data.expand.cover, body.data.expand.author, text.includes(hiddenTag)];
    },
    expected: [null, null, null, false],
  },
  {
    id: 'A64',
    name: 'a hidden record by the answer to a patch',
    attempt: async ({ ed, draft }) => {
      const { status, body } = await ed.client.patch(`/api/posts/${draft}`, { data: { score: 1 } });
      return [status, Object.keys(body.data)];
    },
    expected: [200, ['id']],
  },
  {
    id: 'A65',
    name: 'headers made for a matcher that goes back',
    attempt: async ({ service, bob }) => {
      const long = (unit: string): string => unit.repeat(Math.floor(12_000 / unit.length));
      const headers: readonly [string, string][] = [
        ['Prefer', `count=${long(' ')}""x`],
        ['Prefer', long('count= , ')],
        ['If-None-Match', long('"a" ')],
        ['If-Match', `W/${long('"')}`],
        ['Range', `bytes=${long('1-,')}`],
        ['Accept', long('a/b; ')],
        ['Content-Type', `application/json${long('; a="')}`],
        ['Cookie', long('svc_session=; ')],
        ['Authorization', `Bearer${long(' ')}x`],
        ['Idempotency-Key', long('a ')],
      ];
      const { hostname, port } = new URL(service.url);
      const began = performance.now();
      const answers = await each(headers, ([name, value]) => {
        const credential = name === 'Authorization' ? '' : `Authorization: Bearer ${bob.token}\r\n`;
        const head = `GET /api/posts HTTP/1.1\r\nHost: ${hostname}:${port}\r\nConnection: close\r\n${credential}`;
        return sendRaw(service.url, `${head}${name}: ${value}\r\n\r\n`);
      });
      return [answers.filter((answer) => !/^HTTP\/1\.1 [234]/.test(answer)), performance.now() - began < 30_000];
    },
    expected: [[], true],
  },
];

export const ATTACKS: readonly { readonly theme: string; readonly attacks: readonly Attack[] }[] = [
  { theme: 'access', attacks: ACCESS },
  { theme: 'probes', attacks: PROBES },
  { theme: 'accounts', attacks: ACCOUNTS },
  { theme: 'files and HTTP', attacks: FILES_AND_HTTP },
];
