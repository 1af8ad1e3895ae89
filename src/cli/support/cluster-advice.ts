/** Numbers for the operator of a cluster: shards before the first migration, and connections of each node. */

/** Connections of a process at a time: docs/operations.md counts them. */
const MOST_CONNECTIONS = 34;
/** The same, without notifications: a process has these at each worker that it asks directly. */
const MOST_AT_WORKER = 33;
/** Parts that a machine has at first: later, each can be moved to another machine, but none can be divided. */
const SHARDS_OF_A_MACHINE = 16;
/** The default of Citus. */
const LEAST_SHARDS = 32;

interface Cluster {
  /** Machines with records, as many as there may ever be. */
  readonly machines: number;
  /** Processes of the service, on all its machines. */
  readonly processes: number;
  /** `DATABASE_WORKERS=direct`. */
  readonly isDirect: boolean;
}

function shardsFor({ machines }: Pick<Cluster, 'machines'>): number {
  return Math.max(LEAST_SHARDS, 2 ** Math.ceil(Math.log2(machines * SHARDS_OF_A_MACHINE)));
}

export function clusterAdvice({ machines, processes, isDirect }: Cluster): string {
  const shards = shardsFor({ machines });
  const connections = processes * MOST_CONNECTIONS;
  const direct = isDirect ? processes * MOST_AT_WORKER : 0;
  return [
    `shards: ${shards}, for up to ${machines} machines; before the first \`bylaw migrate apply\`, at the coordinator:`,
    `  ALTER DATABASE … SET citus.shard_count = ${shards}`,
    `connections: ${processes} x ${MOST_CONNECTIONS} = ${connections} at the coordinator, which opens one to a machine for each of them`,
    `  that meets it${isDirect ? `, and ${processes} x ${MOST_AT_WORKER} = ${direct} to each worker by the service itself` : ''}: let \`max_connections\``,
    `  of every node exceed ${connections + direct + 50} (for tools, migrations and moves of shards), and`,
    `  \`citus.max_shared_pool_size\` be ${connections} or 0`,
    '',
  ].join('\n');
}
