/** A worker of a cluster, which is asked what the coordinator would ask it. */
import {
  type Cells,
  type Database,
  type DecidedRows,
  QueueFull,
  type Reader,
  type ReadOptions,
  type StatementTaker,
  StoreError,
  type WriteTarget,
} from '../database/contract.ts';
import { ServerLanes } from '../database/lanes/server-lanes.ts';
import { TogetherError } from '../database/pg-internals.ts';
import { readServerUrl } from '../database/server-url.ts';
import {
  isConnectionLoss,
  isDenied,
  isDivisionByZero,
  isQueryCanceled,
  isSchemaMoved,
  isTransient,
  mayBeCommitted,
  toStoreError,
} from '../database/to-store-error.ts';
import { mustNotHoldConnection, retried } from '../database/transaction.ts';
import { param, raw, type Sql, sql } from '../sql.ts';
import { type Address, nameOfNode } from './placements.ts';
import type { TenantShard } from './tenant-shard.ts';

/** A worker is in the coordinator's network, so it is away if it takes longer, and the coordinator is asked. */
const CONNECT_MS = 1_000;

/** The running server: two servers never share it, not even a copy of a data folder. */
const SERVER = `(SELECT system_identifier FROM pg_control_system()) || ' ' ||
  extract(epoch FROM pg_postmaster_start_time())`;

/** The part of a session that statements depend on: settings of a role or a database may differ between nodes. */
const SESSION_STATE = `concat_ws(' ', current_user, current_database(), current_schemas(false)::text,
  current_setting('default_transaction_isolation'), current_setting('default_transaction_read_only'))`;

const SELECT_IDENTITY = raw(`SELECT ${SERVER}, ${SESSION_STATE}`);
const OWN_SESSION = raw(`SELECT ${SESSION_STATE}`);

export interface NodeIdentity {
  readonly server: string;
  readonly session: string;
}

/** The identities of workers, by the servers that the coordinator reaches under their names. */
export async function expectedIdentities(
  coordinator: Reader,
  nodes: readonly WorkerNode[],
  limitMs: number,
): Promise<ReadonlyMap<WorkerNode, NodeIdentity>> {
  const [own] = await coordinator.rows(OWN_SESSION);
  const hosts = param(
    'text[]',
    nodes.map(({ address }) => address.host),
  );
  const ports = sql`${param(
    'int8[]',
    nodes.map(({ address }) => address.port),
  )}::int[]`;
  const commands = param(
    'text[]',
    nodes.map(() => `SELECT ${SERVER}`),
  );
  const statement = sql`
    SELECT node_name, node_port, result
      FROM master_run_on_worker(${hosts}, ${ports}, ${commands}, true)
     WHERE success`;
  const servers = await coordinator.rows(statement, { lane: 'slow', limitMs });
  const known = new Map(servers.map(([host, port, server]) => [`${host}:${port}`, server!]));
  const expected = new Map<WorkerNode, NodeIdentity>();
  for (const node of nodes) {
    const server = known.get(nameOfNode(node.address));
    if (server !== undefined) expected.set(node, { server, session: own![0]! });
  }
  return expected;
}

/** The URL of the same database on another machine. Name, password and settings stay. */
export function urlAt(url: string, { host, port }: Address): string {
  const [, scheme, login, path, query = ''] = /^([a-z]+:\/\/)([^/?]*@)?[^/?]*([^?]*)(?:\?(.*))?$/s.exec(url)!;
  const keys = new URLSearchParams(query);
  for (const place of ['host', 'hostaddr', 'port']) keys.delete(place);
  const name = host.includes(':') ? `[${host}]` : encodeURIComponent(host);
  return `${scheme}${login ?? ''}${name}:${port}${path}${keys.size > 0 ? `?${keys}` : ''}`;
}

export class WorkerNode {
  readonly address: Address;
  readonly #coordinator: Database;
  readonly #lanes: ServerLanes;
  /** The time of the last proof that the server under this name is the worker. */
  #provenAt = Number.NEGATIVE_INFINITY;
  #proven: NodeIdentity | undefined;

  constructor(coordinator: Database, url: string, address: Address) {
    const { config, ...server } = readServerUrl(urlAt(url, address));
    this.address = address;
    this.#coordinator = coordinator;
    this.#lanes = new ServerLanes({ ...server, config: { ...config, connectionTimeoutMillis: CONNECT_MS } }, {});
  }

  /** True if the worker was found here a short time ago, and no connection has been lost since. */
  isProvenSince(time: number): boolean {
    return this.#provenAt >= time;
  }

  /** The server that answers, if any does. The one that was proven before is proven again. */
  async identity(): Promise<NodeIdentity | undefined> {
    try {
      const [row] = await this.#lanes.rows(SELECT_IDENTITY, { lane: 'urgent' });
      const found = { server: row![0]!, session: row![1]! };
      this.prove(found, this.#proven);
      return found;
    } catch {
      this.#provenAt = Number.NEGATIVE_INFINITY;
      return undefined;
    }
  }

  /** @param expected of the worker */
  prove(found: NodeIdentity, expected: NodeIdentity | undefined): void {
    const isWorker = found.server === expected?.server && found.session === expected.session;
    this.#proven = isWorker ? found : undefined;
    this.#provenAt = isWorker ? performance.now() : Number.NEGATIVE_INFINITY;
  }

  /** The same node, which reads from the shards of a tenant. */
  at(shard: TenantShard): StatementTaker {
    return {
      rows: (statement, options) => this.rows(statement, options, shard),
      run: (statement) => this.run(statement),
      write: (statement, target) => this.write(statement, target),
      writeDecided: (decision, statement) => this.#writeDecided(shard, decision, statement),
    };
  }

  async rows(statement: Sql, options?: ReadOptions, shard?: TenantShard): Promise<readonly Cells[]> {
    try {
      return await this.#lanes.rows(shard?.statement(statement) ?? statement, options);
    } catch (error) {
      this.#noteLoss(error);
      // The worker is overloaded, or the statement slow: the coordinator would ask the same worker.
      if (error instanceof QueueFull || isTimeUp(error)) throw error;
      if (isElsewhere(error)) shard?.leaveToCitus(statement);
      return this.#coordinator.rows(statement, options);
    }
  }

  run(statement: Sql): Promise<number> {
    return this.#coordinator.run(statement);
  }

  /** Asks the coordinator where nothing was sent, and where an error of the worker's own has undone the statement. */
  async write(statement: Sql, target?: WriteTarget): Promise<readonly Cells[]> {
    mustNotHoldConnection();
    // Turns are taken at the coordinator.
    if (target?.first !== undefined) return this.#coordinator.write(statement, target);
    const [rows] = (await retried(() => this.#writeHere([statement]))) ?? [];
    return rows ?? this.#coordinator.write(statement, target);
  }

  async #writeDecided(shard: TenantShard, decision: Sql, statement: Sql): Promise<DecidedRows | undefined> {
    mustNotHoldConnection();
    const decides = shard.statement(decision);
    // Citus may decide in another session, whose settings the statement does not see.
    if (decides === undefined) return undefined;
    const rows = await retried(() => this.#writeHere([decides, statement], () => shard.leaveToCitus(decision)));
    return rows && { decided: rows[0]!, written: rows[1]! };
  }

  close(): Promise<void> {
    return this.#lanes.close();
  }

  /**
   * Sends them as one transaction. Undefined: nothing was written, and the coordinator is to be asked.
   * @param onElsewhere the shard that a statement names is not here
   */
  async #writeHere(
    statements: readonly Sql[],
    onElsewhere?: () => void,
  ): Promise<readonly (readonly Cells[])[] | undefined> {
    const lease = await this.#lanes.lease().catch((error: unknown) => {
      if (error instanceof QueueFull) throw error;
      this.#noteLoss(error);
    });
    if (lease === undefined) return undefined;
    let failure: unknown;
    try {
      return (await lease.sendTogether(statements)).map(({ rows }) => rows);
    } catch (together) {
      const error = together instanceof TogetherError ? together.cause : together;
      failure = error;
      this.#noteLoss(error);
      if (isElsewhere(error)) onElsewhere?.();
      if (toStoreError(error) instanceof StoreError || isTransient(error)) throw error;
      if (mayBeCommitted(error, true)) throw new StoreError('unavailable', error);
      return undefined;
    } finally {
      lease.release(isConnectionLoss(failure));
    }
  }

  /** From now on the coordinator is asked, until the worker is found again. */
  #noteLoss(error: unknown): void {
    const cause = error instanceof StoreError ? error.cause : error;
    if (isConnectionLoss(cause)) this.#provenAt = Number.NEGATIVE_INFINITY;
  }
}

/** The shard has moved, or the worker has none of this name that the service may read. */
const isElsewhere = (error: unknown): boolean => isDivisionByZero(error) || isSchemaMoved(error) || isDenied(error);

const isTimeUp = (error: unknown): boolean =>
  isQueryCanceled(error) || (error instanceof StoreError && error.kind === 'time_limit');
