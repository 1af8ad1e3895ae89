/** `bylaw tenant`: a tenant leaves a database, comes into another one, and is deleted. */
import { mkdir, mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { isolatedUrl } from '../support/postgres.ts';
import { run } from '../support/process.ts';
import { clusterUrl, TestService } from '../support/service.ts';
import { Recorder, type RecordingClient } from './recorder.ts';

const SCHEMA_FILE = join(import.meta.dirname, '../../docs/distributed.yaml');
const PASSWORD = 'a password of tests';
const COLLECTIONS = ['teams', 'memberships', 'documents', 'covers', 'comments', 'events', 'files'];

const server = clusterUrl === '' ? 'postgres' : 'cluster';

describe.skipIf(clusterUrl === '' && inject('postgresUrl') === '')(`a tenant on ${server} (distributed)`, () => {
  let folder: string;
  let [from, to]: string[] = [];
  let service: TestService;
  let ann: RecordingClient;
  let [red, blue, document]: string[] = [];

  const bylaw = async (url: string, ...args: readonly string[]) => {
    const env = { DATABASE_URL: url, BYLAW_DATA: join(folder, 'data'), BYLAW_SCHEMA: SCHEMA_FILE };
    return run({ args, env, cwd: folder });
  };
  const exported = async (out: string): Promise<Record<string, readonly string[]>> => {
    const texts: Record<string, readonly string[]> = {};
    for (const name of COLLECTIONS)
      texts[name] = (await readFile(join(folder, out, `${name}.ndjson`), 'utf8')).trim().split('\n').toSorted();
    return texts;
  };
  const id = async (made: ReturnType<RecordingClient['post']>): Promise<string> => {
    const { status, text, body } = await made;
    if (status >= 300) throw new Error(text);
    return body.data.id;
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'bylaw-tenant-'));
    const base = clusterUrl === '' ? inject('postgresUrl') : clusterUrl;
    [from, to] = [await isolatedUrl(base), await isolatedUrl(base)];
    service = new TestService(server);
    const schema = await readFile(SCHEMA_FILE, 'utf8');
    await service.start({ schema, connect: () => from!, env: { BYLAW_DATA: join(folder, 'data') } });
    const recorder = new Recorder(service.url);
    const anybody = recorder.as();
    await anybody.post('/api/auth/register', { email: 'ann@example.org', password: PASSWORD });
    const { body } = await anybody.post('/api/auth/login', { email: 'ann@example.org', password: PASSWORD });
    ann = recorder.as({ Authorization: `Bearer ${body.access_token}` });
    const user = body.user.id as string;
    for (const name of ['blue', 'red']) {
      const team = await id(ann.post('/api/teams', { data: { name } }));
      await id(ann.post('/api/memberships', { data: { team, user, role: 'owner' } }));
      await ann.patch(`/api/users/${user}`, { data: { team } });
      [red, blue] = [team, red];
      const tag = await id(ann.post('/api/tags', { data: { label: `of ${name}` } }));
      const first = await id(ann.post('/api/documents', { data: { slug: 'first', title: 'First' } }));
      document = await id(
        ann.post('/api/documents', {
          data: { slug: 'second', title: 'Second', previous: first, related: { add: [first] }, tags: { add: [tag] } },
        }),
      );
      await ann.patch(`/api/documents/${first}`, { data: { previous: document } });
      const comment = await id(ann.post('/api/comments', { data: { document, body: 'one' } }));
      await id(ann.post('/api/comments', { data: { document, body: 'two', answer_to: comment } }));
      const image = await id(ann.upload('/api/files', `bytes of ${name}`));
      await id(ann.post('/api/covers', { data: { document, caption: 'front', image } }));
      for (let n = 0; n < 5; n++) await id(ann.post('/api/events', { data: { team, what: `event ${n}`, document } }));
    }
  });
  afterAll(async () => {
    await service?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  test('an export has the records of one tenant, and goes on after an interruption', async () => {
    expect(await bylaw(from!, 'tenant', 'export', red!, 'whole')).toMatchObject({ code: 0 });
    const whole = await exported('whole');
    expect(Object.fromEntries(Object.entries(whole).map(([name, lines]) => [name, lines.length]))).toEqual({
      teams: 1,
      memberships: 1,
      documents: 2,
      covers: 1,
      comments: 2,
      events: 5,
      files: 1,
    });
    expect(JSON.stringify(whole)).not.toContain(blue);
    await bylaw(from!, 'tenant', 'export', red!, 'again');
    await truncate(join(folder, 'again', 'events.ndjson'), 300);
    expect(await bylaw(from!, 'tenant', 'export', red!, 'again')).toMatchObject({ code: 0 });
    expect(await exported('again')).toEqual(whole);
  });

  test('an import needs the people of the tenant, and may be repeated', async () => {
    const refused = await bylaw(to!, 'tenant', 'import', 'whole');
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('such as a user')]);
    for (const collection of ['users', 'tags']) {
      const { stdout } = await bylaw(from!, 'export', collection);
      await writeFile(join(folder, `${collection}.ndjson`), stdout.replaceAll(/"team":"[^"]*"/g, '"team":null'));
      const imported = await bylaw(to!, 'import', collection, `${collection}.ndjson`);
      expect([imported.code, imported.stderr]).toEqual([0, '']);
    }
    for (let n = 0; n < 2; n++) {
      const { code, stderr } = await bylaw(to!, 'tenant', 'import', 'whole');
      expect([code, stderr]).toEqual([0, expect.stringContaining(`events: ${n === 0 ? 5 : 0} new records`)]);
    }
    expect(await bylaw(to!, 'tenant', 'export', red!, 'moved')).toMatchObject({ code: 0 });
    expect(await exported('moved')).toEqual(await exported('whole'));
    const [file] = (await exported('moved')).files!.map((line) => (JSON.parse(line) as { id: string }).id);
    expect(await readFile(join(folder, 'moved', 'files', file!), 'utf8')).toBe('bytes of red');
  });

  test('an import refuses an id that is a path, and another folder', async () => {
    const hostile = { collection: 'teams', id: red };
    for (const [name, manifest, files] of [
      ['path', JSON.stringify(hostile), '{"id":"../../escaped"}'],
      ['manifest', '{"collection":"teams","id":"-"}', ''],
      ['text', 'no JSON', ''],
    ] as const) {
      await mkdir(join(folder, name, 'files'), { recursive: true });
      await writeFile(join(folder, name, 'tenant.json'), manifest);
      await writeFile(join(folder, name, 'files.ndjson'), files);
    }
    await writeFile(join(folder, 'escaped'), 'bytes');
    const outcomes: unknown[] = [];
    for (const name of ['path', 'manifest', 'text']) outcomes.push((await bylaw(to!, 'tenant', 'import', name)).code);
    expect(outcomes).toEqual([1, 2, 2]);
    const { stderr } = await bylaw(to!, 'tenant', 'export', `0${'-'.repeat(35)}`, 'none');
    expect(stderr).toContain('expected the id of a tenant');
    const found = await readdir(join(folder, 'data'), { recursive: true });
    expect(found.filter((name) => name.endsWith('escaped'))).toEqual([]);
  });

  test.skipIf(clusterUrl === '')('a cluster exports a divided collection, and refuses to import it', async () => {
    const { code, stdout } = await bylaw(from!, 'export', 'documents');
    expect([code, stdout.trim().split('\n').length]).toEqual([0, 4]);
    await writeFile(join(folder, 'documents.ndjson'), stdout);
    const refused = await bylaw(to!, 'import', 'documents', 'documents.ndjson');
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('one tenant at a time')]);
  });

  test('a delete takes the tenant and leaves the others', async () => {
    expect(await bylaw(from!, 'tenant', 'delete', red!)).toMatchObject({ code: 2 });
    const { code, stderr } = await bylaw(from!, 'tenant', 'delete', red!, '--yes');
    expect([code, stderr]).toEqual([0, expect.stringContaining('documents: 2 records deleted')]);
    expect((await ann.get(`/api/teams/${red}`)).status).toBe(404);
    expect((await bylaw(from!, 'tenant', 'export', red!, 'gone')).code).toBe(2);
    expect(await bylaw(from!, 'tenant', 'export', blue!, 'other')).toMatchObject({ code: 0 });
    expect((await exported('other')).documents!.length).toBe(2);
  });
});
