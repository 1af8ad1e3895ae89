// @module-tag long
/** The small pages of docs/recipes: schemas without warnings, their policy tests, and what needs HTTP or another program. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseArguments } from '../../../src/cli/support/parse-arguments.ts';
import { command, testPolicies } from '../../../src/cli/test.ts';
import { parseSchema } from '../../../src/schema/load.ts';
import { raw } from '../../../src/sql.ts';
import { SmtpServer } from '../../auth/mail/smtp-server.ts';
import { openEmbeddedDatabase } from '../../support/embedded/embedded.ts';
import { describeOnOne, type TestService } from '../../support/service.ts';
import { until } from '../../support/until.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const blockOf = (page: string, language: string): string => {
  const text = readFileSync(join(ROOT, `docs/recipes/${page}.md`), 'utf8');
  return new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'm').exec(text)![1]!;
};
const schemaOf = (page: string): string => blockOf(page, 'yaml bylaw');
const SECRET = `whsec_${Buffer.alloc(32, 5).toString('base64')}`;
const TESTED = ['tenants', 'invitations', 'bookings', 'references'];
const PLAYED = ['one-time-tokens', 'soft-deletion', 'careers-page'];

test.each([...TESTED, ...PLAYED])('bylaw check reports nothing for the schema of %s', (page) => {
  expect(parseSchema(schemaOf(page), 'bylaw.yaml', { SUBMISSIONS_HOOK_SECRET: SECRET }).issues).toEqual([]);
});

describe('policy tests', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'bylaw-recipes-'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('the tests of each page pass', async () => {
    const db = await openEmbeddedDatabase();
    const outcomes: Record<string, unknown> = {};
    for (const page of TESTED) {
      writeFileSync(join(folder, 'bylaw.yaml'), schemaOf(page));
      writeFileSync(join(folder, 'bylaw.policy.yaml'), blockOf(page, 'yaml tests'));
      let out = '';
      const kept = { write: (text: string) => (out += text) };
      const io = { stdout: kept, stderr: kept, stdin: process.stdin, env: {}, cwd: folder };
      const code = await testPolicies(parseArguments([], command).args, io, db);
      outcomes[page] = code === 0 ? 0 : out;
    }
    await db.close();
    expect(outcomes).toEqual(Object.fromEntries(TESTED.map((page) => [page, 0])));
  });
});

const inDays = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString();

describeOnOne(
  'one-time tokens',
  (service: TestService) => {
    test('a caller with the code redeems a voucher once, also in a race, and no caller finds a code', async () => {
      const [seller, ann, bob] = await Promise.all([service.user('seller'), service.user(), service.user()]);
      const make = async (code: string, expires_at: string): Promise<string> => {
        const { body, status, text } = await seller.client.post('/api/vouchers', {
          data: { code, amount: 5, expires_at },
        });
        expect([status, text]).toEqual([201, text]);
        return body.data.id;
      };
      const code = 'K7Q2-M9XD-4WTP-RB8H-ZC3N';
      const voucher = await make(code, inDays(1));
      const late = await make('L7Q2-M9XD-4WTP-RB8H-ZC3N', inDays(-1));
      const seen = await ann.client.get(`/api/vouchers?code=${code}`);
      expect(seen.body.data.map(({ id }: { id: string }) => id)).toEqual([voucher]);
      for (const hidden of [`/api/vouchers/${voucher}`, `/api/vouchers/${late}?code=L7Q2-M9XD-4WTP-RB8H-ZC3N`])
        expect([403, 404]).toContain((await ann.client.get(hidden)).status);
      expect((await ann.client.post('/api/redemptions', { data: { voucher } })).status).not.toBe(201);
      const raced = await Promise.all(
        [ann, bob].map(({ client }) => client.post(`/api/redemptions?code=${code}`, { data: { voucher } })),
      );
      expect(raced.map(({ status }) => status).sort()).toEqual([201, 409]);
    });
  },
  { schema: schemaOf('one-time-tokens') },
);

describeOnOne(
  'soft deletion',
  (service: TestService) => {
    test('the owner finds a deleted document and restores it; an archivist does at any time', async () => {
      const [ann, bob, archivist] = await Promise.all([service.user(), service.user(), service.user('archivist')]);
      const create = (slug: string) => ann.client.post('/api/documents', { data: { title: 'Plan', slug } });
      const { id } = (await create('plan')).body.data;
      expect((await ann.client.delete(`/api/documents/${id}`)).status).toBe(204);
      const bin = async ({ client }: typeof ann) =>
        (await client.post('/api/documents/query', { deleted: true, sort: ['-deleted_at'] })).body.data.length;
      expect([await bin(ann), await bin(bob), await bin(archivist)]).toEqual([1, 0, 1]);
      const other = (await create('PLAN')).body.data;
      const restore = ({ client }: typeof ann) => client.post(`/api/documents/${id}/restore`);
      expect([(await restore(bob)).status, (await restore(ann)).status]).toEqual([404, 409]);
      await ann.client.patch(`/api/documents/${other.id}`, { data: { slug: 'plan-2' } });
      expect((await restore(archivist)).status).toBe(200);
      const history = (await ann.client.get(`/api/documents/${id}/history`)).body.data;
      expect(history.map(({ action, by }: { action: string; by: string }) => [action, by])).toEqual([
        ['create', archivist.id],
        ['delete', ann.id],
        ['create', ann.id],
      ]);
    });
  },
  { schema: schemaOf('soft-deletion') },
);

const port = await new Promise<number>((done) => {
  const server = createServer().listen(0, '127.0.0.1', () => {
    const { port: free } = server.address() as { port: number };
    server.close(() => done(free));
  });
});

describeOnOne(
  'a careers page, its worker and its receiver',
  (service: TestService) => {
    let folder: string;
    let job: string;
    let secret: string;
    const mails = new SmtpServer();
    const children: ReturnType<typeof spawn>[] = [];
    const apply = (name: string, client = service.anonymous.with({ Authorization: `Bearer ${secret}` })) =>
      client.post('/api/submissions', { data: { job, name, email: `${name}@example.org`, letter: 'Hello' } });
    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), 'bylaw-programs-'));
      await mails.start();
      const [recruiter, admin] = await Promise.all([service.user('recruiter'), service.user('admin')]);
      const made = await recruiter.client.post('/api/jobs', { data: { title: 'Smith', status: 'open', salary: 5 } });
      job = made.body.data.id;
      // The request of the page.
      const request = JSON.parse(/-d '(.*)'/.exec(blockOf('careers-page', 'sh'))![1]!);
      const key = await admin.client.post('/api/auth/keys', { ...request, origins: [service.url] });
      expect([key.status, key.text]).toEqual([201, key.text]);
      secret = key.body.secret;
    });
    afterAll(() => {
      for (const child of children) child.kill();
      mails.close();
      rmSync(folder, { recursive: true, force: true });
    });

    const start = (page: string, env: Readonly<Record<string, string>>): void => {
      const modules = {
        'bylaw/events': join(ROOT, 'src/events/events.ts'),
        'bylaw/client': join(ROOT, 'src/client/client.ts'),
        nodemailer: createRequire(import.meta.url).resolve('nodemailer'),
      };
      const text = Object.entries(modules).reduce(
        (source, [name, file]) => source.replace(`'${name}'`, `'${pathToFileURL(file)}'`),
        blockOf(page, 'js'),
      );
      writeFileSync(join(folder, `${page}.mjs`), text);
      const flags = ['--disable-warning=ExperimentalWarning'];
      const options = { cwd: folder, env: { ...process.env, ...env } };
      const child = spawn(process.execPath, [...flags, `${page}.mjs`], {
        ...options,
        stdio: ['ignore', 'ignore', 'inherit'],
      });
      children.push(child);
    };

    test('a visitor lists the open jobs without their salary, applies, and reads nothing back', async () => {
      const visitor = service.anonymous.with({ Authorization: `Bearer ${secret}`, Origin: service.url });
      const { data } = (await visitor.get('/api/jobs?status=open')).body;
      expect(data.map((each: object) => ['title' in each, 'salary' in each])).toEqual([[true, false]]);
      const sent = await apply('tess', visitor);
      expect([sent.status, Object.keys(sent.body.data)]).toEqual([201, ['id']]);
      expect((await visitor.get(`/api/submissions/${sent.body.data.id}`)).status).toBe(403);
    });

    test('the worker thanks for a letter of before its start, and for the next one; the receiver keeps a copy', async () => {
      const limit = { submissions: ['list', 'read', 'update'] as const };
      const key = await service.app.auth.apiKeys.create({ name: 'mailer', roles: ['mailer'], limit });
      start('webhook-receiver', { SUBMISSIONS_HOOK_SECRET: SECRET, PORT: String(port) });
      const env = { BYLAW_URL: service.url, BYLAW_KEY: key.secret, SMTP_URL: mails.url, MAIL_FROM: 'jobs@example.org' };
      start('worker', env);
      await until('the first letter is answered', async () => mails.to('tess@example.org').length > 0);
      await until('the webhook has begun', async () => {
        const rows = await service.app.db.rows(raw('SELECT 1 FROM bylaw_webhooks WHERE position IS NOT NULL'));
        return rows.length > 0;
      });
      const visitor = service.anonymous.with({ Authorization: `Bearer ${secret}`, Origin: service.url });
      expect((await apply('sam', visitor)).status).toBe(201);
      await until('the second letter is answered', async () => mails.to('sam@example.org').length > 0);
      await until('the copy has the second letter as thanked', async () => {
        try {
          const copy = new DatabaseSync(join(folder, 'copy.sqlite'), { readOnly: true });
          const rows = copy.prepare('SELECT record FROM submissions').all() as { record: string }[];
          copy.close();
          return rows.some(({ record }) => JSON.parse(record).name === 'sam' && JSON.parse(record).thanked === true);
        } catch {
          return false; // not there yet, or being written
        }
      });
      expect(mails.mails.map(({ to }) => to).sort()).toEqual(['sam@example.org', 'tess@example.org']);
      const forged = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: '{}' });
      expect(forged.status).toBe(401);
    });
  },
  {
    schema: schemaOf('careers-page').replace('https://example.com/hooks/submissions', `http://127.0.0.1:${port}/`),
    env: { SUBMISSIONS_HOOK_SECRET: SECRET, BYLAW_ALLOW_PRIVATE: 'on' },
  },
);
