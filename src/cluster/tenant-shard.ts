/**
 * The tables of a tenant's shard, by their names at its worker. Citus plans a statement about several tables of a tenant at each
 * execution; where a statement names the shards themselves, PostgreSQL keeps its plan.
 */
import { ident, join, raw, Sql, sql, withTables } from '../sql.ts';

/** Bytes of a name. Citus shortens the longer names of shards. */
const MOST_NAME = 63;

export class TenantShard {
  /** The name of the node. */
  readonly worker: string;
  /** The shards of co-located tables and of those that every node has, by the quoted name of the table. */
  readonly #ids: ReadonlyMap<string, { readonly id: number; readonly name: string }>;
  /** The shapes that statements have here, by their own; null: Citus plans the statement. */
  readonly #made = new WeakMap<Sql['shape'], Sql['shape'] | null>();

  /** @param shards the ids by the names of the tables */
  constructor(worker: string, shards: ReadonlyMap<string, number>) {
    this.worker = worker;
    const named = [...shards].map(([table, id]) => ({ table, id, shard: `${table}_${id}` }));
    this.#ids = new Map(
      named
        .filter(({ shard }) => Buffer.byteLength(shard) <= MOST_NAME)
        .map(({ table, id, shard }) => [ident(table).text, { id, name: ident(shard).text }]),
    );
  }

  /**
   * The same SELECT about the shards, which fails where one of them is not here, as the worker knows it in the snapshot of
   * the statement. Undefined: the statement reaches other tables.
   */
  statement(asked: Sql): Sql | undefined {
    let shape = this.#made.get(asked.shape);
    if (shape === undefined) {
      shape = this.#about(asked)?.shape ?? null;
      this.#made.set(asked.shape, shape);
    }
    return shape === null ? undefined : new Sql(shape, asked.params, asked.rowBytes);
  }

  /** Citus plans the statement from now on, until the catalogue shows other shards. */
  leaveToCitus({ shape }: Sql): void {
    this.#made.set(shape, null);
  }

  #about(asked: Sql): Sql | undefined {
    const ids = new Set<number>();
    let isWhole = true;
    const here = withTables(asked, (table) => {
      const shard = this.#ids.get(table);
      isWhole &&= shard !== undefined;
      if (shard !== undefined) ids.add(shard.id);
      return shard?.name ?? table;
    });
    if (!isWhole || ids.size === 0) return undefined;
    const placed = [...ids].map(
      (id) => sql`EXISTS (
        SELECT 1 FROM pg_dist_placement AS p WHERE p.shardid = ${raw(String(id))} AND p.groupid = l.groupid)`,
    );
    const areHere = sql`SELECT (${join(placed, ' AND ')})::int FROM pg_dist_local_group AS l`;
    return sql`SELECT * FROM (${here}) AS here WHERE 1 / (${areHere}) = 1`;
  }
}
