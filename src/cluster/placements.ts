/** Which worker has the records of a tenant, as the catalogue of the coordinator knew it at one moment. */
import type { Queryable } from '../database/contract.ts';
import { raw } from '../sql.ts';
import { TenantShard } from './tenant-shard.ts';
import { hashOfUuid } from './uuid-hash.ts';

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** The hashes from the first to the second, and the group of the worker that has their rows. */
type Hashes = readonly [colocation: number, from: number, to: number, group: number];

interface Catalogue {
  readonly hash: number;
  readonly workers: readonly (Address & { readonly group: number })[];
  /** The group of co-located tables that each distributed table is in, and its shards in the order of their hashes. */
  readonly tables: Readonly<Record<string, readonly [colocation: number, shards: readonly number[]]>>;
  /** The one shard of each table that every node has. */
  readonly everywhere: Readonly<Record<string, number>>;
  /** In the order of their hashes. */
  readonly shards: readonly Hashes[];
}

const SAMPLE = '5f0e6a1c-3d92-4b7e-8c41-a9d27be3f608';

/** Several placements of a row would need a write to each, so such tables are left out. */
const DIVIDED = `partmethod = 'h' AND repmodel = 's'`;
const VISIBLE = `pg_dist_partition AS p JOIN pg_class ON pg_class.oid = logicalrelid AND pg_table_is_visible(logicalrelid)`;
/** Workers that know all placements. */
const CATALOGUE = raw(`
  SELECT json_build_object(
    'hash', worker_hash('${SAMPLE}'::uuid),
    'workers', (SELECT coalesce(json_agg(json_build_object('group', groupid, 'host', nodename, 'port', nodeport)), '[]')
                  FROM pg_dist_node
                 WHERE groupid <> 0 AND noderole = 'primary' AND nodecluster = current_setting('citus.cluster_name')
                   AND isactive AND hasmetadata AND metadatasynced),
    'tables', (SELECT coalesce(json_object_agg(relname, json_build_array(colocationid, (
                        SELECT coalesce(json_agg(shardid ORDER BY shardminvalue::int), '[]')
                          FROM pg_dist_shard AS s
                         WHERE s.logicalrelid = p.logicalrelid))), '{}')
                 FROM ${VISIBLE}
                WHERE ${DIVIDED}),
    'everywhere', (SELECT coalesce(json_object_agg(relname, shardid), '{}')
                     FROM ${VISIBLE}
                     JOIN pg_dist_shard AS s USING (logicalrelid)
                    WHERE partmethod = 'n' AND repmodel = 't'),
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
  readonly #text: string;
  readonly #catalogue: Catalogue;
  /** The machines may hash otherwise; then no way is known. */
  readonly #isHashed: boolean;
  readonly #hashes: ReadonlyMap<number, readonly Hashes[]>;
  /** The shards that have been asked for, by the group of tables, in the order of their hashes. */
  readonly #shards = new Map<number, (TenantShard | undefined)[]>();

  private constructor(text: string) {
    this.#text = text;
    this.#catalogue = JSON.parse(text) as Catalogue;
    const { hash, workers, shards } = this.#catalogue;
    this.workers = workers;
    this.#isHashed = hash === hashOfUuid(SAMPLE);
    this.#hashes = Map.groupBy(shards, ([colocation]) => colocation);
  }

  /** The former ones, if nothing has changed. */
  static async read(db: Pick<Queryable, 'rows'>, former?: Placements): Promise<Placements> {
    const [row] = await db.rows(CATALOGUE);
    const text = row![0]!;
    return former !== undefined && former.#text === text ? former : new Placements(text);
  }

  /** The place of the rows of a tenant; undefined: unknown, or the coordinator itself has them. */
  find(table: string, tenant: string): TenantShard | undefined {
    const colocation = this.#catalogue.tables[table]?.[0];
    const hash = colocation === undefined || !this.#isHashed ? undefined : hashOfUuid(tenant);
    if (colocation === undefined || hash === undefined) return undefined;
    const hashes = this.#hashes.get(colocation) ?? [];
    const place = hashes.findLastIndex(([, from]) => from <= hash);
    return place >= 0 && hash <= hashes[place]![2] ? this.#shardAt(colocation, place) : undefined;
  }

  #shardAt(colocation: number, place: number): TenantShard | undefined {
    const { workers, tables, everywhere } = this.#catalogue;
    const group = this.#hashes.get(colocation)![place]![3];
    const worker = workers.find((each) => each.group === group);
    const known = this.#shards.get(colocation) ?? [];
    this.#shards.set(colocation, known);
    if (worker === undefined || known[place] !== undefined) return known[place];
    const beside = Object.entries(tables).filter(([, [other]]) => other === colocation);
    const ids = beside.map(([table, [, shards]]) => [table, shards[place]!] as const);
    known[place] = new TenantShard(nameOfNode(worker), new Map([...ids, ...Object.entries(everywhere)]));
    return known[place];
  }
}
