/**
 * The record that a write produces, as a row of the statement that decides and writes, so the rules
 * judge exactly what is stored. That statement sees the database before the write, so no record can
 * be evidence for itself.
 */
import { heldColumn } from '../../policy/condition.ts';
import { foldedColumn } from '../../policy/fold.ts';
import { idReferredTo, readAsField, valueReferringTo } from '../../policy/stored-rows.ts';
import { FIELD_KINDS } from '../../schema/fields/index.ts';
import type { Collection, HasOne, ManyToMany, Schema } from '../../schema/model/model.ts';
import { VERSION_COLUMN } from '../../schema/model/stored-names.ts';
import { ident, join, type Place, param, raw, type Sql, type SqlType, sql } from '../../sql.ts';
import type { Reading, Requested } from '../access-context.ts';
import { overridingIds } from '../new-ids.ts';
import { type RecordKey, recordKeyIn, recordKeyOf } from '../record-key.ts';
import { type Scope, scopeOf } from '../scope.ts';
import type { ColumnValue, HasOneSetting } from './input.ts';

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

/** The columns in which the record after the write differs from the stored one. */
export const changedColumns = (collection: Stamped, { values, members, partners }: Writing): ReadonlySet<string> =>
  new Set([
    ...updatedColumns(collection),
    VERSION_COLUMN,
    ...values.map(({ column }) => column),
    ...[...members, ...partners].map(({ relation }) => heldColumn(relation)),
  ]);

const storedValues = ({ values }: Pick<Writing, 'values'>): readonly ColumnValue[] =>
  values.filter(({ isMade }) => isMade !== true);

/** The aliases of the rows that the conditions below read: the stored record, and the record as written. */
export const STORED = 't';
export const WRITTEN = 'n';

interface Insertion {
  readonly writing: Writing;
  /** A condition of the row `WRITTEN`. */
  readonly condition: Sql;
  /** Columns of the row `STORED`, as it is after the write. */
  readonly returning: Sql;
}

/** Inserts the record and returns a row if the condition holds. */
export function insertStatement(reading: Requested, { writing, condition, returning }: Insertion): Sql {
  const { collection } = reading.access;
  const names = storedValues(writing).map(({ column }) => column);
  const columns = names.map((name) => ident(name));
  const written = names.map((name) => ident(WRITTEN, name));
  return sql`
    INSERT INTO ${scopeOf(reading).into(collection.name, STORED)} (${join(columns, ', ')})${overridingIds(collection)}
    SELECT ${join(written, ', ')}
      FROM (${newRow(reading, { writing, conditions: [condition, ...written] })}) AS ${ident(WRITTEN)}
     WHERE ${condition}
    RETURNING ${returning}`;
}

/**
 * Inserts the record and returns a row: `insertStatement` for a cluster, where that statement would pass the coordinator,
 * and be committed in two phases. A statement before it decides.
 */
export function insertDecided(reading: Requested, { writing, returning }: Omit<Insertion, 'condition'>): Sql {
  const { collection } = reading.access;
  const stored = storedValues(writing);
  const columns = stored.map(({ column }) => ident(column));
  const values = stored.map(assigned);
  return sql`
    INSERT INTO ${scopeOf(reading).into(collection.name, STORED)} (${join(columns, ', ')})${overridingIds(collection)}
    VALUES (${join(values, ', ')})
    RETURNING ${returning}`;
}

/** Which conditions hold for a record that would be inserted. */
export const judgeInsert = (reading: Reading, asked: JudgedInsertion): Promise<readonly boolean[]> =>
  judge(reading.q, insertJudgement(reading, asked));

type JudgedInsertion = Pick<Insertion, 'writing'> & Judged;

/** Selects a column for each condition. */
export const insertJudgement = (reading: Requested, { writing, conditions }: JudgedInsertion): Sql =>
  judgement(conditions, sql`(${newRow(reading, { writing, conditions })}) AS ${ident(WRITTEN)}`);

interface Judged {
  readonly conditions: readonly Sql[];
}

function judgement(conditions: readonly Sql[], rows: Sql): Sql {
  const columns = conditions.map((condition) => sql`(${condition})`);
  return sql`
    SELECT ${join(columns, ', ')}
      FROM ${rows}`;
}

async function judge(q: Reading['q'], statement: Sql): Promise<readonly boolean[]> {
  const [cells] = await q.rows(statement);
  return cells!.map((cell) => cell === 't');
}

export interface RowUpdate {
  readonly collection: string;
  readonly id: string | Place<never>;
  /** The instant of the request. */
  readonly now: string | Place<never>;
  readonly writing: Writing;
}

interface DecidedUpdate extends RowUpdate {
  /** A condition of the rows `STORED` and `WRITTEN`. */
  readonly condition: Sql;
  /** Columns of the row `STORED`, as it is after the write. */
  readonly returning: Sql;
}

/**
 * Decides and writes; returns a row if the condition holds. INVARIANT: the row that is decided on is
 * the one that is written, also where the statement had to wait for it: PostgreSQL asks the condition
 * of its newest version again. It reads other rows as they were before the wait (see
 * `versionUnchanged`).
 */
export function updateStatement(reading: Requested, { condition, returning, ...update }: DecidedUpdate): Sql {
  const { collection } = reading.store.shape(update.collection);
  const stored = scopeOf(reading).from(update.collection, STORED);
  const of = { schema: reading.store.schema, collection };
  const row = { ...update, conditions: [condition] };
  const isAllowed = condition.text.includes(`${ident(WRITTEN).text}.`)
    ? sql`EXISTS (
           SELECT 1
             FROM (${changedRow(stored.related, of, row)}) AS ${ident(WRITTEN)}
            WHERE ${condition})`
    : condition;
  const isTarget = recordKeyOf(collection).is(STORED, update.id);
  return sql`
    UPDATE ${stored.set(assignmentsOf(collection, update), isTarget, isAllowed)}
    RETURNING ${returning}`;
}

/** The value as its column takes it. */
export const assigned = ({ type, value, castTo, references }: ColumnValue): Sql =>
  castTo === undefined
    ? valueReferringTo(sql`${param(type, value)}`, { references })
    : sql`${param(type, value)}::${raw(castTo)}`;

/** None if the write changes no column of its own row. */
export const assignmentsOf = (collection: Stamped, { writing, now }: Pick<RowUpdate, 'writing' | 'now'>) => [
  ...storedValues(writing).map((each) => sql`${ident(each.column)} = ${assigned(each)}`),
  ...touched(collection, STORED, now),
];

/** Which conditions hold for an update that would be made, of a row that this transaction has locked. */
export const judgeUpdate = (reading: Reading, asked: RowUpdate & Judged): Promise<readonly boolean[]> =>
  judge(reading.q, updateJudgement(reading, asked));

/** Selects a column for each condition. */
export function updateJudgement(reading: Requested, { conditions, ...update }: RowUpdate & Judged): Sql {
  const { collection } = reading.store.shape(update.collection);
  const stored = scopeOf(reading).from(update.collection, STORED);
  const of = { schema: reading.store.schema, collection };
  const written = changedRow(stored.related, of, { ...update, conditions });
  const both = stored.beside(sql`LATERAL (${written}) AS ${ident(WRITTEN)}`);
  return judgement(conditions, both.where(recordKeyOf(collection).is(STORED, update.id)));
}

const UPDATED_AT = 'updated_at';

/**
 * The columns that every change of a record sets: the time, which never goes back, and the version
 * that ETags are made from. INVARIANT: each statement that changes a record sets this
 * once. Citus takes no `now()` beside a column.
 *
 * @param alias of the row that changes
 * @param now canonical
 */
export const touched = (collection: Stamped, alias: string, now: string | Place<never>): readonly Sql[] => [
  ...updatedColumns(collection).map((column) => setTime({ column, alias }, now)),
  ...(collection.countsChanges ? [nextVersion(alias)] : []),
];

/** A change of a record's members alone changes its row. */
export const isTouched = (collection: Stamped): boolean =>
  collection.countsChanges || updatedColumns(collection).length > 0;

/** The same for an account. Its columns have the names of its fields. */
export const touchedAccount = (now: string): Sql =>
  sql`${setTime({ column: UPDATED_AT, alias: 'users' }, now)}, ${nextVersion('users')}`;

type Stamped = Pick<Collection, 'fields' | 'countsChanges'>;

/** None where records have no `updated_at`. */
function updatedColumns({ fields }: Stamped): readonly string[] {
  const updated = fields.get(UPDATED_AT);
  return updated === undefined ? [] : [updated.column];
}

interface StampColumn {
  readonly column: string;
  readonly alias: string;
}

const setTime = (stamp: StampColumn, now: string | Place<never>): Sql =>
  sql`${ident(stamp.column)} = ${touchedAt(stamp, now)}`;

const nextVersion = (alias: string): Sql => sql`${ident(VERSION_COLUMN)} = ${ident(alias, VERSION_COLUMN)} + 1`;

const touchedAt = ({ column, alias }: StampColumn, now: string | Place<never>): Sql =>
  sql`greatest(${ident(alias, column)}, ${param('timestamptz', now)})`;

// ---------------------------------------------------------------- the written row

/** The values of the row that the write does not set. */
interface Otherwise {
  column(column: string, type: SqlType): Sql;
  /** @param key of the related records */
  partner(relation: HasOne, key: RecordKey): Sql;
  members(relation: ManyToMany, key: RecordKey): Sql;
}

const NULLS_OTHERWISE: Otherwise = {
  column: (_, type) => raw(`NULL::${type}`),
  partner: (_, { type }) => raw(`NULL::${type}`),
  members: (_, { listType }) => raw(`'{}'::${listType}`),
};

/** A collection of a schema. */
export interface CollectionOf {
  readonly schema: Pick<Schema, 'collections'>;
  readonly collection: Collection;
}

interface WrittenRow extends Judged {
  readonly writing: Writing;
}

/** @param row `conditions`: all that reads the row */
const newRow = ({ store, access }: Requested, row: WrittenRow): Sql =>
  rowOf({ schema: store.schema, collection: access.collection }, row, NULLS_OTHERWISE);

/** The row named `made`, which the statement has stored, with the partners and members that the write leaves it. */
export function storedAs(related: Scope, of: CollectionOf, row: WrittenRow & MadeRow): Sql {
  const { collection } = of;
  const { made, isNew } = row;
  const before = isNew ? NULLS_OTHERWISE : heldRefusal(related, collection, recordKeyOf(collection).of(made));
  return rowOf(
    of,
    { ...row, writing: { ...row.writing, values: [] } },
    {
      ...before,
      column: (column) => readColumn(collection, made, column),
    },
  );
}

/** The column of a stored row as rules read it. */
function readColumn({ fields, relations }: Collection, made: string, column: string): Sql {
  const stored = ident(made, column);
  const member = [...fields.values(), ...relations.values()].find((each) => 'column' in each && each.column === column);
  if (member === undefined) return stored;
  if (!('kind' in member)) return readAsField(stored, member);
  return member.kind === 'belongs_to' ? idReferredTo(made, member) : stored;
}

interface MadeRow {
  readonly made: string;
  readonly isNew: boolean;
}

/** @param related the scope of what belongs to the record */
function changedRow(related: Scope, of: CollectionOf, row: WrittenRow & Pick<RowUpdate, 'now'>): Sql {
  const { collection } = of;
  const { now } = row;
  const updated = updatedColumns(collection);
  return rowOf(of, row, {
    ...heldRefusal(related, collection, recordKeyOf(collection).of(STORED)),
    column: (column) => (updated.includes(column) ? touchedAt({ column, alias: STORED }, now) : ident(STORED, column)),
  });
}

/** The partners and members of a stored record. */
function heldRefusal(related: Scope, collection: Collection, id: Sql): Pick<Otherwise, 'partner' | 'members'> {
  return {
    partner: ({ collection: target, viaColumn }, key) => sql`(
      SELECT ${key.of('x')}
        FROM ${related.from(target, 'x').where(sql`x.${ident(viaColumn)} = ${id}`)})`,
    members: (relation) => sql`ARRAY(
      SELECT l.${ident(relation.targetColumn)}
        FROM ${related.links(relation, collection.name, 'l').where(sql`l.${ident(relation.sourceColumn)} = ${id}`)})`,
  };
}

/** The partners and members of a stored record, as conditions about a written one name them. */
export function heldColumnsOf(related: Scope, { schema, collection }: CollectionOf, alias: string): readonly Sql[] {
  const { partner, members } = heldRefusal(related, collection, recordKeyOf(collection).of(alias));
  return [...collection.relations.values()].flatMap((relation) => {
    if (relation.kind !== 'has_one' && relation.kind !== 'many_to_many') return [];
    const key = recordKeyIn(schema, relation.collection);
    const value = relation.kind === 'has_one' ? partner(relation, key) : members(relation, key);
    return [sql`${value} AS ${ident(heldColumn(relation))}`];
  });
}

/** The columns that the conditions read: a cluster plans the statement anew at each execution. */
function rowOf(of: CollectionOf, { writing, conditions }: WrittenRow, otherwise: Otherwise): Sql {
  const { collection } = of;
  const key = recordKeyOf(collection);
  const values = new Map(writing.values.map(({ column, type, value }) => [column, sql`${param(type, value)}`]));
  const cell = (column: string, type: SqlType): Sql => values.get(column) ?? otherwise.column(column, type);
  const cells: [column: string, value: Sql][] = [[key.column, cell(key.column, key.type)]];
  for (const { column, type, search } of collection.fields.values()) {
    cells.push([column, cell(column, FIELD_KINDS[type].sqlType)]);
    if (search) cells.push([foldedColumn(column), cell(foldedColumn(column), 'text')]);
  }
  for (const relation of collection.relations.values()) {
    const target = recordKeyIn(of.schema, relation.collection);
    const change = { relation, writing, key: target };
    if (relation.kind === 'belongs_to') cells.push([relation.column, cell(relation.column, target.type)]);
    if (relation.kind === 'has_one') cells.push([heldColumn(relation), partnerOf({ ...change, relation }, otherwise)]);
    if (relation.kind === 'many_to_many')
      cells.push([heldColumn(relation), memberIds({ ...change, relation }, otherwise)]);
  }
  const isRead = ([column]: (typeof cells)[number]): boolean => {
    const { text } = ident(WRITTEN, column);
    return conditions.some((condition) => condition.text.includes(text));
  };
  const read = cells.filter(isRead);
  const named = (read.length === 0 ? cells.slice(0, 1) : read).map(
    ([column, value]) => sql`${value} AS ${ident(column)}`,
  );
  return sql`SELECT ${join(named, ', ')}`;
}

interface HeldBy<R> {
  readonly relation: R;
  readonly writing: Writing;
  /** The key of the related records. */
  readonly key: RecordKey;
}

function partnerOf({ relation, writing, key }: HeldBy<HasOne>, otherwise: Otherwise): Sql {
  const change = writing.partners.find((partner) => partner.relation === relation);
  return change === undefined ? otherwise.partner(relation, key) : sql`${key.param(change.partner)}`;
}

function memberIds({ relation, writing, key }: HeldBy<ManyToMany>, otherwise: Otherwise): Sql {
  const change = writing.members.find((member) => member.relation === relation);
  const before = otherwise.members(relation, key);
  if (change === undefined) return before;
  const leaving = key.list(change.leaving);
  const joining = key.list(change.joining);
  return sql`ARRAY(
    SELECT id
      FROM unnest(${before}) AS id
     WHERE id <> ALL(${leaving})
     UNION
    SELECT unnest(${joining}))`;
}
