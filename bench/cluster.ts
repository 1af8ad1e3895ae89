/**
 * Measures the cost of a Citus cluster: requests of one client, one after the other, to a service on a coordinator with two workers,
 * beside the same on the partitions of one PostgreSQL. All processes share this machine, so the figure is the overhead alone.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { createPasswordPool } from '../src/auth/accounts/passwords.ts';
import { readConfig } from '../src/config.ts';
import type { Database } from '../src/database/contract.ts';
import { openDatabase } from '../src/database/open-database.ts';
import { openLog } from '../src/http/observe/log.ts';
import { parseSchema } from '../src/schema/load.ts';
import { type Service, startService } from '../src/service/start-service.ts';
import { raw } from '../src/sql.ts';
import { CitusCluster } from '../test/support/citus.ts';
import { isolatedUrl, startPostgres } from '../test/support/postgres.ts';
import type { Bench, BenchOptions } from './support/bench.ts';
import { verdict } from './support/measure.ts';

const TEAMS = 1_000;
/** The calls of each contender in a round. */
const CALLS = 20;
const PASSWORD = 'a password of the bench';
/** The rules of `notes` read the record alone. Those of `documents` read memberships too, and a document has a cover. */
const COLLECTIONS = ['notes', 'documents'] as const;
type CollectionName = (typeof COLLECTIONS)[number];
const SCHEMA = `${readFileSync(join(import.meta.dirname, '../docs/distributed.yaml'), 'utf8')}
  notes:
    distribute: { by: team }
    fields:
      slug: { type: string, required: true, unique: within_team }
      title: { type: string, required: true }
      score: { type: int, default: 0 }
    relations:
      team: { kind: belongs_to, collection: teams, required: true, default: '@request.auth.team', on_delete: cascade }
      owner: { kind: belongs_to, collection: users, required: true, default: '@request.auth.id', on_delete: restrict }
    access:
      view: '@record.team = @request.auth.team'
      create: '@record.team = @request.auth.team and @record.owner = @request.auth.id'
      update: '@record.team = @request.auth.team and @record.owner = @request.auth.id'
`;

/** The limits of the ratios: a list and a read, an update, and a create, which decides and writes in two statements. */
const LIMITS = { list: 1.3, read: 1.3, query: 1.3, create: 1.6, patch: 1.5 } as const;
type Work = keyof typeof LIMITS;

/** Statements about one record of a tenant, without the service: what a cluster adds to the barest of them, no request can save. */
const STATEMENTS = {
  'SELECT 1': { text: 'SELECT 1', values: [] },
  'one column by the key': { text: 'SELECT id FROM documents WHERE team_id = $1 AND id = $2', values: ['team', 'id'] },
  'all columns': { text: 'SELECT * FROM documents WHERE team_id = $1 AND id = $2', values: ['team', 'id'] },
  'the same under a rule': {
    text: `SELECT * FROM documents d WHERE team_id = $1 AND id = $2
              AND EXISTS (SELECT 1 FROM memberships m WHERE m.team_id = d.team_id AND m.user_id = $3)`,
    values: ['team', 'id', 'owner'],
  },
  'an update by the key': {
    text: 'UPDATE documents SET score = 1 WHERE team_id = $1 AND id = $2 RETURNING *',
    values: ['team', 'id'],
  },
} as const;
type StatementName = keyof typeof STATEMENTS;

class Contender {
  readonly #service: Service;
  readonly #db: Database;
  readonly #data: string;
  readonly #client: pg.Client;
  #headers: Record<string, string> = {};
  readonly #ids = { notes: '', documents: '' };
  #document = { id: '', team: '', owner: '' };
  #made = 0;

  private constructor(service: Service, db: Database, data: string, client: pg.Client) {
    this.#service = service;
    this.#db = db;
    this.#data = data;
    this.#client = client;
  }

  static async open(server: string, rows: number): Promise<Contender> {
    const { schema, issues } = parseSchema(SCHEMA, 'distributed.yaml');
    if (schema === undefined) throw new Error(JSON.stringify(issues));
    const data = mkdtempSync(join(tmpdir(), 'bylaw-bench-'));
    const url = await isolatedUrl(server);
    const db = await openDatabase({ url });
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    const config = readConfig({ port: '0' }, { BYLAW_RATE_LIMIT: 'off', BYLAW_DATA: data });
    const passwords = createPasswordPool(undefined, { memoryCost: 8, timeCost: 1, parallelism: 1 });
    const service = await startService({ config, schema, db, log: openLog('error'), passwords });
    const contender = new Contender(service, db, data, client);
    await contender.#fill(rows);
    return contender;
  }

  async #fill(rows: number): Promise<void> {
    const email = 'ann@example.org';
    await this.#send('POST', '/api/auth/register', { email, password: PASSWORD });
    const { access_token, user } = await this.#send('POST', '/api/auth/login', { email, password: PASSWORD });
    this.#headers = { Authorization: `Bearer ${access_token}` };
    const { data: team } = await this.#send('POST', '/api/teams', { data: { name: 'red' } });
    await this.#send('POST', '/api/memberships', { data: { team: team.id, user: user.id, role: 'owner' } });
    await this.#send('PATCH', `/api/users/${user.id}`, { data: { team: team.id } });
    const fill = [
      `INSERT INTO teams (id, name, created_by_id)
       SELECT gen_random_uuid(), 'team ' || n, '${user.id}' FROM generate_series(2, ${TEAMS}) n`,
      `INSERT INTO documents (id, slug, title, status, score, team_id, owner_id)
       SELECT gen_random_uuid(), 's' || n, 'a title', 'draft', n % 100, t.id, t.created_by_id
         FROM teams t, generate_series(1, ${Math.ceil(rows / TEAMS)}) n`,
      `INSERT INTO notes (id, slug, title, score, team_id, owner_id)
       SELECT gen_random_uuid(), slug, title, score, team_id, owner_id FROM documents`,
    ];
    for (const statement of fill) await this.#db.transaction((tx) => tx.run(raw(statement)), { unlimited: true });
    await this.#db.transaction((tx) => tx.run(raw('ANALYZE')), { unlimited: true });
    for (const name of COLLECTIONS) {
      const { data } = await this.#send('GET', `/api/${name}?limit=1`);
      this.#ids[name] = data[0].id;
      this.#document = data[0];
    }
  }

  async #send(method: string, path: string, json?: unknown) {
    const response = await fetch(this.#service.url + path, {
      method,
      headers: { ...this.#headers, ...(json === undefined ? {} : { 'Content-Type': 'application/json' }) },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === '' ? undefined : JSON.parse(text);
  }

  list = (of: CollectionName): Promise<unknown> => this.#send('GET', `/api/${of}?limit=20`);
  read = (of: CollectionName): Promise<unknown> => this.#send('GET', `/api/${of}/${this.#ids[of]}`);
  query = (of: CollectionName): Promise<unknown> =>
    this.#send('POST', `/api/${of}/query`, { filter: 'score > 50', sort: ['-score', 'id'], limit: 20 });
  create = (of: CollectionName): Promise<unknown> =>
    this.#send('POST', `/api/${of}`, { data: { slug: `made ${++this.#made}`, title: 'made' } });
  patch = (of: CollectionName): Promise<unknown> =>
    this.#send('PATCH', `/api/${of}/${this.#ids[of]}`, { data: { title: `changed ${++this.#made}` } });

  /** Prepared, as the service sends it. */
  async send(name: StatementName): Promise<void> {
    const { text, values } = STATEMENTS[name];
    await this.#client.query({ name, text, values: values.map((each) => this.#document[each]) });
  }

  async close(): Promise<void> {
    await this.#client.end();
    await this.#service.stop();
    rmSync(this.#data, { recursive: true, force: true });
  }
}

type Both = readonly [Contender, Contender];
type Call = (contender: Contender) => Promise<unknown>;

/** Other work of the machine only adds to the time of a call, so the quickest tenth shows what the call takes. */
const QUICKEST = 0.1;

/** Prints the milliseconds of a call to each, in turn, and returns the ratio. */
async function race(both: Both, { name, call }: { name: string; call: Call }, seconds: number): Promise<number> {
  const times = both.map((): number[] => []);
  const end = performance.now() + seconds * 1000;
  for (let round = 0; round < 5 || performance.now() < end; round++) {
    for (const [i, contender] of both.entries()) {
      for (let n = 0; n < CALLS; n++) {
        const start = performance.now();
        await call(contender);
        if (round > 1) times[i]!.push(performance.now() - start);
      }
    }
  }
  const [one, cluster] = times.map((each) => each.toSorted((a, b) => a - b)[Math.floor(each.length * QUICKEST)]!);
  console.log(`       ${name}: one PostgreSQL ${one!.toFixed(3)} ms, cluster ${cluster!.toFixed(3)} ms`);
  return cluster! / one!;
}

/** Without these, one PostgreSQL would do less work for each commit than a node of the cluster does. */
const SAME_SETTINGS = ['fsync', 'synchronous_commit', 'full_page_writes', 'wal_level', 'autovacuum', 'shared_buffers'];

async function settingsOf(url: string): Promise<Record<string, string>> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const read = 'SELECT name, current_setting(name) AS value FROM unnest($1::text[]) AS names (name)';
  const { rows } = await client.query<{ name: string; value: string }>(read, [SAME_SETTINGS]);
  await client.end();
  return Object.fromEntries(rows.map(({ name, value }) => [name, value]));
}

async function run({ seconds, rows }: BenchOptions): Promise<void> {
  const given = process.env.TEST_CITUS_URL;
  const cluster = given === undefined ? await CitusCluster.start() : undefined;
  const coordinator = given ?? cluster!.coordinator.url;
  // The connections of the service are not encrypted either.
  if (cluster !== undefined)
    await cluster.coordinator.query("ALTER SYSTEM SET citus.node_conninfo = 'sslmode=disable'");
  if (cluster !== undefined) await cluster.coordinator.query('SELECT pg_reload_conf()');
  const server = await startPostgres({ isOverTcp: true, settings: await settingsOf(coordinator) });
  if (server === undefined) throw new Error('this bench needs a PostgreSQL');
  const both: Contender[] = [];
  try {
    for (const url of [server.url, coordinator]) both.push(await Contender.open(url, rows));
    const pair: Both = [both[0]!, both[1]!];
    for (const name of Object.keys(STATEMENTS) as StatementName[])
      await race(pair, { name, call: (contender) => contender.send(name) }, 1);
    for (const collection of COLLECTIONS) {
      for (const work of Object.keys(LIMITS) as Work[]) {
        const name = `${work} of ${collection}`;
        const ratio = await race(pair, { name, call: (contender) => contender[work](collection) }, seconds);
        verdict(`${name}: a cluster ÷ partitions`, ratio, { limit: LIMITS[work], unit: '×' });
      }
    }
  } finally {
    for (const contender of both) await contender.close();
    await server.stop();
    await cluster?.stop();
  }
}

const bench: Bench = {
  name: 'cluster',
  question: 'requests of one client to a cluster, and to the partitions of one PostgreSQL',
  run,
};
export default bench;
