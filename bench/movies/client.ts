/** Loads films through the public API only, as any client would: register, log in, create, and retry after `Retry-After`. */
import type { Film } from './films.ts';

export interface LoadOptions {
  readonly baseUrl: string;
  readonly films: readonly Film[];
  /** The users, with a login each; `films[i].owner` is an index into them. */
  readonly users: readonly { readonly email: string; readonly password: string }[];
  readonly concurrency?: number;
  readonly onProgress?: (done: number) => void;
}
export interface Loaded {
  /** The identifier of each film, in the order given. */
  readonly ids: readonly string[];
  readonly tokens: readonly string[];
  readonly userIds: readonly string[];
  readonly names: ReadonlyMap<string, ReadonlyMap<string, string>>;
}
interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: the shapes are the API's, read field by field below
  readonly body: any;
}

export async function call(
  url: string,
  init: { method?: string; token?: string; body?: unknown; headers?: Record<string, string> } = {},
): Promise<Answer> {
  for (let attempt = 0; ; attempt++) {
    const response = await fetch(url, {
      method: init.method ?? 'GET',
      headers: {
        ...(init.token === undefined ? {} : { authorization: `Bearer ${init.token}` }),
        ...(init.body === undefined ? {} : { 'content-type': 'application/json' }),
        ...init.headers,
      },
      ...(init.body === undefined ? {} : { body: JSON.stringify(init.body) }),
    });
    const body = await response.text();
    if ((response.status === 503 || response.status === 429) && attempt < 5) {
      await new Promise((resolve) => setTimeout(resolve, 1000 * Number(response.headers.get('retry-after') ?? 1)));
      continue;
    }
    return { status: response.status, body: body === '' ? undefined : JSON.parse(body) };
  }
}

function expectStatus(answer: Answer, expected: number, what: string): Answer {
  if (answer.status === expected) return answer;
  throw new Error(`${what}: expected ${expected}, got ${answer.status} ${JSON.stringify(answer.body)}`);
}

async function signIn(
  baseUrl: string,
  user: { email: string; password: string },
): Promise<{ token: string; id: string }> {
  const registered = await call(`${baseUrl}/api/auth/register`, { method: 'POST', body: user });
  if (registered.status !== 201 && registered.body?.code !== 'email_taken')
    expectStatus(registered, 201, `register ${user.email}`);
  const login = expectStatus(
    await call(`${baseUrl}/api/auth/login`, { method: 'POST', body: user }),
    200,
    `log in ${user.email}`,
  );
  return { token: login.body.access_token, id: login.body.user.id };
}

/** Creates the named record, or finds it where an earlier run made it. */
async function ensureNamed(baseUrl: string, token: string, collection: string, name: string): Promise<string> {
  const made = await call(`${baseUrl}/api/${collection}`, { method: 'POST', token, body: { data: { name } } });
  if (made.status === 201) return made.body.data.id;
  if (made.body?.code !== 'unique_violation') expectStatus(made, 201, `create ${collection} ${JSON.stringify(name)}`);
  const found = expectStatus(
    await call(`${baseUrl}/api/${collection}?name=${encodeURIComponent(name)}`, { token }),
    200,
    `find ${name}`,
  );
  return found.body.data[0].id;
}

async function inParallel<T>(
  items: readonly T[],
  concurrency: number,
  work: (item: T, index: number) => Promise<void>,
) {
  let next = 0;
  const worker = async () => {
    while (next < items.length) {
      const index = next++;
      await work(items[index]!, index);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
}

/** Resolves when every film was acknowledged; rejects at the first refusal. A second run finds what the first one made (Idempotency-Key, unique names). */
export async function loadFilms({ baseUrl, films, users, concurrency = 8, onProgress }: LoadOptions): Promise<Loaded> {
  const signedIn = [];
  for (const user of users) signedIn.push(await signIn(baseUrl, user));
  const tokens = signedIn.map((one) => one.token);

  const names = new Map<string, Map<string, string>>();
  const wanted: [string, Set<string>][] = [
    ['directors', new Set(films.flatMap((film) => film.director ?? []))],
    ['distributors', new Set(films.flatMap((film) => film.distributor ?? []))],
    ['genres', new Set(films.flatMap((film) => film.genres))],
  ];
  for (const [collection, values] of wanted) {
    const ids = new Map<string, string>();
    names.set(collection, ids);
    await inParallel([...values], concurrency, async (name) => {
      ids.set(name, await ensureNamed(baseUrl, tokens[0]!, collection, name));
    });
  }

  const idOf = (collection: string, name: string | null) => (name === null ? null : names.get(collection)!.get(name)!);
  const ids: string[] = [];
  let done = 0;
  await inParallel(films, concurrency, async (film, index) => {
    const data = {
      ...film.fields,
      director: idOf('directors', film.director),
      distributor: idOf('distributors', film.distributor),
      ...(film.genres.length > 0 ? { genres: { set: film.genres.map((name) => idOf('genres', name)) } } : {}),
    };
    const answer = await call(`${baseUrl}/api/films`, {
      method: 'POST',
      token: tokens[film.owner]!,
      body: { data },
      headers: { 'idempotency-key': `movies-${index}` },
    });
    ids[index] = expectStatus(answer, 201, `create film ${index} ${JSON.stringify(film.fields.title)}`).body.data.id;
    onProgress?.(++done);
  });
  return { ids, tokens, userIds: signedIn.map((one) => one.id), names };
}
