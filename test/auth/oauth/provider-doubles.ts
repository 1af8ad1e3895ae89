/**
 * Six providers on loopback, each with the habits of the real one: how a client proves itself, where the address is,
 * what says that it is proved, and how the answer comes back.
 */
import { createHash, createPublicKey, generateKeyPairSync, type JsonWebKey, sign, verify } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Account {
  readonly sub: string;
  readonly email?: string;
  readonly verified?: unknown;
  readonly name?: string;
  /** Microsoft: the tenant, and what it says of the address. */
  readonly tid?: string;
  readonly edov?: unknown;
  /** GitHub: the addresses beside the public one. */
  readonly emails?: readonly unknown[];
}

type Name = 'google' | 'microsoft' | 'apple' | 'gitlab' | 'github' | 'discord';
type Claims = Readonly<Record<string, unknown>>;
interface Granted {
  readonly of: Name;
  readonly account: Account;
  readonly params: URLSearchParams;
}

export const CLIENT = 'the-client';
export const SECRET = 'the-secret-of-the-client';
export const TEAM = 'TEAM123456';
export const KEY_ID = 'KEY1234567';
const KID = 'the-key';
const PATHS: Readonly<Record<Name, { readonly authorize: string; readonly token: string }>> = {
  google: { authorize: '/o/oauth2/v2/auth', token: '/token' },
  microsoft: { authorize: '/oauth2/v2.0/authorize', token: '/oauth2/v2.0/token' },
  apple: { authorize: '/auth/authorize', token: '/auth/token' },
  gitlab: { authorize: '/oauth/authorize', token: '/oauth/token' },
  github: { authorize: '/login/oauth/authorize', token: '/login/oauth/access_token' },
  discord: { authorize: '/oauth2/authorize', token: '/api/oauth2/token' },
};
const SCOPES: Readonly<Record<Name, string>> = {
  google: 'openid email profile',
  microsoft: 'openid email profile',
  apple: 'openid email name',
  gitlab: 'openid email profile',
  github: 'read:user user:email',
  discord: 'identify email',
};

export class ProviderDoubles {
  readonly url: string;
  /** The next account to sign in; undefined: a person declines. */
  next: Account | undefined;
  /** Changes the claims of an identity token. */
  spoil: (claims: Claims) => Claims = (claims) => claims;
  /** Overrides the answer of a path. */
  readonly spoiled = new Map<string, (response: ServerResponse) => void>();
  /** Identity tokens name their key. */
  namesKeys = true;
  /** The tenant that the signing key of Microsoft belongs to; undefined: all. */
  keyTenant: string | undefined;
  readonly seen: string[] = [];
  readonly applePem: string;
  readonly #appleKey = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  readonly #key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
  readonly #server;
  readonly #codes = new Map<string, Granted>();
  readonly #tokens = new Map<string, Granted>();
  /** The accounts that have signed in at Apple before. */
  readonly #known = new Set<string>();
  #serial = 0;

  private constructor(server: ReturnType<typeof createServer>) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    this.applePem = this.#appleKey.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
    server.on('request', (request, response) => void this.#answer(request, response));
  }

  static async listen(): Promise<ProviderDoubles> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    server.unref();
    return new ProviderDoubles(server);
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  issuer(of: Name, tid?: string): string {
    return of === 'microsoft' ? `${this.url}/microsoft/${tid ?? '{tenantid}'}/v2.0` : `${this.url}/${of}`;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url!, this.url);
    this.seen.push(`${request.method} ${url.pathname}`);
    const spoiled = this.spoiled.get(url.pathname);
    if (spoiled !== undefined) return spoiled(response);
    const of = url.pathname.split('/')[1] as Name;
    const path = url.pathname.slice(of.length + 1);
    if (path.endsWith('/.well-known/openid-configuration')) return json(response, 200, this.#discovery(of));
    if (path === '/jwks') return json(response, 200, { keys: [this.#jwk()] });
    if (path === PATHS[of].authorize) return this.#authorize(of, url.searchParams, response);
    if (path === PATHS[of].token) {
      let body = '';
      for await (const piece of request) body += piece;
      return this.#exchange(of, new URLSearchParams(body), response);
    }
    return this.#documents(of, path, request, response);
  }

  #discovery(of: Name): Claims {
    const base = `${this.url}/${of}`;
    return {
      issuer: this.issuer(of),
      authorization_endpoint: base + PATHS[of].authorize,
      token_endpoint: base + PATHS[of].token,
      jwks_uri: `${base}/jwks`,
      // Apple has none.
      ...(of === 'apple' ? {} : { userinfo_endpoint: `${base}/userinfo` }),
    };
  }

  #jwk(): JsonWebKey {
    const jwk = createPublicKey(this.#key).export({ format: 'jwk' });
    const issuer = this.issuer('microsoft', this.keyTenant);
    return { ...jwk, kid: KID, alg: 'RS256', use: 'sig', issuer };
  }

  async #authorize(of: Name, params: URLSearchParams, response: ServerResponse): Promise<void> {
    const isPosted = of === 'apple';
    const wanted = {
      client_id: CLIENT,
      response_type: 'code',
      scope: SCOPES[of],
      code_challenge_method: 'S256',
      ...(isPosted ? { response_mode: 'form_post' } : {}),
    };
    const wrong = Object.entries(wanted).find(([name, value]) => params.get(name) !== value);
    if (wrong !== undefined) return json(response, 400, { error: 'invalid_request', wrong });
    const account = this.next;
    const code = `code-${++this.#serial}`;
    const answer = new URLSearchParams({ state: params.get('state')! });
    if (account === undefined) answer.set('error', isPosted ? 'user_cancelled_authorize' : 'access_denied');
    else {
      this.#codes.set(code, { of, account, params });
      answer.set('code', code);
      if (isPosted && !this.#known.has(account.sub)) {
        const [firstName, lastName] = (account.name ?? '').split(' ');
        answer.set('user', JSON.stringify({ name: { firstName, lastName }, email: 'forged@example.org' }));
        this.#known.add(account.sub);
      }
    }
    const target = params.get('redirect_uri')!;
    if (!isPosted) {
      response.writeHead(302, { Location: `${target}?${answer}` }).end();
      return;
    }
    const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('"', '&quot;');
    const fields = [...answer].map(([name, value]) => `<input type="hidden" name="${name}" value="${escaped(value)}">`);
    const form = `<form method="post" action="${target}">${fields.join('')}</form>`;
    response.writeHead(200, { 'Content-Type': 'text/html' }).end(form);
  }

  async #exchange(of: Name, form: URLSearchParams, response: ServerResponse): Promise<void> {
    const granted = this.#codes.get(form.get('code') ?? '');
    this.#codes.delete(form.get('code') ?? '');
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    const isClient =
      of === 'apple' ? this.#isAppleSecret(form.get('client_secret')) : form.get('client_secret') === SECRET;
    const isGood =
      granted?.of === of &&
      form.get('client_id') === CLIENT &&
      form.get('redirect_uri') === granted.params.get('redirect_uri') &&
      challenge === granted.params.get('code_challenge');
    // GitHub reports its errors with 200, and both as a form.
    if (of === 'github') {
      const error = isClient ? 'bad_verification_code' : 'incorrect_client_credentials';
      if (!isGood || !isClient) return form200(response, { error, error_description: 'no' });
    }
    if (!isClient) return json(response, 401, { error: 'invalid_client' });
    if (!isGood) return json(response, 400, { error: 'invalid_grant' });
    const token = `token-${++this.#serial}`;
    this.#tokens.set(token, granted);
    const tokens = { access_token: token, token_type: 'bearer' };
    if (of === 'github') return form200(response, { ...tokens, scope: 'read:user,user:email' });
    if (of === 'discord') return json(response, 200, tokens);
    json(response, 200, { ...tokens, id_token: this.idToken(granted) });
  }

  #isAppleSecret(secret: string | null): boolean {
    const [header = '', payload = '', signature = ''] = secret?.split('.') ?? [];
    const read = (part: string): Claims => JSON.parse(Buffer.from(part, 'base64url').toString('utf8') || '{}');
    const isSigned = verify(
      'sha256',
      Buffer.from(`${header}.${payload}`),
      { key: this.#appleKey.publicKey, dsaEncoding: 'ieee-p1363' },
      Buffer.from(signature, 'base64url'),
    );
    const { alg, kid } = read(header);
    const { iss, sub, aud, iat, exp } = read(payload);
    const now = Date.now() / 1000;
    return (
      isSigned &&
      JSON.stringify([alg, kid, iss, sub, aud]) ===
        JSON.stringify(['ES256', KEY_ID, TEAM, CLIENT, this.issuer('apple')]) &&
      Number(iat) <= now + 5 &&
      Number(exp) > now &&
      Number(exp) - Number(iat) <= 15_777_000
    );
  }

  idToken({ of, account, params }: Granted): string {
    const { sub, email, verified, name, tid, edov } = account;
    const time = Math.floor(Date.now() / 1000);
    const standard = {
      iss: this.issuer(of, tid),
      aud: CLIENT,
      sub,
      iat: time,
      exp: time + 300,
      nonce: params.get('nonce'),
    };
    const own = {
      google: { email, email_verified: verified, name },
      microsoft: { tid, email, email_verified: true, name, ...(edov === undefined ? {} : { xms_edov: edov }) },
      apple: { email, email_verified: verified },
      gitlab: {},
      github: {},
      discord: {},
    }[of];
    const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const text = `${encode({ alg: 'RS256', ...(this.namesKeys && { kid: KID }) })}.${encode(this.spoil({ ...standard, ...own }))}`;
    return `${text}.${sign('sha256', Buffer.from(text), this.#key).toString('base64url')}`;
  }

  async #documents(of: Name, path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { authorization = '', 'user-agent': agent } = request.headers;
    const granted = this.#tokens.get(authorization.replace('Bearer ', ''));
    if (granted?.of !== of) return json(response, 401, { message: 'Bad credentials' });
    // GitHub and Discord refuse clients without a name.
    if (agent === undefined) return json(response, 403, { message: 'no user agent' });
    const { sub, email, verified, name, emails } = granted.account;
    const documents: Readonly<Record<string, unknown>> = {
      'gitlab/userinfo': { sub, email, email_verified: verified, name },
      'github/api/v3/user': { id: Number(sub), login: 'octo', name, email: email ?? null },
      'github/api/v3/user/emails': emails,
      'discord/api/users/@me': { id: sub, username: 'disc', email, verified },
    };
    const document = documents[of + path];
    json(response, document === undefined ? 404 : 200, document ?? { message: 'Not Found' });
  }
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
}

function form200(response: ServerResponse, body: Readonly<Record<string, string>>): void {
  const type = 'application/x-www-form-urlencoded; charset=utf-8';
  response.writeHead(200, { 'Content-Type': type }).end(new URLSearchParams(body).toString());
}
