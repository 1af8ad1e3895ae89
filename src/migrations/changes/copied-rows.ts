/** Row triggers on the tables that each machine of a cluster has a copy of. */
import type { Schema } from '../../schema/model/model.ts';

/** A delete and an update run on each machine, for the copy there, and so would the triggers that keep rows. */
export function assertNothingKept({ collections }: Pick<Schema, 'collections'>): void {
  const kept = [...collections.values()].filter(
    ({ tenantLayout, history, softDelete }) =>
      tenantLayout?.kind === 'reference' && (history !== undefined || softDelete !== undefined),
  );
  if (kept.length === 0) return;
  const names = kept.map(({ name }) => `\`${name}\``).join(', ');
  throw new Error(
    `a cluster of Citus keeps no history and no deleted records of ${names}, of which each machine has a copy; remove ` +
      '`history` and `soft_delete`, or `distribute`',
  );
}
