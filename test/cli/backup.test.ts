// @module-tag long
/** `bylaw backup` while a server writes and deletes, and `bylaw restore` into an empty place: everything is compared. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { mkdir, open, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BackupWriter, restoreInto } from '../../src/cli/backup/archive.ts';
import { END_OF_ARCHIVE, paddingOf, readTar, tarHeader } from '../../src/cli/backup/tar.ts';
import { openEmbedded } from '../../src/database/embedded/embedded.ts';
import { FolderInUse, lockFolder } from '../../src/folder-lock.ts';
import { raw } from '../../src/sql.ts';
import { upload } from '../files/sending.ts';
import { Client } from '../support/client.ts';
import { fillDataFolder } from '../support/embedded/embedded.ts';
import { run, type Server, serve } from '../support/process.ts';

const SCHEMA = `
roles: { admin: {} }
collections:
  files: { access: { list: true, read: true, create: true, delete: true } }
  notes:
    fields: { title: { type: string, unique: true, max: 100 } }
    access: { list: true, read: true, create: true, delete: true }
`;
/** Milliseconds between the writes of a writer, which leave the processor to the backup. */
const PAUSE_MS = 10;
const ADMIN = { email: 'admin@example.org', password: 'a password of tests' };

const folder = mkdtempSync(join(tmpdir(), 'bylaw-backup-'));
const place = (name: string): string => join(folder, name);
const env = { BYLAW_ADMIN_EMAIL: ADMIN.email, BYLAW_ADMIN_PASSWORD: ADMIN.password };
const started: Server[] = [];
beforeAll(() => writeFileSync(place('bylaw.yaml'), SCHEMA));
afterAll(async () => {
  await Promise.all(started.map((server) => server.end('SIGKILL')));
  rmSync(folder, { recursive: true, force: true });
});

async function start(data: string): Promise<{ server: Server; client: Client }> {
  const server = await serve(['--schema', place('bylaw.yaml'), '--data', place(data)], env);
  started.push(server);
  const { body } = await new Client(server.url).post('/api/auth/login', ADMIN);
  return { server, client: new Client(server.url, { Authorization: `Bearer ${body.access_token}` }) };
}
const bylaw = (...args: string[]) => run({ args, env: {} });
const backUp = (name: string) => bylaw('backup', place(name), '--data', place('data'));
const restore = (name: string, data: string) => bylaw('restore', place(name), '--data', place(data));

const content = async (client: Client, id: string): Promise<string> =>
  (await client.get(`/api/files/${id}/content`)).text;

/** Creates notes, and uploads and deletes files, until it is stopped; knows what was acknowledged. */
class Writer {
  readonly titles: string[] = [];
  readonly #running: Promise<unknown>;
  #isStopping = false;

  constructor(client: Client) {
    this.#running = Promise.all([this.#create(client), this.#passing(client)]);
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#running;
  }

  async #create(client: Client): Promise<void> {
    for (let n = 0; !this.#isStopping; n++) {
      const { status } = await client.post('/api/notes', { data: { title: `note ${n}` } });
      if (status === 201) this.titles.push(`note ${n}`);
      await sleep(PAUSE_MS);
    }
  }

  async #passing(client: Client): Promise<void> {
    for (let n = 0; !this.#isStopping; n++) {
      const { body } = await upload(client, { bytes: `passing ${n}`, name: 'passing.txt' });
      await client.send('DELETE', `/api/files/${body.data.id}`);
      await sleep(PAUSE_MS);
    }
  }
}

test('a backup restores every write that was acknowledged before it', async () => {
  await mkdir(place('data'));
  await fillDataFolder(place('data'));
  const { server, client } = await start('data');
  const kept: string[] = [];
  for (let n = 0; n < 5; n++) {
    const { body } = await upload(client, { bytes: `bytes ${n} `.repeat(20_000), name: `${n}.txt` });
    kept.push(body.data.id);
  }
  const doomed = (await upload(client, { bytes: 'doomed', name: 'doomed.txt' })).body.data.id;
  const writer = new Writer(client);
  while (writer.titles.length < 20) await new Promise((resolve) => setTimeout(resolve, 5));
  const acknowledged = [...writer.titles];
  const backup = backUp('one.backup');
  await client.send('DELETE', `/api/files/${doomed}`);
  expect(await backup).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^wrote .*one\.backup: [\d.]+ MB, \d+ files\n$/),
    stderr: '',
  });
  const before = writer.titles.length;
  expect(before).toBeGreaterThan(acknowledged.length);
  while (writer.titles.length < before + 5) await new Promise((resolve) => setTimeout(resolve, 5));
  await writer.stop();
  // Only its owner may read the signing keys.
  expect(statSync(place('one.backup')).mode & 0o777).toBe(0o600);
  expect(await backUp('one.backup')).toMatchObject({
    code: 1,
    stderr: `bylaw backup: ${place('one.backup')} exists already; a backup is a new file\n`,
  });

  expect(await restore('one.backup', 'restored')).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^restored into .*restored: written \d{4}-.*Z by bylaw \d.*\n$/),
    stderr: '',
  });
  expect(readdirSync(place('restored')).sort()).toEqual(['database', 'files', 'lock']);
  const again = await start('restored');
  const titles = new Set<string>();
  for (let offset = 0; ; offset += 100) {
    const { body } = await again.client.get(`/api/notes?limit=100&offset=${offset}`);
    for (const { title } of body.data) titles.add(title);
    if (body.data.length < 100) break;
  }
  expect(acknowledged.filter((title) => !titles.has(title))).toEqual([]);
  // A moment of the database: what came later than one missing note is missing, too.
  expect([...titles].sort()).toEqual(writer.titles.slice(0, titles.size).sort());
  for (const [n, id] of kept.entries()) expect(await content(again.client, id)).toBe(`bytes ${n} `.repeat(20_000));
  const { body } = await again.client.get('/api/files?limit=100');
  for (const { id, name } of body.data) {
    const { status } = await again.client.get(`/api/files/${id}/content`);
    expect([name, status]).toEqual([name, 200]);
  }
  await again.server.stop();
  await server.stop();
  expect(await backUp('two.backup')).toMatchObject({ code: 0 });
});

test('a restore rejects files that are damaged, truncated or not backups, and leaves nothing', async () => {
  const whole = readFileSync(place('one.backup'));
  const damaged = Buffer.from(whole);
  const at = whole.indexOf('bytes 3 ') + 100;
  damaged[at] = damaged[at]! ^ 1;
  writeFileSync(place('damaged'), damaged);
  writeFileSync(place('other'), 'not a backup'.repeat(100));
  writeFileSync(place('cut'), whole);
  await truncate(place('cut'), whole.length - 5_000);
  const name = '../escaped';
  const manifest = JSON.stringify({ format: 1, version: '1', created_at: 'now' });
  const entry = (entryName: string, text: string): Buffer[] => [
    tarHeader({ name: entryName, isFolder: false, size: text.length }),
    Buffer.from(text),
    paddingOf(text.length),
  ];
  writeFileSync(
    place('hostile'),
    Buffer.concat([...entry('backup.json', manifest), ...entry(`files/${name}`, 'x'), END_OF_ARCHIVE]),
  );
  const archive = (...entries: readonly Buffer[]): Buffer =>
    Buffer.concat([...entry('backup.json', manifest), ...entries, END_OF_ARCHIVE]);
  writeFileSync(place('controlling'), archive(...entry('a\u001b]0;owned\u0007', 'x')));
  writeFileSync(place('without-folder'), archive(...entry('database/PG_VERSION', '18')));
  writeFileSync(place('without-database'), archive(...entry('checksums.json', '{}')));
  mkdirSync(place('a-folder'));
  const reasons = {
    controlling: /it has a file that no backup has: a\\u001b\]0;owned\\u0007;/,
    'without-folder': /the folder database is missing/,
    'without-database': /the folder database is missing/,
    damaged: /the checksum of files\/.* is not that of the backup/,
    other: /it is not an archive, or is damaged/,
    cut: /it ends too early|it is not complete/,
    hostile: /it has a file that no backup has: files\/\.\.\/escaped/,
    missing: /the file .* does not exist/,
    'a-folder': /a-folder is a folder; expected the file of a backup/,
  };
  for (const [file, reason] of Object.entries(reasons)) {
    const { code, stdout, stderr } = await restore(file, 'empty');
    expect([file, code, stdout, stderr]).toEqual([file, 1, '', expect.stringMatching(reason)]);
    expect(stderr).toMatch(/; nothing was restored\n$/);
    expect(readdirSync(folder)).not.toContain('empty');
  }
  expect(await restore('one.backup', 'restored')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('is not empty; name an empty folder with --data'),
  });
  const noDatabase = await bylaw('backup', place('none'), '--data', place('nowhere'));
  expect([noDatabase.code, noDatabase.stderr]).toEqual([
    1,
    `bylaw backup: ${place('nowhere')} has no embedded database\n`,
  ]);
  const server = await bylaw('backup', place('none'), '--database-url', 'postgresql://example.invalid/x');
  expect([server.code, server.stderr]).toEqual([1, expect.stringContaining('pg_dump first, and the files after it')]);
});

test('a server whose data folder is relative is backed up from any folder, with its files', async () => {
  const home = place('home');
  await fillDataFolder(join(home, 'own'));
  mkdirSync(place('elsewhere'));
  // The relative name is the same, but the folder is not the server's.
  mkdirSync(join(place('elsewhere'), 'own/database'), { recursive: true });
  const server = await serve(['--schema', place('bylaw.yaml'), '--data', 'own'], env, home);
  started.push(server);
  const { body: session } = await new Client(server.url).post('/api/auth/login', ADMIN);
  const client = new Client(server.url, { Authorization: `Bearer ${session.access_token}` });
  const { body } = await upload(client, { bytes: 'kept from afar', name: 'kept.txt' });
  for (const [n, cwd] of [place('elsewhere'), folder].entries()) {
    const args = ['backup', place(`away-${n}`), '--data', join(home, 'own')];
    const { code, stderr } = await run({ args, env: {}, cwd });
    expect([cwd, code, stderr]).toEqual([cwd, 0, '']);
    expect(readFileSync(place(`away-${n}`)).includes('kept from afar')).toBe(true);
  }
  expect(await server.stop()).toBe(0);
  expect(await restore('away-0', 'from-away')).toMatchObject({ code: 0 });
  const again = await start('from-away');
  expect(await content(again.client, body.data.id)).toBe('kept from afar');
  await again.server.stop();
});

/** Resolves in the middle of a restore: its archive is being read. */
async function whileRestoring(data: string, work: () => Promise<void>): Promise<unknown> {
  const result = restoreInto(place(data), place('one.backup')).then(
    () => undefined,
    (error: unknown) => error,
  );
  while (!existsSync(join(place(data), 'restoring'))) await new Promise((resolve) => setImmediate(resolve));
  await work();
  return result;
}

test('no service starts in a folder during a restore', async () => {
  let refusal: unknown;
  const error = await whileRestoring('busy', async () => {
    refusal = await openEmbedded({ dataDir: place('busy') }).catch((thrown: unknown) => thrown);
    expect(existsSync(join(place('busy'), 'restoring'))).toBe(true);
  });
  expect(error).toBeUndefined();
  expect(refusal).toBeInstanceOf(FolderInUse);
  const db = await openEmbedded({ dataDir: place('busy') });
  expect(await restore('one.backup', 'busy')).toMatchObject({ code: 1, stderr: expect.stringContaining('not empty') });
  expect((await db.rows(raw('SELECT title FROM notes'))).length).toBeGreaterThanOrEqual(20);
  await db.close();
});

test('a restore refuses an empty folder that another process has locked', async () => {
  const lock = await lockFolder(place('held'));
  expect(await restore('one.backup', 'held')).toEqual({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/held is in use by process \d+; .*; nothing was restored\n$/),
  });
  await lock.release();
  expect(await restore('one.backup', 'held')).toMatchObject({ code: 0, stderr: '' });
});

test('a restore that cannot move its parts removes them, and keeps the files of others', async () => {
  for (const isThere of [true, false]) {
    const data = `contended-${isThere}`;
    if (isThere) mkdirSync(place(data));
    const error = await whileRestoring(data, async () => {
      mkdirSync(join(place(data), 'files'));
      writeFileSync(join(place(data), 'files/mine'), 'of another');
    });
    expect(error).toMatchObject({ code: expect.stringMatching(/^(?:ENOTEMPTY|EEXIST)$/) });
    expect(readdirSync(place(data)).filter((name) => name !== 'lock')).toEqual(['files']);
    expect(readFileSync(join(place(data), 'files/mine'), 'utf8')).toBe('of another');
  }
  // The lock of the failure before is in no one's way.
  rmSync(join(place('contended-true'), 'files'), { recursive: true });
  expect(await restore('one.backup', 'contended-true')).toMatchObject({ code: 0, stderr: '' });
});

test('a backup leaves out stored files that disappear, and fails if a file of the database does', async () => {
  mkdirSync(place('going'));
  for (const name of ['one', 'gone', 'two']) writeFileSync(join(place('going'), name), name);
  const isLeft = (path: string): boolean => {
    if (path.endsWith('gone')) rmSync(path, { force: true });
    return false;
  };
  const manifest = { format: 1, version: '1', created_at: 'now' } as const;
  const writer = await BackupWriter.begin(place('going.backup'), manifest);
  await writer.addFolder(place('going'), 'files', { isLeft, isChanging: true });
  expect(await writer.end()).toMatchObject({ count: 2 });
  writeFileSync(join(place('going'), 'gone'), 'again');
  const strict = await BackupWriter.begin(place('strict.backup'), manifest);
  await expect(strict.addFolder(place('going'), 'database', { isLeft })).rejects.toMatchObject({ code: 'ENOENT' });
  await strict.close();
});

test('statements after a backup do not count as slow', async () => {
  const db = await openEmbedded({ dataDir: place('busy') });
  try {
    await db.copyFolder!(() => sleep(1_500));
    const answers = await Promise.allSettled(Array.from({ length: 200 }, () => db.rows(raw('SELECT 1 AS one'))));
    expect(answers.filter(({ status }) => status === 'rejected')).toEqual([]);
  } finally {
    await db.close();
  }
});

test('an archive keeps long names and large sizes', async () => {
  const long = `files/${'a'.repeat(90)}/${'b'.repeat(90)}`;
  const size = 9 * 1024 ** 3;
  writeFileSync(
    place('tar'),
    Buffer.concat([
      tarHeader({ name: long, isFolder: true, size: 0 }),
      tarHeader({ name: 'x', isFolder: false, size }),
    ]),
  );
  const file = await open(place('tar'));
  try {
    const found: unknown[] = [];
    const read = async (): Promise<void> => {
      for await (const entry of readTar(file)) found.push([entry.name, entry.isFolder, entry.size]);
    };
    await expect(read()).rejects.toThrow('it ends too early');
    expect(found).toEqual([
      [long, true, 0],
      ['x', false, size],
    ]);
  } finally {
    await file.close();
  }
  expect(() => tarHeader({ name: 'c'.repeat(300), isFolder: false, size: 0 })).toThrow(RangeError);
});
