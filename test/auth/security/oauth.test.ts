/** S4 and L11: which account an identity of a provider is joined with. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Mailer } from '../../../src/auth/mail/mailer.ts';
import { profileIdentity } from '../../../src/auth/oauth/oauth-identity.ts';
import type { Client } from '../../support/client.ts';
import { describeOnOne } from '../../support/service.ts';
import { enrol } from '../authenticator.ts';
import {
  answerJson,
  Browser,
  CLIENT_ID,
  CLIENT_SECRET,
  IdentityProvider,
  type Page,
} from '../oauth/identity-provider.ts';
import { login, newEmail, PASSWORD, SCHEMA } from '../people.ts';

// The schema names the issuer, so its port is taken before the service starts.
const provider = await IdentityProvider.listen();
const OAUTH = `${SCHEMA}
oauth:
  idp: { issuer: '${provider.url}', client_id: ${CLIENT_ID}, client_secret: ${CLIENT_SECRET}, scopes: [openid, email] }
`;
afterAll(() => provider.close());

type Document = Readonly<Record<string, unknown>>;
const json = (page: Page) => JSON.parse(page.text);
const outcomeOf = (page: Page): string => (page.status === 200 ? 'in' : `${page.status} ${json(page).code}`);
let serial = 0;

describeOnOne(
  'identities of a provider',
  (service) => {
    const start = `${service.kind}`;
    beforeAll(() => provider.open([`${service.url}/api/auth/oauth/idp/callback`]));
    beforeEach(() => provider.spoiled.clear());

    /** Signs in with the given contents of the provider's two documents. */
    async function signIn(token: Document, userinfo: Document, browser = new Browser()): Promise<Page> {
      const sub = `hostile-${start}-${++serial}`;
      provider.next = { sub };
      const first = await browser.visit(`${service.url}/api/auth/oauth/idp/start`);
      const location = first.headers.get('location')!;
      const nonce = new URL(location).searchParams.get('nonce')!;
      const { url } = await browser.follow(location, ({ href }) => href.startsWith(service.url));
      const idToken = provider.idToken({ sub, nonce, ...token });
      provider.spoiled.set('/token', answerJson(200, { access_token: 'a', token_type: 'Bearer', id_token: idToken }));
      provider.spoiled.set('/me', answerJson(200, { sub, ...userinfo }));
      const page = await browser.visit(url);
      provider.spoiled.clear();
      return page;
    }
    const account = async (roles: readonly string[] = ['member'], email = newEmail('owner')) => {
      const { id } = await service.app.auth.admin.addUser({ email, password: PASSWORD, roles });
      return { id, email };
    };

    test('S4: an identity token does not verify another email of the userinfo', async () => {
      const { email } = await account();
      const page = await signIn({ email: newEmail('mine'), email_verified: true }, { email });
      expect(outcomeOf(page)).toBe('409 account_exists');
    });

    test('S4: a userinfo without an email does not verify the email of the identity token', async () => {
      const { email } = await account();
      expect(outcomeOf(await signIn({ email }, { email_verified: true }))).toBe('409 account_exists');
    });

    test.each([
      ['the identity token', true, false],
      ['the userinfo', false, true],
    ])('S4: an identity takes email and verification from one document: %s', async (_, inToken, inUserinfo) => {
      const { id, email } = await account();
      const both = { email, email_verified: true };
      const page = await signIn(inToken ? both : {}, inUserinfo ? both : {});
      expect(json(page).user.id).toBe(id);
    });

    test('S4: a letter that becomes ASCII in lower case does not make one address another', async () => {
      const name = `kate${Date.now()}@example.org`;
      await account(['member'], name);
      const email = name.replace('k', '\u212a');
      expect(email.toLowerCase()).toBe(name);
      expect(outcomeOf(await signIn({}, { email, email_verified: true }))).toBe('400 oauth_failed');
    });

    test.each(['"a"<x@example.org', 'a,b@example.org', 'a@example.org,b@example.org', 'a@localhost', 'ä@example.org'])(
      'S4: an identity rejects the addresses that the routes reject: %s',
      async (email) => {
        expect(outcomeOf(await signIn({}, { email, email_verified: true }))).toBe('400 oauth_failed');
      },
    );

    test('L11: a provider that asserts the address of an admin does not join the admin', async () => {
      const { email } = await account(['admin']);
      const page = await signIn({}, { email, email_verified: true });
      expect(outcomeOf(page)).toBe('409 account_exists');
      expect(json(page).detail).toContain('an admin has this email');
    });

    test.each<[string, (client: Client) => Promise<unknown>]>([
      ['ended', (client) => client.post('/api/auth/password', { password: PASSWORD, new_password: 'a later phrase' })],
      ['lacks a second factor', enrol],
    ])('L11: an admin does not join from its own session that %s meanwhile', async (_, change) => {
      const { id, email } = await account(['admin']);
      const [{ cookie }, { client }] = [await login(service.anonymous, email), await login(service.anonymous, email)];
      const browser = new Browser();
      browser.setCookie(service.url, 'svc_session', cookie.split('=')[1]!);
      const follow = browser.follow.bind(browser);
      // Behind the start.
      browser.follow = async (...to) => {
        await change(client);
        return follow(...to);
      };
      expect(outcomeOf(await signIn({}, { email, email_verified: true }, browser))).toBe('409 account_exists');
      const events = await service.app.auth.admin.audit({ userId: id, event: 'oauth_linked', limit: 1 });
      expect(events).toEqual([]);
    });

    test('L11: an admin joins from its own session only, not from another user or another site', async () => {
      const admin = await account(['admin']);
      const other = await account();
      const verified = { email: admin.email, email_verified: true };
      const browserOf = async (email: string) => {
        const browser = new Browser();
        const { cookie } = await login(service.anonymous, email);
        browser.setCookie(service.url, 'svc_session', cookie.split('=')[1]!);
        return browser;
      };
      expect(outcomeOf(await signIn({}, verified, await browserOf(other.email)))).toBe('409 account_exists');
      const sent = await browserOf(admin.email);
      const visit = sent.visit.bind(sent);
      sent.visit = (url) => visit(url, { 'Sec-Fetch-Site': 'cross-site' });
      expect(outcomeOf(await signIn({}, verified, sent))).toBe('409 account_exists');
      const page = await signIn({}, verified, await browserOf(admin.email));
      expect(json(page).user.id).toBe(admin.id);
      const events = await service.app.auth.admin.audit({ email: admin.email, limit: 10 });
      expect(events.map(({ event }) => event)).toContain('oauth_linked');
    });
  },
  { schema: OAUTH },
);

describe('S4: the subject of a provider', () => {
  test.each([
    ['a string', { sub: 'abc' }, 'abc'],
    ['a number', { id: 42 }, '42'],
    ['the largest number that has no neighbour', { id: Number.MAX_SAFE_INTEGER }, '9007199254740991'],
  ])('the subject %s passes', (_, profile, subject) => {
    expect(profileIdentity('preset:x', profile).subject).toBe(subject);
  });

  test.each([
    ['a number that its neighbours are rounded to', JSON.parse('{ "id": 9007199254740993 }')],
    ['a fraction', { id: 1.5 }],
    ['nothing', {}],
    ['an empty string', { sub: '' }],
    ['a list', { id: [1] }],
  ])('the subject %s fails', (_, profile) => {
    expect(() => profileIdentity('preset:x', profile)).toThrow('the provider did not say who signed in');
  });
});

test('S4: an address that could be read as two has one recipient', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'bylaw-mail-'));
  const mailer = new Mailer({ dataDir, baseUrl: () => 'http://localhost', warn: () => {} });
  await mailer.send({ to: 'a@example.org,b@example.org', subject: 'x', text: 'y' });
  const [file] = await readdir(join(dataDir, 'mail'));
  const mail = await readFile(join(dataDir, 'mail', file!), 'utf8');
  await rm(dataDir, { recursive: true });
  expect(/^To: (.*)$/m.exec(mail)?.[1]).toBe('<"a@example.org,b"@example.org>');
});
