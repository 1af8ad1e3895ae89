/**
 * Batches that write the same unique values in different orders would wait for each other, until
 * PostgreSQL ends one of them after a second. So a batch locks all of its values at once, in one
 * order. A single write locks none: in a batch of statements it waits 20 ms at most, and alone it holds
 * no value while it waits for one. An exclusion constraint is checked after its row is there, so that two rows of one
 * place wait for each other: a write of its own, and each update of a batch, locks the places of `no_overlap`.
 */
import { createHash } from 'node:crypto';
import type { Transaction } from '../../database/contract.ts';
import { memoizedBy } from '../../memoized.ts';
import { allOperandsOf, ownMemberOf } from '../../policy/visit.ts';
import {
  type BelongsTo,
  type Collection,
  type Field,
  isTenant,
  isUniqueMember,
  type NoOverlap,
  withinOf,
} from '../../schema/model/model.ts';
import { ident, join, param, sql } from '../../sql.ts';
import type { Reading } from '../access-context.ts';
import { recordKeyOf } from '../record-key.ts';
import { scopeOf } from '../scope.ts';
import type { ColumnValue, Data } from './input.ts';
import { STORED } from './written-row.ts';

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
}

/** A write of these values can take a place from another one, and needs its lock. */
export const setsPlace = ({ collection: { noOverlap = [] }, data }: WantedValues): boolean =>
  noOverlap.some((key) => membersOfPlace(key).some((name) => Object.hasOwn(data, name)));

/** The members that decide with which records a record may overlap. */
const membersOfPlace = memoizedBy(({ on, from, to, where }: NoOverlap): readonly string[] => {
  const read = where === undefined ? [] : allOperandsOf(where.checked);
  const tested = read.flatMap((operand) => (operand.kind === 'column' ? (ownMemberOf(operand) ?? []) : []));
  return [...[...on, from, to].map(({ name }) => name), ...tested];
});

const onMembers = ({ noOverlap = [] }: Collection): readonly KeyMember[] => [
  ...new Set(noOverlap.flatMap(({ on }) => on)),
];

/** Locks the places of a record that is to be created. @param values with the defaults */
export function lockNewPlaces(
  tx: Transaction,
  { collection, data }: WantedValues,
  values: readonly Pick<ColumnValue, 'column' | 'value'>[],
): Promise<void> {
  const placed = onMembers(collection).flatMap(({ name, column }) =>
    values.filter((given) => given.column === column).map(({ value }) => [name, value] as const),
  );
  return lockValues(tx, [{ collection, data: { ...data, ...Object.fromEntries(placed) } }]);
}

/** Locks the place of a stored record that the caller may change, and the one that the update gives it. */
export async function lockPlacesOf(reading: Reading, tx: Transaction, id: string, data: Data): Promise<void> {
  const { collection, permit } = reading.access;
  const members = onMembers(collection);
  const cells = members.map(({ column }) => sql`${ident(STORED, column)}::text`);
  const isRecord = recordKeyOf(collection).is(STORED, id);
  const mayChange = permit(collection.name, 'update').update.holds(STORED);
  const [stored] = await tx.rows(sql`
    SELECT ${join(cells, ', ')}
      FROM ${scopeOf(reading).from(collection.name, STORED).where(isRecord, mayChange)}`);
  if (stored === undefined) return;
  const place = Object.fromEntries(members.map(({ name }, i) => [name, stored[i]]));
  await lockValues(tx, [
    { collection, data: place },
    { collection, data },
  ]);
}

/**
 * The most values that a batch locks one by one. The locks of all batches must fit into the server's
 * lock table, so a batch of more values locks their tables instead.
 */
const MOST_VALUES = 200;

/** Locks the values until the end of the transaction. Batches of other values do not wait. */
export async function lockValues(tx: Transaction, wanted: readonly WantedValues[]): Promise<void> {
  const values = new Map(wanted.flatMap(contestedValues));
  // Two periods of one place can wait for each other, too.
  if (values.size < 2 && !wanted.some(({ collection }) => collection.noOverlap !== undefined)) return;
  const isOfValues = values.size <= MOST_VALUES;
  const tables = new Set(Array.from(values.values(), lockNumberOf));
  const locks = new Set(isOfValues ? Array.from(values.keys(), lockNumberOf) : []);
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

/**
 * The values with their tables. The tenant of a record never changes, and batches of one tenant would all
 * wait for each other. The data is not validated yet: the operation itself rejects a value that is not a
 * scalar.
 */
function contestedValues({ collection, data }: WantedValues): readonly (readonly [value: string, table: string])[] {
  const { table } = collection;
  return contestedMembers(collection).flatMap((member) => {
    if (isTenant(collection, member.name) || !Object.hasOwn(data, member.name)) return [];
    const value = data[member.name];
    return value === null || typeof value === 'object'
      ? []
      : [[`${table}.${member.column}=${lockedValue(member, value)}`, table]];
  });
}

const lockedValue = ({ uniqueKey }: KeyMember, value: unknown): string =>
  uniqueKey?.ignoresCase ? String(value).toLowerCase() : String(value);
