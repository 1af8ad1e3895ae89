import { errorOf } from './bylaw-error.ts';
import { Session, type TokenStorage, type Tokens } from './session.ts';

export interface ClientOptions {
  /** `bearer` (default) keeps tokens; `cookie` leaves the session to the browser. */
  readonly auth?: 'bearer' | 'cookie';
  /** An API key, which every request sends in place of a session. */
  readonly key?: string;
  /** The store for the tokens of `bearer`. Default: memory, so that a reload logs out. */
  readonly storage?: TokenStorage;
  /** The number of further attempts for a repeatable request. Default 2. */
  readonly retries?: number;
  /** Called once when the service has ended the session. */
  readonly onSessionEnd?: () => void;
  /** Default: the global one. */
  readonly fetch?: typeof fetch;
}

export interface ClientCall {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly query?: Readonly<Record<string, unknown>>;
  /** Sent as JSON, unless it is a FormData. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly signal?: AbortSignal;
  /** A repetition changes nothing: a read, or a write with an idempotency key. Default: true for GET. */
  readonly repeatable?: boolean;
  /** Sent without credentials, and not refreshed. */
  readonly anonymous?: boolean;
  /** Begins a session. Sent with fresh tokens, as far as there are any: it ends the session of a guest. */
  readonly signsIn?: boolean;
  /** The browser keeps the cookie of the answer, also of a client that sends tokens. */
  readonly keepsCookie?: boolean;
}

/** The errors of a request whose session is over. */
const SESSION_CODES: ReadonlySet<string> = new Set(['invalid_token', 'unauthenticated']);
const isGood = ({ ok, status }: Response): boolean => ok || status === 304;
const RETRIED_STATUSES: ReadonlySet<number> = new Set([429, 502, 503, 504]);
const FIRST_PAUSE_MS = 200;
/** If the service asks for a longer pause, its error is reported instead. */
const LONGEST_PAUSE_MS = 10_000;

/**
 * Sends requests: credentials, one refresh after a 401, retries where they are safe, errors as
 * exceptions.
 */
export class Transport {
  readonly baseUrl: string;
  readonly session: Session;
  readonly cookie: boolean;
  readonly #retries: number;
  readonly #fetch: typeof fetch;
  readonly #key: string | undefined;
  readonly #onSessionEnd: (() => void) | undefined;
  /** The browser has the cookie of a session, as far as it is known. */
  #hasCookie = false;

  constructor(baseUrl: string, options: ClientOptions) {
    this.baseUrl = baseUrl.replace(/\/+$/, '');
    this.session = new Session(this.baseUrl, options.storage);
    this.cookie = options.auth === 'cookie';
    this.#retries = options.retries ?? 2;
    // Browsers want their own fetch called on the window.
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
    this.#key = options.key;
    this.#onSessionEnd = options.onSessionEnd;
  }

  /**
   * The response if it is 2xx or 304. Throws BylawError for any other status, TypeError if the network
   * fails.
   */
  async send(path: string, call: ClientCall = {}): Promise<Response> {
    const isTokenSent = !this.cookie && this.#key === undefined && call.anonymous !== true;
    const kept = isTokenSent ? this.session.tokens : undefined;
    const tokens = call.signsIn === true && kept !== undefined ? await this.#refreshed(kept) : kept;
    const response = await this.#tried(path, call, tokens?.access_token ?? this.#key);
    if (isGood(response)) {
      if (this.cookie && call.anonymous !== true && call.signsIn !== true) this.#hasCookie = true;
      return response;
    }
    const error = await errorOf(response);
    if (response.status !== 401 || !SESSION_CODES.has(error.code)) throw error;
    if (this.#hasCookie) this.#endSession();
    const next = tokens && (await this.#refreshed(tokens, () => this.#endSession()));
    if (next === undefined) throw error;
    const again = await this.#tried(path, call, next.access_token);
    if (!isGood(again)) throw await errorOf(again);
    return again;
  }

  #refreshed(spent: Tokens, onEnd?: () => void): Promise<Tokens | undefined> {
    return this.session.refresh(spent.access_token, (token) => this.#exchange(token), onEnd);
  }

  /** Undefined: the session is over. */
  keep(tokens: Tokens | undefined): void {
    this.#hasCookie = this.cookie && tokens !== undefined;
    if (!this.cookie) this.session.keep(tokens);
  }

  #endSession(): void {
    this.#hasCookie = false;
    this.#onSessionEnd?.();
  }

  async json<T>(path: string, call?: ClientCall): Promise<T> {
    return (await (await this.send(path, call)).json()) as T;
  }

  urlOf(path: string, query: Readonly<Record<string, unknown>> = {}): string {
    const search = new URLSearchParams();
    for (const [key, value] of Object.entries(query)) {
      if (value === undefined) continue;
      // The values of a param may hold commas.
      const values = Array.isArray(value) && !key.startsWith('param.') ? [value.join(',')] : [value].flat();
      for (const each of values) search.append(key, String(each));
    }
    const text = search.toString();
    return `${this.baseUrl}${path}${text === '' ? '' : `?${text}`}`;
  }

  /**
   * A token that was spent within the last 10 s gives another successor, so that a refresh whose
   * response was lost can be repeated.
   */
  async #exchange(refreshToken: string): Promise<Tokens | undefined> {
    const call: ClientCall = {
      method: 'POST',
      body: { refresh_token: refreshToken },
      repeatable: true,
      anonymous: true,
    };
    const response = await this.#tried('/api/auth/token/refresh', call, undefined);
    if (response.ok) return (await response.json()) as Tokens;
    if (response.status === 401) return undefined;
    throw await errorOf(response);
  }

  async #tried(path: string, call: ClientCall, accessToken: string | undefined): Promise<Response> {
    const tries = (call.repeatable ?? (call.method ?? 'GET') === 'GET') ? this.#retries : 0;
    for (let attempt = 0; ; attempt++) {
      const last = attempt >= tries;
      try {
        const response = await this.#fetch(this.urlOf(path, call.query), this.#init(call, accessToken));
        const pause = pauseOf(response, attempt);
        if (last || !RETRIED_STATUSES.has(response.status) || pause > LONGEST_PAUSE_MS) return response;
        await response.body?.cancel();
        await sleep(pause, call.signal);
      } catch (error) {
        if (last || call.signal?.aborted === true) throw error;
        await sleep(FIRST_PAUSE_MS * 2 ** attempt, call.signal);
      }
    }
  }

  #init(call: ClientCall, accessToken: string | undefined): RequestInit {
    const { method = 'GET', body, headers = {}, signal, keepsCookie = this.cookie } = call;
    const sent = new Headers({ accept: 'application/json' });
    for (const [name, value] of Object.entries(headers)) if (value !== undefined) sent.set(name, value);
    if (accessToken !== undefined) sent.set('authorization', `Bearer ${accessToken}`);
    const isForm = body instanceof FormData;
    if (body !== undefined && !isForm) sent.set('content-type', 'application/json');
    return {
      method,
      headers: sent,
      body: body === undefined ? undefined : isForm ? body : JSON.stringify(body),
      credentials: keepsCookie ? 'include' : 'omit',
      signal,
    };
  }
}

function pauseOf(response: Response, attempt: number): number {
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
  return Number.isFinite(seconds) ? seconds * 1000 : FIRST_PAUSE_MS * 2 ** attempt;
}

function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', aborted, { once: true });
    function done(): void {
      signal?.removeEventListener('abort', aborted);
      resolve();
    }
    function aborted(): void {
      clearTimeout(timer);
      reject(signal?.reason);
    }
  });
}
