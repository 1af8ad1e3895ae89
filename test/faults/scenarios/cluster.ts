/** Faults of a Citus cluster: its nodes die and return, and shards move, while the people of six teams write and read. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '../../support/client.ts';
import { CitusCluster, type CitusNode, citusBinaries } from '../../support/cluster/citus.ts';
import type { Scenario } from '../scenario.ts';
import { type FaultWorld, isReady, pause, untilGood } from '../world.ts';

const SCHEMA = readFileSync(join(import.meta.dirname, '../../../docs/distributed.yaml'), 'utf8');
const PASSWORD = 'a password of tests';
const TEAMS = 6;

/** A team of one person, who works in it. */
interface Team {
  readonly id: string;
  readonly client: Client;
  /** The worker that has its records. */
  readonly port: number;
}

/** The requests of one team. */
interface Tally {
  readonly team: Team;
  readonly statuses: Map<string, number>;
  readonly acknowledged: Set<string>;
  /** The last title that was acknowledged, of the one record that is changed over and over. */
  changed: string | undefined;
  /** A change whose answer was lost, or that was refused by an error. */
  readonly open: Set<string>;
}

class ClusterLoad {
  readonly tallies: readonly Tally[];
  readonly #running: Promise<unknown>[];
  #isStopping = false;

  constructor(teams: readonly Team[]) {
    this.tallies = teams.map((team) => ({
      team,
      statuses: new Map(),
      acknowledged: new Set(),
      changed: undefined,
      open: new Set(),
    }));
    this.#running = this.tallies.map((tally) => this.#work(tally));
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(this.#running);
  }

  async #work(tally: Tally): Promise<void> {
    const { client } = tally.team;
    const count = (status: number | undefined): void => {
      const name = String(status ?? 'lost');
      tally.statuses.set(name, (tally.statuses.get(name) ?? 0) + 1);
    };
    let record: string | undefined;
    while (!this.#isStopping) {
      const slug = randomUUID();
      const made = await client.post('/api/documents', { data: { slug, title: slug } }).catch(() => undefined);
      count(made?.status);
      if (made?.status === 201) tally.acknowledged.add(slug);
      record ??= made?.body?.data?.id;
      if (record !== undefined) {
        const title = randomUUID();
        const changed = await client.patch(`/api/documents/${record}`, { data: { title } }).catch(() => undefined);
        count(changed?.status);
        if (changed?.status === 200) {
          tally.changed = title;
          tally.open.clear();
        } else tally.open.add(title);
      }
      const listed = await client.get('/api/documents?limit=5').catch(() => undefined);
      count(listed?.status);
      await pause(5);
    }
  }

  /** No acknowledged write is missing. */
  async check({ coordinator }: CitusCluster): Promise<void> {
    const rows = await coordinator.query('SELECT slug, title FROM documents');
    const slugs = new Set(rows.map(({ slug }) => slug as string));
    const titles = new Set(rows.map(({ title }) => title as string));
    const lost = this.tallies.flatMap(({ acknowledged }) => [...acknowledged].filter((slug) => !slugs.has(slug)));
    const undone = this.tallies.filter(
      ({ changed, open }) => changed !== undefined && ![changed, ...open].some((title) => titles.has(title)),
    );
    assert.deepEqual([lost, undone.map(({ changed }) => changed)], [[], []]);
    assert(
      this.tallies.every(({ acknowledged }) => acknowledged.size > 0),
      'every team has written',
    );
  }

  /** No answers but these. @param of the teams */
  expectOnly(allowed: readonly string[], of: (team: Team) => boolean = () => true): void {
    for (const { team, statuses } of this.tallies) {
      const others = of(team) ? [...statuses].filter(([status]) => !allowed.includes(status)) : [];
      assert.deepEqual(others, [], `only ${allowed.join(', ')} are answered`);
    }
  }
}

async function startedCluster(world: FaultWorld): Promise<CitusCluster> {
  const cluster = await CitusCluster.start();
  world.afterwards(() => cluster.stop());
  return cluster;
}

/** The workers are asked by the coordinator, or by the service itself. */
type Way = 'coordinator' | 'direct';

async function serveTeams(world: FaultWorld, cluster: CitusCluster, way: Way = 'coordinator') {
  const server = await world.serve({
    schema: SCHEMA,
    databaseUrl: cluster.coordinator.url,
    env: { BYLAW_RATE_LIMIT: 'off', DATABASE_WORKERS: way },
  });
  const teams: Team[] = [];
  for (let n = 0; n < TEAMS; n++) teams.push(await makeTeam(cluster, new Client(server.url), n));
  assert.equal(new Set(teams.map(({ port }) => port)).size, 2, 'each worker has a team');
  return { server, teams };
}

async function makeTeam(cluster: CitusCluster, anybody: Client, n: number): Promise<Team> {
  const email = `person${n}@example.org`;
  const sent = async (answer: Promise<{ status: number; text: string; body: { data: { id: string } } }>) => {
    const { status, text, body } = await answer;
    assert(status < 300, text);
    return body;
  };
  await sent(anybody.post('/api/auth/register', { email, password: PASSWORD }));
  const { body } = await anybody.post('/api/auth/login', { email, password: PASSWORD });
  const client = anybody.with({ Authorization: `Bearer ${body.access_token}` });
  const user = body.user.id as string;
  // Half of the teams are on each worker.
  for (let attempt = 0; ; attempt++) {
    const { data } = await sent(client.post('/api/teams', { data: { name: `team ${n} ${attempt}` } }));
    const port = await portOf(cluster, data.id);
    if (port !== cluster.workers[n % 2]!.port) continue;
    await sent(client.post('/api/memberships', { data: { team: data.id, user, role: 'owner' } }));
    await sent(client.patch(`/api/users/${user}`, { data: { team: data.id } }));
    return { id: data.id, client, port };
  }
}

async function portOf({ coordinator }: CitusCluster, team: string): Promise<number> {
  const [row] = await coordinator.query(
    `SELECT nodeport
       FROM citus_shards
      WHERE table_name = 'documents'::regclass AND shardid = get_shard_id_for_distribution_column('documents', $1::uuid)`,
    [team],
  );
  return Number(row?.nodeport);
}

const isServed = (team: Team) => async (): Promise<boolean> =>
  (await team.client.get('/api/documents?limit=1')).status === 200;

const nameOf = (name: string, way: Way): string => (way === 'direct' ? `${name}-direct` : name);

const skip = (): string | undefined =>
  citusBinaries() === undefined ? 'no PostgreSQL here has the extension Citus' : undefined;

const workerKilled = (way: Way): Scenario => ({
  name: nameOf('cluster-worker-killed', way),
  holds:
    'a killed worker costs its own teams 503s until it is back; others notice nothing, and no acknowledged write is lost',
  skip,
  async run(world) {
    const cluster = await startedCluster(world);
    const { server, teams } = await serveTeams(world, cluster, way);
    const worker = cluster.workers[0]!;
    const load = new ClusterLoad(teams);
    await pause(world.loadMs / 2);
    await worker.kill();
    await pause(world.loadMs / 2);
    await expectAccountsClosed(new Client(server.url));
    await pause(world.loadMs / 2);
    await worker.start();
    for (const team of teams) await untilGood(isServed(team), 30_000);
    await pause(world.loadMs / 2);
    await load.stop();
    load.expectOnly(['200', '201'], ({ port }) => port !== worker.port);
    load.expectOnly(['200', '201', '503']);
    await load.check(cluster);
    await expectNothingPrepared([cluster.coordinator, ...cluster.workers]);
  },
});

/** Every machine has the accounts: while one is away, sign-in works and registration fails. */
async function expectAccountsClosed(anybody: Client): Promise<void> {
  const known = await anybody.post('/api/auth/login', { email: 'person0@example.org', password: PASSWORD });
  const added = await anybody.post('/api/auth/register', { email: 'new@example.org', password: PASSWORD });
  assert.deepEqual([known.status, added.status], [200, 503]);
}

/** No transaction was left half committed. */
async function expectNothingPrepared(nodes: readonly CitusNode[]): Promise<void> {
  const isSettled = async (): Promise<boolean> => {
    for (const node of nodes) if ((await node.query('SELECT 1 FROM pg_prepared_xacts')).length > 0) return false;
    return true;
  };
  // Citus recovers them once a minute.
  await nodes[0]!.query('SELECT recover_prepared_transactions()');
  await untilGood(isSettled, 30_000);
}

const shardsMoved = (way: Way): Scenario => ({
  name: nameOf('cluster-shards-moved', way),
  holds: 'a new worker takes its share of the shards under load: every request is answered as usual',
  skip,
  async run(world) {
    const cluster = await startedCluster(world);
    const { teams } = await serveTeams(world, cluster, way);
    const load = new ClusterLoad(teams);
    const { port } = await cluster.addWorker();
    await cluster.coordinator.query("SELECT replicate_reference_tables('force_logical')");
    // The shards of the teams move, and few others, so that the scenario is short.
    const moved = new Set<string>();
    for (const team of teams.slice(0, 3)) {
      const [row] = await cluster.coordinator.query(
        "SELECT get_shard_id_for_distribution_column('documents', $1::uuid)::text AS shard",
        [team.id],
      );
      if (moved.has(row!.shard)) continue;
      moved.add(row!.shard);
      await cluster.coordinator.query(
        "SELECT citus_move_shard_placement($1::bigint, '127.0.0.1', $2::int, '127.0.0.1', $3::int, 'force_logical')",
        [row!.shard, team.port, port],
      );
    }
    await pause(world.loadMs / 2);
    await load.stop();
    load.expectOnly(['200', '201']);
    await load.check(cluster);
  },
});

const coordinatorKilled = (way: Way): Scenario => ({
  name: nameOf('cluster-coordinator-killed', way),
  holds:
    'without the coordinator every request is a 503; when it is back all is served, and no acknowledged write is lost',
  skip,
  async run(world) {
    const cluster = await startedCluster(world);
    const { server, teams } = await serveTeams(world, cluster, way);
    const load = new ClusterLoad(teams);
    await pause(world.loadMs / 2);
    await cluster.coordinator.kill();
    await pause(world.loadMs / 2);
    await cluster.coordinator.start();
    await untilGood(isReady(server), 60_000);
    for (const team of teams) await untilGood(isServed(team), 30_000);
    await pause(world.loadMs / 2);
    await load.stop();
    load.expectOnly(['200', '201', '503']);
    await load.check(cluster);
    await expectNothingPrepared([cluster.coordinator, ...cluster.workers]);
  },
});

export const CLUSTER_SCENARIOS: readonly Scenario[] = (['coordinator', 'direct'] as const).flatMap((way) => [
  workerKilled(way),
  shardsMoved(way),
  coordinatorKilled(way),
]);
