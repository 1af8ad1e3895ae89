/**
 * Keeps deleted rows that are divided by tenant, in the transaction that deletes them: a cluster runs no trigger of such
 * tables. Each statement is about one tenant.
 */
import type { Queryable } from '../../database/contract.ts';
import { present } from '../../invariant.ts';
import { linksOf } from '../../schema/model/kept/link-sides.ts';
import { DELETED_AT } from '../../schema/model/kept/soft-delete.ts';
import { type Collection, type Schema, tenantKeyOf } from '../../schema/model/model.ts';
import { LINKS_COLUMN } from '../../schema/model/stored-names.ts';
import { ident, join, param, regclassOf, type Sql, sql, text } from '../../sql.ts';
import { recordKeyOf } from '../record-key.ts';
import { scopeOf } from '../scope.ts';

export interface KeptColumn {
  readonly name: string;
  /** The living row has a value. */
  readonly isRequired: boolean;
  /** The database fills it in. */
  readonly hasDefault: boolean;
}

/** The columns that living and deleted rows have, by the catalog: those that only a newer schema has keep their values too. */
export async function keptColumnsOf(q: Queryable, { table, softDelete }: Collection): Promise<readonly KeptColumn[]> {
  const columns = await q.rows(sql`
    SELECT a.attname, a.attnotnull, a.atthasdef
      FROM pg_attribute a
      JOIN pg_attribute d ON d.attname = a.attname
     WHERE a.attrelid = ${regclassOf(table)}
       AND d.attrelid = ${regclassOf(present(softDelete, 'the table of deleted rows').table)}
       AND a.attnum > 0
       AND a.attgenerated = ''
       AND NOT a.attisdropped
       AND a.attname NOT IN (${text(DELETED_AT)}, ${text(LINKS_COLUMN)})
     ORDER BY a.attnum`);
  return columns.map(([name, isRequired, hasDefault]) => ({
    name: name!,
    isRequired: isRequired === 't',
    hasDefault: hasDefault === 't',
  }));
}

interface LostRows {
  readonly collection: string;
  /** Rows that the transaction has locked. */
  readonly ids: readonly string[];
  readonly tenant: string | undefined;
  /** The time of the deletion. */
  readonly now: string;
}

/** Copies the rows and the ids of their links before a delete, where no trigger does. */
export async function keepRows(q: Queryable, schema: Schema, lost: LostRows): Promise<void> {
  const collection = schema.collections.get(lost.collection)!;
  if (collection.softDelete !== undefined && tenantKeyOf(collection) !== undefined) await copyRows(q, schema, lost);
}

/** Copies the rows and the ids of their links to the deleted ones. */
export async function copyRows(
  q: Queryable,
  schema: Schema,
  { collection: name, ids, tenant, now }: LostRows,
): Promise<void> {
  const collection = schema.collections.get(name)!;
  const scope = scopeOf({ store: { schema }, tenant });
  const key = recordKeyOf(collection);
  const isLost = sql`${key.of('t')} = ANY(${key.list([...ids])})`;
  await q.run(sql`DELETE FROM ${scope.deleted(name, 't').where(isLost)}`);
  const columns = (await keptColumnsOf(q, collection)).map((column) => column.name);
  const links = linksOf(collection, schema).flatMap(({ name: side, relation, holder, ownColumn, otherColumn }) => [
    text(side),
    sql`(SELECT coalesce(jsonb_agg(l.${ident(otherColumn)}::text), '[]')
           FROM ${scope.links(relation, holder, 'l').where(sql`l.${ident(ownColumn)} = ${key.of('t')}`)})`,
  ]);
  const named = [...columns, DELETED_AT, LINKS_COLUMN].map((column) => ident(column));
  const cells: readonly Sql[] = [
    ...columns.map((column) => ident('t', column)),
    sql`${param('timestamptz', now)}`,
    sql`jsonb_build_object(${join(links as readonly Sql[], ', ')})`,
  ];
  await q.run(sql`
    INSERT INTO ${scope.intoDeleted(name)} (${join(named, ', ')})
    SELECT ${join(cells, ', ')}
      FROM ${scope.stored(name, 't').where(isLost)}`);
}
