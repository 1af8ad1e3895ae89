/**
 * A PostgreSQL (or an embedded database) with documents, and the servers that answer for them: bylaw, the usual hand-written server and the
 * best one. The caller owns one document of a thousand, a third are drafts, and five teams of a thousand are the caller's.
 */
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { raw } from '../../src/sql.ts';
import { type OpenOptions, openDatabase } from '../../src/store/database/open-database.ts';
import { isolatedUrl, startPostgres, type TestPostgres } from '../../test/support/postgres.ts';
import { call } from '../movies/client.ts';
import { parentOf } from './processor-time.ts';
import { startBylaw, startServer } from './server.ts';

const SCHEMA = fileURLToPath(new URL('../servers/documents.yaml', import.meta.url));
const server = (name: string) => fileURLToPath(new URL(`../servers/${name}.ts`, import.meta.url));
const PERSON = { email: 'bench@example.com', password: 'seven-samurai-1954' };

export interface Contender {
  readonly name: string;
  readonly url: string;
  readonly pid: number;
}

export interface WorldOptions {
  readonly rows: number;
  /** Instead of the servers written by hand: bylaw with so many workers. */
  readonly workers?: number;
  /** Without the servers written by hand. */
  readonly isAlone?: boolean;
  /** The service runs from its sources, for a profile. */
  readonly isSource?: boolean;
  /** Instead of PostgreSQL; then bylaw races alone. */
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
      await call(`${first.url}/api/auth/register`, { method: 'POST', body: PERSON });
      const signedIn = await logIn(first.url);
      const { userId } = signedIn;
      const own = options.isEmbedded ? await parts.filledEmbedded(userId, options.rows) : first;
      if (!options.isEmbedded) await fill(parts.database, userId, options.rows);
      return new DocumentsWorld(parts, signedIn, [own, ...(await others(parts, signedIn, options))]);
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

async function others(
  parts: Parts,
  { token, userId }: SignedIn,
  { workers, isEmbedded, isAlone }: WorldOptions,
): Promise<readonly Contender[]> {
  if (isEmbedded || isAlone) return [];
  if (workers !== undefined) return [await parts.startBylaw(workers)];
  const args = [parts.database.url!, token, userId];
  return [await parts.start('usual', 'handwritten', args), await parts.start('best', 'best', args)];
}

interface SignedIn {
  readonly token: string;
  readonly userId: string;
}

/** Realistic: writes reach the disk, and what is deleted is cleaned up. */
const SETTINGS = {
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  autovacuum: 'on',
  shared_buffers: '512MB',
  max_wal_size: '4GB',
};

interface Place {
  readonly folder: string;
  readonly isSource: boolean | undefined;
}

/** What has to be stopped. */
class Parts {
  readonly database: OpenOptions;
  databasePid: number | undefined;
  readonly #postgres: TestPostgres | undefined;
  readonly #folder: string;
  readonly #isSource: boolean | undefined;
  #children: ChildProcess[] = [];

  private constructor(postgres: TestPostgres | undefined, database: OpenOptions, { folder, isSource }: Place) {
    this.#postgres = postgres;
    this.#folder = folder;
    this.#isSource = isSource;
    this.database = database;
  }

  static async open({ isEmbedded, isSource }: WorldOptions): Promise<Parts> {
    const folder = mkdtempSync(join(tmpdir(), 'bylaw-bench-'));
    const place = { folder, isSource };
    if (isEmbedded) return new Parts(undefined, { dataDir: folder }, place);
    const postgres = await startPostgres({ settings: SETTINGS });
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
    const place = { schema: SCHEMA, databaseUrl: this.database.url, data: this.#folder };
    const started = await startBylaw({ ...place, workers, isSource: this.#isSource });
    this.#children.push(started.process);
    return { name: workers === 1 ? 'bylaw' : `${workers} workers`, url: started.url, pid: started.process.pid! };
  }

  async start(name: string, file: string, args: readonly string[]): Promise<Contender> {
    const started = await startServer(server(file), args);
    this.#children.push(started.process);
    return { name, url: started.url, pid: started.process.pid! };
  }

  /** One process has an embedded database: the server ends, the rows come in, another server starts. */
  async filledEmbedded(userId: string, rows: number): Promise<Contender> {
    await this.#stopChildren();
    await fill(this.database, userId, rows);
    return this.startBylaw();
  }

  async close(): Promise<void> {
    await this.#stopChildren();
    await this.#postgres?.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #stopChildren(): Promise<void> {
    const ended = this.#children.map((child) => new Promise((resolve) => child.once('exit', resolve)));
    for (const child of this.#children) child.kill('SIGTERM');
    await Promise.all(ended);
    this.#children = [];
  }
}

async function logIn(url: string): Promise<SignedIn> {
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
