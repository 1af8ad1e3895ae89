/** A store for tokens. `localStorage` fits, and shares a session between tabs. */
export interface TokenStorage {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

export interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string;
}

/** A lock that all tabs of the origin share (Web Locks); without Web Locks, the page is alone. */
type Exclusive = <T>(name: string, work: () => Promise<T>) => Promise<T>;

const exclusive: Exclusive = (name, work) => {
  const locks = (globalThis.navigator as Navigator | undefined)?.locks;
  return locks === undefined ? work() : (locks.request(name, work) as ReturnType<typeof work>);
};

/**
 * The tokens of one login. A refresh token is single use, so only one refresh runs at a time:
 * callers of this page share it, and other tabs wait for the lock and then find the successor in
 * the storage.
 */
export class Session {
  readonly #key: string;
  readonly #storage: TokenStorage | undefined;
  #tokens: Tokens | undefined;
  #refreshing: Promise<Tokens | undefined> | undefined;

  constructor(baseUrl: string, storage: TokenStorage | undefined) {
    this.#key = `bylaw:${baseUrl}`;
    this.#storage = storage;
  }

  get tokens(): Tokens | undefined {
    if (this.#storage === undefined) return this.#tokens;
    const kept = this.#storage.getItem(this.#key);
    return kept === null ? undefined : (JSON.parse(kept) as Tokens);
  }

  keep(tokens: Tokens | undefined): void {
    const kept =
      tokens && ({ access_token: tokens.access_token, refresh_token: tokens.refresh_token } satisfies Tokens);
    this.#tokens = kept;
    if (kept === undefined) this.#storage?.removeItem(this.#key);
    else this.#storage?.setItem(this.#key, JSON.stringify(kept));
  }

  /**
   * The next tokens after `spent` was rejected; undefined if the session has ended. `exchange` trades a
   * refresh token for its successors, or returns undefined if the service rejected it. `onEnd` is called once for all callers.
   */
  refresh(
    spent: string,
    exchange: (refreshToken: string) => Promise<Tokens | undefined>,
    onEnd?: () => void,
  ): Promise<Tokens | undefined> {
    this.#refreshing ??= exclusive(this.#key, async () => {
      const current = this.tokens;
      // Another tab was faster, or the user logged out.
      if (current === undefined || current.access_token !== spent) return current;
      const next = await exchange(current.refresh_token);
      // Meanwhile the user has logged out, or another one has logged in, for whom nothing is sent again.
      if (this.tokens?.refresh_token !== current.refresh_token) return undefined;
      this.keep(next);
      if (next === undefined) onEnd?.();
      return next;
    }).finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }
}
