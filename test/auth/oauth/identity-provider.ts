/** A real OpenID provider on loopback (oidc-provider), whose answers a test can spoil on the way; and a browser that keeps cookies and follows redirects. */
import { createPublicKey, generateKeyPairSync, type JsonWebKey, sign } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** As much of oidc-provider, which has no types, as is used here. */
interface OidcProvider {
  callback(): Handler;
  interactionFinished(
    request: IncomingMessage,
    response: ServerResponse,
    result: object,
    options: object,
  ): Promise<void>;
}
interface OidcContext {
  readonly oidc: {
    readonly client: { readonly clientId: string };
    readonly session: { readonly accountId: string };
    readonly provider: {
      readonly Grant: new (of: object) => { addOIDCScope(scope: string): void; save(): Promise<string> };
    };
  };
}
const name: string = 'oidc-provider';
const { default: Provider } = (await import(name)) as {
  readonly default: new (issuer: string, options: object) => OidcProvider;
};

export interface Person {
  readonly sub: string;
  readonly email?: string;
  readonly email_verified?: unknown;
}
type Handler = (request: IncomingMessage, response: ServerResponse) => void;

const KID = 'idp-key';
export const CLIENT_ID = 'the-client';
export const CLIENT_SECRET = 'the-secret-of-the-client';

export class IdentityProvider {
  readonly url: string;
  /** The next user to sign in; undefined: declines. */
  next: Person | undefined;
  /** Path → what answers instead of the provider. */
  readonly spoiled = new Map<string, Handler>();
  /** Every request that reached it: `METHOD /path`. */
  readonly seen: string[] = [];
  readonly #server;
  readonly #people = new Map<string, Person>();
  readonly #key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
  #handler: Handler = (_, response) => response.writeHead(503).end();

  private constructor(server: ReturnType<typeof createServer>) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on('request', (request, response) => {
      const path = new URL(request.url!, this.url).pathname;
      this.seen.push(`${request.method} ${path}`);
      (this.spoiled.get(path) ?? this.#handler)(request, response);
    });
  }

  static async listen(): Promise<IdentityProvider> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    server.unref();
    return new IdentityProvider(server);
  }

  /** `redirectUris`: of the service, once its address is known. */
  open(redirectUris: readonly string[]): void {
    const jwk = { ...this.#key.export({ format: 'jwk' }), kid: KID, alg: 'RS256', use: 'sig' } as JsonWebKey;
    const provider = new Provider(this.url, {
      clients: [{ client_id: CLIENT_ID, client_secret: CLIENT_SECRET, redirect_uris: [...redirectUris] }],
      jwks: { keys: [jwk as never] },
      cookies: { keys: ['cookie key of the test'] },
      claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
      pkce: { required: () => true },
      features: { devInteractions: { enabled: false } },
      interactions: { url: (_: unknown, { uid }: { readonly uid: string }) => `/interaction/${uid}` },
      findAccount: (_: unknown, sub: string) => ({ accountId: sub, claims: () => ({ ...this.#people.get(sub), sub }) }),
      async loadExistingGrant(ctx: OidcContext) {
        const grant = new ctx.oidc.provider.Grant({
          clientId: ctx.oidc.client.clientId,
          accountId: ctx.oidc.session.accountId,
        });
        grant.addOIDCScope('openid email profile');
        await grant.save();
        return grant;
      },
    });
    const callback = provider.callback();
    this.#handler = (request, response) => {
      if (!request.url!.startsWith('/interaction/')) return void callback(request, response);
      if (this.next !== undefined) this.#people.set(this.next.sub, this.next);
      const result = this.next === undefined ? { error: 'access_denied' } : { login: { accountId: this.next.sub } };
      void provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
    };
  }

  /** An identity token with the provider's own key. */
  idToken(claims: Readonly<Record<string, unknown>>, header: Readonly<Record<string, unknown>> = {}): string {
    const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const time = Math.floor(Date.now() / 1000);
    const standard = { iss: this.url, aud: CLIENT_ID, iat: time, exp: time + 300 };
    const text = `${encode({ alg: 'RS256', kid: KID, ...header })}.${encode({ ...standard, ...claims })}`;
    return `${text}.${sign('sha256', Buffer.from(text), this.#key).toString('base64url')}`;
  }
  get publicPem(): string {
    return createPublicKey(this.#key).export({ type: 'spki', format: 'pem' }) as string;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

export const answerJson =
  (status: number, body: unknown): Handler =>
  (_, response) =>
    void response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));

export interface Page {
  readonly status: number;
  readonly url: string;
  readonly headers: Headers;
  readonly text: string;
}

interface JarCookie {
  readonly value: string;
  /** `SameSite=None`: a form that another site posts brings it. */
  readonly isCrossSite: boolean;
}

/** Cookies by origin, as far as these tests need them: name, value, SameSite=None, and removal by age 0. */
export class Browser {
  readonly #cookies = new Map<string, Map<string, JarCookie>>();

  cookie(url: string, name: string): string | undefined {
    return this.#cookies.get(new URL(url).origin)?.get(name)?.value;
  }
  setCookie(url: string, name: string, value: string): void {
    this.#jar(url).set(name, { value, isCrossSite: false });
  }
  /** Keeps the cookies of an answer of `url`. */
  keep(url: string, headers: Headers): void {
    const jar = this.#jar(url);
    for (const line of headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)!;
      if (value === '' || /max-age=0|expires=Thu, 01 Jan 1970/i.test(line)) jar.delete(name!);
      else jar.set(name!, { value: value!, isCrossSite: /; SameSite=None; Secure/.test(line) });
    }
  }
  visit(url: string, headers: Readonly<Record<string, string>> = {}): Promise<Page> {
    return this.#send(url, { headers }, [...this.#jar(url)]);
  }
  /** Posts the form of a page, as its script does at once. */
  submit(page: Page): Promise<Page> {
    const url = /<form method="post" action="([^"]+)"/.exec(page.text)![1]!;
    const fields = [...page.text.matchAll(/ name="([^"]*)" value="([^"]*)"/g)].map(
      ([, name = '', value = '']) =>
        [name, value.replaceAll('&quot;', '"').replaceAll('&amp;', '&')] as [string, string],
    );
    const { origin } = new URL(page.url);
    const isSame = origin === new URL(url).origin;
    const cookies = [...this.#jar(url)].filter(([, { isCrossSite }]) => isSame || isCrossSite);
    const headers = { Origin: origin, 'Sec-Fetch-Site': isSame ? 'same-origin' : 'cross-site' };
    return this.#send(url, { method: 'POST', headers, body: new URLSearchParams(fields) }, cookies);
  }
  /** Follows redirects, and forms that post themselves, until an address that `stop` holds of, which is not visited, or an answer that is none. */
  async follow(url: string, stop: (url: URL) => boolean = () => false): Promise<Page> {
    let page = await this.visit(url);
    for (let hops = 0; ; hops++) {
      if (hops > 15) throw new Error('too many redirects');
      const isForm = page.status === 200 && page.text.startsWith('<form method="post"');
      if (!isForm && (page.status < 300 || page.status >= 400)) return page;
      if (isForm) page = await this.submit(page);
      else {
        const next = new URL(page.headers.get('location')!, page.url);
        if (stop(next)) return { ...page, url: next.href };
        page = await this.visit(next.href);
      }
    }
  }
  async #send(url: string, init: RequestInit, cookies: readonly (readonly [string, JarCookie])[]): Promise<Page> {
    const cookie = cookies.map(([name, { value }]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, {
      ...init,
      redirect: 'manual',
      headers: {
        Accept: 'text/html,*/*;q=0.8',
        ...(cookie === '' ? {} : { Cookie: cookie }),
        ...(init.headers as Record<string, string>),
      },
    });
    this.keep(url, response.headers);
    return { status: response.status, url, headers: response.headers, text: await response.text() };
  }
  #jar(url: string): Map<string, JarCookie> {
    const { origin } = new URL(url);
    const jar = this.#cookies.get(origin) ?? new Map<string, JarCookie>();
    this.#cookies.set(origin, jar);
    return jar;
  }
}
