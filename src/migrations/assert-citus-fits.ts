import type { Queryable } from '../database/contract.ts';
import { raw } from '../sql.ts';

/** The cluster needs a change before it can store collections by tenant. */
class CitusUnfit extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'CitusUnfit';
  }
}

/** Throws CitusUnfit. */
export async function assertCitusFits(db: Pick<Queryable, 'rows'>): Promise<void> {
  const [row] = await db.rows(
    raw(`
    SELECT (SELECT groupid FROM pg_dist_local_group LIMIT 1), current_setting('max_prepared_transactions'),
           (SELECT count(*) FROM pg_dist_node WHERE noderole = 'primary' AND isactive AND shouldhaveshards)`),
  );
  const [group, slots, nodes] = row ?? [];
  if (group !== '0') {
    throw new CitusUnfit(
      'the schema has distributed collections, and this is a worker of a Citus cluster; expected its coordinator: ' +
        'give DATABASE_URL the address of the coordinator (SELECT * FROM citus_get_active_worker_nodes() lists the ' +
        'workers)',
    );
  }
  if (slots === '0') {
    throw new CitusUnfit(
      'the schema has distributed collections, and `max_prepared_transactions` is 0, so that no transaction can span ' +
        'two nodes; expected at least `max_connections`, on every node: set it and restart PostgreSQL',
    );
  }
  if (nodes === '0') {
    throw new CitusUnfit(
      'the schema has distributed collections, and the Citus cluster has no node for their rows; add a worker ' +
        `(SELECT citus_add_node('host', 5432)), or let the coordinator have them ` +
        `(SELECT citus_set_node_property('host', 5432, 'shouldhaveshards', true))`,
    );
  }
}
