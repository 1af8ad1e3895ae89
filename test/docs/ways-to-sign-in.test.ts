/** The calls of docs/authentication.md that sign in, each run as the page prints it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { createClient, SecondFactorNeeded } from '../../src/client/client.ts';
import { raw } from '../../src/sql.ts';
import { newEnrolled, unspentCode } from '../auth/authenticator.ts';
import { GUESTS_SCHEMA } from '../auth/keyed.ts';
import { PASSWORD, register } from '../auth/people.ts';
import { SmtpServer } from '../auth/smtp-server.ts';
import { describeOnOne } from '../support/service.ts';
import { until } from '../support/until.ts';

const PAGE = readFileSync(join(import.meta.dirname, '../../docs/authentication.md'), 'utf8');
const blocks = [...PAGE.matchAll(/```js sign-in\n([\s\S]*?)```/g)].map(([, text]) => text!);
const smtp = new SmtpServer();
await smtp.start();
afterAll(() => smtp.close());

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
      const client = createClient(service.url);
      const run = new Run('client', 'email', 'password', 'ask', 'SecondFactorNeeded', text);
      await run(client, email, PASSWORD, ask, SecondFactorNeeded);
      expect((await client.me()).email).toBe(email);
    });
  },
  { schema: `${GUESTS_SCHEMA}mail: { otp: true }\n`, env: { SMTP_URL: smtp.url } },
);
