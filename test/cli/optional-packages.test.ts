// @module-tag long
/** Heavy packages load when they are used, and a missing optional one is named in a sentence. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import sharp from 'sharp';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { upload } from '../files/sending.ts';
import { Client } from '../support/client.ts';
import { fillDataFolder } from '../support/embedded/embedded.ts';
import { isolatedUrl } from '../support/postgres.ts';
import { runInChild, SOURCE_MAIN, serve } from '../support/process.ts';

const SCHEMA = `
collections: { notes: { fields: { text: string }, access: { read: true } } }
uploads: { images: { widths: [64] } }
`;
const HOOKS = pathToFileURL(join(import.meta.dirname, '../support/module-hooks.ts')).href;
const ADMIN = { BYLAW_ADMIN_EMAIL: 'admin@example.org', BYLAW_ADMIN_PASSWORD: 'a password of tests' };

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bylaw-optional-'));
  await fillDataFolder(folder);
  await writeFile(join(folder, 'bylaw.yaml'), SCHEMA);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const hooks = (more: Readonly<Record<string, string>>) => ({ NODE_OPTIONS: `--import=${HOOKS}`, ...more });
const arguments_ = () => ['--schema', join(folder, 'bylaw.yaml'), '--data', folder];

test.skipIf(inject('postgresUrl') === '')('a service on PostgreSQL with local files loads none of them', async () => {
  const list = join(folder, 'loaded.json');
  const database = ['--database-url', await isolatedUrl(inject('postgresUrl'))];
  const args = [...arguments_(), ...database];
  const server = await serve(args, hooks({ TEST_LOADED: list }), undefined, SOURCE_MAIN);
  expect(await server.stop()).toBe(0);
  const loaded = JSON.parse(await readFile(list, 'utf8')) as readonly string[];
  // The hook sees what is loaded, by `import` and by `require`.
  expect(loaded).toEqual(expect.arrayContaining(['koa', 'pg', 'jose']));
  const heavy =
    /^(?:@aws-sdk|@smithy|@img|@electric-sql|@simplewebauthn)\/|^(?:sharp|nodemailer|grant|cli-progress|fetch)$/;
  expect(loaded.filter((name) => heavy.test(name))).toEqual([]);
});

const PGLITE = '@electric-sql/pglite';
const S3 = ['@aws-sdk/client-s3', '@aws-sdk/lib-storage', '@aws-sdk/s3-request-presigner'];

test.each([
  [
    PGLITE,
    {},
    'DATABASE_URL is not set, so the embedded database is used, but the optional package ' +
      `${PGLITE} is not installed: run \`npm install ${PGLITE}\``,
  ],
  [
    S3[1]!,
    { BYLAW_FILES: 's3://bucket' },
    `BYLAW_FILES names a bucket, but the optional packages ${S3.join(', ')} are not installed: ` +
      `run \`npm install ${S3.join(' ')}\``,
  ],
])('a start that needs %s reports that it is missing', async (name, env, message) => {
  const ended = await runInChild({
    args: ['serve', '--port', '0', ...arguments_()],
    env: hooks({ ...env, TEST_HIDDEN: name }),
  });
  expect(ended).toEqual({ code: 1, stdout: '', stderr: `bylaw: ${message}\n` });
});

test('a service without sharp and the binary of argon2 signs in and serves originals, and no sizes of images', async () => {
  const server = await serve(arguments_(), hooks({ TEST_HIDDEN: 'sharp,@node-rs/argon2', ...ADMIN }));
  try {
    const { body } = await new Client(server.url).post('/api/auth/login', {
      email: ADMIN.BYLAW_ADMIN_EMAIL,
      password: ADMIN.BYLAW_ADMIN_PASSWORD,
    });
    const client = new Client(server.url, { Authorization: `Bearer ${body.access_token}` });
    const bytes = await sharp({ create: { width: 200, height: 200, channels: 3, background: 'red' } })
      .png()
      .toBuffer();
    const { id } = (await upload(client, { bytes, type: 'image/png', name: 'red.png' })).body.data;
    expect((await client.get(`/api/files/${id}/content`)).status).toBe(200);
    const { status, body: problem } = await client.get(`/api/files/${id}/content?width=64`);
    expect([status, problem.code, problem.detail]).toEqual([
      503,
      'unavailable',
      'images are requested in other sizes, but the optional package sharp is not installed: run `npm install sharp` on the server',
    ]);
  } finally {
    await server.stop();
  }
});
