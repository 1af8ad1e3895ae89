/** An import is one entry of the change log for each table: its subscribers list again. */
import type { Transaction } from '../../database/contract.ts';
import { loggedTablesOf } from '../../schema/model/logged-tables.ts';
import type { Collection, Schema } from '../../schema/model/model.ts';
import { param, raw, sql } from '../../sql.ts';
import { manyToManyOf } from './members.ts';

/** Switches the triggers of the log off for this transaction. */
export async function logAsBulk(tx: Transaction, schema: Schema, collection: Collection): Promise<void> {
  const logged = loggedTablesOf(schema);
  const tables = [collection.table, ...manyToManyOf(collection).map(({ linkTable }) => linkTable)];
  const sources = tables.flatMap((table) => logged.get(table)?.source ?? []);
  if (sources.length === 0) return;
  await tx.run(raw("SET LOCAL bylaw.bulk = 'on'"));
  await tx.run(sql`
    INSERT INTO bylaw_changes (xid, source, shape)
    SELECT pg_current_xact_id(), source, ''
      FROM unnest(${param('text[]', sources)}) AS source`);
}
