/**
 * Members of many_to_many relations. The members to add and remove are known before the write: the
 * rules judge the result.
 */
import { present } from '../../invariant.ts';
import { LINK_TENANT_COLUMN } from '../../policy/condition.ts';
import type { ManyToMany } from '../../schema/model/model.ts';
import { empty, ident, param, raw, type Sql, sql, uuid } from '../../sql.ts';
import { type Reading, readable } from '../access-context.ts';
import { areLinksOfTenant, isOfLink, tenancyOf } from '../scope.ts';
import type { LinkChange } from '../write/input.ts';
import type { MemberChange } from '../write/written-row.ts';

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

async function leavingOf(reading: Reading, { relation, id, isLeaving }: Leaving): Promise<readonly string[]> {
  const { store, q, access } = reading;
  const { linkTable, sourceColumn, targetColumn, collection } = relation;
  const rows = await q.rows(sql`
    SELECT x.id
      FROM ${ident(linkTable)} AS l
      JOIN ${store.from(collection, raw('x'))} ON x.id = l.${ident(targetColumn)}${isOfLink(store, relation, { alias: 'x', link: 'l' })}
     WHERE l.${ident(sourceColumn)} = ${uuid(id)}${areLinksOfTenant(reading, access.collection.name, 'l')}
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

/** The tenant of the links of the record that the request is about. */
function linkTenantOf({ access, tenant }: Reading): string | undefined {
  if (tenancyOf(access.collection) === undefined) return undefined;
  return present(tenant, 'the tenant of a record that is written');
}

/** Sorted, so that two writes take their locks in one order. */
async function linkMembers(reading: Reading, { relation, id, members }: MembersOfRecord): Promise<void> {
  const { linkTable, sourceColumn, targetColumn } = relation;
  const tenant = linkTenantOf(reading);
  await reading.q.run(sql`
    INSERT INTO ${ident(linkTable)} (${tenant === undefined ? empty : sql`${ident(LINK_TENANT_COLUMN)}, `}${ident(sourceColumn)}, ${ident(targetColumn)})
    SELECT ${tenant === undefined ? empty : sql`${uuid(tenant)}, `}${uuid(id)}, target
      FROM unnest(${param('uuid[]', members.toSorted())}) AS target
    ON CONFLICT DO NOTHING`);
}

async function unlink(reading: Reading, { relation, id, members }: MembersOfRecord): Promise<void> {
  const { linkTable, sourceColumn, targetColumn } = relation;
  const isOfTenant = areLinksOfTenant(reading, reading.access.collection.name, linkTable);
  await reading.q.run(sql`
    DELETE FROM ${ident(linkTable)}
     WHERE ${ident(sourceColumn)} = ${uuid(id)}${isOfTenant}
       AND ${ident(targetColumn)} = ANY(${param('uuid[]', members)})`);
}
