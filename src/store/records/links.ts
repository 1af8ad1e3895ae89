/** Members of many_to_many relations, and the references behind has_one. */
import type { ManyToMany } from '../../schema/model.ts';
import { ident, param, raw, type Sql, sql } from '../../sql.ts';
import { type Reading, readable } from './access-context.ts';
import type { LinkChange } from './input.ts';

export async function changeLinks(reading: Reading, id: string, change: LinkChange): Promise<void> {
  const { relation, set, add, remove } = change;
  if (set) {
    await unlink(reading, {
      relation,
      id,
      which: sql`l.${ident(relation.targetColumn)} <> ALL(${param('uuid[]', set)})`,
    });
    await link(reading, { relation, id, targets: set });
  }
  if (add.length > 0) await link(reading, { relation, id, targets: add });
  if (remove.length > 0) {
    await unlink(reading, {
      relation,
      id,
      which: sql`l.${ident(relation.targetColumn)} = ANY(${param('uuid[]', remove)})`,
    });
  }
}

/** Sorted, so that two writes take their locks in one order. */
async function link(
  { q }: Reading,
  {
    relation,
    id,
    targets,
  }: { readonly relation: ManyToMany; readonly id: string; readonly targets: readonly string[] },
): Promise<void> {
  if (targets.length === 0) return;
  const { linkTable, sourceColumn, targetColumn } = relation;
  await q.run(
    sql`INSERT INTO ${ident(linkTable)} (${ident(sourceColumn)}, ${ident(targetColumn)}) SELECT ${param('uuid', id)}, target FROM unnest(${param('uuid[]', targets.toSorted())}) AS target ON CONFLICT DO NOTHING`,
  );
}

/** Members that the caller may not read stay. */
async function unlink(
  { store, q, ask }: Reading,
  { relation, id, which }: { readonly relation: ManyToMany; readonly id: string; readonly which: Sql },
): Promise<void> {
  const { linkTable, sourceColumn, targetColumn, collection } = relation;
  await q.run(
    sql`DELETE FROM ${ident(linkTable)} AS l USING ${store.from(collection, raw('x'))} WHERE l.${ident(sourceColumn)} = ${param('uuid', id)} AND x.id = l.${ident(targetColumn)} AND ${which} AND ${readable(ask, collection, 'x')}`,
  );
}
