/** Deletes one tenant's records in chunks, so that no transaction has all of them; a later run continues. */
import type { Database, Queryable } from '../../database/contract.ts';
import { datetimeOf } from '../../policy/values.ts';
import { type Schema, tenantKeyOf } from '../../schema/model/model.ts';
import { ident, param, raw, sql, uuid } from '../../sql.ts';
import { forgetContents } from '../idempotency.ts';
import { everyTenant } from '../scope.ts';
import { touched } from '../write/written-row.ts';
import { looseReferences, rowsOfPart, scopeOfPart, type Tenant, type TenantPart } from './tenant-parts.ts';

/** Records of one transaction. */
const DELETED_AT_ONCE = 1_000;

/**
 * The records of the tenant, then those that every machine has, then the tenant. A member's reference to it is cleared.
 *
 * @param onProgress gets the number of records that a collection has lost
 */
export async function deleteTenant(
  db: Database,
  schema: Schema,
  { tenant, onProgress }: { readonly tenant: Tenant; onProgress(collection: string, records: number): void },
): Promise<void> {
  for (const part of tenant.parts.toReversed()) {
    if (part.column === 'id') await clearReferences(db, schema, { tenant, part });
    let records = 0;
    for (let ids = await nextIds(db, schema, { tenant, part }); ids.length > 0; ) {
      await deleteChunk(db, schema, { tenant, part, ids });
      records += ids.length;
      ids = await nextIds(db, schema, { tenant, part });
    }
    await deleteKept(db, schema, { tenant, part });
    onProgress(part.collection.name, records);
  }
}

/** The deleted records of the tenant, and the history of its records. */
async function deleteKept(db: Database, schema: Schema, { tenant, part }: PartOfTenant): Promise<void> {
  const { name, softDelete, history } = part.collection;
  const scope = scopeOfPart(schema, part, tenant.id);
  const isOfTenant =
    tenantKeyOf(part.collection) === undefined ? [sql`${ident('t', part.column)} = ${uuid(tenant.id)}`] : [];
  const kept = [
    ...(softDelete === undefined ? [] : [scope.deleted(name, 't').where(...isOfTenant)]),
    ...(history?.table === undefined ? [] : [scope.past(name, 't').where()]),
  ];
  for (const rows of kept) await db.transaction((tx) => tx.run(sql`DELETE FROM ${rows}`));
}

export interface PartOfTenant {
  readonly tenant: Tenant;
  readonly part: TenantPart;
}

/** Later records first: they refer to earlier ones. */
async function nextIds(db: Queryable, schema: Schema, { tenant, part }: PartOfTenant): Promise<readonly string[]> {
  const { rows, isOfTenant } = rowsOfPart(schema, part, tenant.id);
  const found = await db.rows(sql`
    SELECT t.id
      FROM ${rows.where(...isOfTenant)}
     ORDER BY t.id DESC
     LIMIT ${raw(String(DELETED_AT_ONCE))}`);
  return found.map(([id]) => id!);
}

function deleteChunk(
  db: Database,
  schema: Schema,
  { tenant, part, ids }: PartOfTenant & { readonly ids: readonly string[] },
): Promise<void> {
  const gone = param('uuid[]', ids);
  return db.transaction(async (tx) => {
    for (const other of tenant.parts) {
      const { rows, isOfTenant } = rowsOfPart(schema, other, tenant.id);
      for (const { collection, column } of looseReferences(other, tenant)) {
        if (collection !== part.collection.name) continue;
        const refers = sql`${ident('t', column)} = ANY(${gone})`;
        await tx.run(sql`UPDATE ${rows.set([sql`${ident(column)} = NULL`], ...isOfTenant, refers)}`);
      }
    }
    await forgetContents(tx, ids);
    const { rows, isOfTenant } = rowsOfPart(schema, part, tenant.id);
    await tx.run(sql`DELETE FROM ${rows.using(...isOfTenant, sql`t.id = ANY(${gone})`)}`);
  });
}

/** Clears the references of records that stay, such as the tenant's people. */
async function clearReferences(db: Database, schema: Schema, { tenant, part }: PartOfTenant): Promise<void> {
  const now = datetimeOf(new Date());
  for (const collection of schema.collections.values()) {
    for (const relation of collection.relations.values()) {
      if (relation.kind !== 'belongs_to' || relation.collection !== part.collection.name || relation.required) continue;
      const rows = everyTenant(schema).from(collection.name, 't');
      const refers = sql`${ident('t', relation.column)} = ${uuid(tenant.id)}`;
      const cleared = sql`${ident(relation.column)} = NULL`;
      await db.transaction((tx) =>
        tx.run(sql`UPDATE ${rows.set([cleared, ...touched(collection, 't', now)], refers)}`),
      );
    }
  }
}
