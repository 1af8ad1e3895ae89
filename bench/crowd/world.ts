/** The sample schema with many rows, an attacker and an ordinary member: what one caller can do to another. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type OpenOptions, openDatabase } from '../../src/database/open-database.ts';
import { raw } from '../../src/sql.ts';
import { isolatedUrl, startPostgres, type TestPostgres } from '../../test/support/postgres.ts';
import { call } from '../movies/client.ts';
import { type Server, startBylaw } from '../support/server.ts';

const SAMPLE = fileURLToPath(new URL('../../bylaw.yaml', import.meta.url));
/** A larger body than by default, so that large requests do some of their work before they are refused. */
const LIMITS = 'limits: { body: 1MiB }';

export type CrowdKind = 'postgres' | 'embedded';

export interface CrowdOptions {
  readonly kind: CrowdKind;
  /** With 0, the server is still in its first start. */
  readonly documents: number;
  /** A server to use. Default: a server of its own. */
  readonly databaseUrl?: string;
}

export interface Person {
  readonly email: string;
  readonly password: string;
  readonly token: string;
  readonly id: string;
}

export class CrowdWorld {
  readonly url: string;
  readonly pid: number;
  readonly attacker: Person;
  readonly member: Person;
  readonly #server: Server;
  readonly #ends: readonly (() => unknown)[];

  private constructor(server: Server, people: readonly [Person, Person], ends: readonly (() => unknown)[]) {
    this.#server = server;
    this.url = server.url;
    this.pid = server.process.pid!;
    [this.attacker, this.member] = people;
    this.#ends = ends;
  }

  static async open(options: CrowdOptions): Promise<CrowdWorld> {
    const folder = mkdtempSync(join(tmpdir(), 'bylaw-crowd-'));
    const schema = join(folder, 'bylaw.yaml');
    writeFileSync(schema, `${readFileSync(SAMPLE, 'utf8')}\n${LIMITS}\n`);
    const ends: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
    const database = await databaseOf(options, folder, ends);
    const start = () =>
      startBylaw({
        schema,
        data: folder,
        ...(database.url === undefined ? {} : { databaseUrl: database.url }),
      });
    try {
      const first = await start();
      ends.unshift(() => end(first));
      const people = [await signUp(first.url, 'attacker'), await signUp(first.url, 'member')] as const;
      let server = first;
      if (options.documents > 0) {
        // A data folder serves one process, so the rows of the embedded database come in between.
        await end(first);
        await fill(database, options.documents, people);
        server = await start();
        ends.unshift(() => end(server));
      }
      const signedIn = [await signIn(server.url, people[0]), await signIn(server.url, people[1])] as const;
      return new CrowdWorld(server, signedIn, ends);
    } catch (error) {
      for (const each of ends) await each();
      throw error;
    }
  }

  get isRunning(): boolean {
    return this.#server.process.exitCode === null && this.#server.process.signalCode === null;
  }

  async close(): Promise<void> {
    for (const each of this.#ends) await each();
  }
}

async function databaseOf(
  { kind, databaseUrl }: CrowdOptions,
  folder: string,
  ends: (() => unknown)[],
): Promise<OpenOptions> {
  if (kind === 'embedded') return { dataDir: folder };
  if (databaseUrl !== undefined) return { url: await isolatedUrl(databaseUrl) };
  // As a server comes: the just-in-time compiler is on.
  const settings = { fsync: 'on', synchronous_commit: 'on', autovacuum: 'on', shared_buffers: '512MB', jit: 'on' };
  const postgres: TestPostgres | undefined = await startPostgres({ settings });
  if (postgres === undefined)
    throw new Error('this bench needs PostgreSQL: install its binaries or set TEST_DATABASE_URL');
  ends.unshift(() => postgres.stop());
  return { url: await isolatedUrl(postgres.url) };
}

async function end({ process }: Server): Promise<void> {
  if (process.exitCode !== null || process.signalCode !== null) return;
  const ended = new Promise((resolve) => process.once('exit', resolve));
  process.kill('SIGTERM');
  await ended;
}

async function signUp(url: string, name: string): Promise<Person> {
  const person = { email: `${name}@example.com`, password: 'seven-samurai-1954' };
  await call(`${url}/api/auth/register`, { method: 'POST', body: person });
  return signIn(url, person);
}

async function signIn(url: string, { email, password }: Pick<Person, 'email' | 'password'>): Promise<Person> {
  const { body } = await call(`${url}/api/auth/login`, { method: 'POST', body: { email, password } });
  return { email, password, token: body.access_token, id: body.user.id };
}

/** The caller's own are one of a hundred; a third of all is published, and every document has three comments. */
const OWN_EVERY = 100;
const COMMENTS = 3;
const hex = (kind: string, n: string): string =>
  `('0190000${kind}-0000-7000-8000-' || lpad(to_hex(${n}), 12, '0'))::uuid`;

/** The nth document. Documents 100, 200, … are the attacker's, 50, 150, … the member's. */
export const documentId = (n: number): string => `01900000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`;

async function fill(database: OpenOptions, documents: number, [attacker, member]: readonly Person[]): Promise<void> {
  const db = await openDatabase(database);
  const owner = `CASE WHEN n % ${OWN_EVERY} = 0 THEN '${attacker!.id}' WHEN n % ${OWN_EVERY} = 50 THEN '${member!.id}'
                 ELSE ${hex('1', 'n % 1000')} END`;
  const statements = [
    `INSERT INTO users (id, email, email_verified)
     SELECT ${hex('1', 'n')}, 'user' || n || '@example.com', true FROM generate_series(0, 999) AS n`,
    `INSERT INTO documents (id, title, body, status, score, pinned, owner_id)
     SELECT ${hex('0', 'n')}, 'document ' || n, repeat('lorem ipsum ', 12), CASE WHEN n % 3 = 0 THEN 'published' ELSE 'draft' END,
            n % 100, false, (${owner})::uuid
       FROM generate_series(1, ${documents}) AS n`,
    `INSERT INTO comments (id, body, document_id, author_id)
     SELECT ${hex('4', 'n')}, 'comment ' || n, ${hex('0', `1 + n % ${documents}`)}, ${hex('1', 'n % 1000')}
       FROM generate_series(1, ${documents * COMMENTS}) AS n`,
    'ANALYZE',
  ];
  try {
    for (const statement of statements) await db.run(raw(statement));
  } finally {
    await db.close();
  }
}
