/**
 * Restores the links of relations that only a newer schema has: the trigger that keeps deleted rows keeps them, whichever
 * version deletes the record. Tables that are divided by tenant have no such trigger.
 */
import type { Queryable } from '../../database/contract.ts';
import { deletedName } from '../../policy/deleted-names.ts';
import { linkSideName, linksOf } from '../../schema/model/kept/link-sides.ts';
import type { Collection, Schema } from '../../schema/model/model.ts';
import { LINKS_COLUMN } from '../../schema/model/stored-names.ts';
import { ident, param, raw, regclassOf, sql, tableIdent, text } from '../../sql.ts';
import { recordKeyOf } from '../record-key.ts';
import type { Scope } from '../scope.ts';

/** A side of a table of links, and the table on its other side. */
interface NewerLinks {
  readonly linkTable: string;
  readonly ownColumn: string;
  readonly otherColumn: string;
  readonly otherTable: string;
  readonly otherKey: string;
  /** As the catalog has it. */
  readonly keyType: string;
}

async function newerLinksOf(q: Queryable, collection: Collection, schema: Schema): Promise<readonly NewerLinks[]> {
  const known = linksOf(collection, schema).map((side) => side.relation.linkTable);
  const sides = await q.rows(sql`
    SELECT l.relname, own.attname, other.attname, o.relname, k.attname, format_type(k.atttypid, NULL)
      FROM pg_constraint f
      JOIN pg_constraint g ON g.conrelid = f.conrelid AND g.oid <> f.oid
      JOIN pg_class l ON l.oid = f.conrelid AND l.relnamespace = current_schema()::regnamespace
      JOIN pg_class o ON o.oid = g.confrelid AND o.relnamespace = l.relnamespace
      JOIN pg_attribute own ON own.attrelid = l.oid AND own.attnum = f.conkey[1]
      JOIN pg_attribute other ON other.attrelid = l.oid AND other.attnum = g.conkey[1]
      JOIN pg_attribute k ON k.attrelid = o.oid AND k.attnum = g.confkey[1]
     WHERE f.confrelid = ${regclassOf(collection.table)}
       AND f.contype = 'f' AND cardinality(f.conkey) = 1 AND f.conparentid = 0
       AND g.contype = 'f' AND cardinality(g.conkey) = 1 AND g.conparentid = 0
       AND strpos(l.relname, '__') > 0
       AND l.relname::text <> ALL(${param('text[]', known)})
       AND l.relnatts = 2`);
  return sides.map((cells) => {
    const [linkTable, ownColumn, otherColumn, otherTable, otherKey, keyType] = cells as readonly [...Six];
    return { linkTable, ownColumn, otherColumn, otherTable, otherKey, keyType };
  });
}
type Six = [string, string, string, string, string, string];

interface RestoredRow {
  /** The schema of living records. */
  readonly schema: Schema;
  readonly collection: Collection;
  readonly id: string;
  /** Reaches the deleted row. */
  readonly deleted: Scope;
}

/** Inserts the links whose other side still exists. */
export async function restoreNewerLinks(q: Queryable, { schema, collection, id, deleted }: RestoredRow): Promise<void> {
  const key = recordKeyOf(collection);
  for (const { linkTable, ownColumn, otherColumn, otherTable, otherKey, keyType } of await newerLinksOf(
    q,
    collection,
    schema,
  )) {
    const other = ident('o', otherKey);
    const isLinked = sql`${other} IN (
      SELECT each::${raw(keyType)}
        FROM jsonb_array_elements_text(${ident('t', LINKS_COLUMN)} -> ${text(linkSideName(linkTable, ownColumn))}) AS each)`;
    const rows = deleted.from(deletedName(collection.name), 't').beside(sql`${tableIdent(otherTable)} AS o`);
    await q.run(sql`
      INSERT INTO ${tableIdent(linkTable)} (${ident(ownColumn)}, ${ident(otherColumn)})
      SELECT ${key.of('t')}, ${other}
        FROM ${rows.where(key.is('t', id), isLinked)}
          ON CONFLICT DO NOTHING`);
  }
}
