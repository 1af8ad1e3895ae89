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
import { ident, join, param, type Sql, sql } from '../../../sql.ts';
import type { AccessContext, Reading, Store } from '../../access-context.ts';
import { recordKeyOf } from '../../record-key.ts';
import { type Scope, scopeOf } from '../../scope.ts';
import type { ColumnValue, Data } from '../input.ts';
import { STORED } from '../written-row.ts';
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
      ? valuesIn(values, relation).map((value) => [relation.name, value] as const)
      : [],
  );
  return made.length === 0 ? data : { ...data, ...Object.fromEntries(made) };
}

type SetValues = readonly Pick<ColumnValue, 'column' | 'value'>[];
const valuesIn = (values: SetValues, member: KeyMember): readonly ColumnValue['value'][] =>
  values.filter(({ column }) => column === member.column).map(({ value }) => value);

/** Every create and delete needs the locks of its places. */
export const isPlaced = (store: Store, collection: Collection): boolean =>
  !runsWritesInTurn(store) && hasRulePlaces(store.schema, collection);

/** The embedded database has one connection. */
const runsWritesInTurn = ({ db }: Store): boolean => db.kind === 'embedded';

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

/** Locks the places of a record that is to be created. @param values with the defaults */
export function lockNewPlaces(
  { store: { schema }, q }: Reading,
  { data, ...wanted }: WantedValues,
  values: SetValues,
): Promise<void> {
  const placed = placeMembers(schema, wanted.collection).flatMap((member) =>
    valuesIn(values, member).map((value) => [member.name, value] as const),
  );
  return lockValues(q, schema, [{ ...wanted, data: { ...data, ...Object.fromEntries(placed) } }]);
}

interface PlacedRecord {
  readonly collection: Collection;
  readonly id: string;
  /** Decides whether the caller may write it: else a caller who may not would hold up those who may. */
  readonly mayWrite: Sql;
  /** Default: the scope of the reading. */
  readonly scope?: Scope;
}

/**
 * Locks the places of a stored record that the caller may write, and those that an update gives it. Statements after it
 * see the records of the writes that had these places. The row is locked first: no other write moves it meanwhile.
 */
export async function lockPlacesOf(
  reading: Reading,
  { collection, id, mayWrite, scope = scopeOf(reading) }: PlacedRecord,
  data: Data = {},
): Promise<void> {
  const { schema } = reading.store;
  if (runsWritesInTurn(reading.store) || !hasPlaces(schema, collection)) return;
  const members = placeMembers(schema, collection);
  const cells = members.map(({ column }) => sql`${ident(STORED, column)}::text`);
  const isRecord = recordKeyOf(collection).is(STORED, id);
  const rows = collection.hasNoRowLocks
    ? scope.from(collection.name, STORED).where(isRecord, mayWrite)
    : sql`${scope.lockable(collection.name, STORED).where(isRecord, mayWrite)} FOR NO KEY UPDATE`;
  const [stored] = await reading.q.rows(sql`
    SELECT ${join([sql`1`, ...cells], ', ')}
      FROM ${rows}`);
  if (stored === undefined) return;
  const place = Object.fromEntries(members.map(({ name }, i) => [name, stored[i + 1]]));
  const caller = placedCallerOf(reading.access);
  await lockValues(reading.q, schema, [
    { collection, data: place, id, caller },
    { collection, data, caller },
  ]);
}

/** The same for a record that an update is to change. */
export const lockPlacesOfUpdate = (reading: Reading, collection: Collection, id: string, data: Data): Promise<void> =>
  lockPlacesOf(
    reading,
    { collection, id, mayWrite: reading.access.permit(collection.name, 'update').update.where(STORED) },
    data,
  );

/**
 * The most values that a batch locks one by one. The locks of all batches must fit into the server's
 * lock table, so a batch of more values locks their tables instead.
 */
const MOST_VALUES = 200;

/** Locks the values until the end of the transaction. Batches of other values do not wait. */
export async function lockValues(tx: Queryable, schema: Schema, wanted: readonly WantedValues[]): Promise<void> {
  const values = new Map(wanted.flatMap((each) => contestedValues(schema, each)));
  // Two writes of one place wait for each other with a single value, too.
  const isOfPlaces = wanted.some(({ collection }) => hasPlaces(schema, collection));
  if (values.size < (isOfPlaces ? 1 : 2)) return;
  await lockTexts(tx, values.values(), values.size <= MOST_VALUES ? values.keys() : []);
}

/** Locks all places of the collection, and of those whose records refer to its records. */
export async function lockAllPlaces(tx: Queryable, schema: Schema, collection: Collection): Promise<void> {
  if (!hasPlaces(schema, collection)) return;
  const { referrers } = rulePlacesOf(schema, collection);
  await lockTexts(tx, [collection.table, ...referrers.map((referrer) => referrer.collection.table)], []);
}

/** Tables are locked as a whole if no value is, and are shared else. */
async function lockTexts(tx: Queryable, ofTables: Iterable<string>, ofValues: Iterable<string>): Promise<void> {
  const tables = new Set(Array.from(ofTables, lockNumberOf));
  const locks = new Set(Array.from(ofValues, lockNumberOf));
  const isOfValues = locks.size > 0;
  // The locks are sorted and distinct, so that two values may share one.
  await tx.rows(sql`
    SELECT CASE WHEN k.is_shared THEN pg_advisory_xact_lock_shared(k.lock)::text
                ELSE pg_advisory_xact_lock(k.lock)::text
           END
      FROM (SELECT hashtextextended(current_schema(), v) AS lock, bool_and(is_shared) AS is_shared
              FROM (SELECT v, ${param('bool', isOfValues)} AS is_shared
                      FROM unnest(${param('int8[]', [...tables])}) AS v
                     UNION ALL
                    SELECT v, false
                      FROM unnest(${param('int8[]', [...locks])}) AS v) AS wanted
             GROUP BY 1
             ORDER BY 1) AS k`);
}

/** Hashed here: the values are not validated yet, and text with NUL must not reach the database. */
const lockNumberOf = (text: string): number => createHash('sha256').update(text).digest().readUIntBE(0, 6);

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
