/** Which worker has the records of a tenant, as the catalogue of the coordinator knew it at one moment. */
import type { Queryable } from '../database/contract.ts';
import { raw } from '../sql.ts';
import { hashOfUuid } from './uuid-hash.ts';

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** The hashes from the first to the second, and the group of the worker that has their rows. */
type Shard = readonly [colocation: number, from: number, to: number, group: number];

interface Catalogue {
  readonly hash: number;
  readonly workers: readonly (Address & { readonly group: number })[];
  /** The group of co-located tables that each distributed table is in. */
  readonly tables: Readonly<Record<string, number>>;
  /** In the order of their hashes. */
  readonly shards: readonly Shard[];
}

const SAMPLE = '5f0e6a1c-3d92-4b7e-8c41-a9d27be3f608';

/** Several placements of a row would need a write to each, so such tables are left out. */
const DIVIDED = `partmethod = 'h' AND repmodel = 's'`;
/** Workers that know all placements. */
const CATALOGUE = raw(`
  SELECT json_build_object(
    'hash', worker_hash('${SAMPLE}'::uuid),
    'workers', (SELECT coalesce(json_agg(json_build_object('group', groupid, 'host', nodename, 'port', nodeport)), '[]')
                  FROM pg_dist_node
                 WHERE groupid <> 0 AND noderole = 'primary' AND nodecluster = current_setting('citus.cluster_name')
                   AND isactive AND hasmetadata AND metadatasynced),
    'tables', (SELECT coalesce(json_object_agg(relname, colocationid), '{}')
                 FROM pg_dist_partition JOIN pg_class ON pg_class.oid = logicalrelid
                WHERE ${DIVIDED} AND pg_table_is_visible(logicalrelid)),
    'shards', (SELECT coalesce(json_agg(json_build_array(colocationid, low, high, groupid) ORDER BY low), '[]')
                 FROM (SELECT colocationid, shardminvalue::int AS low, shardmaxvalue::int AS high, groupid
                         FROM (SELECT colocationid, min(logicalrelid::oid) AS id
                                 FROM pg_dist_partition
                                WHERE ${DIVIDED}
                                GROUP BY 1) AS one
                         JOIN pg_dist_shard ON logicalrelid = id
                         JOIN pg_dist_placement USING (shardid)) AS placed))`);

export const nameOfNode = ({ host, port }: Address): string => `${host}:${port}`;

export class Placements {
  readonly workers: readonly Address[];
  readonly #names: ReadonlyMap<number, string>;
  readonly #tables: ReadonlyMap<string, number>;
  readonly #shards: ReadonlyMap<number, readonly Shard[]>;

  private constructor({ hash, workers, tables, shards }: Catalogue) {
    // The machines may hash otherwise; then no way is known.
    const isHashed = hash === hashOfUuid(SAMPLE);
    this.workers = workers;
    this.#names = new Map(workers.map((worker) => [worker.group, nameOfNode(worker)]));
    this.#tables = new Map(isHashed ? Object.entries(tables) : []);
    this.#shards = Map.groupBy(shards, ([colocation]) => colocation);
  }

  static async read(db: Pick<Queryable, 'rows'>): Promise<Placements> {
    const [row] = await db.rows(CATALOGUE);
    return new Placements(JSON.parse(row![0]!) as Catalogue);
  }

  /** The name of the worker that has the rows of a tenant; undefined: unknown, or the coordinator itself has them. */
  find(table: string, tenant: string): string | undefined {
    const colocation = this.#tables.get(table);
    const hash = colocation === undefined ? undefined : hashOfUuid(tenant);
    if (colocation === undefined || hash === undefined) return undefined;
    const shard = this.#shards.get(colocation)?.findLast(([, from]) => from <= hash);
    return shard && hash <= shard[2] ? this.#names.get(shard[3]) : undefined;
  }
}
