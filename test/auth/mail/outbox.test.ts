// @module-tag long
/** The outbox: no request for a mail is lost or sent twice by two senders, and no secret lies in it. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Auth } from '../../../src/auth/auth.ts';
import { raw } from '../../../src/sql.ts';
import type { Client } from '../../support/client.ts';
import { cheapPasswords, describeOnBoth } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { newEmail, PASSWORD, register, SCHEMA } from '../people.ts';
import { SmtpServer, tokenIn } from './smtp-server.ts';

const smtp = new SmtpServer();
await smtp.start();
afterAll(() => smtp.close());

describeOnBoth(
  'the outbox',
  (service) => {
    const ask = (email: string) => service.anonymous.post('/api/auth/password/reset/request', { email });
    const db = () => service.app.db;
    const rows = async (columns: string) => db().rows(raw(`SELECT ${columns} FROM "_auth_outbox" ORDER BY id`));
    const isEmpty = async () => (await rows('1')).length === 0;
    const metric = async (client: Client, pattern: RegExp) => pattern.exec((await client.get('/metrics')).text)?.[1];
    /** Another node of the same database. */
    const node = () => {
      const { schema } = service.app;
      const config = { baseUrl: service.url, smtpUrl: smtp.url };
      return Auth.open({ db: db(), schema, config, passwords: cheapPasswords(), warn: () => undefined });
    };
    beforeAll(() => {
      smtp.isBusy = false;
    });

    test('a request for a known and for an unknown address leave the same row, without a secret', async () => {
      smtp.isBusy = true;
      const { email } = await register(service.anonymous);
      const stranger = newEmail('nobody');
      const answers = [await ask(email), await ask(stranger)];
      expect(answers.map(({ status, text }) => [status, text])).toEqual(Array(2).fill([202, '']));
      await until('the unknown address is skipped, and the other waits', async () => {
        const waiting = await rows('address, attempts, error');
        return waiting.length === 1 && waiting[0]![2] !== null;
      });
      const [row] = await rows('kind, address, attempts, error, due_at > now(), detail');
      expect(row!.slice(0, 5)).toEqual(['reset', email, '1', 'EENVELOPE 450', 't']);
      expect(JSON.parse(row![5]!)).toEqual({
        client: { ip: '127.0.0.1', userAgent: expect.any(String), requestId: expect.any(String) },
      });
      smtp.isBusy = false;
      expect(await service.app.auth.outbox.retry()).toBe(1);
      await until('the mail is sent', isEmpty);
      const [mail] = smtp.to(email);
      const { status } = await service.anonymous.post('/api/auth/password/reset/confirm', {
        token: tokenIn(mail!),
        password: `${PASSWORD} 2`,
      });
      expect([status, smtp.to(stranger)]).toEqual([204, []]);
      const events = await service.app.auth.admin.audit({ email, event: 'password_reset_requested', limit: 10 });
      expect(events).toHaveLength(1);
    });

    test('a mail is tried after 10 s, 1 min, 10 min and then each hour, for a day', async () => {
      const { email } = await register(service.anonymous);
      const { outbox } = service.app.auth;
      smtp.isBusy = true;
      await ask(email);
      const pauses: number[] = [];
      for (let attempt = 1; attempt <= 6; attempt++) {
        await until('it failed', async () => {
          const [row] = await rows('attempts, error');
          return row?.[0] === String(attempt) && row[1] !== null;
        });
        const [row] = await rows('extract(epoch FROM due_at - now())');
        pauses.push(Number(row![0]));
        await outbox.retry();
      }
      const expected = [10, 60, 600, 3_600, 3_600, 3_600];
      for (const [i, pause] of pauses.entries()) {
        expect(pause).toBeLessThanOrEqual(expected[i]!);
        expect(pause).toBeGreaterThan(expected[i]! - 8);
      }
      await until('it failed', async () => (await rows('error'))[0]?.[0] !== null);
      await db().run(raw(`UPDATE "_auth_outbox" SET created_at = created_at - interval '24 hours'`));
      await outbox.retry();
      await until('it is dropped', isEmpty);
      smtp.isBusy = false;
      expect(smtp.to(email)).toEqual([]);
    });

    test('ten mails are sent at once, and three nodes send each mail once', async () => {
      const people = await Promise.all(Array.from({ length: 30 }, () => register(service.anonymous)));
      const held = Promise.withResolvers<void>();
      smtp.hold = held.promise;
      smtp.mostOpen = 0;
      await Promise.all(people.map(({ email }) => ask(email)));
      await until('ten are being sent', () => smtp.mostOpen >= 10);
      expect((await rows('1')).length).toBe(30);
      const nodes = [await node(), await node()];
      for (const each of nodes) each.startSending();
      await until('the others send, too', () => smtp.mostOpen >= 30);
      expect(smtp.mostOpen).toBe(30);
      held.resolve();
      await until('all are sent', isEmpty);
      for (const each of nodes) await each.close();
      expect(people.map(({ email }) => smtp.to(email).length)).toEqual(Array(30).fill(1));
    });

    test('a mail whose sender was killed is sent by another', async () => {
      const { email } = await register(service.anonymous);
      const { outbox } = service.app.auth;
      // As a process leaves it that took the request and ended.
      await db().run(
        raw(`INSERT INTO "_auth_outbox" (id, kind, address, detail, created_at, due_at, attempts)
             VALUES (gen_random_uuid(), 'reset', '${email}', '{}', now(), now() + interval '300 seconds', 1)`),
      );
      expect(await outbox.retry()).toBe(0);
      expect(smtp.to(email)).toEqual([]);
      await db().run(raw(`UPDATE "_auth_outbox" SET due_at = now()`));
      const next = await node();
      next.startSending();
      await until('it is sent', () => smtp.to(email).length > 0);
      await next.close();
    });

    test('metrics count mails by kind and result, and waiting mails', async () => {
      const { email } = await register(service.anonymous);
      const sent = async () =>
        Number(await metric(service.anonymous, /^bylaw_mail_total\{kind="reset",result="sent"\} (\d+)$/m));
      const before = await sent();
      await ask(email);
      await until('it is sent', isEmpty);
      await until('it is counted', async () => (await sent()) === before + 1);
      expect(await metric(service.anonymous, /^bylaw_mail_queue (\d+)$/m)).toBe('0');
    });
  },
  { schema: SCHEMA, env: { SMTP_URL: smtp.url } },
);
