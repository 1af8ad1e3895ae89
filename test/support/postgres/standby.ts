/** A streaming replica of a PostgreSQL that `startPostgres` made, whose replay can be paused. */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { chmodSync, existsSync, lstatSync, readdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type pg from 'pg';
import { query } from '../postgres.ts';

const run = promisify(execFile);

const binaries = (): string | undefined => {
  const distribution = '/usr/lib/postgresql';
  const versions = existsSync(distribution) ? readdirSync(distribution).sort((a, b) => Number(b) - Number(a)) : [];
  return versions
    .map((version) => join(distribution, version, 'bin'))
    .find((bin) => existsSync(join(bin, 'pg_basebackup')));
};

export const hasStandby = (): boolean => binaries() !== undefined && process.env.TEST_DATABASE_URL === undefined;

export class Standby {
  readonly url: string;
  readonly #server: ChildProcess;
  readonly #folder: string;

  private constructor(url: string, server: ChildProcess, folder: string) {
    this.url = url;
    this.#server = server;
    this.#folder = folder;
  }

  static async start(primaryUrl: string): Promise<Standby> {
    const bin = binaries()!;
    const socket = new URL(primaryUrl.replace('@/', '@localhost/')).searchParams.get('host')!;
    const owner = lstatSync(socket);
    const user = { uid: owner.uid, gid: owner.gid };
    const folder = await mkdtemp(join(tmpdir(), 'bylaw-standby-'));
    execFileSync('chown', [`${owner.uid}:${owner.gid}`, folder]);
    const data = join(folder, 'data');
    const common = { cwd: '/', env: { PATH: process.env.PATH, TZ: 'UTC' }, ...user };
    await run(
      join(bin, 'pg_basebackup'),
      ['-h', socket, '-U', 'postgres', '-D', data, '-R', '-c', 'fast', '-X', 'stream'],
      common,
    );
    chmodSync(data, 0o700);
    const settings = {
      unix_socket_directories: folder,
      listen_addresses: '',
      hot_standby: 'on',
      fsync: 'off',
      max_connections: '300',
    };
    const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const server = spawn(join(bin, 'postgres'), ['-D', data, ...flags], { ...common, stdio: 'ignore' });
    const standby = new Standby(`postgresql://postgres@/postgres?host=${encodeURIComponent(folder)}`, server, folder);
    process.once('exit', () => server.kill('SIGKILL'));
    for (
      let attempt = 0;
      !(await standby.query('SELECT 1').then(
        () => true,
        () => false,
      ));
      attempt++
    ) {
      if (attempt > 300) throw new Error('the standby did not start');
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return standby;
  }

  query(text: string): Promise<readonly pg.QueryResultRow[]> {
    return query(this.url, text);
  }

  /** From now on it lags behind more and more. */
  async pause(): Promise<void> {
    await this.query('SELECT pg_wal_replay_pause()');
  }

  async resume(): Promise<void> {
    await this.query('SELECT pg_wal_replay_resume()');
  }

  /** Dies at once. */
  async kill(): Promise<void> {
    if (this.#server.exitCode === null && this.#server.signalCode === null) {
      const ended = new Promise((resolve) => this.#server.once('exit', resolve));
      this.#server.kill('SIGQUIT');
      await ended;
    }
  }

  async stop(): Promise<void> {
    await this.kill();
    await rm(this.#folder, { recursive: true, force: true });
  }
}
