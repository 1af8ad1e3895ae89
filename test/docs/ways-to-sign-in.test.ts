/** The calls of docs/authentication.md that sign in, each run as the page prints it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { createClient, SecondFactorNeeded } from '../../src/client/client.ts';
import { raw } from '../../src/sql.ts';
import { newEnrolled, unspentCode } from '../auth/authenticator.ts';
import { Browser } from '../auth/identity-provider.ts';
import { GUESTS_SCHEMA } from '../auth/keyed.ts';
import { PASSWORD, register } from '../auth/people.ts';
import { CLIENT, ProviderDoubles, SECRET } from '../auth/provider-doubles.ts';
import { SmtpServer } from '../auth/smtp-server.ts';
import { describeOnOne } from '../support/service.ts';
import { until } from '../support/until.ts';

const PAGE = readFileSync(join(import.meta.dirname, '../../docs/authentication.md'), 'utf8');
const blocks = [...PAGE.matchAll(/```js sign-in\n([\s\S]*?)```/g)].map(([, text]) => text!);
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
`;

const Run = Object.getPrototypeOf(async () => undefined).constructor as new (
  ...parts: string[]
) => (...values: unknown[]) => Promise<void>;

test('the page has the ways', () => {
  expect(blocks.length).toBeGreaterThan(3);
});

describeOnOne(
  'ways to sign in',
  (service) => {
    test.each(blocks.map((text) => [text.split('\n')[0]!, text] as const))('%s', async (_, text) => {
      const { db } = service.app;
      const person = text.includes('SecondFactorNeeded') ? await newEnrolled(service.anonymous) : undefined;
      const { email } = person ?? (await register(service.anonymous));
      await db.run(raw(`UPDATE "users" SET email_verified = true WHERE email = '${email}'`));
      const ask = async (question: string): Promise<string> => {
        if (question.endsWith('app')) return unspentCode(db, person!);
        await until('the mail', () => smtp.to(email).length > 0);
        return /^(\d{6})$/m.exec(smtp.to(email).at(-1)!.source)![1]!;
      };
      const openInBrowser = async (url: string): Promise<string> => {
        doubles.next = { sub: email, email, name: 'Ada', verified: true };
        return (await new Browser().follow(url, ({ protocol }) => protocol === 'com.example.app:')).url;
      };
      const client = createClient(service.url);
      const run = new Run('client', 'email', 'password', 'ask', 'openInBrowser', 'SecondFactorNeeded', text);
      await run(client, email, PASSWORD, ask, openInBrowser, SecondFactorNeeded);
      expect((await client.me()).email).toBe(email);
    });
  },
  { schema: `${GUESTS_SCHEMA}mail: { otp: true }\n${PROVIDERS}`, env: { SMTP_URL: smtp.url } },
);
