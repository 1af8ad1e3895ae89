/**
 * The typed client of a bylaw service: `fetch` and nothing else, in browsers and in Node. Its types
 * come from `bylaw types`.
 */
import { Account } from './account.ts';
import type { CollectionsLike, Operation, OperationResult } from './batch.ts';
import { FeedStream } from './changes.ts';
import { type AnyTypes, type CallOptions, Collection, type CollectionTypes } from './collection.ts';
import { type UploadOptions, uploadFile } from './file-upload.ts';
import { type ChallengeAnswer, SecondFactorNeeded, type SignInChallenge } from './second-factor.ts';
import type { Tokens } from './session.ts';
import { type ClientOptions, Transport } from './transport.ts';

export type { Enrolment, FactorState, OwnSession, Passkey, Proof } from './account.ts';
export type { Operation, OperationResult, Ref } from './batch.ts';
export { BylawError, type ErrorDetail, isBylawError, type ProblemDocument } from './bylaw-error.ts';
export type { Change, FeedOptions, FeedQuery, LiveQuery, LiveRecords } from './changes.ts';
export {
  type AnyRecord,
  type AnyTypes,
  type Capability,
  Collection,
  type CollectionTypes,
  etagOf,
  type HistoryEntry,
  type HistoryPage,
  type Page,
  Pages,
  type Paging,
  type Picked,
  type Query,
  type QueryPage,
  type RecordCapabilities,
  type TriedOutcome,
  type TriedWrite,
  type Written,
} from './collection.ts';
export type { Progress, UploadOptions } from './file-upload.ts';
export { type ChallengeAnswer, type FactorMethod, SecondFactorNeeded } from './second-factor.ts';
export type { TokenStorage } from './session.ts';
export type { ClientOptions } from './transport.ts';

export interface Credentials {
  readonly email: string;
  readonly password: string;
}

type SignIn<User> = (Tokens & { readonly user: User }) | SignInChallenge;

export type AnyCollections = Readonly<Record<string, AnyTypes>>;
type RecordOf<C, K extends string> = K extends keyof C
  ? C[K] extends CollectionTypes
    ? C[K]['record']
    : never
  : never;

type BatchResults<C extends CollectionsLike<C>, O extends readonly unknown[]> = {
  readonly [I in keyof O]: OperationResult<C, O[I]>;
};

/** `baseUrl`: such as `https://api.example.com`, without `/api`. */
export function createClient<C extends CollectionsLike<C> = AnyCollections>(
  baseUrl: string,
  options: ClientOptions = {},
): Client<C> {
  return new Client<C>(new Transport(baseUrl, options));
}

/** A provider to sign in with: its name in addresses, and its title for people. */
export interface Provider {
  readonly name: string;
  readonly title: string;
}

/** A sign-in of a native app under way. */
export interface AppLogin {
  readonly url: string;
  readonly verifier: string;
}

const base64url = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');

/** The code of a mail, with the address; or the token of its link. */
export type MailedSecrets = { readonly email: string; readonly code: string } | { readonly token: string };

export class Client<C extends CollectionsLike<C> = AnyCollections> {
  /** The account of the user who is logged in. */
  readonly account: Account;
  readonly #transport: Transport;
  readonly #feeds: FeedStream;

  constructor(transport: Transport) {
    this.#transport = transport;
    this.#feeds = new FeedStream(transport);
    this.account = new Account(transport);
  }

  collection<K extends keyof C & string>(name: K): Collection<C[K]> {
    return new Collection<C[K]>(this.#transport, this.#feeds, name);
  }

  async register(credentials: Credentials): Promise<RecordOf<C, 'users'>> {
    return this.#user('/api/auth/register', credentials);
  }

  /**
   * Starts a session: later calls are made as this user. → the user. Throws SecondFactorNeeded where the user has a
   * second factor; `finishLogin` goes on.
   */
  async login(credentials: Credentials): Promise<RecordOf<C, 'users'>> {
    return this.#signIn('/api/auth/login', credentials);
  }

  /** As `login`, with a code of a mail that `account.requestCode` asked for, or with the token of its link. */
  async loginByMail(secrets: MailedSecrets): Promise<RecordOf<C, 'users'>> {
    return this.#signIn('/api/auth/otp/confirm', secrets);
  }

  /** Finishes a sign-in. `challenge`: of SecondFactorNeeded, or of the fragment after a sign-in at a provider. */
  async finishLogin(answer: ChallengeAnswer): Promise<RecordOf<C, 'users'>> {
    return this.#signIn('/api/auth/challenge', answer);
  }

  /** The providers to sign in with, for `oauthUrl`. */
  async providers(): Promise<readonly Provider[]> {
    const path = '/api/auth/providers';
    return (await this.#transport.json<{ readonly data: readonly Provider[] }>(path, { anonymous: true })).data;
  }

  /** The options of `navigator.credentials.get`, in JSON. */
  passkeyOptions(): Promise<Readonly<Record<string, unknown>>> {
    return this.#transport.json('/api/auth/passkeys/login/options', { method: 'POST', anonymous: true });
  }

  /** Starts a session by a passkey. `response`: the credential's `toJSON()`. → the user. */
  async loginWithPasskey(response: object): Promise<RecordOf<C, 'users'>> {
    return this.#signIn('/api/auth/passkeys/login', { response });
  }

  async #signIn(path: string, body: object): Promise<RecordOf<C, 'users'>> {
    const call = { method: 'POST', body, signsIn: true } as const;
    const answer = await this.#transport.json<SignIn<RecordOf<C, 'users'>>>(path, call);
    if ('challenge' in answer) throw new SecondFactorNeeded(answer);
    const { user, ...tokens } = answer;
    this.#transport.keep(tokens);
    return user;
  }

  /** Starts the session of a guest, where the schema admits guests; a login ends it. */
  async beGuest(): Promise<void> {
    const tokens = await this.#transport.json<Tokens>('/api/auth/guest', { method: 'POST', anonymous: true });
    this.#transport.keep(tokens);
  }

  /**
   * The address that sends a browser to a provider to sign in. `redirectTo`: where it goes afterwards, a path that starts with one `/`, or a
   * URL in a configured origin.
   */
  oauthUrl(provider: string, redirectTo?: string): string {
    const path = `/api/auth/oauth/${encodeURIComponent(provider)}/start`;
    return this.#transport.urlOf(path, { redirect_to: redirectTo });
  }

  /**
   * Begins a sign-in of a native app: opens `url` in the browser, which returns to `redirectTo`, an address under `redirects` of
   * the schema, with a `code` for `finishAppLogin`. `verifier` stays in the app.
   */
  async beginAppLogin(provider: string, redirectTo: string): Promise<AppLogin> {
    const verifier = base64url(crypto.getRandomValues(new Uint8Array(32)));
    const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier));
    const path = `/api/auth/oauth/${encodeURIComponent(provider)}/start`;
    const query = { redirect_to: redirectTo, code_challenge: base64url(new Uint8Array(hash)) };
    return { url: this.#transport.urlOf(path, query), verifier };
  }

  /** Starts a session by the code that the browser brought. → the user. Throws SecondFactorNeeded as `login` does. */
  async finishAppLogin(code: string, verifier: string): Promise<RecordOf<C, 'users'>> {
    return this.#signIn('/api/auth/oauth/exchange', { code, verifier });
  }

  /** Ends the session; here at once, and on the service where it can be reached. */
  async logout(): Promise<void> {
    try {
      await this.#transport.send('/api/auth/logout', { method: 'POST' });
    } finally {
      this.#transport.keep(undefined);
    }
  }

  async me(): Promise<RecordOf<C, 'users'>> {
    return (await this.#transport.json<{ readonly user: RecordOf<C, 'users'> }>('/api/auth/me')).user;
  }

  /**
   * Up to 100 writes in one transaction: all of them, or none. Retried safely, as `create` is. The
   * error of the first that failed has its index as `operation`.
   */
  async batch<const O extends readonly Operation<C>[]>(
    operations: O,
    { signal }: CallOptions = {},
  ): Promise<BatchResults<C, O>> {
    const { data } = await this.#transport.json<{ readonly data: BatchResults<C, O> }>('/api/batch', {
      method: 'POST',
      body: { operations },
      headers: { 'idempotency-key': crypto.randomUUID() },
      repeatable: true,
      signal,
    });
    return data;
  }

  async upload(file: Blob, options: UploadOptions = {}): Promise<RecordOf<C, 'files'>> {
    return uploadFile<RecordOf<C, 'files'> & object>(this.#transport, file, options);
  }

  /** An address of a file's content that needs no header, for `<img src>`; good for minutes. */
  async link(fileId: string): Promise<{ readonly url: string; readonly expires_at: string }> {
    const path = `/api/files/${encodeURIComponent(fileId)}/link`;
    return this.#transport.json(path, { method: 'POST' });
  }

  async #user(path: string, credentials: Credentials): Promise<RecordOf<C, 'users'>> {
    const body = await this.#transport.json<{ readonly user: RecordOf<C, 'users'> }>(path, {
      method: 'POST',
      body: credentials,
      signsIn: true,
    });
    return body.user;
  }
}
