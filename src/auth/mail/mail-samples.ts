/** Data that templates are tried with, and that previews show. */
import type { Schema } from '../../schema/model/model.ts';
import { type MailData, NO_EVENT, userNames } from './mail-data.ts';
import { SECRET_KINDS } from './mail-words.ts';
import type { MailKind } from './outbox.ts';

const SAMPLE_TOKEN = '2wTbJ2M4Xxnq0T3sZkR9yAqG7uQ1mC5vLhE8dFoPzYk';
const AT = '2030-01-02T03:04:05Z';

export function sampleData(kind: MailKind, schema: Schema): MailData {
  const app = schema.mail.appName ?? 'https://api.example.com';
  const unknown = Object.fromEntries(userNames(schema).map((name) => [name, null]));
  const user = { ...unknown, email: 'ann@example.com' };
  if (!(SECRET_KINDS as readonly string[]).includes(kind)) {
    const event = {
      ...NO_EVENT,
      new_email: 'next@example.com',
      is_done: true,
      change: 'second_factor_enrolled',
      ip: '203.0.113.7',
      device: 'Firefox',
      at: AT,
    };
    return { app, user, link: null, code: null, expires: null, event };
  }
  const code = kind === 'login' ? '271828' : SAMPLE_TOKEN;
  return { app, user, link: `https://app.example.com/${kind}?token=${SAMPLE_TOKEN}`, code, expires: AT, event: null };
}
