/**
 * Makes a hostile request from a number: route × method × headers × body × values, as one of
 * several callers.
 */
import type { Route } from '../../../src/http/route.ts';
import { Random } from '../random.ts';
import { brokenJson, hostileJson, hostileText, runOf } from './values.ts';

const CALLERS = ['guest', 'user', 'other', 'cookie', 'admin'] as const;
export type CallerName = (typeof CALLERS)[number];

export interface HostileRequest {
  readonly number: number;
  readonly caller: CallerName;
  /** True if the credential is sent unchanged: then 401 means that the session is over. */
  readonly isSignedIn: boolean;
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | undefined;
}

export interface CollectionShape {
  readonly name: string;
  readonly fields: readonly string[];
  readonly relations: readonly string[];
}

export interface World {
  readonly routes: readonly Route[];
  readonly collections: readonly CollectionShape[];
  /** Ids of existing records, by collection; requests add to it. */
  readonly ids: ReadonlyMap<string, string[]>;
  readonly credentials: Readonly<Record<CallerName, Readonly<Record<string, string>>>>;
}

const METHODS = ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE', 'PUT', 'OPTIONS', 'TRACE', 'PROPFIND'];
const SYSTEM_NAMES = [
  '_auth_sessions',
  '_auth_keys',
  'sessions',
  'pg_class',
  'auth',
  'files',
  'users',
  'batch',
  'keys',
];

export function hostileRequest(world: World, seed: number, number: number): HostileRequest {
  return new Maker(world, new Random(seed * 7_919 + number * 104_729)).make(number);
}

class Maker {
  readonly #world: World;
  readonly #random: Random;

  constructor(world: World, random: Random) {
    this.#world = world;
    this.#random = random;
  }

  make(number: number): HostileRequest {
    const random = this.#random;
    const route = random.pick(this.#world.routes);
    const caller = random.pick(CALLERS);
    const collection = random.pick(this.#world.collections);
    const method = random.chance(0.85) ? route.method : random.pick(METHODS);
    const body =
      method === 'POST' || method === 'PATCH' || random.chance(0.05) ? this.#body(route, collection) : undefined;
    const isSignedIn = caller !== 'guest' && random.chance(0.95);
    return {
      number,
      caller,
      isSignedIn,
      method,
      path: this.#path(route, collection) + this.#query(collection),
      headers: {
        ...(isSignedIn ? this.#world.credentials[caller] : this.#badCredential()),
        ...(body === undefined ? {} : { 'Content-Type': body.type }),
        ...this.#headers(),
      },
      body: body?.bytes,
    };
  }

  // -------------------------------------------------------------- the address

  #path(route: Route, collection: CollectionShape): string {
    const random = this.#random;
    const path = route.path.replaceAll(/:(\w+)/g, (_, name: string) => this.#parameter(name, collection));
    if (random.chance(0.93)) return path;
    return random.pick([
      `${path}/`,
      `/${path}`,
      path.toUpperCase(),
      `${path};x=1`,
      `${path}/%2e%2e`,
      `/x/../..${path}`,
      path.replace(/[a-z]/, (letter) => `%${letter.charCodeAt(0).toString(16)}`),
      `${path}%00`,
      `http://evil.example${path}`,
    ]);
  }

  #parameter(name: string, { name: collection }: CollectionShape): string {
    const random = this.#random;
    if (name === 'collection') {
      if (random.chance(0.9)) return collection;
      return random.chance(0.5) ? random.pick(SYSTEM_NAMES) : this.#encoded(hostileText(random, 300));
    }
    if (random.chance(0.15)) return this.#encoded(hostileText(random, 300));
    return this.#id(collection);
  }

  #id(collection: string): string {
    const known = this.#world.ids.get(collection) ?? [];
    return known.length > 0 && this.#random.chance(0.8) ? this.#random.pick(known) : this.#random.uuid();
  }

  #encoded(text: string): string {
    // A raw target may hold no spaces, controls, or characters beyond Latin-1: the client would refuse to send them.
    if (this.#random.chance(0.2))
      return text
        .replaceAll(/[^!-~]/g, '')
        .replaceAll('#', '')
        .slice(0, 7_000);
    return encodeURIComponent(text.toWellFormed())
      .slice(0, 7_000)
      .replace(/%[0-9A-F]?$/, '');
  }

  #query(collection: CollectionShape): string {
    const random = this.#random;
    if (random.chance(0.5)) return '';
    const pairs = Array.from({ length: random.chance(0.03) ? 200 : 1 + random.below(3) }, () => this.#pair(collection));
    return `?${pairs.join('&')}`.slice(0, 12_000);
  }

  #pair({ fields, relations }: CollectionShape): string {
    const random = this.#random;
    const key = random.pick([
      ...['limit', 'offset', 'expand', 'token', 'width', 'fit', 'redirect_to', 'code', 'state', 'sure', 'mode'],
      ...fields,
      ...relations,
      ...relations.map((name) => `${name}_any`),
      this.#encoded(hostileText(random, 200)),
      `${random.pick(fields)}[gt]`,
      `${random.pick(fields)}.x`,
    ]);
    return `${key}=${this.#encoded(this.#filterValue(key, relations))}`;
  }

  #filterValue(key: string, relations: readonly string[]): string {
    const random = this.#random;
    if (random.chance(0.4)) return hostileText(random, 2_000);
    if (key === 'limit' || key === 'offset') return String(random.below(100) + 1);
    if (key === 'expand') return random.shuffled(relations).slice(0, 3).join(',');
    return random.pick(['draft', 'published', 'true', '1', '2026-01-01T00:00:00Z', random.uuid()]);
  }

  // -------------------------------------------------------------- headers

  #badCredential(): Record<string, string> {
    const random = this.#random;
    const text = headerText(hostileText(random, 4_000));
    return random.pick<Record<string, string>>([
      {},
      { Authorization: `Bearer ${text}` },
      { Authorization: 'Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.' },
      { Authorization: text },
      { Cookie: `svc_session=${text}` },
      { Cookie: text },
      { Authorization: 'Bearer x', Cookie: this.#world.credentials.cookie.Cookie ?? '' },
    ]);
  }

  #headers(): Record<string, string> {
    const random = this.#random;
    const headers: Record<string, string> = {};
    const count = random.chance(0.5) ? 0 : 1 + random.below(3);
    for (let i = 0; i < count; i++) {
      const [name, values] = random.pick(HEADERS);
      headers[name] = random.chance(0.4) ? random.pick(values) : headerText(this.#decorated(random.pick(values)));
    }
    return headers;
  }

  #decorated(value: string): string {
    const random = this.#random;
    const hostile = hostileText(random, 5_000);
    return random.pick([hostile, value + hostile, hostile + value, value.replace('=', `=${runOf(random, 4_000)}`)]);
  }

  // -------------------------------------------------------------- bodies

  #body(route: Route, collection: CollectionShape): { readonly type: string; readonly bytes: Buffer } {
    const random = this.#random;
    if (random.chance(isUpload(route) ? 0.9 : 0.02)) return this.#multipart();
    const type = random.chance(0.95) ? 'application/json' : headerText(hostileText(random, 500));
    if (random.chance(0.1)) return { type, bytes: brokenJson(random) };
    const isAuth = route.path.startsWith('/api/auth');
    const value = random.chance(0.1)
      ? hostileJson(random)
      : isAuth
        ? this.#authBody()
        : { data: this.#data(collection) };
    return { type, bytes: Buffer.from(JSON.stringify(value)) };
  }

  #authBody(): Record<string, unknown> {
    const random = this.#random;
    const keys = random
      .shuffled(['email', 'password', 'new_password', 'token', 'refresh_token', 'roles', '__proto__'])
      .slice(0, 1 + random.below(3));
    const good: Record<string, unknown> = {
      email: `x${random.below(500)}@example.org`,
      password: 'a password of tests',
    };
    return Object.fromEntries(
      keys.map((key) => [key, random.chance(0.5) ? (good[key] ?? 'x') : hostileJson(random, 3)]),
    );
  }

  #data({ name, fields, relations }: CollectionShape): Record<string, unknown> {
    const random = this.#random;
    const data: Record<string, unknown> = { ...GOOD[name] };
    if (Object.hasOwn(data, 'name')) data.name = `n${random.below(1_000_000)}`;
    for (const related of ['post', 'category']) {
      if (relations.includes(related) && random.chance(0.7)) {
        data[related] = this.#id(related === 'post' ? 'posts' : 'categories');
      }
    }
    const spoilt = random.chance(0.4) ? 0 : 1 + random.below(2);
    for (let i = 0; i < spoilt; i++) {
      const key = random.chance(0.85) ? random.pick([...fields, ...relations]) : hostileText(random, 100);
      data[key] = random.chance(0.3)
        ? { set: [this.#id('tags')], [hostileText(random, 20)]: [] }
        : hostileJson(random, 2);
    }
    return data;
  }

  #multipart(): { readonly type: string; readonly bytes: Buffer } {
    const random = this.#random;
    const boundary = random.chance(0.9) ? 'xFuzzx' : headerText(hostileText(random, 80)).replaceAll(/[\s"]/g, '');
    const parts = Array.from({ length: random.chance(0.7) ? 1 : random.below(4) }, () => this.#part(boundary));
    const text = `${parts.join('')}--${boundary}${random.chance(0.9) ? '--' : ''}\r\n`;
    return { type: `multipart/form-data; boundary="${boundary}"`, bytes: Buffer.from(text) };
  }

  #part(boundary: string): string {
    const random = this.#random;
    const file = random.chance(0.3) ? hostileText(random, 3_500).replaceAll(/[\r\n]/g, '') : 'a.txt';
    const rest = random.chance(0.2) ? `; ${random.pick(['filename*=', 'x=', 'name=', ''])}${runOf(random, 3_500)}` : '';
    const name = random.chance(0.8) ? 'file' : random.pick(['data', 'other', hostileText(random, 100)]);
    const type = random.chance(0.7) ? 'text/plain' : headerText(hostileText(random, 300));
    const content = name === 'data' ? JSON.stringify(hostileJson(random)) : hostileText(random);
    const disposition = `Content-Disposition: form-data; name="${name}"; filename="${file}${random.chance(0.9) ? '"' : ''}${rest}`;
    return `--${boundary}\r\n${disposition}\r\nContent-Type: ${type}\r\n\r\n${content}\r\n`;
  }
}

const isUpload = ({ method, path }: Route): boolean => method === 'POST' && path === '/api/files';

/** Without what the client refuses to send in a header. */
const headerText = (text: string): string => text.replaceAll(/[^\t -~\x80-\xff]/g, '').slice(0, 7_000);

const GOOD: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  posts: { title: 'a title' },
  categories: { name: 'a' },
  tags: { name: 'a' },
  covers: { url: 'https://example.org/x' },
  comments: { text: 'a comment' },
  counters: { name: 'a', n: 1 },
  vault: { secret: 's' },
  forms: { kind: 'open' },
};

const HEADERS: readonly (readonly [string, readonly string[]])[] = [
  ['Prefer', ['count=exact', 'count="exact"', 'count=exact; x=y, count=none']],
  ['If-Match', ['*', '"x"', 'W/"x"', '"a", "b"']],
  ['If-None-Match', ['*', '"x"', 'W/"x", "y"']],
  ['If-Range', ['"x"', 'Wed, 21 Oct 2015 07:28:00 GMT']],
  ['Range', ['bytes=0-', 'bytes=0-1,2-3', 'bytes=-5', 'bytes=5-1', `bytes=${'0-1,'.repeat(500)}0-1`]],
  ['Accept', ['*/*', 'application/json;q=0', 'text/html', 'application/json;q=0.5, */*;q=0.1']],
  ['Accept-Encoding', ['gzip', 'identity;q=0, *;q=0']],
  ['Content-Encoding', ['gzip', 'identity']],
  [
    'Content-Type',
    ['application/json', 'application/json; charset=utf-16', 'multipart/form-data; boundary=xFuzzx', 'text/plain'],
  ],
  ['Idempotency-Key', ['k1', 'k2', 'k3']],
  ['X-Request-Id', ['r1', '<script>']],
  ['X-Forwarded-For', ['127.0.0.1', '1.2.3.4, 5.6.7.8', '::ffff:10.0.0.1']],
  ['Origin', ['https://evil.example', 'null', 'http://127.0.0.1']],
  ['Sec-Fetch-Site', ['cross-site', 'same-origin', 'none']],
  ['Access-Control-Request-Method', ['PATCH']],
  ['Expect', ['the unexpected']],
  ['Cookie', ['svc_session=x', 'svc_oauth=x', 'a=b; c=d']],
  ['Host', ['evil.example', 'a:b:c', '']],
  ['X-HTTP-Method-Override', ['DELETE']],
  ['Upgrade', ['websocket', 'h2c']],
];
