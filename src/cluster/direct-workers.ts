/**
 * A cluster of Citus, whose workers are asked directly. Every worker of Citus plans and answers every statement, so a
 * statement about one tenant is sent to the worker that has the tenant's records, which takes it no further. Only the
 * catalogue of the coordinator names workers.
 */
import type { Database, StatementTaker } from '../database/contract.ts';
import { readServerUrl } from '../database/server-url.ts';
import { inRounds } from '../in-rounds.ts';
import { asCaller, SERVICE } from '../queued-caller.ts';
import { reasonOf, succeeds } from '../thrown.ts';
import { withDeadline } from '../with-deadline.ts';
import { nameOfNode, Placements } from './placements.ts';
import { expectedIdentities, type NodeIdentity, WorkerNode } from './worker-node.ts';

/** Milliseconds after which what is known of the cluster is read again, beside the requests. */
const REREAD_MS = 5_000;
/** Milliseconds after which it is not used any more. */
const MOST_MS = 15_000;
/** Milliseconds that a worker has to identify itself, and the coordinator to identify the workers. */
const IDENTIFY_MS = 3_000;

export interface DirectOptions {
  /** The URL of the coordinator. Workers are asked with the same name, password and settings. */
  readonly url: string;
  /** The service calls it when a worker is found, or lost. */
  readonly say: (message: string) => void;
}

/** The database cannot be asked in this way. */
export class NoDirectWorkers extends Error {}

/** Throws NoDirectWorkers. Resolves when each worker has been looked for once. */
export async function askWorkersDirectly(coordinator: Database, options: DirectOptions): Promise<Database> {
  if (coordinator.isCluster !== true)
    throw new NoDirectWorkers('DATABASE_WORKERS=direct: the database is not a cluster of Citus');
  if (readServerUrl(options.url).isPooled)
    throw new NoDirectWorkers('DATABASE_WORKERS=direct: a pooler does not lead to workers; leave `pooler` out');
  const workers = new DirectWorkers(coordinator, options);
  await workers.look().catch((error: unknown) => {
    options.say(`the workers are asked through the coordinator: ${reasonOf(error)}`);
  });
  const direct: Database = {
    ...coordinator,
    replicaFor: () => direct,
    nodeFor: (table, tenant) => workers.nodeFor(table, tenant),
    async close() {
      await workers.close();
      await coordinator.close();
    },
  };
  return direct;
}

class DirectWorkers {
  readonly #coordinator: Database;
  readonly #options: DirectOptions;
  readonly #nodes = new Map<string, WorkerNode>();
  /** The last report of each worker. */
  readonly #reported = new Map<string, boolean>();
  readonly #readPlacements = inRounds(() => this.#read());
  readonly #findWorkers = inRounds(() => this.#find());
  #placements: Placements | undefined;
  #isClosed = false;
  /** The time of the catalogue that is known. */
  #readAt = Number.NEGATIVE_INFINITY;
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(coordinator: Database, options: DirectOptions) {
    this.#coordinator = coordinator;
    this.#options = options;
  }

  nodeFor(table: string, tenant: string): StatementTaker | undefined {
    const now = performance.now();
    if (now - this.#lookedAt > REREAD_MS) void succeeds(this.look());
    if (now - this.#readAt > MOST_MS) return undefined;
    const shard = this.#placements?.find(table, tenant);
    const node = shard && this.#nodes.get(shard.worker);
    return node?.isProvenSince(now - MOST_MS) ? node.at(shard!) : undefined;
  }

  /** Reads the catalogue, then looks for the workers. */
  async look(): Promise<void> {
    this.#lookedAt = performance.now();
    await asCaller(SERVICE, async () => {
      await this.#readPlacements();
      await this.#findWorkers();
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const nodes = [...this.#nodes.values()];
    this.#nodes.clear();
    await Promise.all(nodes.map((node) => node.close()));
  }

  async #read(): Promise<void> {
    const at = performance.now();
    const placements = await Placements.read(this.#coordinator, this.#placements);
    if (this.#isClosed) return;
    const known = new Set(placements.workers.map(nameOfNode));
    for (const worker of placements.workers) {
      const name = nameOfNode(worker);
      if (!this.#nodes.has(name)) this.#nodes.set(name, new WorkerNode(this.#coordinator, this.#options.url, worker));
    }
    for (const [name, node] of this.#nodes) {
      if (known.has(name)) continue;
      this.#nodes.delete(name);
      void node.close();
    }
    this.#placements = placements;
    this.#readAt = at;
  }

  /** Finds out which workers answer under their names. A worker that is away holds up no other one. */
  async #find(): Promise<void> {
    const since = performance.now();
    const nodes = [...this.#nodes];
    const found = new Map<WorkerNode, NodeIdentity>();
    await Promise.all(
      nodes.map(async ([, node]) => {
        const identity = await withDeadline(node.identity(), IDENTIFY_MS, () => undefined);
        if (identity !== undefined && !node.isProvenSince(since)) found.set(node, identity);
      }),
    );
    if (found.size > 0) {
      const expected = await expectedIdentities(this.#coordinator, [...found.keys()], IDENTIFY_MS);
      for (const [node, identity] of found) node.prove(identity, expected.get(node));
    }
    for (const [name, node] of nodes) this.#report(name, node.isProvenSince(since));
  }

  #report(name: string, isFound: boolean): void {
    if (this.#reported.get(name) === isFound) return;
    this.#reported.set(name, isFound);
    const why = 'it does not answer, or not as the server that the coordinator has under this name';
    this.#options.say(
      isFound ? `the worker ${name} is asked directly` : `the worker ${name} is asked through the coordinator: ${why}`,
    );
  }
}
