/** What is published, installed into an empty folder as a stranger does, on the oldest Node that it promises and on this one. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { cpSync, globSync, lstatSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { Browser, describeInBrowser } from '../support/browser.ts';

// Each test starts whole services from the installed package.
vi.setConfig({ testTimeout: 120_000 });

const ROOT = resolve(import.meta.dirname, '../..');
const OLDEST_NODE = '22.12.0';
const MIB = 2 ** 20;

const folder = mkdtempSync(join(tmpdir(), 'bylaw-package-'));
const bylaw = join(folder, 'node_modules/bylaw/bin/bylaw.js');
const oldestNode = join(folder, 'oldest/node_modules/node/bin/node');
/** What is published. */
let tarball = '';
/** The settings of this process are not those of a stranger. */
const env = { PATH: process.env.PATH, HOME: process.env.HOME };
const execute = (file: string, args: readonly string[], options: { readonly cwd?: string } = {}) =>
  promisify(execFile)(file, args, { ...options, env });
const npm = (args: readonly string[], cwd: string) => execute('npm', [...args, '--no-audit', '--no-fund'], { cwd });

beforeAll(async () => {
  const { stdout } = await npm(['pack', '--json', '--pack-destination', folder], ROOT);
  const [{ filename }] = JSON.parse(stdout.slice(stdout.indexOf('['))) as [{ readonly filename: string }];
  tarball = join(folder, filename);
  writeFileSync(join(folder, 'package.json'), '{ "name": "product", "type": "module", "private": true }\n');
  cpSync(join(folder, 'package.json'), join(folder, 'oldest/package.json'));
  await npm(['install', '--prefer-offline', `./${filename}`], folder);
  await npm(['install', '--prefer-offline', `node@${OLDEST_NODE}`], join(folder, 'oldest'));
  // Its install script, which npm leaves to us, links the binary.
  await execute(process.execPath, ['installArchSpecificPackage.js'], {
    cwd: join(folder, 'oldest/node_modules/node'),
  }).catch(() => undefined);
}, 300_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Bytes of all files below. */
const sizeOf = (path: string): number =>
  globSync('**/*', { cwd: path })
    .map((name) => lstatSync(join(path, name)))
    .reduce((sum, stats) => sum + (stats.isFile() ? stats.size : 0), 0);

test('it is small, and holds no compiler, no test and no source of ours', () => {
  expect(sizeOf(join(folder, 'node_modules')) / MIB).toBeLessThan(120);
  const packages = globSync('{*,@*/*}/package.json', { cwd: join(folder, 'node_modules') });
  expect(packages.length).toBeGreaterThan(50);
  expect(
    packages.filter((name) => /^(?:typescript|vitest|vite|rolldown|@biomejs|node|fast-check)\b/.test(name)),
  ).toEqual([]);
  const files = globSync('**/*', { cwd: join(folder, 'node_modules/bylaw') });
  expect(files.filter((name) => /(?<!\.d)\.ts$/.test(name) || name.startsWith('test'))).toEqual([]);
  const { scripts, private: isPrivate } = JSON.parse(
    readFileSync(join(folder, 'node_modules/bylaw/package.json'), 'utf8'),
  );
  expect([isPrivate, scripts.install, scripts.postinstall, scripts.prepare]).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});

describe.each([
  [`Node ${OLDEST_NODE}`, () => oldestNode],
  ['this Node', () => process.execPath],
])('on %s', (name, nodeOf) => {
  const project = join(folder, `demo-${name.replaceAll(/\W/g, '-')}`);

  test('init makes a project that check accepts and serve serves', async () => {
    const { stdout } = await execute(nodeOf(), [bylaw, 'init', project], { cwd: folder });
    expect(stdout).toMatch(
      /^created {2}\S*bylaw\.yaml\ncreated {2}\S*README\.md\ncreated {2}\S*\.gitignore\n\nNext: cd /,
    );
    const checked = await execute(nodeOf(), [bylaw, 'check', '--strict'], { cwd: project });
    expect(checked.stdout).toBe('no errors, no warnings\n');
    const server = await serve(nodeOf(), ['--schema', join(project, 'bylaw.yaml')], project);
    try {
      expect(await tour(server.url)).toEqual({ title: 'Write it down', done: false });
    } finally {
      await server.stop();
    }
  });

  test('the exports do what they say', async () => {
    const script = `
      import { compile, test, where } from 'bylaw/policy';
      import { createClient, BylawError } from 'bylaw/client';
      import { createService } from 'bylaw';
      const schema = { collections: { notes: { fields: { text: 'string' }, access: { list: true, read: true, create: true } } } };
      const policy = compile('@record.text = "x"', { schema, collection: 'notes', action: 'list' });
      const service = await createService({ schema, data: ${JSON.stringify(join(project, 'embedded'))} });
      const client = createClient(service.url);
      const ada = { email: 'ada@example.com', password: 'lovelace and babbage' };
      await client.register(ada);
      await client.login(ada);
      await client.collection('notes').create({ text: 'x' });
      const { data } = await client.collection('notes').list();
      const refused = await client.collection('nothing').list().then(() => 'listed', (error) => error instanceof BylawError && error.code);
      await service.stop();
      console.log(JSON.stringify([test(policy, { record: data[0] }), where(policy).sql, refused]));
    `;
    writeFileSync(join(folder, 'script.mjs'), script);
    const { stdout } = await execute(nodeOf(), [join(folder, 'script.mjs')], { cwd: folder });
    expect(JSON.parse(stdout)).toEqual([true, `"t"."text" = 'x'::text`, 'not_found']);
  });
});

describe.each(['nodenext', 'bundler'])('its declarations under %s', (moduleResolution) => {
  test('resolve, and say what is wrong', async () => {
    const source = `
      import { createClient } from 'bylaw/client';
      import { createService } from 'bylaw';
      import { compile, type Policy } from 'bylaw/policy';
      interface Collections { notes: { record: { id: string; text: string }; create: { text: string }; update: { text?: string }; filters: { text?: string } } }
      export const client = createClient<Collections>('http://127.0.0.1:8090');
      export const text: Promise<string> = client.collection('notes').read('id').then((note) => note.text);
      // @ts-expect-error: there is no such field.
      void client.collection('notes').create({ txt: 'x' });
      // @ts-expect-error: there is no such collection.
      client.collection('note');
      export const policy: Policy = compile('true', { schema: {}, collection: 'users', action: 'list' });
      void createService({ port: 0 }).then((service) => service.stop());
    `;
    const options = {
      strict: true,
      noEmit: true,
      target: 'es2023',
      lib: ['es2023', 'dom'],
      types: [],
      module: moduleResolution === 'nodenext' ? 'nodenext' : 'esnext',
      moduleResolution,
    };
    writeFileSync(join(folder, 'use.ts'), source);
    const config = join(folder, `tsconfig.${moduleResolution}.json`);
    writeFileSync(config, JSON.stringify({ compilerOptions: options, files: ['use.ts'] }));
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    const { stdout } = await execute(process.execPath, [tsc, '-p', config]).catch((error: { stdout: string }) => error);
    expect(stdout).toBe('');
  });
});

test('an older Node reports the required version in one sentence', async () => {
  const script = readFileSync(bylaw, 'utf8').replace('process.versions.node.split', "'20.20.2'.split");
  writeFileSync(join(folder, 'node_modules/bylaw/bin/old.js'), script);
  const ended = await execute(process.execPath, [join(folder, 'node_modules/bylaw/bin/old.js')]).catch(
    (error) => error,
  );
  expect([ended.code, ended.stderr]).toEqual([
    1,
    expect.stringMatching(/^bylaw: Node 22\.12 or newer is needed, but this is Node .*\n$/),
  ]);
});

describe('a stranger who follows docs/getting-started.md word by word', () => {
  const home = mkdtempSync(join(tmpdir(), 'bylaw-stranger-'));
  const page = readFileSync(join(ROOT, 'docs/getting-started.md'), 'utf8');
  const blocks = [...page.matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, commands]) => commands!);
  const start = /^```sh serve\n([\s\S]*?)^```/m.exec(page)![1]!;
  let server: Server;

  beforeAll(async () => {
    const script = blocks.join('\n').replace('npm install bylaw', `npm install --prefer-offline ${tarball}`);
    expect(script).toContain(tarball);
    await execute('bash', ['-euc', script], { cwd: home });
    const child = spawn('bash', ['-c', `exec ${start}`], {
      cwd: join(home, 'todo'),
      env: { ...env, PORT: '0' },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    // npx starts a process of its own: the signal is for all of them.
    server = await untilListening(child, () => process.kill(-child.pid!, 'SIGTERM'));
  }, 300_000);
  afterAll(async () => {
    await server?.stop();
    rmSync(home, { recursive: true, force: true, maxRetries: 5 });
  });

  test('has a service, an administrator and a front end', async () => {
    expect(blocks.length).toBeGreaterThanOrEqual(3);
    const index = await fetch(`${server.url}/`, { headers: { accept: 'text/html' } });
    expect([index.status, await index.text()]).toEqual([200, expect.stringContaining('<title>Tasks</title>')]);
    for (const path of ['/app.js', '/bylaw/client.js']) {
      const { status, headers } = await fetch(server.url + path);
      expect([path, status, headers.get('content-type')]).toEqual([path, 200, expect.stringContaining('javascript')]);
    }
    const login = await fetch(`${server.url}/api/auth/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email: 'you@example.com', password: 'a long password' }),
    });
    expect(await login.json()).toMatchObject({ user: { roles: expect.arrayContaining(['admin']) } });
  });

  describeInBrowser('in Chromium', () => {
    test('registers, adds a task, and finds it again after a reload', async () => {
      const browser = await Browser.open();
      try {
        const front = await browser.page(server.url);
        await front.until(`document.querySelector('#sign-in')?.hidden === false`);
        await front.evaluate(`(() => {
          const form = document.querySelector('#sign-in');
          form.elements.email.value = 'ada@example.com';
          form.elements.password.value = 'lovelace and babbage';
          form.requestSubmit(form.querySelector('[value=register]'));
        })()`);
        await front.until(`document.querySelector('main').hidden === false`);
        await front.evaluate(`(() => {
          const form = document.querySelector('#add');
          form.elements.title.value = 'Write it down';
          form.requestSubmit();
        })()`);
        await front.until(`document.querySelector('#tasks').textContent.includes('Write it down')`);
        expect(await front.evaluate(`document.querySelector('#message').textContent`)).toBe('');
        const again = await browser.page(server.url);
        await again.until(`document.querySelector('#tasks')?.textContent.includes('Write it down')`);
      } finally {
        await browser.close();
      }
    });
  });
});

interface Server {
  readonly url: string;
  stop(): Promise<void>;
}

function serve(node: string, args: readonly string[], cwd: string): Promise<Server> {
  const child = spawn(node, [bylaw, 'serve', '--port', '0', ...args], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  return untilListening(child, () => child.kill('SIGTERM'));
}

async function untilListening(child: ChildProcess, terminate: () => void): Promise<Server> {
  const ended = new Promise<void>((done) => child.once('exit', () => done()));
  const url = await new Promise<string>((done, fail) => {
    let output = '';
    const read = (text: Buffer): void => {
      output += text;
      const found = /http:\/\/127\S+/.exec(output);
      if (found !== null) done(found[0]);
    };
    child.stdout!.on('data', read);
    child.stderr!.on('data', read);
    void ended.then(() => fail(new Error(output)));
  });
  return {
    url,
    stop: async () => {
      terminate();
      await ended;
    },
  };
}

/** Registers, logs in, and writes a task of the project's own schema. */
async function tour(url: string): Promise<object> {
  const post = async (path: string, body: object, token?: string) => {
    const headers = {
      'content-type': 'application/json',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    };
    const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
    return (await response.json()) as { data: { id: string; title: string; done: boolean }; access_token: string };
  };
  const ada = { email: 'ada@example.com', password: 'lovelace and babbage' };
  await post('/api/auth/register', ada);
  const { access_token: token } = await post('/api/auth/login', ada);
  const list = await post('/api/lists', { data: { name: 'Today' } }, token);
  const { data } = await post('/api/tasks', { data: { title: 'Write it down', list: list.data.id } }, token);
  return { title: data.title, done: data.done };
}
