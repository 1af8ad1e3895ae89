/**
 * Tables whose rows are stored by tenant: Citus distributes them over machines where the database
 * has it; otherwise they are hash partitions on one machine.
 */
import { createHash } from 'node:crypto';
import type { Queryable } from '../database/contract.ts';
import { PARTITION_NUMBERS } from '../schema/model/indexes.ts';
import { constraintName } from '../schema/model/stored-names.ts';
import { empty, ident, join, raw, type Sql, sql } from '../sql.ts';
import type { ActualTable } from './catalog.ts';
import { addUnique, createTable } from './ddl.ts';
import type { Step } from './step.ts';
import { columnList, columnTypeOf, stringLiteral, type Table, type TableTenantLayout } from './tables.ts';

/**
 * The name of a partition, or of a table that is being replaced; at most 63 bytes. No collection has
 * such a name: those begin with a letter.
 */
export function partitionName(table: string, which: number | 'former'): string {
  const name = `_${table}_${which}`;
  if (name.length <= 63) return name;
  const hash = createHash('sha256').update(name).digest('hex').slice(0, 10);
  return `${name.slice(0, 50)}_${hash}`;
}

/** @param neighbour a table that is stored by the same tenants already */
export function createStoredTable(table: Table, isCluster: boolean, neighbour: string | undefined): readonly Sql[] {
  const { name, tenantLayout } = table;
  if (tenantLayout === undefined) return createTable(table);
  if (isCluster) return [...createTable(table), distribute(name, tenantLayout, neighbour)];
  return tenantLayout.kind === 'reference' ? createTable(table) : createPartitionedTable(table, tenantLayout.column);
}

/** Does the same as `createTable`, and creates its partitions. */
function createPartitionedTable(table: Table, key: string): readonly Sql[] {
  const { name, columns, primaryKey, uniques } = table;
  const definitions = columns.map((column) => {
    const notNull = column.required ? raw(' NOT NULL') : empty;
    const columnDefault = column.columnDefault === undefined ? empty : raw(` DEFAULT ${column.columnDefault}`);
    return sql`${ident(column.name)} ${raw(columnTypeOf(column))}${notNull}${columnDefault}`;
  });
  const constraint = ident(constraintName(name, [], 'pkey'));
  definitions.push(sql`CONSTRAINT ${constraint} PRIMARY KEY (${columnList(primaryKey)})`);
  return [
    sql`CREATE TABLE ${ident(name)} (${join(definitions, ', ')}) PARTITION BY HASH (${ident(key)})`,
    ...uniques.map((unique) => addUnique(name, unique)),
    ...PARTITION_NUMBERS.map((remainder) => {
      const bounds = raw(`WITH (MODULUS ${PARTITION_NUMBERS.length}, REMAINDER ${remainder})`);
      return sql`CREATE TABLE ${ident(partitionName(name, remainder))} PARTITION OF ${ident(name)} FOR VALUES ${bounds}`;
    }),
  ];
}

/** A cluster has no partitions, and renames shards by itself. */
export const renamedPartitions = (from: string, to: string): readonly Step[] =>
  PARTITION_NUMBERS.map((remainder) => {
    const [former, name] = [from, to].map((table) => ident(partitionName(table, remainder))) as [Sql, Sql];
    return { sql: sql`ALTER TABLE IF EXISTS ${former} RENAME TO ${name}` };
  });

/** The argument of a function that takes a table by its name. */
const tableLiteral = (table: string): Sql => stringLiteral(ident(table).text);

/** Distributes a table over a cluster. */
function distribute(table: string, layout: TableTenantLayout, neighbour: string | undefined): Sql {
  if (layout.kind === 'reference') return sql`SELECT create_reference_table(${tableLiteral(table)})`;
  const together = neighbour === undefined ? stringLiteral('none') : tableLiteral(neighbour);
  const distributed = sql`${tableLiteral(table)}, ${stringLiteral(layout.column)}`;
  return sql`SELECT create_distributed_table(${distributed}, colocate_with => ${together})`;
}

/** Gives every node of a cluster a copy of a table that has none, or no longer. */
export function replicate(
  { name, tenantLayout: wanted }: Table,
  { tenantLayout: actual }: ActualTable,
): readonly Step[] {
  if (!changesCopies(actual, wanted)) return [];
  if (wanted?.kind === 'reference') return [{ sql: distribute(name, wanted, undefined) }];
  // The cascade of another table that refers to the same tables of the service may have done it.
  return [
    {
      sql: sql`
      SELECT undistribute_table(logicalrelid, cascade_via_foreign_keys => true)
        FROM pg_dist_partition
       WHERE logicalrelid = ${tableLiteral(name)}::regclass`,
    },
  ];
}

type LayoutKind = Pick<TableTenantLayout, 'kind'> | undefined;
const changesCopies = (actual: LayoutKind, wanted: LayoutKind): boolean => wanted?.kind !== actual?.kind;

/**
 * True if the cluster takes the table only without its foreign keys: of tables that become copies on every node, the first
 * would refer to tables that are not yet, which Citus refuses for SET NULL and CASCADE.
 */
export const needsFreedKeys = (existing: ActualTable, wanted: Table): boolean =>
  changesCopies(existing.tenantLayout, wanted.tenantLayout);

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
