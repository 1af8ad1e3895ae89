/**
 * Measures the cost of a Citus cluster: requests of one client, one after the other, to a service on a coordinator with two workers,
 * and to one that asks the workers directly, beside the same on the partitions of one PostgreSQL. All processes share this machine, so
 * the figure is the overhead alone.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { createPasswordPool } from '../src/auth/accounts/passwords.ts';
import { askWorkersDirectly } from '../src/cluster/direct-workers.ts';
import { urlAt } from '../src/cluster/worker-node.ts';
import { readConfig } from '../src/config.ts';
import type { Database } from '../src/database/contract.ts';
import { openDatabase } from '../src/database/open-database.ts';
import { readServerUrl } from '../src/database/server-url.ts';
import { openLog } from '../src/http/observe/log.ts';
import { parseSchema } from '../src/schema/load.ts';
import { type Service, startService } from '../src/service/start-service.ts';
import { raw, sql, uuid } from '../src/sql.ts';
import { CitusCluster } from '../test/support/cluster/citus.ts';
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

interface ByHand {
  readonly text: string;
  readonly values: readonly ('team' | 'owner' | 'note' | 'document' | 'new id' | 'new slug')[];
}

const IS_MEMBER = 'EXISTS (SELECT 1 FROM memberships m WHERE m.team_id = $1 AND m.user_id = $2)';
const WRITES = `EXISTS (SELECT 1 FROM memberships m WHERE m.team_id = $1 AND m.user_id = $2 AND m.role IN ('owner', 'editor'))`;
const SHOWN = '*, (SELECT c.id FROM covers c WHERE c.team_id = $1 AND c.document_id = d.id) AS cover';
const SET = `title = 'changed', updated_at = greatest(updated_at, '2026-01-01Z'), _version = _version + 1`;
const DOCUMENT = `(id, slug, title, status, created_at, updated_at, team_id, owner_id)`;
const DOCUMENT_VALUES = `$3::uuid, $4::text, 'made', 'draft', '2026-01-01Z'::timestamptz, '2026-01-01Z'::timestamptz, $1::uuid, $2::uuid`;
const ORDER = 'ORDER BY score DESC NULLS LAST, id LIMIT 21';

/** The database's part of each request, by hand. What a cluster adds to it, no service can save. */
const BY_HAND: Readonly<Record<CollectionName, Readonly<Record<Work, ByHand>>>> = {
  notes: {
    list: { text: 'SELECT * FROM notes WHERE team_id = $1 ORDER BY id LIMIT 21', values: ['team'] },
    read: { text: 'SELECT * FROM notes WHERE team_id = $1 AND id = $2', values: ['team', 'note'] },
    query: { text: `SELECT * FROM notes WHERE team_id = $1 AND score > 50 ${ORDER}`, values: ['team'] },
    create: {
      text: `INSERT INTO notes (id, slug, title, score, created_at, updated_at, team_id, owner_id)
             VALUES ($3, $4, 'made', 0, '2026-01-01Z', '2026-01-01Z', $1, $2) RETURNING *`,
      values: ['team', 'owner', 'new id', 'new slug'],
    },
    patch: {
      text: `UPDATE notes SET ${SET} WHERE team_id = $1 AND id = $3 AND owner_id = $2 RETURNING *`,
      values: ['team', 'owner', 'note'],
    },
  },
  documents: {
    list: {
      text: `SELECT ${SHOWN} FROM documents d WHERE team_id = $1 AND ${IS_MEMBER} ORDER BY id LIMIT 21`,
      values: ['team', 'owner'],
    },
    read: {
      text: `SELECT ${SHOWN} FROM documents d WHERE team_id = $1 AND id = $3 AND ${IS_MEMBER}`,
      values: ['team', 'owner', 'document'],
    },
    query: {
      text: `SELECT ${SHOWN} FROM documents d WHERE team_id = $1 AND score > 50 AND ${IS_MEMBER} ${ORDER}`,
      values: ['team', 'owner'],
    },
    create: {
      text: `INSERT INTO documents ${DOCUMENT} SELECT ${DOCUMENT_VALUES} WHERE ${WRITES} RETURNING *`,
      values: ['team', 'owner', 'new id', 'new slug'],
    },
    patch: {
      text: `UPDATE documents d SET ${SET} WHERE team_id = $1 AND id = $3 AND ${WRITES} RETURNING ${SHOWN}`,
      values: ['team', 'owner', 'document'],
    },
  },
};
/** Citus commits a row of a query in two phases, so the first statement decides there. */
const CREATE_BY_HAND: readonly ByHand[] = [
  { text: `SELECT ${WRITES}`, values: ['team', 'owner'] },
  {
    text: `INSERT INTO documents ${DOCUMENT} VALUES (${DOCUMENT_VALUES}) RETURNING *`,
    values: ['team', 'owner', 'new id', 'new slug'],
  },
];

/** The barest statements. */
const BAREST: Readonly<Record<string, ByHand>> = {
  'SELECT 1': { text: 'SELECT 1', values: [] },
  'one column by the key': { text: 'SELECT id FROM notes WHERE team_id = $1 AND id = $2', values: ['team', 'note'] },
};

class Contender {
  readonly #service: Service;
  readonly #db: Database;
  readonly #data: string;
  /** Asks by hand. */
  #client: pg.Client;
  #headers: Record<string, string> = {};
  readonly #ids = { notes: '', documents: '' };
  #document = { team: '', owner: '' };
  #made = 0;

  private constructor(service: Service, db: Database, data: string, client: pg.Client) {
    this.#service = service;
    this.#db = db;
    this.#data = data;
    this.#client = client;
  }

  /** @param isDirect the workers of a cluster are asked */
  static async open(server: string, rows: number, isDirect = false): Promise<Contender> {
    const { schema, issues } = parseSchema(SCHEMA, 'distributed.yaml');
    if (schema === undefined) throw new Error(JSON.stringify(issues));
    const data = mkdtempSync(join(tmpdir(), 'bylaw-bench-'));
    const url = await isolatedUrl(server);
    const opened = await openDatabase({ url });
    const db = isDirect ? await askWorkersDirectly(opened, { url, say: () => undefined }) : opened;
    const client = new pg.Client(readServerUrl(url).config);
    await client.connect();
    // As the service asks the partitions.
    if (!db.isCluster) await client.query('SET plan_cache_mode = force_generic_plan');
    const config = readConfig({ port: '0' }, { BYLAW_RATE_LIMIT: 'off', BYLAW_DATA: data });
    const passwords = createPasswordPool(undefined, { memoryCost: 8, timeCost: 1, parallelism: 1 });
    const service = await startService({ config, schema, db, log: openLog('error'), passwords });
    const contender = new Contender(service, db, data, client);
    await contender.#fill(rows);
    if (isDirect) await contender.#goDirect(url);
    return contender;
  }

  /** Waits until the service knows the worker of the team, which is then asked by hand too. */
  async #goDirect(url: string): Promise<void> {
    const { team } = this.#document;
    while (this.#db.nodeFor!('notes', team) === undefined) await pause(100);
    const [[host, port] = []] = await this.#db.rows(sql`
      SELECT nodename, nodeport
        FROM citus_shards
       WHERE table_name = 'notes'::regclass
         AND shardid = get_shard_id_for_distribution_column('notes', ${uuid(team)})`);
    await this.#client.end();
    this.#client = new pg.Client(readServerUrl(urlAt(url, { host: host!, port: Number(port) })).config);
    await this.#client.connect();
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

  byHand(work: Work, of: CollectionName): Promise<void> {
    const isDecided = of === 'documents' && work === 'create' && this.#db.isCluster === true;
    return this.send(`${work} ${of}`, isDecided ? CREATE_BY_HAND : [BY_HAND[of][work]]);
  }

  /** Prepared, and its cells as text, as the service sends it. */
  async send(name: string, statements: readonly ByHand[]): Promise<void> {
    for (const [i, { text, values }] of statements.entries()) {
      const types = { getTypeParser: () => (cell: string) => cell };
      await this.#client.query({
        name: `${name} ${i}`,
        text,
        values: values.map((each) => this.#value(each)),
        types,
      });
    }
  }

  #value(name: ByHand['values'][number]): string {
    switch (name) {
      case 'new id':
        return crypto.randomUUID();
      case 'new slug':
        return `by hand ${++this.#made}`;
      case 'note':
        return this.#ids.notes;
      case 'document':
        return this.#ids.documents;
      default:
        return this.#document[name];
    }
  }

  async close(): Promise<void> {
    await this.#client.end();
    await this.#service.stop();
    rmSync(this.#data, { recursive: true, force: true });
  }
}

type Call = (contender: Contender) => Promise<unknown>;

/** Other work of the machine only adds to the time of a call, so the quickest tenth shows what the call takes. */
const QUICKEST = 0.1;

/** The milliseconds of each call to each contender, all in turn. */
async function race(
  contenders: readonly Contender[],
  calls: readonly Call[],
  seconds: number,
): Promise<readonly (readonly number[])[]> {
  const times = calls.map(() => contenders.map((): number[] => []));
  const end = performance.now() + seconds * 1000;
  for (let round = 0; round < 5 || performance.now() < end; round++) {
    for (const [c, call] of calls.entries()) {
      for (const [i, contender] of contenders.entries()) {
        for (let n = 0; n < CALLS; n++) {
          const start = performance.now();
          await call(contender);
          if (round > 1) times[c]![i]!.push(performance.now() - start);
        }
      }
    }
  }
  const quickest = (taken: readonly number[]) => taken.toSorted((a, b) => a - b)[Math.floor(taken.length * QUICKEST)]!;
  return times.map((taken) => taken.map(quickest));
}

const NAMES = ['partitions', 'cluster', 'cluster, workers asked directly'] as const;
const inMs = (taken: readonly number[]): string =>
  taken.map((each, i) => `${NAMES[i]} ${each.toFixed(3)} ms`).join(', ');

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
  const contenders: Contender[] = [];
  try {
    contenders.push(await Contender.open(server.url, rows));
    for (const isDirect of [false, true]) contenders.push(await Contender.open(coordinator, rows, isDirect));
    for (const [name, statement] of Object.entries(BAREST)) {
      const [times] = await race(contenders, [(contender) => contender.send(name, [statement])], 1);
      console.log(`       ${name}: ${inMs(times!)}`);
    }
    for (const collection of COLLECTIONS) {
      for (const work of Object.keys(LIMITS) as Work[]) {
        const name = `${work} of ${collection}`;
        const calls: Call[] = [(each) => each[work](collection), (each) => each.byHand(work, collection)];
        const [asked, byHand] = await race(contenders, calls, seconds);
        console.log(`       ${name}: ${inMs(asked!)}; by hand ${inMs(byHand!)}`);
        const [one, ...clusters] = asked!;
        for (const [i, taken] of clusters.entries()) {
          const least = (one! - byHand![0]! + byHand![i + 1]!) / one!;
          console.log(
            `       ${least.toFixed(2)} × if the service added to its statement by hand what it adds on one PostgreSQL`,
          );
          verdict(`${name}: ${NAMES[i + 1]} ÷ partitions`, taken / one!, { limit: LIMITS[work], unit: '×' });
        }
      }
    }
  } finally {
    for (const contender of contenders) await contender.close();
    await server.stop();
    await cluster?.stop();
  }
}

const bench: Bench = {
  name: 'cluster',
  question: 'requests of one client to a cluster, with and without its workers asked directly, and to partitions',
  run,
};
export default bench;
