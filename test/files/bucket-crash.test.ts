// @module-tag long
/** kill -9 during uploads to a bucket: after the next start and a sweep, every record has its object, every object a record, and no parts are left. */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, onTestFinished, test } from 'vitest';
import { openDatabase } from '../../src/database/open-database.ts';
import { Client } from '../support/client.ts';
import { isolatedUrl } from '../support/postgres.ts';
import { serve } from '../support/process.ts';
import { CREDENTIALS, ProtocolServer } from '../support/s3/protocol-server.ts';
import { startServiceOn } from '../support/service.ts';
import { allFiles } from './listing.ts';
import { temporaryFolder, upload } from './sending.ts';
import { MiB, startUpload, until } from './streaming.ts';

const SCHEMA = 'roles: { admin: {} }\n';
const admin = { email: 'admin@example.org', password: 'a password of tests' };

test('a bucket holds acknowledged uploads only after kill -9', async () => {
  Object.assign(process.env, CREDENTIALS);
  const bucket = await ProtocolServer.start();
  onTestFinished(() => bucket.close());
  const folder = temporaryFolder();
  const schema = join(folder, 'bylaw.yaml');
  writeFileSync(schema, SCHEMA);
  const server = inject('postgresUrl');
  const url = server === '' ? undefined : await isolatedUrl(server);
  const data = join(folder, 'data');
  const args = ['--schema', schema, '--data', data, ...(url ? ['--database-url', url] : [])];
  const env = {
    ...CREDENTIALS,
    BYLAW_FILES: bucket.place(),
    BYLAW_ADMIN_EMAIL: admin.email,
    BYLAW_ADMIN_PASSWORD: admin.password,
  };
  const objects = async () => (await bucket.keys()).map((key) => key.slice(key.lastIndexOf('/') + 1));

  const first = await serve(args, env);
  const client = await login(first.url);
  const answered = new Set<string>();
  // The bucket has all of an upload without an answer to the service, and misses the delete of another file.
  const deleted = (await upload(client, { bytes: 'deleted' })).body.data.id;
  let orphan: string | undefined;
  bucket.treat = ({ operation, key }) => {
    if (operation === 'DeleteObjects') return 'lose';
    if (operation !== 'PutObject' || orphan !== undefined || answered.size < 3) return undefined;
    orphan = key.slice(key.lastIndexOf('/') + 1);
    return 'hold';
  };
  const deleting = client.delete(`/api/files/${deleted}`).catch(() => undefined);
  await until(() => bucket.requests.at(-1)?.operation === 'DeleteObjects');
  const inParts = startUpload(client, { length: 9 * MiB, isWhole: false });
  let isKilled = false;
  const work = Array.from({ length: 6 }, async (_, i) => {
    for (let n = 0; !isKilled; n++) {
      const bytes = Buffer.alloc(50_000 + i * 150_000, `${i}.${n} `);
      const answer = await upload(client, { bytes, type: 'application/octet-stream' }).catch(() => undefined);
      if (answer?.status === 201) answered.add(answer.body.data.id);
    }
  });
  await until(() => bucket.uploads.size > 0 && orphan !== undefined);
  await until(async () => (await objects()).includes(orphan!));
  await first.end('SIGKILL');
  isKilled = true;
  await Promise.all([...work, deleting, expect(inParts.answer).rejects.toThrow()]);
  expect(bucket.uploads.size).toBe(1);
  expect(await objects()).toContain(deleted);
  bucket.treat = () => undefined;

  const db = await openDatabase(url === undefined ? { dataDir: data } : { url, pipelines: 1 });
  const second = await startServiceOn(db, SCHEMA, { BYLAW_DATA: data, BYLAW_FILES: bucket.place() });
  // The embedded database is this process's alone, and was swept at the start; here other processes are given no grace.
  if (url !== undefined) await second.app.files.sweep(0);
  const records = await allFiles(await login(second.url));
  const ids = records.map(({ id }) => id);
  expect([...answered].filter((id) => !ids.includes(id))).toEqual([]);
  expect([ids.includes(orphan!), ids.includes(deleted)]).toEqual([false, false]);
  const keys = await bucket.keys();
  expect(keys.map((key) => key.slice(key.lastIndexOf('/') + 1)).toSorted()).toEqual(ids.toSorted());
  for (const { id, sha256 } of records) {
    const bytes = await bucket.bytes(keys.find((key) => key.endsWith(id))!);
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(sha256);
  }
  expect(bucket.uploads.size).toBe(0);
  await second.stop();
});

async function login(url: string): Promise<Client> {
  const { body } = await new Client(url).post('/api/auth/login', admin);
  return new Client(url, { Authorization: `Bearer ${body.access_token}` });
}
