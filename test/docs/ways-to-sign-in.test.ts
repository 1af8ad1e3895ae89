/** The calls of docs/authentication.md that sign in, or add a way to sign in, each run as the page prints it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { createClient, SecondFactorNeeded } from '../../src/client/client.ts';
import { raw, sql, uuid } from '../../src/sql.ts';
import { newEnrolled, unspentCode } from '../auth/authenticator.ts';
import { SoftwareAuthenticator } from '../auth/factors/software-authenticator.ts';
import { GUESTS_SCHEMA } from '../auth/keyed.ts';
import { SmtpServer } from '../auth/mail/smtp-server.ts';
import { Browser } from '../auth/oauth/identity-provider.ts';
import { CLIENT, ProviderDoubles, SECRET } from '../auth/oauth/provider-doubles.ts';
import { PASSWORD, register } from '../auth/people.ts';
import { describeOnOne } from '../support/service.ts';
import { until } from '../support/until.ts';

const PAGE = readFileSync(join(import.meta.dirname, '../../docs/authentication.md'), 'utf8');
/** `signed-in`: the calls of a user who has signed in. */
const blocks = [...PAGE.matchAll(/```js (sign-in|signed-in)\n([\s\S]*?)```/g)].map(([, kind, text]) => ({
  isSignedIn: kind === 'signed-in',
  text: text!,
}));
const smtp = new SmtpServer();
await smtp.start();
const doubles = await ProviderDoubles.listen();
afterAll(() => {
  smtp.close();
  doubles.close();
});
const PROVIDERS = `redirects: ['com.example.app://']
oauth:
  google: { preset: google, issuer: '${doubles.url}/google', client_id: ${CLIENT}, client_secret: ${SECRET} }
  github: { preset: github, issuer: '${doubles.url}/github', client_id: ${CLIENT}, client_secret: ${SECRET} }
`;

const Run = Object.getPrototypeOf(async () => undefined).constructor as new (
  ...parts: string[]
) => (...values: unknown[]) => Promise<void>;

test('the page has the ways', () => {
  expect(blocks.filter(({ isSignedIn }) => !isSignedIn).length).toBeGreaterThan(3);
  for (const call of ['addPasskey', 'loginWithPasskey', 'linkIdentity'])
    expect(blocks.filter(({ text }) => text.includes(call))).toHaveLength(1);
});

describeOnOne(
  'ways to sign in',
  (service) => {
    test.each(blocks.map((block) => [block.text.split('\n')[0]!, block] as const))('%s', async (_, block) => {
      const { text, isSignedIn } = block;
      const { db } = service.app;
      const person = text.includes('SecondFactorNeeded') ? await newEnrolled(service.anonymous) : undefined;
      const { email, id } = person ?? (await register(service.anonymous));
      await db.run(raw(`UPDATE "users" SET email_verified = true WHERE email = '${email}'`));
      const browser = new Browser();
      const visits: Promise<unknown>[] = [];
      doubles.next = { sub: '7', email, name: 'Ada', verified: true, emails: [] };
      const page = {
        email,
        password: PASSWORD,
        SecondFactorNeeded,
        async ask(question: string): Promise<string> {
          if (question.endsWith('app')) return unspentCode(db, person!);
          await until('the mail', () => smtp.to(email).length > 0);
          return /^(\d{6})$/m.exec(smtp.to(email).at(-1)!.source)![1]!;
        },
        openInBrowser: async (url: string): Promise<string> =>
          (await browser.follow(url, ({ protocol }) => protocol === 'com.example.app:')).url,
        location: {
          assign: (url: string) => visits.push(browser.follow(url, ({ pathname }) => pathname === '/account')),
        },
        // Browsers take no address for the site of a passkey.
        ...new SoftwareAuthenticator(service.url.replace('127.0.0.1', 'localhost')).globals,
      };
      /** Keeps the cookies in the browser, as one does. */
      const fetchInPage: typeof fetch = async (...request) => {
        const answer = await fetch(...request);
        browser.keep(service.url, answer.headers);
        return answer;
      };
      const client = createClient(service.url, { fetch: fetchInPage });
      if (isSignedIn) await client.login({ email, password: PASSWORD });
      await new Run('client', ...Object.keys(page), text)(client, ...Object.values(page));
      expect((await client.me()).email).toBe(email);
      await Promise.all(visits);
      const identities = await db.rows(sql`SELECT issuer FROM "_auth_identities" WHERE user_id = ${uuid(id)}`);
      const used = ['google', 'github'].filter((name) => text.includes(`'${name}'`));
      expect(identities.flat()).toEqual(used.map((name) => `${doubles.url}/${name}`));
      const passkeys = await client.account.passkeys();
      expect(passkeys.map(({ name }) => name)).toEqual(text.includes('addPasskey') ? ['My phone'] : []);
    });
  },
  { schema: `${GUESTS_SCHEMA}mail: { otp: true }\n${PROVIDERS}`, env: { SMTP_URL: smtp.url } },
);
