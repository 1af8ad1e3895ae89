/**
 * The record that a write produces, as a row of the statement that decides and writes, so the rules
 * judge exactly what is stored. That statement sees the database before the write, so no record can
 * be evidence for itself.
 */

import type { Queryable } from '../../database/contract.ts';
import { heldColumn } from '../../policy/condition.ts';
import { foldedColumn } from '../../policy/fold.ts';
import { FIELD_KINDS } from '../../schema/fields/index.ts';
import type { Collection, HasOne, ManyToMany } from '../../schema/model/model.ts';
import { VERSION_COLUMN } from '../../schema/model/stored-names.ts';
import { ident, join, param, raw, type Sql, type SqlType, sql, uuid } from '../../sql.ts';
import type { Reading, Store } from '../access-context.ts';
import { type Scope, scopeOf } from '../scope.ts';
import { withFoldedCopies } from './folded-copies.ts';
import type { ColumnValue, HasOneSetting } from './input.ts';
import { nextVersion, touchedAt } from './touched.ts';

/**
 * The changes that a write makes to one record. Partners and members that it does not list stay as
 * they are.
 */
export interface Writing {
  readonly values: readonly ColumnValue[];
  readonly members: readonly MemberChange[];
  readonly partners: readonly PartnerChange[];
}

export interface MemberChange {
  readonly relation: ManyToMany;
  readonly joining: readonly string[];
  readonly leaving: readonly string[];
}

export interface PartnerChange extends HasOneSetting {
  /** The partner of the record after the write: the requested one, or a hidden one that stays. */
  readonly partner: string | null;
}

/** The aliases of the rows that the conditions below read: the stored record, and the record as written. */
export const STORED = 't';
export const WRITTEN = 'n';

export interface Insertion {
  readonly scope: Scope;
  readonly collection: Collection;
  readonly writing: Writing;
  /** Of the row `WRITTEN`. */
  readonly condition: Sql;
  /** Of the row `STORED`, as it is after the write. */
  readonly returning: Sql;
}

/** Inserts the record and returns a row if the condition holds. */
export function insertWhere({ scope, collection, writing, condition, returning }: Insertion): Sql {
  const names = withFoldedCopies(collection, writing.values).map(({ column }) => column);
  const columns = names.map((name) => ident(name));
  const written = names.map((name) => ident(WRITTEN, name));
  return sql`
    INSERT INTO ${scope.into(collection.name, STORED)} (${join(columns, ', ')})
    SELECT ${join(written, ', ')}
      FROM (${newRow(collection, writing)}) AS ${ident(WRITTEN)}
     WHERE ${condition}
    RETURNING ${returning}`;
}

interface Judged {
  readonly writing: Writing;
  readonly conditions: readonly Sql[];
}

/** Which conditions hold for a record that would be inserted. */
export async function judgeInsert(
  q: Queryable,
  { collection, writing, conditions }: Judged & Pick<Insertion, 'collection'>,
): Promise<readonly boolean[]> {
  const [cells] = await q.rows(sql`
    SELECT ${columnsOf(conditions)}
      FROM (${newRow(collection, writing)}) AS ${ident(WRITTEN)}`);
  return cells!.map((cell) => cell === 't');
}

const columnsOf = (conditions: readonly Sql[]): Sql =>
  join(
    conditions.map((condition) => sql`(${condition})`),
    ', ',
  );

interface RowUpdate {
  readonly collection: string;
  readonly id: string;
  readonly writing: Writing;
  /** Of the rows `STORED` and `WRITTEN`. */
  readonly condition: Sql;
  /** The time of the request. */
  readonly now: string;
  readonly tenant?: string | undefined;
}

interface ReturningUpdate extends RowUpdate {
  /** Of the row `STORED`, as it is after the write. */
  readonly returning: Sql;
}

/**
 * Decides and writes; returns a row if the condition holds. INVARIANT: the row that is decided on is
 * the one that is written, also where the statement had to wait for it: PostgreSQL asks the condition
 * of its newest version again. It reads other rows as they were before the wait (see `unmoved`).
 */
export function updateStatement(store: Store, { condition, returning, ...update }: ReturningUpdate): Sql {
  const { collection } = store.shape(update.collection);
  const written = withFoldedCopies(collection, update.writing.values);
  const assignments = written.map(({ column, type, value }) => sql`${ident(column)} = ${param(type, value)}`);
  const time = sql`${ident(UPDATED_AT)} = ${touchedAt(ident(STORED, UPDATED_AT), update.now)}`;
  const version = nextVersion(ident(STORED, VERSION_COLUMN));
  const stored = scopeOf({ store, tenant: update.tenant }).from(update.collection, STORED);
  const isAllowed = sql`EXISTS (
           SELECT 1
             FROM (${changedRow(stored.related, collection, update)}) AS ${ident(WRITTEN)}
            WHERE ${condition})`;
  return sql`
    UPDATE ${stored.set([...assignments, time, version], sql`${ident(STORED, 'id')} = ${uuid(update.id)}`, isAllowed)}
    RETURNING ${returning}`;
}

/** False: the condition does not hold, and nothing was written. */
export async function updateWhere(store: Store, q: Queryable, update: RowUpdate): Promise<boolean> {
  const rows = await q.rows(updateStatement(store, { ...update, returning: raw('id') }));
  return rows.length > 0;
}

/**
 * The condition that the row `STORED` is the one that the statement saw when it began. With it, a
 * condition that reads other rows is asked of one state of the database, although the statement may
 * wait for the row.
 */
export function unmoved(reading: Omit<Reading, 'q'>, id: string): Sql {
  const { collection } = reading.access;
  return sql`${ident(STORED, VERSION_COLUMN)} = (
    SELECT s.${ident(VERSION_COLUMN)}
      FROM ${scopeOf(reading)
        .from(collection.name, 's')
        .where(sql`s.id = ${uuid(id)}`)})`;
}

/** Which conditions hold for an update that would be made, of a row that this transaction has locked. */
export async function judgeUpdate(
  store: Store,
  q: Queryable,
  update: Judged & Omit<RowUpdate, 'condition'>,
): Promise<readonly boolean[]> {
  const { collection } = store.shape(update.collection);
  const stored = scopeOf({ store, tenant: update.tenant }).from(update.collection, STORED);
  const written = sql`LATERAL (${changedRow(stored.related, collection, update)}) AS ${ident(WRITTEN)}`;
  const [cells] = await q.rows(sql`
    SELECT ${columnsOf(update.conditions)}
      FROM ${stored.beside(written).where(sql`${ident(STORED, 'id')} = ${uuid(update.id)}`)}`);
  return cells!.map((cell) => cell === 't');
}

const UPDATED_AT = 'updated_at';

// ---------------------------------------------------------------- the written row

/** The values of the row that the write does not set. */
interface Otherwise {
  column(column: string, type: SqlType): Sql;
  partner(relation: HasOne): Sql;
  members(relation: ManyToMany): Sql;
}

const NO_VALUES: Otherwise = {
  column: (_, type) => raw(`NULL::${type}`),
  partner: () => raw('NULL::uuid'),
  members: () => raw(`'{}'::uuid[]`),
};

const newRow = (collection: Collection, writing: Writing): Sql => rowOf(collection, writing, NO_VALUES);

/** @param related the scope of what belongs to the record */
function changedRow(related: Scope, collection: Collection, { writing, now }: Omit<RowUpdate, 'condition'>): Sql {
  const id = ident(STORED, 'id');
  return rowOf(collection, writing, {
    column: (column) => (column === UPDATED_AT ? touchedAt(ident(STORED, UPDATED_AT), now) : ident(STORED, column)),
    partner: ({ collection: target, viaColumn }) => sql`(
      SELECT x.id
        FROM ${related.from(target, 'x').where(sql`x.${ident(viaColumn)} = ${id}`)})`,
    members: (relation) => sql`ARRAY(
      SELECT l.${ident(relation.targetColumn)}
        FROM ${related.links(relation, collection.name, 'l').where(sql`l.${ident(relation.sourceColumn)} = ${id}`)})`,
  });
}

function rowOf(collection: Collection, writing: Writing, otherwise: Otherwise): Sql {
  const all = withFoldedCopies(collection, writing.values);
  const values = new Map(all.map(({ column, type, value }) => [column, sql`${param(type, value)}`]));
  const cell = (column: string, type: SqlType): Sql => values.get(column) ?? otherwise.column(column, type);
  const cells = [named('id', cell('id', 'uuid'))];
  for (const { column, type, search } of collection.fields.values()) {
    cells.push(named(column, cell(column, FIELD_KINDS[type].sqlType)));
    if (search) cells.push(named(foldedColumn(column), cell(foldedColumn(column), 'text')));
  }
  for (const relation of collection.relations.values()) {
    if (relation.kind === 'belongs_to') cells.push(named(relation.column, cell(relation.column, 'uuid')));
    if (relation.kind === 'has_one') cells.push(named(heldColumn(relation), partnerOf(relation, writing, otherwise)));
    if (relation.kind === 'many_to_many')
      cells.push(named(heldColumn(relation), linkRows(relation, writing, otherwise)));
  }
  return sql`SELECT ${join(cells, ', ')}`;
}

const named = (column: string, value: Sql): Sql => sql`${value} AS ${ident(column)}`;

function partnerOf(relation: HasOne, { partners }: Writing, otherwise: Otherwise): Sql {
  const change = partners.find((partner) => partner.relation === relation);
  return change === undefined ? otherwise.partner(relation) : sql`${uuid(change.partner)}`;
}

function linkRows(relation: ManyToMany, { members }: Writing, otherwise: Otherwise): Sql {
  const change = members.find((member) => member.relation === relation);
  const before = otherwise.members(relation);
  if (change === undefined) return before;
  const leaving = param('uuid[]', change.leaving);
  const joining = param('uuid[]', change.joining);
  return sql`ARRAY(
    SELECT id
      FROM unnest(${before}) AS id
     WHERE id <> ALL(${leaving})
     UNION
    SELECT unnest(${joining}))`;
}
