// @module-tag long
/** Templates of mails: their language, what they may read, what `bylaw check` rejects, and notices. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { preferredLanguage } from '../../../src/auth/mail/languages.ts';
import { parseSchema } from '../../../src/schema/load.ts';
import { raw } from '../../../src/sql.ts';
import { run } from '../../support/process.ts';
import { describeOnOne } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { login, newPerson, register, SCHEMA } from '../people.ts';
import { SmtpServer } from './smtp-server.ts';

const folder = await mkdtemp(join(tmpdir(), 'bylaw-templates-'));
const smtp = new SmtpServer();
await smtp.start();
afterAll(async () => {
  smtp.close();
  await rm(folder, { recursive: true });
});

const MAIL = `mail: { app_name: 'A & B', languages: [en, de, pt-BR], templates: ${join(folder, 'mail')}, reset_url: 'https://app.example/r?t={token}' }\n`;
const LOCALES = SCHEMA.replace('fields: { nick: string,', 'fields: { nick: string, locale: string,');
await mkdir(join(folder, 'mail'));
await writeFile(
  join(folder, 'mail/reset.de.txt'),
  'Neues Passwort für <%= it.app %>\n\nHallo <%= it.user.nick ?? it.user.email %>,\n<%= it.link %>\n<%= it.expires %>\n',
);
await writeFile(
  join(folder, 'mail/reset.de.html'),
  '<b><%= it.app %></b> <i><%= it.user.nick %></i> <a href="<%= it.link %>">x</a>\n',
);

describeOnOne(
  'templates of mails',
  (service) => {
    const reset = async (email: string, language?: string) => {
      const before = smtp.to(email).length;
      const headers: Record<string, string> = language === undefined ? {} : { 'Accept-Language': language };
      await service.anonymous.post('/api/auth/password/reset/request', { email }, headers);
      await until('a mail', () => smtp.to(email).length > before);
      return smtp.to(email).at(-1)!.source;
    };

    test('the field `locale` decides, then Accept-Language, then the first language', async () => {
      const { email } = await register(service.anonymous);
      expect(await reset(email)).toContain('Subject: Set a new password');
      expect(await reset(email, 'de-CH, en;q=0.5')).toContain('Neues_Passwort');
      expect(await reset(email, 'en, de;q=0.5')).toContain('Subject: Set a new password');
      await service.app.db.run(raw(`UPDATE "users" SET locale = 'de_AT' WHERE email = '${email}'`));
      expect(await reset(email, 'en')).toContain('Neues_Passwort');
      await service.app.db.run(raw(`UPDATE "users" SET locale = 'fr' WHERE email = '${email}'`));
      expect(await reset(email, 'en')).toContain('Subject: Set a new password');
    });

    test('HTML escapes values, text does not, and both parts are sent', async () => {
      const { email } = await register(service.anonymous);
      await service.app.db.run(raw(`UPDATE "users" SET locale = 'de', nick = '<script>&' WHERE email = '${email}'`));
      const source = await reset(email);
      expect(source).toContain('multipart/alternative');
      expect(source).toContain('Hallo <script>&,');
      expect(source).toContain('<b>A &amp; B</b> <i>&lt;script&gt;&amp;</i>');
      expect(source).toMatch(/^https:\/\/app\.example\/r\?t=[\w-]{43}$/m);
    });

    test('the own words of the service have both parts, too', async () => {
      const { email } = await register(service.anonymous);
      const source = await reset(email);
      expect(source).toContain('A & B');
      expect(source).toContain('A &amp; B');
      expect(source).toMatch(/<a href="https:\/\/app\.example\/r\?t=[\w-]{43}">/);
    });

    test('a sign-in from an unknown address and device is mailed, a known one is not', async () => {
      const { email, id } = await newPerson(service.anonymous.with({ 'User-Agent': 'first device' }));
      const settled = () =>
        until('no mail waits', async () => {
          const rows = await service.app.db.rows(raw('SELECT 1 FROM "_auth_outbox"'));
          return rows.length === 0;
        });
      await login(service.anonymous.with({ 'User-Agent': 'second device' }), email);
      await settled();
      expect(smtp.to(email)).toEqual([]);
      await service.app.db.run(raw(`UPDATE "_auth_audit" SET ip = '203.0.113.9' WHERE user_id = '${id}'`));
      await login(service.anonymous.with({ 'User-Agent': 'first device' }), email);
      await settled();
      expect(smtp.to(email)).toEqual([]);
      // Sign-ins by a passkey are sign-ins, too.
      await service.app.db.run(
        raw(`
          UPDATE "_auth_audit"
             SET ip = '203.0.113.9',
                 event = replace(event, 'login', 'passkey_login')
           WHERE user_id = '${id}'`),
      );
      await login(service.anonymous.with({ 'User-Agent': 'third device' }), email);
      await settled();
      const [mail] = smtp.to(email);
      expect(mail!.source).toContain('Subject: A new sign-in to your account');
      expect(mail!.source).toContain('third device');
      expect(mail!.source).toContain('127.0.0.1');
    });
  },
  { schema: LOCALES + MAIL, env: { SMTP_URL: smtp.url } },
);

describeOnOne(
  'a service without notices',
  (service) => {
    test('no sign-in is mailed', async () => {
      const { email, id } = await newPerson(service.anonymous);
      await service.app.db.run(
        raw(`UPDATE "_auth_audit" SET ip = '203.0.113.9', user_agent = 'x' WHERE user_id = '${id}'`),
      );
      await login(service.anonymous, email);
      expect(await service.app.db.rows(raw('SELECT 1 FROM "_auth_outbox"'))).toEqual([]);
      expect(smtp.to(email)).toEqual([]);
    });
  },
  { schema: `${SCHEMA}mail: { notices: false }\n`, env: { SMTP_URL: smtp.url } },
);

test.each<[string | undefined, string | undefined]>([
  ['de', 'de'],
  ['de-CH', 'de'],
  ['PT-br', 'pt-BR'],
  ['pt', undefined],
  ['fr, en;q=0.1, de;q=0.9', 'de'],
  ['de;q=0, en', 'en'],
  ['*', undefined],
  ['', undefined],
  [undefined, undefined],
  [';;;=,q', undefined],
])('the language of %j is %j', (header, language) => {
  expect(preferredLanguage(['en', 'de', 'pt-BR'], header)).toBe(language);
});

describe('commands', () => {
  const project = join(folder, 'project');
  const write = (name: string, text: string) => writeFile(join(project, 'mail', name), text);
  const bylaw = (...args: readonly string[]) => run({ args: [...args, '--schema', 'bylaw.yaml'], cwd: project });
  beforeAll(async () => {
    await mkdir(join(project, 'mail'), { recursive: true });
    await writeFile(join(project, 'bylaw.yaml'), `${SCHEMA}mail: { languages: [en, de], templates: mail }\n`);
  });

  test('check accepts templates that read what there is', async () => {
    await write(
      'verify.en.txt',
      'Hello\n\n<%= it.app %> <%= it.code %> <%= it.user.level %> <% if (it.event) { %>x<% } %>\n',
    );
    const { code, stdout } = await bylaw('check', '--json');
    expect([code, JSON.parse(stdout).filter((issue: { severity: string }) => issue.severity === 'error')]).toEqual([
      0,
      [],
    ]);
  });

  test.each<[string, string, RegExp]>([
    ['reset.en.txt', 'x <%= it.lnik %>\n', /it has no `lnik`; it has app, user, link, code/],
    ['reset.en.txt', 'x <%= it.user.nikc %>\n', /it\.user has no `nikc`/],
    ['reset.en.html', '<% if (true) { %>', /./],
    ['reset.en.txt', '\n\nno subject\n', /expected the subject in the first line/],
    ['reset.fr.txt', 'x\n', /the languages are en, de/],
    ['rest.en.txt', 'x\n', /unknown kind `rest`; the kinds are verify, reset/],
    ['reset.en.txt', 'x <% include("/etc/passwd") %>\n', /./],
  ])('check rejects %s: %j', async (name, text, message) => {
    await write(name, text);
    const { code, stdout } = await bylaw('check');
    await rm(join(project, 'mail', name));
    expect([code, stdout.includes(join('mail', name))]).toEqual([1, true]);
    expect(stdout).toMatch(message);
  });

  test('preview prints a mail with sample data', async () => {
    const { code, stdout } = await bylaw('mail', 'preview', 'verify');
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/^Subject: Hello\n\nhttps:\/\/api\.example\.com 2wTbJ2M4/),
    ]);
    const own = await bylaw('mail', 'preview', 'login', '--language', 'de');
    expect(own.stdout).toMatch(/^Subject: Your code to sign in\n\nSomeone, .*\n\n271828\n/s);
    expect((await bylaw('mail', 'preview', 'nothing')).code).toBe(2);
    expect((await bylaw('mail', 'preview', 'login', '--language', 'fr')).stderr).toContain('expected one of en, de');
  });

  test('a folder that does not exist is an error, and so are bad keys of mail', async () => {
    const issues = (mail: string) =>
      parseSchema(`${SCHEMA}mail: ${mail}\n`)
        .issues.map(({ path }) => path)
        .filter((path) => path.startsWith('mail.'));
    expect(
      issues(
        '{ from: nobody, languages: [en, en, x], reset_url: "https://a.example", login_url: "javascript:x{token}" }',
      ),
    ).toEqual(['mail.from', 'mail.languages[1]', 'mail.languages[2]', 'mail.reset_url', 'mail.login_url']);
    await writeFile(join(project, 'other.yaml'), `${SCHEMA}mail: { templates: nowhere }\n`);
    const { code, stdout } = await run({ args: ['check', '--schema', 'other.yaml'], cwd: project });
    expect([code, stdout]).toEqual([1, expect.stringContaining('the folder of templates does not exist')]);
  });
});
