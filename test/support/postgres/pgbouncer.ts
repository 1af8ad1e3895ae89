/** Debian's pgbouncer in transaction mode, in front of a PostgreSQL that `startPostgres` made. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, lstatSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isAnswering } from '../postgres.ts';

const PROGRAM = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer', '/usr/local/bin/pgbouncer'].find((path) =>
  existsSync(path),
);

export const hasPgbouncer = (): boolean => PROGRAM !== undefined && process.env.TEST_DATABASE_URL === undefined;

export class Pgbouncer {
  /** Without `pooler=transaction`. */
  readonly url: string;
  readonly #server: ChildProcess;
  readonly #folder: string;

  private constructor(url: string, server: ChildProcess, folder: string) {
    this.url = url;
    this.#server = server;
    this.#folder = folder;
  }

  static async start(databaseUrl: string): Promise<Pgbouncer> {
    const socket = new URL(databaseUrl.replace('@/', '@localhost/')).searchParams.get('host')!;
    const { uid, gid } = lstatSync(socket);
    const folder = await mkdtemp(join(tmpdir(), 'bylaw-pgbouncer-'));
    execFileSync('chown', [`${uid}:${gid}`, folder]);
    const probe = createServer().listen(0, '127.0.0.1');
    await once(probe, 'listening');
    const { port } = probe.address() as AddressInfo;
    probe.close();
    const settings = join(folder, 'pgbouncer.ini');
    writeFileSync(
      settings,
      `[databases]
postgres = host=${socket} dbname=postgres user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 5
`,
    );
    const server = spawn(PROGRAM!, ['-q', settings], { cwd: '/', stdio: 'ignore', uid, gid });
    process.once('exit', () => server.kill('SIGKILL'));
    const bouncer = new Pgbouncer(`postgresql://postgres@127.0.0.1:${port}/postgres`, server, folder);
    for (let attempt = 0; !(await isAnswering(bouncer.url)); attempt++) {
      if (attempt > 100) throw new Error('pgbouncer did not start');
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return bouncer;
  }

  async stop(): Promise<void> {
    const ended = once(this.#server, 'exit');
    this.#server.kill('SIGKILL');
    await ended;
    await rm(this.#folder, { recursive: true, force: true });
  }
}
