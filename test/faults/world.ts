/**
 * The world of a scenario: a PostgreSQL of its own, services as processes, and clients whose
 * acknowledged writes are counted.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { Client } from '../support/client.ts';
import { query, startPostgres, type TestPostgres } from '../support/postgres.ts';
import { type Server, serve } from '../support/process.ts';

export const SCHEMA = `
roles: { member: {}, admin: {} }
register: { roles: [member] }
collections:
  notes:
    fields:
      title: { type: string, required: true, max: 200 }
      n: { type: int }
    access: { list: true, read: true, create: true, update: true, delete: true }
  others:
    fields:
      title: { type: string, required: true, max: 200 }
    access: { list: true, read: true, create: true, update: true, delete: true }
`;

export interface ServeOptions {
  readonly schema?: string;
  readonly databaseUrl?: string;
  /** The data folder, in that of the scenario. */
  readonly data?: string;
  readonly flags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

const ADMIN = { email: 'admin@example.org', password: 'a password of tests' };

export class FaultWorld {
  readonly folder = mkdtempSync(join(tmpdir(), 'bylaw-faults-'));
  readonly postgres: TestPostgres;
  /** Milliseconds that load lasts where a scenario says nothing else. */
  readonly loadMs: number;
  readonly #servers: Server[] = [];
  readonly #clients: pg.Client[] = [];
  readonly #undo: (() => Promise<unknown>)[] = [];

  private constructor(postgres: TestPostgres, loadMs: number) {
    this.postgres = postgres;
    this.loadMs = loadMs;
  }

  static async open(loadMs: number): Promise<FaultWorld> {
    const postgres = await startPostgres({ settings: { synchronous_commit: 'on' } });
    assert(postgres !== undefined, 'the scenarios need PostgreSQL: install its binaries');
    return new FaultWorld(postgres, loadMs);
  }

  async close(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.end('SIGKILL')));
    for (const undo of this.#undo.reverse()) await undo().catch(() => undefined);
    await Promise.all(this.#clients.map((client) => client.end().catch(() => undefined)));
    await this.postgres.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Runs when the scenario has ended, however it ended. */
  afterwards(undo: () => Promise<unknown>): void {
    this.#undo.push(undo);
  }

  file(name: string, content: string): string {
    const path = join(this.folder, name);
    writeFileSync(path, content);
    return path;
  }

  async serve(options: ServeOptions = {}): Promise<Server> {
    const schema = this.file(`schema-${randomUUID()}.yaml`, options.schema ?? SCHEMA);
    const url = options.databaseUrl ?? this.postgres.url;
    const place = ['--schema', schema, '--database-url', url, '--data', join(this.folder, options.data ?? 'data')];
    const server = await serve([...place, ...(options.flags ?? [])], {
      BYLAW_ADMIN_EMAIL: ADMIN.email,
      BYLAW_ADMIN_PASSWORD: ADMIN.password,
      ...options.env,
    });
    this.#servers.push(server);
    return server;
  }

  /** As the administrator. */
  async login(server: Server): Promise<Client> {
    const { status, body, text } = await new Client(server.url).post('/api/auth/login', ADMIN);
    assert.equal(status, 200, text);
    return new Client(server.url).with({ Authorization: `Bearer ${body.access_token}` });
  }

  /** A connection that the service knows nothing of. */
  async connect(url = this.postgres.url): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: url });
    client.on('error', () => undefined);
    await client.connect();
    this.#clients.push(client);
    return client;
  }

  query(text: string, values: readonly unknown[] = []): Promise<readonly pg.QueryResultRow[]> {
    return query(this.postgres.url, text, values);
  }

  /** The process id of the PostgreSQL server. */
  async postmaster(): Promise<number> {
    const [row] = await this.query('SHOW data_directory');
    return Number((await readFile(join(row!.data_directory, 'postmaster.pid'), 'utf8')).split('\n')[0]);
  }
}

export const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Milliseconds until `isGood` holds; throws after `most`. */
export async function untilGood(isGood: () => Promise<boolean>, most = 10_000): Promise<number> {
  const since = performance.now();
  while (!(await isGood().catch(() => false))) {
    assert(performance.now() - since < most, `not good again after ${most} ms`);
    await pause(20);
  }
  return performance.now() - since;
}

export const isReady = (server: { readonly url: string }) => async (): Promise<boolean> =>
  (await new Client(server.url).get('/readyz')).status === 200;

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
