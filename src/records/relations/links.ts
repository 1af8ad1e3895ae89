/**
 * Members of many_to_many relations. The members to add and remove are known before the write: the
 * rules judge the result.
 */
import type { ManyToMany } from '../../schema/model/model.ts';
import { ident, raw, type Sql, sql } from '../../sql.ts';
import { type Reading, readable } from '../access-context.ts';
import type { RecordKey } from '../record-key.ts';
import { scopeOf } from '../scope.ts';
import type { LinkChange } from '../write/input.ts';
import type { MemberChange } from '../write/written-row.ts';

/** The change of a record that this transaction has locked. Members that the caller may not read stay. */
export async function memberChangeOf(reading: Reading, id: string, change: LinkChange): Promise<MemberChange> {
  const { relation, set, add, remove } = change;
  if (set)
    return {
      relation,
      joining: set,
      leaving: await leavingOf(reading, { relation, id, isLeaving: (key) => sql`<> ALL(${key.list(set)})` }),
    };
  const leaving =
    remove.length > 0
      ? await leavingOf(reading, { relation, id, isLeaving: (key) => sql`= ANY(${key.list(remove)})` })
      : [];
  return { relation, joining: add, leaving };
}

interface Leaving {
  readonly relation: ManyToMany;
  readonly id: string;
  /** The condition on the member's id, written after it. */
  isLeaving(key: RecordKey): Sql;
}

async function leavingOf(reading: Reading, { relation, id, isLeaving }: Leaving): Promise<readonly string[]> {
  const { q, access } = reading;
  const { sourceColumn, targetColumn, collection } = relation;
  const scope = scopeOf(reading);
  const [key, member] = [scope.key(access.collection.name), scope.key(collection)];
  const links = scope.links(relation, access.collection.name, 'l');
  const members = links.join(links.related.from(collection, 'x'), member.isIn('x', sql`l.${ident(targetColumn)}`));
  const conditions = [
    sql`l.${ident(sourceColumn)} = ${key.param(id)}`,
    sql`${member.of('x')} ${isLeaving(member)}`,
    readable(access, collection, 'x'),
  ];
  const rows = await q.rows(sql`SELECT ${member.of('x')} FROM ${members.where(...conditions)}`);
  return rows.map(([found]) => found!);
}

export async function writeMembers(reading: Reading, id: string, change: MemberChange): Promise<void> {
  const { joining, leaving } = change;
  if (leaving.length > 0) await unlink(reading, id, change);
  if (joining.length > 0) await linkMembers(reading, id, change);
}

/** Sorted, so that two writes take their locks in one order. */
async function linkMembers(reading: Reading, id: string, { relation, joining }: MemberChange): Promise<void> {
  const { name } = reading.access.collection;
  const scope = scopeOf(reading);
  const targets = joining.toSorted();
  const pairs = targets.map((target) => ({ id, target }));
  // A cluster sends the rows of a query through its coordinator, and commits them in two phases.
  if (reading.store.isCluster) await reading.q.run(scope.linksInto(relation, name, pairs));
  else
    await reading.q.run(sql`
    INSERT INTO ${scope.linkInto(relation, name, sql`${scope.key(name).param(id)}`, raw('target'))}
      FROM unnest(${scope.key(relation.collection).list(targets)}) AS target
    ON CONFLICT DO NOTHING`);
}

async function unlink(reading: Reading, id: string, { relation, leaving }: MemberChange): Promise<void> {
  const { sourceColumn, targetColumn } = relation;
  const { name } = reading.access.collection;
  const scope = scopeOf(reading);
  const links = scope.links(relation, name, 'l');
  const isOfRecord = sql`l.${ident(sourceColumn)} = ${scope.key(name).param(id)}`;
  const isLeaving = sql`l.${ident(targetColumn)} = ANY(${scope.key(relation.collection).list(leaving)})`;
  await reading.q.run(sql`DELETE FROM ${links.where(isOfRecord, isLeaving)}`);
}
