/**
 * A real PostgreSQL for tests. `TEST_DATABASE_URL` names a running server; otherwise a throwaway cluster is made from local binaries
 * (PATH, every /usr/lib/postgresql version), on a unix socket in a temporary folder, and goes when `stop` is called or this process ends.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';

export interface TestPostgres {
  readonly url: string;
  /** `c`, or `icu` when the default collation of the database is ICU's en-US: policies must not notice. */
  readonly collation: 'c' | 'icu' | 'given';
  stop(): Promise<void>;
}
export interface PostgresOptions {
  /** Default: `TEST_POSTGRES_COLLATION`, or `c`. */
  readonly collation?: 'c' | 'icu';
  /** Server settings over the fast and unsafe ones, e.g. `{ shared_buffers: '1GB' }`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** The server takes connections over TCP, as other machines send them; otherwise over a socket. */
  readonly isOverTcp?: boolean;
}

const UNSAFE_AND_FAST: Readonly<Record<string, string>> = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  autovacuum: 'off',
  listen_addresses: '',
  max_connections: '300',
};
/** A run makes and drops thousands of tables, whose traces in the catalogue would slow every later statement. */
export const LONG_RUN = { autovacuum: 'on' };
const USER = 'postgres';
const DATABASE = 'postgres';
export const HOST = '127.0.0.1';
const run = promisify(execFile);
const madeSchemas = new Map<string, string[]>();
const sharedDatabases = new Map<string, Promise<string>>();
const madeDatabases: { readonly url: string; readonly database: string }[] = [];

/** Undefined, after a loud notice, where there is neither a server nor the binaries of one. */
export async function startPostgres(options: PostgresOptions = {}): Promise<TestPostgres | undefined> {
  const given = process.env.TEST_DATABASE_URL;
  if (given) return { url: given, collation: 'given', stop: () => dropSchemas(given) };
  const bin = findBinaries();
  if (bin === undefined) {
    console.error(
      '\n' +
        '!!! No PostgreSQL: neither TEST_DATABASE_URL nor the binaries `initdb` and `postgres` (PATH, /usr/lib/postgresql/*/bin).\n' +
        '!!! What needs a real PostgreSQL DOES NOT RUN.\n',
    );
    return undefined;
  }
  return startCluster(bin, options);
}

/** A connection string with a new schema for its tables. `stop` drops the schemas of a server that it did not start. */
export async function isolatedUrl(url: string): Promise<string> {
  const base = await sharedDatabaseUrl(url);
  const schema = `test_${randomBytes(6).toString('hex')}`;
  await query(base, `CREATE SCHEMA ${schema}`);
  madeSchemas.set(base, [...(madeSchemas.get(base) ?? []), schema]);
  return `${base}${base.includes('?') ? '&' : '?'}options=${encodeURIComponent(`-c search_path=${schema}`)}`;
}

/**
 * The database of the schemas until `dropDatabases`. A catalogue that all suites of a run share grows by thousands of tables, and
 * each migration reads it several times.
 */
function sharedDatabaseUrl(url: string): Promise<string> | string {
  if (process.env.TEST_DATABASE_URL || !url.includes(`/${DATABASE}?`)) return url;
  const made = sharedDatabases.get(url) ?? ownDatabaseUrl(url);
  sharedDatabases.set(url, made);
  return made;
}

/** A connection string with a new database for its tables; the same one where the server is given. */
export async function ownDatabaseUrl(url: string): Promise<string> {
  if (process.env.TEST_DATABASE_URL) return url;
  const database = `test_${randomBytes(6).toString('hex')}`;
  await query(url, `CREATE DATABASE ${database}`);
  madeDatabases.push({ url, database });
  return url.replace(`/${DATABASE}?`, `/${database}?`);
}

/** Drops what `isolatedUrl` and `ownDatabaseUrl` have made on servers that answer. */
export async function dropDatabases(): Promise<void> {
  sharedDatabases.clear();
  for (const { url, database } of madeDatabases.splice(0))
    if (await isAnswering(url)) await query(url, `DROP DATABASE ${database} WITH (FORCE)`);
}

async function startCluster(bin: string, options: PostgresOptions): Promise<TestPostgres> {
  const collation = options.collation ?? (process.env.TEST_POSTGRES_COLLATION === 'icu' ? 'icu' : 'c');
  const owner = unprivilegedOwner();
  const folder = await mkdtemp(join(tmpdir(), 'bylaw-pg-'));
  if (owner) await chown(folder, owner.uid, owner.gid);
  const data = join(folder, 'data');
  const locale = collation === 'icu' ? ['--locale=C', '--locale-provider=icu', '--icu-locale=en-US'] : ['--locale=C'];
  const common = { cwd: '/', env: { PATH: process.env.PATH, TZ: 'UTC' }, ...owner };
  try {
    const parts = ['-D', data, '-U', USER, '-A', 'trust', '-E', 'UTF8', ...locale, '--no-sync'];
    await run(join(bin, 'initdb'), parts, common);
    const tcp = options.isOverTcp ? { listen_addresses: HOST, port: String(await freePort()) } : undefined;
    const settings = { ...UNSAFE_AND_FAST, unix_socket_directories: folder, ...tcp, ...options.settings };
    const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const server = spawn('/bin/sh', ['-c', GUARD, join(bin, 'postgres'), folder, '-D', data, ...flags], {
      ...common,
      detached: true,
      stdio: ['pipe', 'ignore', 'pipe'],
    });
    const url = tcp
      ? `postgresql://${USER}@${HOST}:${tcp.port}/${DATABASE}`
      : `postgresql://${USER}@/${DATABASE}?host=${encodeURIComponent(folder)}`;
    await untilReady(url, server);
    return { url, collation, stop: () => stopCluster(server, folder) };
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

/**
 * Runs the server and waits for the end of its own standard input, which comes when this process ends, however it ends:
 * no orphan stays behind, not even after SIGKILL.
 */
const GUARD = `
folder=$1; shift
exec 3<&0
"$0" "$@" </dev/null >/dev/null 3<&- & pid=$!
( while read -r _; do :; done; kill -QUIT $pid ) <&3 2>/dev/null & reader=$!
wait $pid
kill $reader 2>/dev/null
rm -rf "$folder"
`;

async function untilReady(url: string, server: ChildProcess): Promise<void> {
  let said = '';
  server.stderr?.setEncoding('utf8').on('data', (text: string) => {
    if (said.length < 20_000) said += text;
  });
  const end = Date.now() + 30_000;
  for (;;) {
    if (server.exitCode !== null) throw new Error(`PostgreSQL did not start:\n${said}`);
    try {
      await query(url, 'SELECT 1');
      break;
    } catch (error) {
      if (Date.now() > end) throw new Error(`PostgreSQL was not ready in 30 s:\n${said}`, { cause: error });
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  // The server must not keep this process alive; its end closes the pipe, and that ends the server.
  server.unref();
  for (const stream of [server.stdin, server.stderr]) (stream as unknown as { unref?: () => void } | null)?.unref?.();
}

async function stopCluster(server: ChildProcess, folder: string): Promise<void> {
  if (server.exitCode === null) {
    const ended = new Promise((resolve) => server.once('exit', resolve));
    server.ref();
    server.stdin?.end();
    await ended;
  }
  await rm(folder, { recursive: true, force: true });
}

async function dropSchemas(url: string): Promise<void> {
  for (const schema of madeSchemas.get(url) ?? []) await query(url, `DROP SCHEMA IF EXISTS ${schema} CASCADE`);
  madeSchemas.delete(url);
}

/** Asks over a connection of its own; the server may be one that a test ends. */
export async function query(
  url: string,
  text: string,
  values: readonly unknown[] = [],
): Promise<readonly pg.QueryResultRow[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000 });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return (await client.query(text, [...values])).rows;
  } finally {
    await client.end().catch(() => undefined);
  }
}

export const isAnswering = (url: string): Promise<boolean> =>
  query(url, 'SELECT 1').then(
    () => true,
    () => false,
  );

/** The folder that holds both `initdb` and `postgres`; the newest version of a distribution's folders. */
export function findBinaries(): string | undefined {
  const distribution = '/usr/lib/postgresql';
  const versions = existsSync(distribution) ? readdirSync(distribution) : [];
  const folders = [
    ...(process.env.PATH ?? '').split(delimiter),
    ...versions.sort((a, b) => Number(b) - Number(a)).map((version) => join(distribution, version, 'bin')),
  ];
  const found = folders.find(
    (folder) => folder !== '' && ['initdb', 'postgres'].every((name) => existsSync(join(folder, name))),
  );
  // Links to some of the programs may be in another folder.
  return found && dirname(realpathSync(join(found, 'postgres')));
}

/** PostgreSQL refuses to run as root. */
export function unprivilegedOwner(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const accounts = readFileSync('/etc/passwd', 'utf8').split('\n');
  for (const name of ['postgres', 'nobody']) {
    const [, , uid, gid] = accounts.find((line) => line.startsWith(`${name}:`))?.split(':') ?? [];
    if (uid !== undefined && gid !== undefined) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new Error('root cannot run PostgreSQL, and there is neither an account `postgres` nor `nobody` to run it as');
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('a server on the loopback has a port');
  return address.port;
}
