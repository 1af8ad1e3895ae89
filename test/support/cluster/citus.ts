/**
 * A Citus cluster of processes on this machine, where PostgreSQL's binaries have the extension: a coordinator and workers, each of which
 * can be killed and started again. Citus is not a part of the project: the tests talk to its servers.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { appendFile, chown, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type pg from 'pg';
import { findBinaries, freePort, HOST, isAnswering, query, unprivilegedOwner } from '../postgres.ts';

const run = promisify(execFile);

/** Undefined: no PostgreSQL here has the extension. */
export function citusBinaries(): string | undefined {
  const bin = findBinaries();
  const libraries = bin === undefined ? [] : [join(dirname(bin), 'lib'), join(dirname(bin), 'lib', 'postgresql')];
  return libraries.some((folder) => existsSync(join(folder, 'citus.so'))) ? bin : undefined;
}

const SETTINGS = `
listen_addresses = '${HOST}'
shared_preload_libraries = 'citus'
wal_level = logical
max_connections = 150
max_prepared_transactions = 150
shared_buffers = 64MB
fsync = off
`;

/** Changes the folder of a node before its first start. Its parent is the home of the account that runs the servers. */
export type PrepareNode = (data: string, owner: ReturnType<typeof unprivilegedOwner>) => Promise<void>;

export class CitusNode {
  readonly url: string;
  readonly port: number;
  readonly #bin: string;
  readonly #data: string;
  readonly #owner: ReturnType<typeof unprivilegedOwner>;
  #server: ChildProcess | undefined;

  private constructor(bin: string, data: string, port: number, owner: ReturnType<typeof unprivilegedOwner>) {
    this.#bin = bin;
    this.#data = data;
    this.#owner = owner;
    this.port = port;
    this.url = `postgres://postgres@${HOST}:${port}/postgres`;
  }

  static async make(bin: string, folder: string, name: string, prepare: PrepareNode): Promise<CitusNode> {
    const owner = unprivilegedOwner();
    const data = join(folder, name);
    const common = { cwd: '/', env: { PATH: process.env.PATH, TZ: 'UTC' }, ...owner };
    await run(
      join(bin, 'initdb'),
      ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '-N'],
      common,
    );
    const port = await freePort();
    const own = `${SETTINGS}port = ${port}\nunix_socket_directories = '${folder}'\n`;
    await appendFile(join(data, 'postgresql.conf'), own);
    await prepare(data, owner);
    return new CitusNode(bin, data, port, owner);
  }

  /** Starts the server, also after `kill`, and waits until it takes connections. */
  async start(): Promise<void> {
    const end = Date.now() + 60_000;
    for (;;) {
      const server = spawn(join(this.#bin, 'postgres'), ['-D', this.#data], {
        cwd: '/',
        env: { PATH: process.env.PATH, TZ: 'UTC', HOME: dirname(this.#data) },
        stdio: 'ignore',
        ...this.#owner,
      });
      this.#server = server;
      while (server.exitCode === null && server.signalCode === null) {
        if (await isAnswering(this.url)) return;
        await pause(50);
      }
      // Processes of a killed server may hold its memory for a moment.
      if (Date.now() > end) throw new Error(`the node on port ${this.port} did not start`);
      await pause(200);
    }
  }

  /** Ends the server as a crash does. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const server = this.#server;
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return;
    const ended = new Promise((resolve) => server.once('exit', resolve));
    server.kill(signal);
    await ended;
  }

  query(text: string, values: readonly unknown[] = []): Promise<readonly pg.QueryResultRow[]> {
    return query(this.url, text, values);
  }
}

export class CitusCluster {
  readonly coordinator: CitusNode;
  readonly workers: CitusNode[] = [];
  readonly #folder: string;
  readonly #bin: string;
  readonly #prepare: PrepareNode;

  private constructor(bin: string, folder: string, prepare: PrepareNode, coordinator: CitusNode) {
    this.#bin = bin;
    this.#folder = folder;
    this.#prepare = prepare;
    this.coordinator = coordinator;
  }

  /** @param workers 0: the coordinator is a server with the extension, and no more */
  static async start(workers = 2, prepare: PrepareNode = async () => undefined): Promise<CitusCluster> {
    const bin = citusBinaries();
    if (bin === undefined) throw new Error('no PostgreSQL here has the extension Citus');
    const folder = await mkdtemp(join(tmpdir(), 'bylaw-citus-'));
    const owner = unprivilegedOwner();
    if (owner !== undefined) await chown(folder, owner.uid, owner.gid);
    await mkdir(folder, { recursive: true });
    const coordinator = await CitusNode.make(bin, folder, 'coordinator', prepare);
    const cluster = new CitusCluster(bin, folder, prepare, coordinator);
    await coordinator.start();
    await coordinator.query('CREATE EXTENSION citus');
    if (workers > 0) await coordinator.query('SELECT citus_set_coordinator_host($1, $2)', [HOST, coordinator.port]);
    for (let n = 0; n < workers; n++) await cluster.addWorker();
    return cluster;
  }

  /** Shards come to it by a rebalance. */
  async addWorker(): Promise<CitusNode> {
    const worker = await this.addNode();
    await this.coordinator.query('SELECT citus_add_node($1, $2)', [HOST, worker.port]);
    return worker;
  }

  /** A server with the extension, which the coordinator does not know yet. */
  async addNode(): Promise<CitusNode> {
    const worker = await CitusNode.make(this.#bin, this.#folder, `worker-${this.workers.length + 1}`, this.#prepare);
    await worker.start();
    await worker.query('CREATE EXTENSION citus');
    this.workers.push(worker);
    return worker;
  }

  async stop(): Promise<void> {
    await Promise.all([this.coordinator, ...this.workers].map((node) => node.kill('SIGQUIT')));
    await rm(this.#folder, { recursive: true, force: true });
  }
}

const pause = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));
