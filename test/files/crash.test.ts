// @module-tag long
/** kill -9 in the middle of uploads: after the next start, every record has its bytes, and there are no bytes without a record. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { Client } from '../support/client.ts';
import { fillDataFolder } from '../support/embedded/embedded.ts';
import { serve } from '../support/process.ts';
import { until } from '../support/until.ts';
import { allFiles } from './listing.ts';
import { temporaryFolder, upload } from './sending.ts';

const ROUNDS = 2;
const admin = { email: 'admin@example.org', password: 'a password of tests' };
const env = { BYLAW_ADMIN_EMAIL: admin.email, BYLAW_ADMIN_PASSWORD: admin.password };

test('a folder holds acknowledged uploads only after kill -9', async () => {
  const folder = temporaryFolder();
  const schema = join(folder, 'bylaw.yaml');
  writeFileSync(schema, 'roles: { admin: {} }\n');
  await fillDataFolder(join(folder, 'data'));
  const args = ['--schema', schema, '--data', join(folder, 'data')];
  const answered = new Set<string>();
  let unfinished = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const server = await serve(args, env);
    const client = await login(server.url);
    let stopped = false;
    const work = Array.from({ length: 6 }, async (_, i) => {
      for (let n = 0; !stopped; n++) {
        const bytes = Buffer.alloc(200_000 + i * 150_000, `${round}.${i}.${n} `);
        const answer = await upload(client, { bytes, type: 'application/octet-stream' }).catch(() => undefined);
        if (answer?.status === 201) answered.add(answer.body.data.id);
      }
    });
    const before = answered.size;
    const unfinishedNow = (): readonly string[] => bytesIn(folder).filter((place) => place.includes('/incoming/'));
    await until('uploads are answered, and others go on', () => answered.size > before && unfinishedNow().length > 0);
    await server.end('SIGKILL');
    stopped = true;
    await Promise.all(work);
    unfinished += unfinishedNow().length;
  }
  const server = await serve(args, env);
  const client = await login(server.url);
  const records = await allFiles(client);
  expect(answered.size).toBeGreaterThan(0);
  // Otherwise nothing was interrupted, and nothing is shown.
  expect(unfinished).toBeGreaterThan(0);
  const ids = records.map(({ id }) => id);
  expect([...answered].filter((id) => !ids.includes(id))).toEqual([]);
  const places = bytesIn(folder);
  expect(places.map((place) => basename(place)).toSorted()).toEqual(ids.toSorted());
  for (const { id, sha256 } of records) {
    const place = places.find((known) => known.endsWith(id))!;
    expect(createHash('sha256').update(readFileSync(place)).digest('hex')).toBe(sha256);
  }
  expect(await server.stop()).toBe(0);
});

async function login(url: string): Promise<Client> {
  const { body } = await new Client(url).post('/api/auth/login', admin);
  return new Client(url, { Authorization: `Bearer ${body.access_token}` });
}

const bytesIn = (folder: string): readonly string[] =>
  readdirSync(join(folder, 'data', 'files'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== 'mark' && !entry.parentPath.endsWith('/trash'))
    .map(({ parentPath, name }) => join(parentPath, name));
