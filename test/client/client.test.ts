// @module-tag long
/** The client against the running service, on both databases. */
import { createHash } from 'node:crypto';
import { describe, expect, test, vi } from 'vitest';
import { BylawError, createClient, etagOf, SecondFactorNeeded, type TokenStorage } from '../../src/client/client.ts';
import { raw } from '../../src/sql.ts';
import { codeOfApp } from '../auth/authenticator.ts';
import { bundleForBrowser, compressedSize } from '../support/browser/bundle.ts';
import { describeOnOne, type TestService } from '../support/service.ts';

interface Document {
  readonly id: string;
  readonly title: string;
  readonly status: 'draft' | 'published';
  readonly expand?: { readonly owner?: { readonly id: string } | null };
}
interface Collections {
  readonly documents: {
    readonly record: Document;
    readonly create: { title: string; status?: Document['status'] };
    readonly update: { title?: string; status?: Document['status'] };
    readonly filters: { title?: string; status?: Document['status'] };
  };
  readonly users: { readonly record: { id: string; email: string }; create: never; update: object; filters: object };
  readonly files: {
    readonly record: { id: string; name: string; size: number };
    create: object;
    update: object;
    filters: object;
  };
}

class MemoryStorage implements TokenStorage {
  readonly #items = new Map<string, string>();
  getItem = (key: string): string | null => this.#items.get(key) ?? null;
  setItem = (key: string, value: string): void => void this.#items.set(key, value);
  removeItem = (key: string): void => void this.#items.delete(key);
  keys = (): string[] => [...this.#items.keys()];
}

type Fetch = typeof fetch;
const clientOf = (service: TestService, options: Parameters<typeof createClient>[1] = {}) =>
  createClient<Collections>(service.url, options);

async function signedIn(service: TestService, options: Parameters<typeof createClient>[1] = {}) {
  const { id, email, password } = await service.user();
  const client = clientOf(service, options);
  await client.login({ email, password });
  return { id, email, password, client };
}

/** Counts what passes, and lets a test answer in the service's place. */
function spied(answer?: (url: string, init: RequestInit) => Promise<Response> | undefined) {
  const sent: string[] = [];
  const spy: Fetch = (input, init) => {
    sent.push(`${init?.method} ${new URL(String(input)).pathname}`);
    return answer?.(String(input), init!) ?? fetch(input, init);
  };
  return { sent, fetch: spy };
}

describeOnOne('the client', (service) => {
  test('a user registers, logs in, reads the own account, and logs out', async () => {
    const client = clientOf(service);
    const credentials = { email: `new.${Date.now()}@example.org`, password: 'lovelace and babbage' };
    const registered = await client.register(credentials);
    const user = await client.login(credentials);
    expect([user.id, (await client.me()).email]).toEqual([registered.id, credentials.email]);
    await client.logout();
    await expect(client.me()).rejects.toMatchObject({ status: 401, code: 'unauthenticated' });
  });

  test('a collection creates, reads with expand, updates with If-Match, and deletes', async () => {
    const { id: owner, client } = await signedIn(service);
    const documents = client.collection('documents');
    const { id } = await documents.create({ title: 'One' });
    const read = await documents.read(id, { expand: ['owner'] });
    expect([read.title, read.expand?.owner?.id]).toEqual(['One', owner]);
    expect(etagOf(read)).toMatch(/^"/);
    expect(await documents.update(id, { title: 'Two' }, { ifMatch: read })).toMatchObject({ id, title: 'Two' });
    await expect(documents.update(id, { title: 'Three' }, { ifMatch: read })).rejects.toMatchObject({
      code: 'changed',
    });
    await documents.delete(id);
    await expect(documents.read(id)).rejects.toMatchObject({ status: 404, code: 'not_found' });
  });

  test('a collection answers what the caller may do with a record, and what a write would do', async () => {
    const [{ client }, other] = [await signedIn(service), await signedIn(service)];
    const documents = client.collection('documents');
    const { id } = await documents.create({ title: 'Mine' });
    expect(await documents.allowed()).toEqual({ list: true, create: 'depends' });
    expect(await documents.capabilities(id)).toMatchObject({ update: 'depends', delete: true });
    expect(await documents.can({ action: 'update', id, data: { title: 'Still mine' } })).toEqual({ allowed: true });
    expect(await documents.can({ action: 'create', data: { title: 'x'.repeat(201) } })).toMatchObject({
      allowed: false,
      code: 'validation_failed',
      errors: [{ pointer: '/data/title' }],
    });
    const foreign = other.client.collection('documents');
    await expect(foreign.capabilities(id)).rejects.toMatchObject({ status: 404 });
    expect(await foreign.can({ action: 'delete', id })).toMatchObject({ allowed: false, status: 404 });
    expect((await documents.read(id)).title).toBe('Mine');
  });

  test('an account enrols a second factor, signs in in two steps, and removes it', async () => {
    const { email, password, client } = await signedIn(service);
    const { secret, uri, qr } = await client.account.enrolTotp();
    expect([uri.startsWith('otpauth://totp/'), qr.startsWith('<svg')]).toEqual([true, true]);
    const codes = await client.account.confirmTotp(codeOfApp(secret));
    const later = clientOf(service);
    const needed = await later.login({ email, password }).catch((error: unknown) => error);
    if (!(needed instanceof SecondFactorNeeded)) throw needed;
    expect(needed.methods).toEqual(['totp', 'recovery']);
    const { challenge } = needed;
    await expect(later.finishLogin({ challenge, method: 'totp', code: 'x' })).rejects.toMatchObject({ status: 401 });
    expect((await later.finishLogin({ challenge, method: 'recovery', code: codes[0]! })).email).toBe(email);
    expect(await later.account.renewRecoveryCodes(codes[1]!)).toHaveLength(10);
    expect(await later.account.confirm({ password })).toMatch(/Z$/);
    await later.account.removeTotp({ password });
    expect((await clientOf(service).login({ email, password })).email).toBe(email);
  });

  test('an account changes its password, and lists and ends its sessions', async () => {
    const { email, password, client } = await signedIn(service);
    const later = clientOf(service);
    await later.login({ email, password });
    const [first] = (await client.account.sessions()).filter(({ current }) => !current);
    await client.account.endSession(first!.id);
    await expect(later.me()).rejects.toMatchObject({ status: 401 });
    await client.account.changePassword(password, 'countess of lovelace');
    await later.login({ email, password: 'countess of lovelace' });
    await later.account.requestPasswordReset(email);
    await later.account.requestVerification();
    const spent = 'x'.repeat(43);
    await expect(later.account.resetPassword(spent, password)).rejects.toMatchObject({ code: 'validation_failed' });
    await expect(later.account.verifyEmail(spent)).rejects.toMatchObject({ code: 'validation_failed' });
    await expect(later.beGuest()).rejects.toMatchObject({ status: 404 });
    expect(await later.providers()).toEqual([]);
    const { url, verifier } = await later.beginAppLogin('google', 'com.example.app://x');
    const challenge = createHash('sha256').update(verifier).digest('base64url');
    const query = `redirect_to=com.example.app%3A%2F%2Fx&code_challenge=${challenge}`;
    expect(url).toBe(`${service.url}/api/auth/oauth/google/start?${query}`);
    await expect(later.finishAppLogin(spent, verifier)).rejects.toMatchObject({ code: 'invalid_credentials' });
    await expect(later.account.linkIdentity('google')).rejects.toMatchObject({ status: 404 });
    await expect(later.account.unlinkIdentity('google')).rejects.toMatchObject({ status: 404 });
    expect(later.oauthUrl('google', '/a?b')).toBe(`${service.url}/api/auth/oauth/google/start?redirect_to=%2Fa%3Fb`);
  });

  test('an error has the issue of each field', async () => {
    const { client } = await signedIn(service);
    const error = await client
      .collection('documents')
      .create({ title: 'x'.repeat(201), status: 'lost' as 'draft' })
      .then(
        () => undefined,
        (reason: unknown) => reason,
      );
    expect(error).toBeInstanceOf(BylawError);
    expect(Object.keys((error as BylawError).fields).sort()).toEqual(['status', 'title']);
    expect((error as BylawError).requestId).toBeTypeOf('string');
  });

  test('a list reads its pages once, and gives the first one when awaited', async () => {
    const { client } = await signedIn(service);
    const documents = client.collection('documents');
    const titles = ['a', 'b', 'c', 'd', 'e'].map((letter) => `${letter} of pages`);
    for (const title of titles) await documents.create({ title });
    const mine = documents.list({ status: 'draft', limit: 2 }, { count: 'exact' });
    const first = await mine;
    expect([first.data.map(({ title }) => title), first.page]).toEqual([
      titles.slice(0, 2),
      { limit: 2, offset: 0, has_more: true, total: 5 },
    ]);
    const met: string[] = [];
    for await (const { title } of mine.records()) met.push(title);
    expect(met).toEqual(titles);
  });

  test('an upload reports progress, and a link needs no header', async () => {
    const { client } = await signedIn(service);
    const progress: number[] = [];
    const file = await client.upload(new File(['hello'], 'hello.txt', { type: 'text/plain' }), {
      onProgress: ({ sent }) => progress.push(sent),
    });
    expect([file.name, file.size, progress]).toEqual(['hello.txt', 5, [5]]);
    const { url } = await client.link(file.id);
    expect(await (await fetch(new URL(url, service.url))).text()).toBe('hello');
  });

  test('an upload with progress sends no bytes after its signal is aborted', async () => {
    let requests = 0;
    const signals: unknown[] = [];
    const control = new AbortController();
    const { fetch: spy } = spied((url, init) => {
      if (!url.endsWith('/api/auth/me')) return undefined;
      signals.push(init.signal);
      // The signal is aborted once the response has arrived.
      return fetch(url, init).finally(() => control.abort(new Error('left the page')));
    });
    vi.stubGlobal(
      'XMLHttpRequest',
      class {
        readonly upload = {};
        open = (): void => {};
        setRequestHeader = (): void => {};
        send = (): void => void requests++;
      },
    );
    try {
      const { client } = await signedIn(service, { fetch: spy });
      const upload = () =>
        client.upload(new File(['hello'], 'hello.txt'), { onProgress: () => {}, signal: control.signal });
      await expect(upload()).rejects.toThrow('left the page');
      await expect(upload()).rejects.toThrow('left the page');
      expect([requests, signals.every((each) => each === control.signal)]).toEqual([0, true]);
    } finally {
      vi.unstubAllGlobals();
    }
  });

  test('concurrent calls with a 401 share a refresh, and continue', async () => {
    const storage = new MemoryStorage();
    const { sent, fetch: spy } = spied();
    const { client } = await signedIn(service, { storage, fetch: spy });
    expire(storage);
    const answers = await Promise.all([client.me(), client.me(), client.collection('documents').list({ limit: 1 })]);
    expect(answers).toHaveLength(3);
    expect(sent.filter((call) => call.endsWith('/token/refresh'))).toHaveLength(1);
  });

  test('a client uses the tokens that another tab has refreshed', async () => {
    const storage = new MemoryStorage();
    const { email, client: first } = await signedIn(service, { storage });
    expire(storage);
    let refreshed: Promise<unknown> | undefined;
    const { sent, fetch: spy } = spied((url, init) => {
      if (refreshed !== undefined) return undefined;
      refreshed = first.me();
      return Promise.all([fetch(url, init), refreshed]).then(([rejected]) => rejected);
    });
    const second = clientOf(service, { storage, fetch: spy });
    expect((await second.me()).email).toBe(email);
    expect(sent).toEqual(['GET /api/auth/me', 'GET /api/auth/me']);
  });

  test('the end of a session is reported once', async () => {
    const storage = new MemoryStorage();
    let ended = 0;
    const { client } = await signedIn(service, { storage, onSessionEnd: () => ended++ });
    expire(storage, { refresh_token: 'spent' });
    await expect(client.me()).rejects.toMatchObject({ status: 401 });
    expect([ended, storage.getItem(`bylaw:${service.url}`)]).toEqual([1, null]);
  });

  test('concurrent calls report the end of a session once', async () => {
    const storage = new MemoryStorage();
    let ended = 0;
    const { client } = await signedIn(service, { storage, onSessionEnd: () => ended++ });
    expire(storage, { refresh_token: 'spent' });
    const codes = await Promise.all([1, 2, 3].map(() => client.me().catch((error: BylawError) => error.code)));
    expect([codes, ended]).toEqual([Array(3).fill('invalid_token'), 1]);
  });

  test('a login stays where the refresh of a former session ends later', async () => {
    const storage = new MemoryStorage();
    const [release, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const { fetch: spy } = spied((url, init) =>
      url.endsWith('/token/refresh')
        ? fetch(url, init).then(async (response) => {
            released.resolve();
            await release.promise;
            return response;
          })
        : undefined,
    );
    await signedIn(service, { storage });
    expire(storage);
    const others = new MemoryStorage();
    const { email } = await signedIn(service, { storage: others });
    const client = clientOf(service, { storage, fetch: spy });
    const late = client.me();
    await released.promise;
    // Another tab, whose browser has no locks, logs in.
    const key = `bylaw:${service.url}`;
    storage.setItem(key, others.getItem(key)!);
    release.resolve();
    await expect(late).rejects.toMatchObject({ code: 'invalid_token' });
    expect((await client.me()).email).toBe(email);
  });

  test('a login waits for a refresh, and then takes the place of its session', async () => {
    const storage = new MemoryStorage();
    const { client } = await signedIn(service, { storage });
    const { email, password } = await service.user();
    expire(storage);
    const [, user] = await Promise.all([client.me(), client.login({ email, password })]);
    expect([user.email, (await client.me()).email]).toEqual([email, email]);
  });

  test('an error has the messages of a form without `data`, too', async () => {
    const error = await clientOf(service)
      .register({ email: 'me@home', password: 'lovelace and babbage' })
      .catch((each: BylawError) => each);
    expect((error as BylawError).fields).toEqual({ email: 'expected an email address' });
  });

  test('a list takes no param that an address cannot have', async () => {
    const { client } = await signedIn(service);
    const documents = client.collection('documents');
    for (const value of [null, []]) {
      const params = { t: value };
      await expect(async () => documents.list({ filter: 'title = $t', params })).rejects.toThrow(/`t`: .* `query`/);
    }
    const { data } = await documents.query({ filter: 'title = $t', params: { t: null } });
    expect(data).toEqual([]);
  });

  test('a create with a lost response is retried without a second record, and an update is never retried', async () => {
    let lose = true;
    const { sent, fetch: spy } = spied((url, init) => {
      if (!lose || init.method === 'GET' || url.includes('/auth/')) return undefined;
      lose = false;
      return fetch(url, init).then(() => Promise.reject(new TypeError('the connection was reset')));
    });
    const { client } = await signedIn(service, { fetch: spy });
    const documents = client.collection('documents');
    const { id } = await documents.create({ title: 'Once only' });
    const named = { filter: 'title in $names', params: { names: ['Once only', 'a,b'] }, fields: ['id'] } as const;
    expect((await documents.list(named)).data).toEqual([{ id }]);
    expect(new URL(documents.link({ ...named, sort: ['-title', 'id'] })).search).toBe(
      '?filter=title+in+%24names&fields=id&sort=-title%2Cid&param.names=Once+only&param.names=a%2Cb',
    );
    expect((await documents.list({ title: 'Once only' })).data.map((each) => each.id)).toEqual([id]);
    lose = true;
    sent.length = 0;
    await expect(documents.update(id, { title: 'Lost' })).rejects.toThrow('the connection was reset');
    expect(sent).toEqual([`PATCH /api/documents/${id}`]);
  });

  test('a read is retried after a 503, as often as configured', async () => {
    const busy = async (): Promise<Response> => new Response('busy', { status: 503, headers: { 'retry-after': '0' } });
    const { sent, fetch: spy } = spied((url) => (url.includes('/auth/') ? undefined : busy()));
    const { client } = await signedIn(service, { fetch: spy, retries: 1 });
    sent.length = 0;
    await expect(client.collection('documents').list()).rejects.toMatchObject({ status: 503, code: 'http_error' });
    expect(sent).toHaveLength(2);
  });

  test('a conditional write needs a record that came with an ETag', async () => {
    const { client } = await signedIn(service);
    const documents = client.collection('documents');
    const { id } = await documents.create({ title: 'Listed' });
    const [listed] = (await documents.list({ title: 'Listed' })).data;
    await expect(documents.update(id, { title: 'x' }, { ifMatch: listed })).rejects.toThrow(/no ETag/);
  });
});

/** Keeps cookies and names its origin, as a browser does for a page of the service. */
function browserFetch(origin: string): { readonly fetch: Fetch; readonly cookies: Map<string, string> } {
  const cookies = new Map<string, string>();
  const keeping: Fetch = async (input, init) => {
    const headers = new Headers(init?.headers);
    if (init?.credentials === 'include' && cookies.size > 0)
      headers.set('cookie', [...cookies].map((pair) => pair.join('=')).join('; '));
    if (init?.method !== 'GET') headers.set('origin', origin);
    const response = await fetch(input, { ...init, headers });
    for (const cookie of response.headers.getSetCookie()) {
      const [name, value] = cookie.split(';')[0]!.split('=') as [string, string];
      if (value === '') cookies.delete(name);
      else cookies.set(name, value);
    }
    return response;
  };
  return { fetch: keeping, cookies };
}

describeOnOne('the client with cookies', (service) => {
  test('a client with cookies keeps and sends no token', async () => {
    const storage = new MemoryStorage();
    const browser = browserFetch(service.url);
    const sent: (string | null)[] = [];
    const watched: Fetch = (input, init) => {
      sent.push(new Headers(init?.headers).get('authorization'));
      return browser.fetch(input, init);
    };
    let ended = 0;
    const options = { auth: 'cookie', storage, fetch: watched, onSessionEnd: () => ended++ } as const;
    await expect(clientOf(service, options).me()).rejects.toMatchObject({ status: 401 });
    const { email, password, client } = await signedIn(service, options);
    expect([...browser.cookies.keys()]).toEqual(['svc_session']);
    expect((await client.me()).email).toBe(email);
    const documents = client.collection('documents');
    const { id } = await documents.create({ title: 'With a cookie' });
    expect((await documents.read(id)).title).toBe('With a cookie');
    await client.logout();
    expect(ended).toBe(0);
    await client.login({ email, password });
    await client.me();
    browser.cookies.clear();
    await expect(client.me()).rejects.toMatchObject({ status: 401, code: 'unauthenticated' });
    await expect(client.me()).rejects.toMatchObject({ status: 401, code: 'unauthenticated' });
    expect(ended).toBe(1);
    expect([new Set(sent), storage.keys(), browser.cookies.size]).toEqual([new Set([null]), [], 0]);
  });
});

describeOnOne(
  'a client of guests',
  (service) => {
    test('a login ends the session of a guest, whose records it hands over', async () => {
      const storage = new MemoryStorage();
      const { fetch: spy, sent } = spied();
      const { email, password } = await service.user();
      const client = clientOf(service, { storage, fetch: spy });
      await client.beGuest();
      const guest = storage.getItem(`bylaw:${service.url}`)!;
      expire(storage);
      const former = await service.app.db.rows(raw('SELECT count(*) FROM "_auth_former_guests"'));
      await client.login({ email, password });
      expect(sent).toEqual(['POST /api/auth/guest', 'POST /api/auth/token/refresh', 'POST /api/auth/login']);
      const handedOver = await service.app.db.rows(raw('SELECT count(*) FROM "_auth_former_guests"'));
      expect(Number(handedOver[0]![0])).toBe(Number(former[0]![0]) + 1);
      const { access_token } = JSON.parse(guest);
      const asked = await fetch(`${service.url}/api/notes`, { headers: { authorization: `Bearer ${access_token}` } });
      expect(asked.status).toBe(401);
      expect((await client.me()).email).toBe(email);
    });

    test('a login goes on where the session before it is over', async () => {
      const storage = new MemoryStorage();
      let ended = 0;
      const { email, password } = await service.user();
      const client = clientOf(service, { storage, onSessionEnd: () => ended++ });
      await client.beGuest();
      expire(storage, { refresh_token: 'spent' });
      await client.login({ email, password });
      expect([(await client.me()).email, ended]).toEqual([email, 0]);
    });
  },
  {
    schema: `
guests: true
roles: [member]
register: { roles: [member] }
collections:
  notes: { fields: { text: string }, access: { view: true, create: true } }
`,
  },
);

describeOnOne('a batch of the client', (service) => {
  test('a batch is a single request, which is retried with the same key if its response was lost', async () => {
    let sends = 0;
    const keys = new Set<string | null>();
    const losing: Fetch = async (input, init) => {
      if (!String(input).endsWith('/api/batch')) return fetch(input, init);
      keys.add(new Headers(init?.headers).get('idempotency-key'));
      const answer = await fetch(input, init);
      if (sends++ === 0) throw new TypeError('the connection was lost');
      return answer;
    };
    const { client } = await signedIn(service, { fetch: losing });
    const results = await client.batch([
      { op: 'create', collection: 'documents', data: { title: 'In a batch' }, as: 'd' },
      { op: 'update', collection: 'documents', id: { $ref: 'd' }, data: { status: 'published' } },
    ]);
    expect([sends, keys.size, results.map(({ status }) => status)]).toEqual([2, 1, [201, 200]]);
    const listed = await client.collection('documents').list({ title: 'In a batch' });
    expect(listed.data.map(({ status }) => status)).toEqual(['published']);
  });

  test('an error of a batch has the operation that failed', async () => {
    const { client } = await signedIn(service);
    const failing = client.batch([
      { op: 'create', collection: 'documents', data: { title: 'Undone' } },
      { op: 'delete', collection: 'documents', id: '01900000-0000-7000-8000-000000000000' },
    ]);
    await expect(failing).rejects.toMatchObject({ code: 'not_found', operation: 1 });
    expect((await client.collection('documents').list({ title: 'Undone' })).data).toEqual([]);
  });
});

/** Spoils the access token, as time does. */
function expire(storage: MemoryStorage, change: object = {}): void {
  const key = storage.keys()[0]!;
  const kept = JSON.parse(storage.getItem(key)!) as object;
  storage.setItem(key, JSON.stringify({ ...kept, access_token: 'expired', ...change }));
}

describe('the size of the client', () => {
  test('the client has at most 6 KB compressed, as its page says', async () => {
    const size = compressedSize(await bundleForBrowser('src/client/client.ts'));
    expect(size).toBeGreaterThan(1024);
    expect(size).toBeLessThanOrEqual(6 * 1024);
  });
});
