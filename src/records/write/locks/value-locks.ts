/**
 * Batches that write the same unique values in different orders would wait for each other, until
 * PostgreSQL ends one of them after a second. So a batch locks all of its values at once, in one
 * order. A single write locks none: in a batch of statements it waits 20 ms at most, and alone it holds
 * no value while it waits for one. An exclusion constraint is checked after its row is there, so that two rows of one
 * place wait for each other, and a rule that counts in a place sees no row of a write beside it: every write of a record
 * that has places locks them.
 */
import { createHash } from 'node:crypto';
import type { Queryable } from '../../../database/contract.ts';
import { memoizedBy } from '../../../memoized.ts';
import { keyOf } from '../../../policy/types.ts';
import { allOperandsOf, ownMemberOf } from '../../../policy/visit.ts';
import {
  type BelongsTo,
  type Collection,
  type Field,
  isTenant,
  isUniqueMember,
  type NoOverlap,
  type Schema,
  withinOf,
} from '../../../schema/model/model.ts';
import { empty, ident, join, type Place, param, raw, type Sql, sql, text } from '../../../sql.ts';
import type { AccessContext, Reading, Store } from '../../access-context.ts';
import { recordKeyOf } from '../../record-key.ts';
import { type Scope, scopeOf } from '../../scope.ts';
import type { ColumnValue, Data } from '../input.ts';
import { STORED } from '../written-row.ts';
import { readsReferrers } from './mutual-rules.ts';
import { type RulePlaces, rulePlacesOf } from './raced-rules.ts';

type KeyMember = Field | BelongsTo;

/** The members that another record may have taken: unique ones, and those with values that are unique within them. */
function contestedMembers({ fields, relations, noOverlap }: Collection): readonly KeyMember[] {
  const members = [...fields.values(), ...relations.values()].filter((member) => 'column' in member);
  const places = (noOverlap ?? []).flatMap(({ on }) => on.map(({ name }) => name));
  const within = new Set([...members.filter(isUniqueMember).flatMap(withinOf), ...places]);
  return members.filter((member) => isUniqueMember(member) || within.has(member.name));
}

/** Values that a write sets, as its body has them. */
export interface WantedValues {
  readonly collection: Collection;
  readonly data: Data;
  /** The record, if it is stored: a place with the records that refer to it. */
  readonly id?: string;
  /** The id of the user, for rules that read the records of the caller. */
  readonly caller?: string | undefined;
}

/** An update to these values can take a place from another record, or falsify its rules, and needs its locks. */
export function setsPlace(store: Store, { collection, data }: WantedValues): boolean {
  if (runsWritesInTurn(store)) return false;
  const { noOverlap = [] } = collection;
  const sets = (name: string): boolean => Object.hasOwn(data, name);
  return (
    noOverlap.some((key) => membersOfPlace(key).some(sets)) ||
    [...rulePlacesOf(store.schema, collection).reads].some(sets)
  );
}

/** The data with the ids of references that the body gives by their parts. */
export function withMadeReferences({ relations }: Collection, data: Data, values: SetValues): Data {
  const made = [...relations.values()].flatMap((relation) =>
    relation.kind === 'belongs_to' && relation.columns !== undefined
      ? valuesOfMember(values, relation).map((value) => [relation.name, value] as const)
      : [],
  );
  return made.length === 0 ? data : { ...data, ...Object.fromEntries(made) };
}

type SetValues = readonly Pick<ColumnValue, 'column' | 'value'>[];
const valuesOfMember = (values: SetValues, member: KeyMember): readonly ColumnValue['value'][] =>
  values.filter(({ column }) => column === member.column).map(({ value }) => value);

/** Every create needs the locks of its places. */
export const isPlaced = (store: Store, collection: Collection): boolean =>
  !runsWritesInTurn(store) && hasRulePlaces(store.schema, collection);

/** A delete is in turn with the writes that rules of its collection count, and with those of records that refer to it. */
export const takesTurnToDelete = (store: Store, collection: Collection): boolean =>
  isPlaced(store, collection) || (readsReferrers(collection) && hasPlacesInTurn(store, collection));

/** @param data that of an update */
export const needsTurnFor = (action: 'update' | 'delete', store: Store, { collection, data }: WantedValues): boolean =>
  action === 'delete' ? takesTurnToDelete(store, collection) : setsPlace(store, { collection, data });

/** The embedded database has one connection. */
const runsWritesInTurn = ({ db }: Store): boolean => db.kind === 'embedded';

/** A restore, and an upsert in a batch, need the locks of their places. */
export const hasPlacesInTurn = (store: Store, collection: Collection): boolean =>
  !runsWritesInTurn(store) && hasPlaces(store.schema, collection);

const hasRulePlaces = (schema: Schema, collection: Collection): boolean => !rulePlacesOf(schema, collection).isEmpty;

/** Records of one place exclude each other, or a rule counts them. */
const hasPlaces = (schema: Schema, collection: Collection): boolean =>
  collection.noOverlap !== undefined ||
  hasRulePlaces(schema, collection) ||
  rulePlacesOf(schema, collection).referrers.length > 0;

export const placedCallerOf = ({ kind, auth }: AccessContext): string | undefined =>
  kind === 'user' ? String(auth.id) : undefined;

/** The members that decide with which records a record may overlap. */
const membersOfPlace = memoizedBy(({ on, from, to, where }: NoOverlap): readonly string[] => {
  const read = where === undefined ? [] : allOperandsOf(where.checked);
  const tested = read.flatMap((operand) => (operand.kind === 'column' ? (ownMemberOf(operand) ?? []) : []));
  return [...[...on, from, to].map(({ name }) => name), ...tested];
});

function placeMembers(schema: Schema, collection: Collection): readonly KeyMember[] {
  const { noOverlap = [] } = collection;
  return [...new Set([...noOverlap.flatMap(({ on }) => on), ...referencesOfRules(rulePlacesOf(schema, collection))])];
}

const referencesOfRules = ({ on, ofCaller }: RulePlaces): readonly BelongsTo[] => [...on.union(ofCaller)];

/** The columns of the row `STORED` that say in which places its record is. */
export const placeColumns = (schema: Schema, collection: Collection): readonly Sql[] =>
  placeMembers(schema, collection).map(({ column }) => sql`${ident(STORED, column)}::text`);

/** The record of these columns, as far as they say. */
export const placedData = (schema: Schema, collection: Collection, cells: readonly (string | null)[]): Data =>
  Object.fromEntries(placeMembers(schema, collection).map(({ name }, i) => [name, cells[i]]));

/** Locks the places of a record that is to be created; undefined: it is in none. @param values with the defaults */
export function turnOfNew(schema: Schema, { data, ...wanted }: WantedValues, values: SetValues): Sql | undefined {
  const placed = placeMembers(schema, wanted.collection).flatMap((member) =>
    valuesOfMember(values, member).map((value) => [member.name, value] as const),
  );
  return locksOf(schema, [{ ...wanted, data: { ...data, ...Object.fromEntries(placed) } }]);
}

interface PlacedRecord {
  readonly collection: Collection;
  readonly id: string;
  /** Decides whether the caller may write it: else a caller who may not would hold up those who may. */
  readonly mayWrite: Sql;
  /** Has the row of a deleted record, by that name. Default: the scope of the reading. */
  readonly keptIn?: { readonly scope: Scope; readonly name: string };
}

/**
 * Locks the row of a record that the caller may write, and then its places and those that an update gives it, in one
 * statement. Statements after it see the records of the writes that had these places. The row comes first: no other write
 * moves it meanwhile. It returns a row if the write has its turn, and `hasTurn` is true from then on.
 * Undefined: the places of the stored record are known here alone, so that `takeTurn` takes two statements.
 */
export function turnOf(reading: Reading, record: PlacedRecord, data: Data = {}): Sql | undefined {
  const { schema, isCluster } = reading.store;
  const { collection, id } = record;
  const members = placeMembers(schema, collection);
  // A machine that has the row would lock the places for itself alone.
  if (isCluster || !members.every((member) => hasPlainPlaces(schema, member))) return undefined;
  const caller = placedCallerOf(reading.access);
  const wanted = [
    { collection, data: {}, id, caller },
    { collection, data, caller },
  ];
  const values = new Map(wanted.flatMap((each) => contestedValues(schema, each)));
  const stored = members.map(({ column }) => {
    const value = ident('k', column);
    const number = lockNumberIn(sql`${text(`${collection.table}.${column}=`)} || ${value}`);
    return sql`SELECT ${number}, false FROM stored AS k WHERE ${value} IS NOT NULL`;
  });
  const tables = [collection.table, ...values.values()];
  const cells = members.map(({ column }) => sql`${ident(STORED, column)}::text AS ${ident(column)}`);
  const isInPlaces = members.length + values.size > 0;
  const locks = sortedLocks({ tables, values: values.keys(), more: stored });
  return sql`
    WITH stored AS MATERIALIZED (
      SELECT ${join([sql`1`, ...cells], ', ')}
        FROM ${lockedRow(reading, record)})
    SELECT ${setTurn(record)}${isInPlaces ? sql`, (SELECT count(${TAKEN_LOCK}) FROM (${locks}) AS k)` : empty}
      FROM stored`;
}

const lockedRow = (reading: Reading, { collection, id, mayWrite, keptIn }: PlacedRecord): Sql => {
  const isRecord = recordKeyOf(collection).is(STORED, id);
  const { scope, name } = keptIn ?? { scope: scopeOf(reading), name: collection.name };
  return collection.hasNoRowLocks
    ? scope.from(name, STORED).where(isRecord, mayWrite)
    : sql`${scope.lockable(name, STORED).where(isRecord, mayWrite)} FOR NO KEY UPDATE`;
};

/** The database spells the value as `lockedValue` does. */
function hasPlainPlaces({ collections }: Schema, member: KeyMember): boolean {
  if (!('collection' in member)) return member.uniqueKey?.ignoresCase !== true;
  return keyOf(collections.get(member.collection)!).kind !== 'string';
}

const TURN = raw(`'bylaw.turn'`);
/** An id is not validated yet, and text with NUL must not reach the database. */
export const turnName = (collection: string, id: string): string => JSON.stringify([collection, id]);
/** The setting ends with the transaction, so it works through poolers. */
const setTurn = ({ collection: { name }, id }: PlacedRecord): Sql =>
  sql`set_config(${TURN}, ${text(turnName(name, id))}, true)`;

/**
 * The condition of a write that its transaction has locked the row and its places. A write that the rules come to allow
 * after it has asked for its turn is refused, as it would have been before.
 */
export const hasTurn = (turn: string | Place<never>): Sql =>
  sql`current_setting(${TURN}, true) = ${param('text', turn)}`;

/** The same as `turnOf` in the transaction of the reading. True if the write has its turn. */
export async function takeTurn(reading: Reading, record: PlacedRecord, data: Data = {}): Promise<boolean> {
  const { store, q } = reading;
  const { schema } = store;
  const { collection, id } = record;
  const turn = turnOf(reading, record, data);
  if (turn !== undefined) return (await q.rows(turn)).length > 0;
  const [stored] = await q.rows(sql`
    SELECT ${join([setTurn(record), ...placeColumns(schema, collection)], ', ')}
      FROM ${lockedRow(reading, record)}`);
  if (stored === undefined) return false;
  // The machine that has the row knows the turn; the coordinator evaluates the setting for a write.
  if (store.isCluster) await q.rows(sql`SELECT ${setTurn(record)}`);
  const place = placedData(schema, collection, stored.slice(1));
  const caller = placedCallerOf(reading.access);
  await lockValues(q, schema, [
    { collection, data: place, id, caller },
    { collection, data, caller },
  ]);
  return true;
}

/** A record that an update is to change. */
export const placedForUpdate = ({ access }: Reading, collection: Collection, id: string): PlacedRecord => ({
  collection,
  id,
  mayWrite: access.permit(collection.name, 'update').update.where(STORED),
});

/**
 * The most values that a batch locks one by one. The locks of all batches must fit into the server's
 * lock table, so a batch of more values locks their tables instead.
 */
const MOST_VALUES = 200;

/** Locks the values until the end of the transaction. Batches of other values do not wait. */
export async function lockValues(tx: Queryable, schema: Schema, wanted: readonly WantedValues[]): Promise<void> {
  const locks = locksOf(schema, wanted);
  if (locks !== undefined) await tx.rows(locks);
}

/** Undefined: there is nothing to lock. */
function locksOf(schema: Schema, wanted: readonly WantedValues[]): Sql | undefined {
  const values = new Map(wanted.flatMap((each) => contestedValues(schema, each)));
  // Two writes of one place wait for each other with a single value, too.
  const isOfPlaces = wanted.some(({ collection }) => hasPlaces(schema, collection));
  if (values.size < (isOfPlaces ? 1 : 2)) return undefined;
  return lockingStatement({ tables: values.values(), values: values.size <= MOST_VALUES ? values.keys() : [] });
}

/** Locks all places of the collection, and of those whose records refer to its records. */
export async function lockAllPlaces(tx: Queryable, schema: Schema, collection: Collection): Promise<void> {
  if (!hasPlaces(schema, collection)) return;
  const { referrers } = rulePlacesOf(schema, collection);
  const tables = [collection.table, ...referrers.map((referrer) => referrer.collection.table)];
  await tx.rows(lockingStatement({ tables, values: [] }));
}

/** Tables are locked as a whole if no value is, and are shared else. */
interface WantedTexts {
  readonly tables: Iterable<string>;
  readonly values: Iterable<string>;
  /** Statements of further lock numbers, not shared. */
  readonly more?: readonly Sql[];
}

const lockingStatement = (wanted: WantedTexts): Sql => sql`SELECT ${TAKEN_LOCK} FROM (${sortedLocks(wanted)}) AS k`;

const TAKEN_LOCK = raw(`CASE WHEN k.is_shared THEN pg_advisory_xact_lock_shared(k.lock)::text
                       ELSE pg_advisory_xact_lock(k.lock)::text
                  END`);

/** The locks are sorted and distinct, so that two values may share one. */
function sortedLocks({ tables, values, more = [] }: WantedTexts): Sql {
  const shared = new Set(Array.from(tables, lockNumberOf));
  const locks = new Set(Array.from(values, lockNumberOf));
  const isOfValues = locks.size + more.length > 0;
  const wanted = [
    sql`SELECT v, ${param('bool', isOfValues)} AS is_shared FROM unnest(${param('int8[]', [...shared])}) AS v`,
    sql`SELECT v, false FROM unnest(${param('int8[]', [...locks])}) AS v`,
    ...more,
  ];
  return sql`
      SELECT hashtextextended(current_schema(), v) AS lock, bool_and(is_shared) AS is_shared
        FROM (${join(wanted, ' UNION ALL ')}) AS wanted
       GROUP BY 1
       ORDER BY 1`;
}

/** Hashed here: the values are not validated yet, and text with NUL must not reach the database. */
const lockNumberOf = (text: string): number => createHash('sha256').update(text).digest().readUIntBE(0, 6);

/** The same of an expression. */
const lockNumberIn = (value: Sql): Sql =>
  sql`('x' || encode(substr(sha256(convert_to(${value}, 'UTF8')), 1, 6), 'hex'))::bit(48)::int8`;

/** The values with their tables. The data is not validated yet: the operation itself rejects a value that is not a scalar. */
function contestedValues(schema: Schema, wanted: WantedValues): readonly (readonly [value: string, table: string])[] {
  const { collection, data } = wanted;
  const { table } = collection;
  const own = contestedMembers(collection).flatMap((member) => {
    // The tenant of a record never changes, and batches of one tenant would all wait for each other.
    if (isTenant(collection, member.name) || !Object.hasOwn(data, member.name)) return [];
    return valueTexts(table, member, data[member.name]);
  });
  const places = rulePlacesOf(schema, collection);
  const ofReferrers = places.referrers.flatMap(({ collection: { table: from }, via }) =>
    valueTexts(from, via, wanted.id).map((text) => [text, from] as const),
  );
  return [...[...own, ...valuesOfRules(places, wanted)].map((text) => [text, table] as const), ...ofReferrers];
}

function valuesOfRules(places: RulePlaces, { collection: { table }, data, caller }: WantedValues): readonly string[] {
  const own = referencesOfRules(places).flatMap((member) => valueTexts(table, member, data[member.name]));
  const ofCaller = [...places.ofCaller].flatMap((member) => valueTexts(table, member, caller));
  return [...own, ...ofCaller, ...(places.isWhole ? [`${table}*`] : [])];
}

const valueTexts = (table: string, member: KeyMember, value: unknown): readonly string[] =>
  value === null || value === undefined || typeof value === 'object'
    ? []
    : [`${table}.${member.column}=${lockedValue(member, value)}`];

/** A UUID may come in capital letters. */
const lockedValue = (member: KeyMember, value: unknown): string =>
  'collection' in member || member.uniqueKey?.ignoresCase ? String(value).toLowerCase() : String(value);
