/**
 * Members of many_to_many relations. The members to add and remove are known before the write: the
 * rules judge the result.
 */
import type { ManyToMany } from '../../../schema/model.ts';
import { ident, param, raw, type Sql, sql, uuid } from '../../../sql.ts';
import { type Reading, readable } from '../access-context.ts';
import type { LinkChange } from '../writes/input.ts';
import type { MemberChange } from '../writes/written-row.ts';

/** For a record that this transaction has locked. Members that the caller may not read stay. */
export async function memberChangeOf(reading: Reading, id: string, change: LinkChange): Promise<MemberChange> {
  const { relation, set, add, remove } = change;
  if (set)
    return { relation, joining: set, leaving: await leavingOf(reading, { relation, id, isLeaving: notIn(set) }) };
  const leaving = remove.length > 0 ? await leavingOf(reading, { relation, id, isLeaving: isIn(remove) }) : [];
  return { relation, joining: add, leaving };
}

/** For a record that does not exist yet. */
export const firstMembersOf = ({ relation, set, add }: LinkChange): MemberChange => ({
  relation,
  joining: set ?? add,
  leaving: [],
});

const isIn = (ids: readonly string[]): Sql => sql`= ANY(${param('uuid[]', ids)})`;
const notIn = (ids: readonly string[]): Sql => sql`<> ALL(${param('uuid[]', ids)})`;

interface Leaving {
  readonly relation: ManyToMany;
  readonly id: string;
  /** The condition on the member's id, written after it. */
  readonly isLeaving: Sql;
}

async function leavingOf(
  { store, q, access }: Reading,
  { relation, id, isLeaving }: Leaving,
): Promise<readonly string[]> {
  const { linkTable, sourceColumn, targetColumn, collection } = relation;
  const rows = await q.rows(sql`
    SELECT x.id
      FROM ${ident(linkTable)} AS l
      JOIN ${store.from(collection, raw('x'))} ON x.id = l.${ident(targetColumn)}
     WHERE l.${ident(sourceColumn)} = ${uuid(id)}
       AND x.id ${isLeaving}
       AND ${readable(access, collection, 'x')}`);
  return rows.map(([member]) => member!);
}

export async function writeMembers(reading: Reading, id: string, { relation, joining, leaving }: MemberChange) {
  if (leaving.length > 0) await unlink(reading, { relation, id, members: leaving });
  if (joining.length > 0) await linkMembers(reading, { relation, id, members: joining });
}

interface MembersOfRecord {
  readonly relation: ManyToMany;
  readonly id: string;
  readonly members: readonly string[];
}

/** Sorted, so that two writes take their locks in one order. */
async function linkMembers({ q }: Reading, { relation, id, members }: MembersOfRecord): Promise<void> {
  const { linkTable, sourceColumn, targetColumn } = relation;
  await q.run(sql`
    INSERT INTO ${ident(linkTable)} (${ident(sourceColumn)}, ${ident(targetColumn)})
    SELECT ${uuid(id)}, target
      FROM unnest(${param('uuid[]', members.toSorted())}) AS target
    ON CONFLICT DO NOTHING`);
}

async function unlink({ q }: Reading, { relation, id, members }: MembersOfRecord): Promise<void> {
  const { linkTable, sourceColumn, targetColumn } = relation;
  await q.run(sql`
    DELETE FROM ${ident(linkTable)}
     WHERE ${ident(sourceColumn)} = ${uuid(id)}
       AND ${ident(targetColumn)} = ANY(${param('uuid[]', members)})`);
}
