// @module-tag long
/** kill -9 in the middle of uploads: after the next start, every record has its bytes, and there are no bytes without a record. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { openDatabase } from '../../src/database/open-database.ts';
import { Client } from '../support/client.ts';
import { fillDataFolder } from '../support/embedded/embedded.ts';
import { serve } from '../support/process.ts';
import { startServiceOn } from '../support/service.ts';
import { until } from '../support/until.ts';
import { allFiles } from './listing.ts';
import { temporaryFolder, upload } from './sending.ts';

const SCHEMA = 'roles: { admin: {} }\n';
const admin = { email: 'admin@example.org', password: 'a password of tests' };
const env = { BYLAW_ADMIN_EMAIL: admin.email, BYLAW_ADMIN_PASSWORD: admin.password };

test('a folder holds acknowledged uploads only after kill -9', async () => {
  const folder = temporaryFolder();
  const [schema, data] = [join(folder, 'bylaw.yaml'), join(folder, 'data')];
  writeFileSync(schema, SCHEMA);
  await fillDataFolder(data);
  const answered = new Set<string>();
  const server = await serve(['--schema', schema, '--data', data], env);
  const client = await login(server.url);
  let stopped = false;
  const work = Array.from({ length: 6 }, async (_, i) => {
    for (let n = 0; !stopped; n++) {
      const bytes = Buffer.alloc(200_000 + i * 150_000, `${i}.${n} `);
      const answer = await upload(client, { bytes, type: 'application/octet-stream' }).catch(() => undefined);
      if (answer?.status === 201) answered.add(answer.body.data.id);
    }
  });
  const unfinished = (): readonly string[] => bytesIn(folder).filter((place) => place.includes('/incoming/'));
  await until('uploads are answered, and others go on', () => answered.size > 0 && unfinished().length > 0);
  await server.end('SIGKILL');
  stopped = true;
  await Promise.all(work);
  // Otherwise nothing was interrupted, and nothing is shown.
  expect(unfinished().length).toBeGreaterThan(0);
  const next = await startServiceOn(await openDatabase({ dataDir: data }), SCHEMA, { BYLAW_DATA: data });
  const records = await allFiles(await login(next.url));
  const ids = records.map(({ id }) => id);
  expect([...answered].filter((id) => !ids.includes(id))).toEqual([]);
  const places = bytesIn(folder);
  expect(places.map((place) => basename(place)).toSorted()).toEqual(ids.toSorted());
  for (const { id, sha256 } of records) {
    const place = places.find((known) => known.endsWith(id))!;
    expect(createHash('sha256').update(readFileSync(place)).digest('hex')).toBe(sha256);
  }
  await next.stop();
});

async function login(url: string): Promise<Client> {
  const { body } = await new Client(url).post('/api/auth/login', admin);
  return new Client(url, { Authorization: `Bearer ${body.access_token}` });
}

const bytesIn = (folder: string): readonly string[] =>
  readdirSync(join(folder, 'data', 'files'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== 'mark' && !entry.parentPath.endsWith('/trash'))
    .map(({ parentPath, name }) => join(parentPath, name));
