/**
 * A PostgreSQL (or an embedded database) with documents, and the servers that answer for them: bylaw, the usual hand-written server and the
 * best one. The caller owns one document of a thousand, a third are drafts, and five teams of a thousand are the caller's.
 */
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type OpenOptions, openDatabase } from '../../src/database/open-database.ts';
import { raw } from '../../src/sql.ts';
import { closeKeptConnections } from '../../test/support/kept-connections.ts';
import { isolatedUrl, startPostgres, type TestPostgres } from '../../test/support/postgres.ts';
import { call } from '../movies/client.ts';
import { copyDataFolder } from './copy-data-folder.ts';
import { parentOf } from './processor-time.ts';
import { type Server, startBylaw, startServer } from './server.ts';

/** The schema of the documents. */
export const SCHEMA = fileURLToPath(new URL('../servers/documents.yaml', import.meta.url));
/** The file of a server. */
export const server = (name: string) => fileURLToPath(new URL(`../servers/${name}.ts`, import.meta.url));
const PERSON = { email: 'bench@example.com', password: 'seven-samurai-1954' };

export interface Contender {
  /** The name of the server, with the number of its processes if there are several: `usual-2`. */
  readonly name: string;
  readonly server: string;
  readonly processes: number;
  readonly url: string;
  readonly pid: number;
}

export interface WorldOptions {
  readonly rows: number;
  /** Each server once more, with so many processes; PostgreSQL only. */
  readonly processes?: number;
  /** Without the servers written by hand. */
  readonly isAlone?: boolean;
  /** The folder of another checkout, whose service is one more contender, named `before`. */
  readonly before?: string | undefined;
  /** The file of the service that runs. Default: that of the compiled package. */
  readonly main?: string;
  /** Instead of PostgreSQL; each server has rows of its own. */
  readonly isEmbedded?: boolean;
}

/** The nth document, of either collection. */
export const documentId = (n: number): string => `01900000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`;
/** The caller's own are the multiples of this. */
export const OWN_EVERY = 1_000;

export class DocumentsWorld {
  readonly token: string;
  readonly contenders: readonly Contender[];
  /** The first process of PostgreSQL; undefined where it is not on this machine. */
  readonly databasePid: number | undefined;
  readonly #parts: Parts;
  readonly #userId: string;

  private constructor(parts: Parts, { token, userId }: SignedIn, contenders: readonly Contender[]) {
    this.#parts = parts;
    this.token = token;
    this.#userId = userId;
    this.contenders = contenders;
    this.databasePid = parts.databasePid;
  }

  static async open(options: WorldOptions): Promise<DocumentsWorld> {
    const parts = await Parts.open(options);
    try {
      const first = await parts.startBylaw();
      const signedIn = await signUp(first.url);
      // A single process can open an embedded database, so the server ends before the rows come in and others get copies. All
      // that race start after that: the first one has signed a person up and has seen empty tables, and is up to 5 % slower for it.
      await parts.stopServers();
      await fill(parts.database, signedIn.userId, options.rows);
      const byHand = options.isAlone ? [] : await parts.startByHand(signedIn, options.processes);
      const before = options.before === undefined ? [] : [await parts.startBefore(options.before)];
      const own = await parts.startBylaw();
      const more = options.processes === undefined ? [] : [await parts.startBylaw(options.processes)];
      return new DocumentsWorld(parts, signedIn, [own, ...before, ...more, ...byHand]);
    } catch (error) {
      await parts.close();
      throw error;
    }
  }

  /** Documents of the caller that are not there yet; their numbers begin at `from`. */
  async addOwn(from: number, count: number): Promise<void> {
    await run(this.#parts.database, [insertion('documents', this.#userId, { from, count, isOwn: true })]);
  }

  async close(): Promise<void> {
    await this.#parts.close();
  }
}

export interface SignedIn {
  readonly token: string;
  readonly userId: string;
}

/** Realistic: writes reach the disk, and what is deleted is cleaned up. */
export const DURABLE = {
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  autovacuum: 'on',
  shared_buffers: '512MB',
  max_wal_size: '4GB',
};

/** The servers written by hand, and their files. */
const BY_HAND = { usual: 'handwritten', best: 'best' };

export const nameOf = (server: string, processes: number): string =>
  processes === 1 ? server : `${server}-${processes}`;

interface Place {
  readonly folder: string;
  readonly main: string | undefined;
}

/** The resources to stop. */
class Parts {
  readonly database: OpenOptions;
  databasePid: number | undefined;
  readonly #postgres: TestPostgres | undefined;
  readonly #folder: string;
  readonly #main: string | undefined;
  readonly #children: ChildProcess[] = [];

  private constructor(postgres: TestPostgres | undefined, database: OpenOptions, { folder, main }: Place) {
    this.#postgres = postgres;
    this.#folder = folder;
    this.#main = main;
    this.database = database;
  }

  static async open({ isEmbedded, main }: WorldOptions): Promise<Parts> {
    const folder = mkdtempSync(join(tmpdir(), 'bylaw-bench-'));
    const place = { folder, main };
    if (isEmbedded) return new Parts(undefined, { dataDir: join(folder, 'bylaw') }, place);
    const postgres = await startPostgres({ settings: DURABLE });
    if (postgres === undefined)
      throw new Error('this bench needs PostgreSQL: install its binaries or set TEST_DATABASE_URL');
    const parts = new Parts(postgres, { url: await isolatedUrl(postgres.url) }, place);
    const db = await openDatabase(parts.database);
    const [row] = await db.rows(raw('SELECT pg_backend_pid()'));
    parts.databasePid = parentOf(Number(row![0]));
    await db.close();
    return parts;
  }

  async startBylaw(workers = 1): Promise<Contender> {
    const place = { schema: SCHEMA, databaseUrl: this.database.url, data: this.database.dataDir ?? this.#folder };
    const started = await startBylaw({ ...place, workers, main: this.#main });
    return this.#note('bylaw', workers, started);
  }

  /** The service of another checkout, on the same PostgreSQL or a data folder of its own. */
  async startBefore(checkout: string): Promise<Contender> {
    const place = await this.#placeFor('before');
    const { url } = this.database;
    const where = url === undefined ? { data: place } : { databaseUrl: url, data: this.#folder };
    return this.#note('before', 1, await startBylaw({ schema: SCHEMA, ...where, checkout }));
  }

  /** Each once, and once more with so many processes. */
  async startByHand({ token, userId }: SignedIn, processes?: number): Promise<readonly Contender[]> {
    const started: Contender[] = [];
    for (const [name, file] of Object.entries(BY_HAND)) {
      const place = await this.#placeFor(name);
      for (const count of processes === undefined ? [1] : [1, processes]) {
        const args = [place, token, userId, String(count)];
        started.push(this.#note(name, count, await startServer(server(file), args)));
      }
    }
    return started;
  }

  /** The same PostgreSQL for all, or a data folder of its own. */
  async #placeFor(name: string): Promise<string> {
    const { url, dataDir } = this.database;
    if (url !== undefined) return url;
    const own = join(this.#folder, name);
    await copyDataFolder(dataDir!, own);
    return own;
  }

  #note(server: string, processes: number, { url, process }: Server): Contender {
    this.#children.push(process);
    return { name: nameOf(server, processes), server, processes, url, pid: process.pid! };
  }

  async close(): Promise<void> {
    await this.stopServers();
    await this.#postgres?.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async stopServers(): Promise<void> {
    const children = this.#children
      .splice(0)
      .filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
    closeKeptConnections();
    const ended = children.map((child) => new Promise((resolve) => child.once('exit', resolve)));
    for (const child of children) child.kill('SIGTERM');
    await Promise.all(ended);
  }
}

/** The caller of all requests; a new one of the service there. */
export async function signUp(url: string): Promise<SignedIn> {
  await call(`${url}/api/auth/register`, { method: 'POST', body: PERSON });
  const { body } = await call(`${url}/api/auth/login`, { method: 'POST', body: PERSON });
  return { token: body.access_token, userId: body.user.id };
}

async function run(database: OpenOptions, statements: readonly string[]): Promise<void> {
  const db = await openDatabase(database);
  try {
    for (const statement of statements) await db.run(raw(statement));
  } finally {
    await db.close();
  }
}

const hex = (kind: string, n: string): string =>
  `('0190000${kind}-0000-7000-8000-' || lpad(to_hex(${n}), 12, '0'))::uuid`;
const COLLECTIONS = ['documents', 'team_documents'];
const STEP = 50_000;

interface Rows {
  readonly from: number;
  readonly count: number;
  readonly isOwn?: boolean;
}

function insertion(table: string, userId: string, { from, count, isOwn = false }: Rows): string {
  const owner = isOwn
    ? `'${userId}'`
    : `CASE WHEN n % ${OWN_EVERY} = 0 THEN '${userId}' ELSE ${hex('1', 'n % 1000')} END`;
  return `
    INSERT INTO ${table} (id, title, body, status, score, pinned, due_at, owner_id, team_id)
    SELECT ${hex('0', 'n')}, 'document ' || n, repeat('lorem ipsum ', 12), CASE WHEN n % 3 = 0 THEN 'draft' ELSE 'published' END,
           n % 1000, n % 10 = 0, now() + n * interval '1 minute', ${owner}::uuid, ${hex('2', 'n * 7919::int8 % 1000')}
      FROM generate_series(${from}, ${from + count - 1}) AS n`;
}

/** As the service's schema of the documents makes the tables. */
export async function fill(database: OpenOptions, userId: string, rows: number): Promise<void> {
  const starts = Array.from({ length: Math.ceil(rows / STEP) }, (_, i) => i * STEP);
  await run(database, [
    `INSERT INTO users (id, email, email_verified)
     SELECT ${hex('1', 'n')}, 'user' || n || '@example.com', true FROM generate_series(0, 999) AS n`,
    `INSERT INTO teams (id, name) SELECT ${hex('2', 'n')}, 'team ' || n FROM generate_series(0, 999) AS n`,
    `INSERT INTO memberships (id, team_id, user_id)
     SELECT ${hex('3', 'n')}, ${hex('2', 'n % 1000')}, CASE WHEN n % 200 = 0 AND n < 1000 THEN '${userId}'::uuid ELSE ${hex('1', 'n % 997')} END
       FROM generate_series(0, 4999) AS n`,
    ...COLLECTIONS.flatMap((table) =>
      starts.map((start) => insertion(table, userId, { from: start + 1, count: Math.min(STEP, rows - start) })),
    ),
    'ANALYZE',
  ]);
}
