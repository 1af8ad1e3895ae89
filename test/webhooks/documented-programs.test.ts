// @module-tag long
/** The receiver and the worker of docs/webhooks.md run as they are printed. */
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { raw } from '../../src/sql.ts';
import { describeOnOne, type User } from '../support/service.ts';
import { until } from '../support/until.ts';

const root = resolve(import.meta.dirname, '../..');
const page = await readFile(join(root, 'docs/webhooks.md'), 'utf8');
const block = (language: string, start = ''): string => {
  const found = page.split('```').find((each) => each.startsWith(`${language}\n${start}`));
  if (found === undefined) throw new Error(`docs/webhooks.md has no ${language} ${start}`);
  return found.slice(language.length + 1);
};
const freePort = (): Promise<number> =>
  new Promise((done) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => done(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });

const port = await freePort();
const secret = `whsec_${Buffer.alloc(32, 3).toString('base64')}`;
const schema = block('yaml')
  .replace('https://example.com/hooks/orders', `http://127.0.0.1:${port}/`)
  .replace('collections:\n', 'register: { roles: [member] }\ncollections:\n  users: { access: { view: true } }\n');

describeOnOne(
  'the programs of docs/webhooks.md',
  (service) => {
    let ann: User;
    let folder: string;
    let key: string;
    const children: ReturnType<typeof spawn>[] = [];
    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'bylaw-programs-'));
      ann = await service.user();
      const request = { name: 'fulfilment', roles: ['fulfilment'], limit: { orders: ['list'] } };
      key = (await service.app.auth.apiKeys.create(request)).secret;
    });
    afterAll(async () => {
      for (const child of children) child.kill();
      await rm(folder, { recursive: true, force: true });
    });

    const start = async (name: string, text: string, env: Readonly<Record<string, string>>) => {
      const file = join(folder, name);
      await writeFile(file, text);
      const child = spawn(process.execPath, [file], { cwd: folder, env: { ...process.env, ...env } });
      children.push(child);
      let output = '';
      for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (chunk: Buffer) => (output += chunk));
      return () => output;
    };
    const buy = async (title: string): Promise<void> => {
      const { body } = await ann.client.post('/api/orders', { data: { title } });
      const { status, text } = await ann.client.patch(`/api/orders/${body.data.id}`, { data: { state: 'paid' } });
      if (status !== 200) throw new Error(text);
    };

    test('the receiver verifies and prints an event, and refuses a forged one', async () => {
      const output = await start('receiver.mjs', block('js', '// receiver'), {
        ORDERS_HOOK_SECRET: secret,
        PORT: String(port),
      });
      // A webhook begins with the changes that follow its first look.
      await until('the webhook has begun', async () => {
        const rows = await service.app.db.rows(raw('SELECT 1 FROM bylaw_webhooks WHERE position IS NOT NULL'));
        return rows.length > 0;
      });
      await buy('A lamp');
      await until('the receiver prints', () => output().includes('orders.enter A lamp'));
      const forged = await fetch(`http://127.0.0.1:${port}/`, {
        method: 'POST',
        headers: {
          'webhook-id': 'x',
          'webhook-timestamp': `${Math.floor(Date.now() / 1000)}`,
          'webhook-signature': 'v1,AAAA',
        },
        body: '{}',
      });
      expect(forged.status).toBe(401);
    });

    test('the worker sends a mail for each paid order', async () => {
      const text = block('js', '// worker')
        .replace("'bylaw/events'", `'${pathToFileURL(join(root, 'src/events/events.ts'))}'`)
        .replace("import nodemailer from 'nodemailer';\n", '')
        .replace(
          'nodemailer.createTransport(process.env.SMTP_URL)',
          '{ sendMail: async ({ subject }) => console.log(subject) }',
        );
      const output = await start('worker.mjs', text, { BYLAW_URL: service.url, BYLAW_KEY: key });
      await until('the worker has a position', () =>
        readFile(join(folder, 'orders.position'), 'utf8').then(
          () => true,
          () => false,
        ),
      );
      await buy('A chair');
      await until('the worker sends', () => output().includes('Paid: A chair'));
    });
  },
  { schema, env: { ORDERS_HOOK_SECRET: secret, BYLAW_ALLOW_PRIVATE: 'on' } },
);
