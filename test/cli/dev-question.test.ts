// @module-tag long
/** The question of `bylaw dev`, answered by a developer on a real terminal: `script` gives the process one. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Client } from '../support/client.ts';
import { fillDataFolder } from '../support/embedded/embedded.ts';
import { MAIN, run } from '../support/process.ts';
import { until } from '../support/until.ts';
import { compileCache } from '../support/vitest/compile-cache.ts';

const folder = mkdtempSync(join(tmpdir(), 'bylaw-question-'));
const FILE = join(folder, 'bylaw.yaml');
const WHERE = ['--schema', FILE, '--data', join(folder, 'data')];
const ADMIN = { email: 'admin@example.org', password: 'a password of tests' };
const QUESTION = 'Do it nevertheless? [y/N] ';
const SERVING = 'serving the new schema';
const KEPT = 'the last good schema stays';

const schema = (fields: string): string => `
roles: [admin, member]
collections:
  posts: { fields: { ${fields} }, access: { list: true } }
`;
const save = (fields: string): void => writeFileSync(FILE, schema(fields));
const BEFORE = 'title: string, note: string, n: int';

/** util-linux: `script -qec COMMAND FILE`. */
const hasScript = spawnSync('script', ['-qec', 'true', '/dev/null']).status === 0;
if (!hasScript)
  process.stderr.write('\nNOT TESTED: the question of `bylaw dev`: there is no `script` (util-linux)\n\n');

describe.skipIf(!hasScript)('on a terminal', () => {
  let terminal: ChildProcess;
  let exit: Promise<number | null>;
  let client: Client;
  let shown = '';
  const count = (text: string): number => shown.split(text).length - 1;
  /** Resolves when the screen has shown the text `times` times. */
  const shows = (text: string, times: number): Promise<unknown> =>
    until(`${text} is shown ${times} times`, async () => count(text) >= times);
  const titles = async (): Promise<readonly unknown[]> =>
    (await client.get('/api/posts')).body.data.map((post: object) => Object.keys(post).includes('title'));

  beforeAll(async () => {
    await fillDataFolder(join(folder, 'data'));
    save(BEFORE);
    writeFileSync(join(folder, 'posts.ndjson'), '{"title":"one","note":"x","n":1}\n');
    const filled = await run({ args: ['import', 'posts', join(folder, 'posts.ndjson'), ...WHERE] });
    expect(filled).toMatchObject({ code: 0 });
    const command = [process.execPath, MAIN, 'dev', '--port', '0', ...WHERE].join(' ');
    terminal = spawn('script', ['-qec', command, '/dev/null'], {
      env: {
        PATH: process.env.PATH,
        NODE_COMPILE_CACHE: compileCache(),
        NO_COLOR: '1',
        BYLAW_ADMIN_EMAIL: ADMIN.email,
        BYLAW_ADMIN_PASSWORD: ADMIN.password,
      },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    exit = new Promise((done) => terminal.once('exit', done));
    terminal.stdout!.setEncoding('utf8').on('data', (text: string) => {
      shown += stripVTControlCharacters(text);
    });
    await shows('/openapi.json', 1);
    expect(shown).toMatch(/^ {2}http:\S+\/studio$/m);
    const url = /http:\/\/\S+/.exec(shown)![0];
    const { body } = await new Client(url).post('/api/auth/login', ADMIN);
    client = new Client(url, { Authorization: `Bearer ${body.access_token}` });
  });
  afterAll(() => {
    terminal?.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });

  test('`bylaw dev` asks before it drops values, and serves while it waits', async () => {
    save('title: string, n: int');
    await shows(QUESTION, 1);
    expect(shown).toContain('no longer has "posts"."note"; its values would be lost');
    expect(await titles()).toEqual([true]);
    expect([count(SERVING), count(KEPT)]).toEqual([0, 0]);
  });

  test('an event of the same save neither withdraws the question nor asks again', async () => {
    // No new time of modification.
    chmodSync(FILE, 0o600);
    await new Promise((done) => setTimeout(done, 300));
    expect([count(QUESTION), count(KEPT)]).toEqual([1, 0]);
  });

  test('the answer y runs the migration', async () => {
    terminal.stdin!.write('y\n');
    await shows(SERVING, 1);
    expect(shown).toMatch(/ALTER TABLE "posts" DROP COLUMN "note";/);
    const [post] = (await client.get('/api/posts')).body.data;
    expect([post.title, post.n, 'note' in post]).toEqual(['one', 1, false]);
  });

  test('another answer changes nothing, and a save of the unchanged file repeats the question', async () => {
    save('n: int');
    await shows(QUESTION, 2);
    terminal.stdin!.write('\n');
    await shows(KEPT, 1);
    expect(shown).toContain('nothing was changed; save the file again to be asked again');
    expect(await titles()).toEqual([true]);
    save('n: int');
    await shows(QUESTION, 3);
  });

  test('a new save withdraws the question', async () => {
    save('title: string');
    await shows(QUESTION, 4);
    expect(shown.slice(shown.lastIndexOf(KEPT))).toContain('no longer has "posts"."n"');
    expect(await titles()).toEqual([true]);
    save('title: string, n: int');
    await shows(SERVING, 2);
    const [post] = (await client.get('/api/posts')).body.data;
    expect([post.title, post.n]).toEqual(['one', 1]);
  });

  test('input that was typed before a question does not answer it', async () => {
    const before = shown.length;
    terminal.stdin!.write('y\ny');
    await until('it is typed', () => /y\s+y/.test(shown.slice(before)));
    save('title: string');
    await shows(QUESTION, 5);
    await new Promise((done) => setTimeout(done, 300));
    expect(count(SERVING)).toBe(2);
    expect((await client.get('/api/posts')).body.data[0].n).toBe(1);
  });

  test('Ctrl-C ends `bylaw dev` during a question', async () => {
    terminal.stdin!.write('\x03');
    expect(await exit).toBe(0);
  });
});
