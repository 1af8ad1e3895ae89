/**
 * How the rows of a table are divided by tenant: by Citus over machines where the database has it, else over hash partitions of
 * one machine.
 */
import { createHash } from 'node:crypto';
import type { TenantStorage } from '../database/citus.ts';
import { ident } from '../sql.ts';
import type { ActualTable } from './catalog.ts';
import type { Step } from './step.ts';
import type { Division, Table } from './tables.ts';

/** Of each distributed table, without Citus. More would cost planning time, fewer would hold more rows each. */
const PARTITIONS = 8;

const quoted = (name: string): string => ident(name).text;
/** Of a function that takes a table by its name. */
const tableLiteral = (table: string): string => `'${quoted(table).replaceAll("'", "''")}'`;

/** Of a partition, or of a table that is being replaced. No collection has such a name: those begin with a letter. At most 63 bytes. */
export function partitionName(table: string, which: number | 'former'): string {
  const name = `_${table}_${which}`;
  if (name.length <= 63) return name;
  const hash = createHash('sha256').update(name).digest('hex').slice(0, 10);
  return `${name.slice(0, 50)}_${hash}`;
}

/** What `CREATE TABLE` ends in, and the statements that follow. */
export interface Divided {
  readonly clause: string;
  readonly then: readonly string[];
}

/** `beside`: a table of the same tenants that is divided already. */
export function divided({ name, division }: Table, layout: TenantStorage, beside: string | undefined): Divided {
  if (division === undefined) return { clause: '', then: [] };
  if (layout === 'citus') return { clause: '', then: [distribute(name, division, beside)] };
  if (division.kind === 'reference') return { clause: '', then: [] };
  return { clause: ` partition by hash (${quoted(division.column)})`, then: partitions(name) };
}

function partitions(table: string): readonly string[] {
  return Array.from({ length: PARTITIONS }, (_, remainder) => {
    const bounds = `WITH (MODULUS ${PARTITIONS}, REMAINDER ${remainder})`;
    return `CREATE TABLE ${quoted(partitionName(table, remainder))} PARTITION OF ${quoted(table)} FOR VALUES ${bounds}`;
  });
}

/** A cluster has none, and renames shards by itself. */
export const renamedPartitions = (from: string, to: string): readonly Step[] =>
  Array.from({ length: PARTITIONS }, (_, i) => {
    const names = [partitionName(from, i), partitionName(to, i)].map(quoted);
    return { sql: `ALTER TABLE IF EXISTS ${names[0]} RENAME TO ${names[1]}` };
  });

/** On a cluster. */
function distribute(table: string, division: Division, beside: string | undefined): string {
  if (division.kind === 'reference') return `SELECT create_reference_table(${tableLiteral(table)})`;
  const together = beside === undefined ? `'none'` : tableLiteral(beside);
  return `SELECT create_distributed_table(${tableLiteral(table)}, '${division.column.replaceAll("'", "''")}', colocate_with => ${together})`;
}

/** On a cluster: every node gets a copy of a table that has none, or no longer. */
export function replicate({ name, division: wanted }: Table, { division: actual }: ActualTable): readonly Step[] {
  if (wanted?.kind === actual?.kind) return [];
  if (wanted?.kind === 'reference') return [{ sql: distribute(name, wanted, undefined) }];
  return [{ sql: `SELECT undistribute_table(${tableLiteral(name)}, cascade_via_foreign_keys => true)` }];
}
