// @module-tag registry
/**
 * Installs the package into an empty folder as a user does, on the oldest supported Node and on
 * this one.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  globSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { Browser } from '../support/browser/browser.ts';
import { describeInBrowser } from '../support/browser/describe-in-browser.ts';
import { fillDataFolder } from '../support/embedded/embedded.ts';
import { closeKeptConnections } from '../support/kept-connections.ts';
import { isolatedUrl } from '../support/postgres.ts';
import { followTour } from '../support/tour.ts';

// Each test starts whole services from the installed package.
vi.setConfig({ testTimeout: 120_000 });

const ROOT = resolve(import.meta.dirname, '../..');
const { engines } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const OLDEST_NODE = `${/^>=(\d+\.\d+)$/.exec(engines.node)![1]!}.0`;
const NODE_PACKAGE = `node-${process.platform}-${process.arch}`;
const MB = 1_000_000;

const folder = mkdtempSync(join(tmpdir(), 'bylaw-package-'));
const OLDEST_BIN = join(folder, 'node/node_modules', NODE_PACKAGE, 'bin');
/** The files of the package. */
const tarball = join(folder, 'bylaw.tgz');

/** The settings by which npm reaches its registry from here. */
const NETWORK = Object.fromEntries(
  Object.entries(process.env).filter(([name]) =>
    /^(?:NODE_EXTRA_CA_CERTS|https?_proxy|no_proxy|npm_config_registry)$/i.test(name),
  ),
);

/** → its warnings. */
async function npmInstall(name: string, options: { readonly cwd: string; readonly env?: NodeJS.ProcessEnv }) {
  const args = ['install', '--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts', name];
  return (await promisify(execFile)('npm', args, options)).stderr;
}

/** The commands of a page, which install the package from the registry, with the files of the package instead. */
const withTarball = (commands: string): string => {
  expect(commands).toContain('npm install bylaw');
  return commands.replace('npm install bylaw', `npm install --prefer-offline --no-audit --no-fund ${tarball}`);
};

/** A Node, and the folder into which it has installed the package. */
class Stranger {
  readonly home: string;
  /** The settings of this process are not those of a stranger. */
  readonly env: NodeJS.ProcessEnv;
  /** The warnings of npm about the installation. */
  warnings = '';

  constructor(home: string, binFolder: string) {
    this.home = join(folder, home);
    const cache = join(folder, 'compile-cache');
    this.env = {
      ...NETWORK,
      PATH: `${binFolder}:${process.env.PATH}`,
      HOME: process.env.HOME,
      NODE_COMPILE_CACHE: cache,
    };
    mkdirSync(dirname(this.home), { recursive: true });
  }

  run(file: string, args: readonly string[], cwd = this.home) {
    return promisify(execFile)(file, args, { cwd, env: this.env });
  }

  /** Installs the package by the commands of a page, beside its home. */
  async follow(commands: string): Promise<void> {
    const { stderr } = await this.run('bash', ['-euc', withTarball(commands)], dirname(this.home));
    this.warnings = stderr;
  }

  /** `npx bylaw …`, ready. */
  serve(args: readonly string[], cwd: string): Promise<Server> {
    const options = { cwd, env: { ...this.env, PORT: '0' }, detached: true, stdio: 'pipe' } as const;
    const child = spawn('npx', ['bylaw', ...args], options);
    // npx starts a process of its own: the signal is for all of them.
    return untilListening(child, () => process.kill(-child.pid!, 'SIGTERM'));
  }
}

// The reader of a page makes a database; the others find an empty one.

/** Reads docs/getting-started.md. */
const oldest = new Stranger('oldest/todo', OLDEST_BIN);
/** Reads the README of a new project. */
const current = new Stranger('current', dirname(process.execPath));
const PAGE = readFileSync(join(ROOT, 'docs/getting-started.md'), 'utf8');
const PAGE_COMMANDS = [...PAGE.matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, commands]) => commands!);
const commandsOf = (readme: string) => /```sh\n(npm init[\s\S]*?)npx bylaw (.*)\n```/.exec(readme)!;
const README = readFileSync(join(ROOT, 'src/cli/project/README.md'), 'utf8');
const bylaw = join(current.home, 'node_modules/bylaw/bin/bylaw.js');

beforeAll(async () => {
  const pack = async (): Promise<void> => {
    const { stdout } = await promisify(execFile)('npm', ['pack', '--json', '--pack-destination', folder], {
      cwd: ROOT,
    });
    const [{ filename }] = JSON.parse(stdout.slice(stdout.indexOf('['))) as [{ readonly filename: string }];
    renameSync(join(folder, filename), tarball);
  };
  await Promise.all([pack(), installNode()]);
  await Promise.all([
    oldest.follow(PAGE_COMMANDS.join('\n')),
    current.follow(`mkdir current && cd current\n${commandsOf(README)[1]}`),
  ]);
}, 300_000);
afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));

/** Its package for this machine, without the one that chooses it in an install script. */
async function installNode(): Promise<void> {
  mkdirSync(join(folder, 'node'));
  writeFileSync(join(folder, 'node/package.json'), '{ "private": true }\n');
  await npmInstall(`${NODE_PACKAGE}@${OLDEST_NODE}`, { cwd: join(folder, 'node') });
}

/** The bytes of an answer as they are sent. */
async function sentBytes(url: string, coding: string): Promise<Buffer> {
  const [answer] = (await once(request(url, { headers: { 'Accept-Encoding': coding } }).end(), 'response')) as [
    IncomingMessage,
  ];
  expect(answer.headers['content-encoding']).toBe(coding);
  return Buffer.concat(await answer.toArray());
}

/** Bytes of all files below. */
const sizeOf = (path: string): number =>
  globSync('**/*', { cwd: path })
    .map((name) => lstatSync(join(path, name)))
    .reduce((sum, stats) => sum + (stats.isFile() ? stats.size : 0), 0);

test('the package is small, and has no compiler, test or source of ours', () => {
  const { home } = current;
  expect(sizeOf(join(home, 'node_modules')) / MB).toBeLessThan(120);
  const packages = globSync('{*,@*/*}/package.json', { cwd: join(home, 'node_modules') });
  expect(packages.length).toBeGreaterThan(50);
  expect(
    packages.filter((name) => /^(?:typescript|vitest|vite|rolldown|@biomejs|node|fast-check)\b/.test(name)),
  ).toEqual([]);
  const files = globSync('**/*', { cwd: join(home, 'node_modules/bylaw') });
  const readOf = (name: string): string => readFileSync(join(home, 'node_modules/bylaw', name), 'utf8');
  expect(files.filter((name) => /(?<!\.d)\.ts$/.test(name) || name.startsWith('test'))).toEqual([]);
  // Policy tests copy it, and make one in three times the time where it does not lie beside their module.
  const naming = files.filter((name) => name.endsWith('.js') && readOf(name).includes('empty-database.tar.br'));
  expect(
    naming.map((name) => join(dirname(name), 'empty-database.tar.br')).filter((name) => !files.includes(name)),
  ).toEqual([]);
  expect(naming).toHaveLength(1);
  // The pages hold code of others.
  for (const name of ['preact', 'uplot', '@codemirror/view', 'yaml'])
    expect(readOf('dist/studio/licences.txt')).toMatch(new RegExp(`^${name} \\d`, 'm'));
  const { scripts, private: isPrivate } = JSON.parse(
    readFileSync(join(home, 'node_modules/bylaw/package.json'), 'utf8'),
  );
  expect([isPrivate, scripts.install, scripts.postinstall, scripts.prepare]).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});

describe.each([
  [`Node ${OLDEST_NODE}`, oldest, OLDEST_NODE],
  ['this Node', current, process.versions.node],
])('in an empty folder on %s', (_, stranger, version) => {
  test('npm installs it without a warning about the engine or old packages', async () => {
    expect((await stranger.run('node', ['--version'])).stdout).toBe(`v${version}\n`);
    expect(stranger.warnings).not.toMatch(/EBADENGINE|deprecated/);
  });

  test('`npx bylaw init demo && cd demo && npx bylaw check && npx bylaw serve`', async () => {
    const { stdout } = await stranger.run('bash', ['-c', 'npx bylaw init demo && cd demo && npx bylaw check --strict']);
    expect(stdout).toBe(
      'created  demo/bylaw.yaml\ncreated  demo/bylaw.policy.yaml\ncreated  demo/README.md\ncreated  demo/.gitignore\n\n' +
        'Next: cd demo && npx bylaw dev\ndemo/README.md says how to make an administrator and a front end\n' +
        'no errors, no warnings\n',
    );
    await fillDataFolder(join(stranger.home, 'demo/data'));
    const server = await stranger.serve(['serve'], join(stranger.home, 'demo'));
    try {
      expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
      const studio = await (await fetch(`${server.url}/studio`)).text();
      const script = await fetch(`${server.url}${/src="([^"]+)"/.exec(studio)![1]}`);
      expect([script.status, script.headers.get('cache-control')]).toEqual([
        200,
        'public, max-age=31536000, immutable',
      ]);
      // The build has compressed it further than the service does while a client waits.
      const file = join(stranger.home, 'node_modules/bylaw/dist/studio', script.url.split('/').at(-1)!);
      for (const [coding, ending] of [
        ['br', 'br'],
        ['gzip', 'gz'],
      ] as const)
        expect([coding, await sentBytes(script.url, coding)]).toEqual([coding, readFileSync(`${file}.${ending}`)]);
      const { paths } = (await (await fetch(`${server.url}/openapi.json`)).json()) as { paths: object };
      expect(Object.keys(paths)).toEqual(expect.arrayContaining(['/api/lists', '/api/tasks']));
    } finally {
      await server.stop();
    }
  });

  test('the tour of the README works', async () => {
    const tour = join(stranger.home, 'tour');
    mkdirSync(tour);
    cpSync(join(ROOT, 'bylaw.yaml'), join(tour, 'bylaw.yaml'));
    const postgres = inject('postgresUrl');
    // Each on another database, where there are two.
    const isEmbedded = stranger === oldest || postgres === '';
    if (isEmbedded) await fillDataFolder(join(tour, 'data'));
    const server = await stranger.serve(
      isEmbedded ? ['serve'] : ['serve', '--database-url', await isolatedUrl(postgres)],
      tour,
    );
    try {
      await followTour(server.url, stranger.env);
    } finally {
      await server.stop();
    }
  });

  test('the exports work', async () => {
    const script = `
      import { compile, policyCatalog, test, where } from 'bylaw/policy';
      import * as page from 'bylaw/policy/browser';
      import { createClient, BylawError } from 'bylaw/client';
      import { events } from 'bylaw/events';
      import { createService } from 'bylaw';
      const schema = { collections: { notes: { fields: { text: 'string' }, access: { list: true, read: true, create: true } } } };
      const policy = compile('@record.text = "x"', { schema, collection: 'notes', action: 'list' });
      const service = await createService({ schema, data: './embedded' });
      const client = createClient(service.url);
      const ada = { email: 'ada@example.com', password: 'lovelace and babbage' };
      await client.register(ada);
      await client.login(ada);
      await client.collection('notes').create({ text: 'x' });
      const { data } = await client.collection('notes').list();
      const refused = await client.collection('nothing').list().then(() => 'listed', (error) => error instanceof BylawError && error.code);
      const worker = events({ url: service.url, key: 'bylaw_wrong', collection: 'notes', position: './notes.position' });
      const ended = await worker.next().then(() => 'began', (error) => error.status);
      await service.stop();
      const inPage = page.compile('@record.text = "x"', { catalog: policyCatalog(schema), collection: 'notes', action: 'list' });
      const decisions = [test(policy, { record: data[0] }), page.test(inPage, { record: data[0] })];
      console.log(JSON.stringify([decisions, where(policy).sql, refused, ended]));
    `;
    writeFileSync(join(stranger.home, 'script.mjs'), script);
    await fillDataFolder(join(stranger.home, 'embedded'));
    const { stdout } = await stranger.run('node', ['script.mjs']);
    expect(JSON.parse(stdout)).toEqual([[true, true], `"t"."text" = 'x'::text`, 'not_found', 401]);
  });
});

test('the README of a new project results in a front end', async () => {
  const project = join(current.home, 'demo');
  const [, commands, last] = commandsOf(readFileSync(join(project, 'README.md'), 'utf8'));
  // The installation of this Node has run them.
  expect(commands).toBe(commandsOf(README)[1]);
  cpSync(join(project, 'bylaw.yaml'), join(current.home, 'bylaw.yaml'));
  await fillDataFolder(join(current.home, 'data'));
  const server = await current.serve(last!.split(' '), current.home);
  try {
    const page = await fetch(`${server.url}/`, { headers: { accept: 'text/html' } });
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('./bylaw/client.js')]);
    expect((await fetch(`${server.url}/bylaw/client.js`)).status).toBe(200);
  } finally {
    await server.stop();
  }
});

describe.each(['nodenext', 'bundler'])('its declarations under %s', (moduleResolution) => {
  test('the declarations resolve, and reject mistakes', async () => {
    const source = `
      import { createClient } from 'bylaw/client';
      import { createService } from 'bylaw';
      import { compile, type Policy } from 'bylaw/policy';
      import { type PagePlace, type Policy as PagePolicy, compile as compileInPage } from 'bylaw/policy/browser';
      interface Collections { notes: { record: { id: string; text: string }; create: { text: string }; update: { text?: string }; filters: { text?: string } } }
      export const client = createClient<Collections>('http://127.0.0.1:8090');
      export const text: Promise<string> = client.collection('notes').read('id').then((note) => note.text);
      // @ts-expect-error: there is no such field.
      void client.collection('notes').create({ txt: 'x' });
      // @ts-expect-error: there is no such collection.
      client.collection('note');
      export const policy: Policy = compile('true', { schema: {}, collection: 'users', action: 'list' });
      export const inPage = (place: PagePlace): PagePolicy => compileInPage('true', place);
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
    const { home } = current;
    writeFileSync(join(home, 'use.mts'), source);
    const config = join(home, `tsconfig.${moduleResolution}.json`);
    writeFileSync(config, JSON.stringify({ compilerOptions: options, files: ['use.mts'] }));
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    const { stdout } = await current.run('node', [tsc, '-p', config]).catch((error: { stdout: string }) => error);
    expect(stdout).toBe('');
  });
});

test('an older Node reports the required version in one sentence', async () => {
  const bin = dirname(bylaw);
  const version = readFileSync(join(bin, 'node-version.js'), 'utf8');
  writeFileSync(join(bin, 'old-version.js'), version.replaceAll('process.versions.node', "'20.20.2'"));
  const old = join(bin, 'old.js');
  writeFileSync(old, readFileSync(bylaw, 'utf8').replace('./node-version.js', './old-version.js'));
  const ended = await current.run('node', [old]).catch((error) => error);
  expect([ended.code, ended.stderr]).toEqual([
    1,
    'bylaw: Node 22.12 or newer is needed, but this is Node 20.20.2: install a newer one from https://nodejs.org\n',
  ]);
});

describe('a reader of docs/getting-started.md', () => {
  const block = (kind: string): string => new RegExp(`^\`\`\`${kind}\\n([\\s\\S]*?)^\`\`\``, 'm').exec(PAGE)![1]!;
  const project = oldest.home;
  /** `npx bylaw …` of the page. */
  const start = (kind: string): Promise<Server> => oldest.serve(block(kind).trim().split(' ').slice(2), project);
  let server: Server;

  beforeAll(async () => {
    server = await start('sh serve');
  }, 300_000);
  afterAll(() => server?.stop());

  test('a reader gets a service, an administrator and a front end', async () => {
    expect(PAGE_COMMANDS.length).toBeGreaterThanOrEqual(3);
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
    test('a user registers, adds a task, and finds it after a reload', async () => {
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

  test('a reader changes the schema while `bylaw dev` serves it', async () => {
    await server.stop();
    server = await start('sh dev');
    const file = join(project, 'bylaw.yaml');
    const [title] = /^ +title: .*\n/m.exec(readFileSync(file, 'utf8'))!;
    writeFileSync(file, readFileSync(file, 'utf8').replace(title, `${title}${block('yaml change')}`));
    await vi.waitFor(() => expect(server.output()).toMatch(/ADD COLUMN \\"note\\" text/), { timeout: 20_000 });
    const { components } = (await (await fetch(`${server.url}/openapi.json`)).json()) as {
      components: { schemas: { Task: { properties: object } } };
    };
    expect(Object.keys(components.schemas.Task.properties)).toContain('note');
  });
});

interface Server {
  readonly url: string;
  readonly output: () => string;
  stop(): Promise<void>;
}

async function untilListening(child: ChildProcess, terminate: () => void): Promise<Server> {
  const ended = new Promise<void>((done) => child.once('close', () => done()));
  let output = '';
  const url = await new Promise<string>((done, fail) => {
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
    output: () => output,
    stop: async () => {
      closeKeptConnections();
      terminate();
      await ended;
    },
  };
}
