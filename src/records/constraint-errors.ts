/** Translates constraint errors of the database into refusals that name members of the body. */
import { StoreError, type Violated } from '../database/contract.ts';
import { isDenied, isUnheld } from '../database/to-store-error.ts';
import type { ErrorDetail } from '../problem.ts';
import { forbidden, invalid, Refusal, type RefusalCode } from '../refusal.ts';
import { columnsInOrder, isExclusion, uniqueIndexes } from '../schema/model/indexes.ts';
import type { Collection, Field, NoOverlap, Relation } from '../schema/model/model.ts';
import { constraintName } from '../schema/model/stored-names.ts';
import { INDEX_ENTRY_BYTES } from '../schema/rules/field-rules.ts';
import { type Place, type Sql, sql } from '../sql.ts';
import { type Reading, type Requested, readable } from './access-context.ts';
import { recordKeyOf } from './record-key.ts';
import { scopeOf } from './scope.ts';
import type { ReferencedId } from './write/input.ts';

const missing = ({ collection, pointer }: ReferencedId): ErrorDetail => ({
  pointer,
  code: 'not_found',
  detail: `there is no such record in \`${collection}\``,
});

/** A related record must exist and be readable; the error does not say which it is not. */
export async function unreadableReferences(
  reading: Reading,
  references: readonly ReferencedId[],
): Promise<readonly ErrorDetail[]> {
  const { q, access } = reading;
  const scope = scopeOf(reading);
  // A missing tenant is an error by itself; without it, records of tenants cannot be looked up.
  const known = references.filter(({ collection }) => scope.reaches(collection));
  const byCollection = Map.groupBy(known, ({ collection }) => collection);
  const errors = await Promise.all(
    [...byCollection].map(async ([collection, group]) => {
      const ids = [...new Set(group.map(({ id }) => id))];
      const key = scope.key(collection);
      const isWanted = key.isAmong('x', ids);
      const rows = await q.rows(sql`
        SELECT ${key.of('x')}
          FROM ${scope.from(collection, 'x').where(isWanted, readable(access, collection, 'x'))}`);
      const found = new Set(rows.map(([id]) => id));
      return group.filter(({ id }) => !found.has(id)).map(missing);
    }),
  );
  return errors.flat();
}

interface ReferencedRecord {
  readonly collection: string;
  readonly id: string | Place<never>;
}

/** The condition that none of them is missing. */
export function readableReferences(reading: Requested, references: readonly ReferencedRecord[]): readonly Sql[] {
  const { access } = reading;
  const scope = scopeOf(reading);
  return references.map(({ collection, id }) => {
    const isWanted = scope.key(collection).is('x', id);
    return sql`EXISTS (
      SELECT 1
        FROM ${scope.from(collection, 'x').where(isWanted, readable(access, collection, 'x'))})`;
  });
}

/** The refusal for a violated constraint; any other error unchanged. */
export function toRefusal(error: unknown, collection: Collection): unknown {
  if (!(error instanceof StoreError)) return ownersRefusal(error, collection);
  if (error.kind === 'unique') return uniqueViolation(collection, error.violated);
  if (error.kind === 'exclusion') return exclusion(collection, error.violated);
  if (error.kind === 'foreign_key')
    return isReferredTo(collection, error)
      ? referredTo(collection, error.violated)
      : lostReference(collection, error.violated);
  if (error.kind === 'check') return checkViolation(collection, error.violated);
  if (isTooLong(error)) return tooLong(pointerOfIndex(collection, error.violated));
  return ownersRefusal(error, collection);
}

/** The refusal for an error that a table's owner causes: a trigger raises, or a column or a right is missing. */
export function ownersRefusal(error: unknown, collection: Collection): unknown {
  if (error instanceof StoreError && error.kind === 'raised') return raised(collection, error.cause);
  if (collection.countsChanges || !(error instanceof Error)) return error;
  if (isDenied(error)) return forbidden();
  return isUnheld(error) ? unheld(collection, error) : error;
}

/** A trigger may name other records in its message, so its owner decides who reads it. */
function raised({ showsErrors }: Collection, cause: unknown): Refusal {
  const detail = showsErrors && cause instanceof Error ? cause.message : 'a rule of the database rejected the record';
  return invalid([{ pointer: '/data', code: 'rejected', detail }]);
}

/** PostgreSQL names only the column of a value that is missing. */
function unheld(collection: Collection, error: Error & { readonly column?: string }): Refusal {
  const name = memberOfColumn(collection, error.column);
  if (name === undefined)
    return invalid([
      {
        pointer: '/data',
        code: 'unstorable',
        detail: 'a value does not fit the columns or constraints of the database',
      },
    ]);
  return invalid([{ pointer: `/data/${name}`, code: 'required', detail: `\`${name}\` must have a value` }]);
}

/** Another record has a value that must be unique. */
export const isTaken = (error: unknown): boolean =>
  error instanceof StoreError && (error.kind === 'unique' || error.kind === 'exclusion');

/** A value does not fit into the entry of an index. */
export const isTooLong = (error: unknown): boolean => error instanceof StoreError && error.kind === 'too_long';

const BY_PRECEDENCE: readonly RefusalCode[] = [
  'transition_refused',
  'validation_failed',
  'changed',
  'unique_violation',
  'conflict',
];

/**
 * The error to report of deferred errors: those of a write that the rules of its record allow. They
 * are deferred, because a later check may find one that takes precedence: 403 and 404 are thrown
 * where they are found, then come 422, 412 and 409.
 */
export const firstOf = (deferred: readonly Refusal[]): Refusal | undefined =>
  deferred.toSorted((a, b) => BY_PRECEDENCE.indexOf(a.code) - BY_PRECEDENCE.indexOf(b.code))[0];

function uniqueViolation(collection: Collection, violated: Violated | undefined): Refusal {
  const name = violatedMember(collection, violated, 'key') ?? (isOfKey(collection, violated) ? 'id' : undefined);
  const detail =
    name === undefined ? 'a value must be unique, and another record has it' : `another record has this \`${name}\``;
  const place = name === undefined ? {} : { pointer: `/data/${name}` };
  return new Refusal('unique_violation', detail, [{ ...place, code: 'unique_violation', detail }]);
}

/** Another record excludes this one: the values of these members, together, overlap with its own. */
function exclusion(collection: Collection, violated: Violated | undefined): Refusal {
  // An element may be an expression of columns.
  const words = new Set(violated?.columns.flatMap((element) => [element, ...element.split(/[^\p{L}\p{N}_$]+/u)]));
  const keys = (collection.noOverlap ?? []).filter((key) => isExclusion(collection, key, violated?.constraint ?? ''));
  if (keys.length > 0) return overlap(keys.length === 1 ? keys : ofPlace(keys, words));
  const detail = `another record excludes this one, by the constraint \`${violated?.constraint}\` of the database`;
  const names = Array.from(words, (word) => memberOfColumn(collection, word)).filter((name) => name !== undefined);
  const places = names.length === 0 ? ['/data'] : names.map((name) => `/data/${name}`);
  return new Refusal(
    'conflict',
    detail,
    places.map((pointer) => ({ pointer, code: 'conflict', detail })),
  );
}

/** A shard names no constraint: the key that has all places among the columns, or all keys. */
function ofPlace(keys: readonly NoOverlap[], columns: ReadonlySet<string>): readonly NoOverlap[] {
  const named = keys.filter(({ on }) => on.every(({ column }) => columns.has(column)));
  const [most] = named.toSorted((a, b) => b.on.length - a.on.length);
  return most === undefined ? keys : [most];
}

/** @param keys one of them is violated */
function overlap(keys: readonly NoOverlap[]): Refusal {
  const kinds = keys.map(({ on, from, to }) => {
    const places = on.map(({ name }) => `\`${name}\``).join(' and ');
    return `the same ${places} overlaps with \`${from.name}\` to \`${to.name}\``;
  });
  const detail = `another record of ${kinds.join(', or of ')}`;
  const names = new Set(keys.flatMap(({ on, from, to }) => [...on, from, to].map(({ name }) => name)));
  const members = Array.from(names, (name) => ({ pointer: `/data/${name}`, code: 'conflict', detail }));
  return new Refusal('conflict', detail, members);
}

function isOfKey(collection: Collection, violated: Violated | undefined): boolean {
  const isNamed = violated?.constraint.startsWith(constraintName(collection.table, [], 'pkey')) === true;
  return isNamed || violated?.columns.at(-1) === recordKeyOf(collection).column;
}

/** The related record went while the write was under way. */
function lostReference(collection: Collection, violated: Violated | undefined): Refusal {
  const name = violatedMember(collection, violated, 'fkey');
  const detail = 'there is no such record any more';
  return invalid([{ pointer: name === undefined ? '/data' : `/data/${name}`, code: 'not_found', detail }]);
}

/** PostgreSQL names the table that has the foreign key. Our own keys follow updates. */
function isReferredTo({ managed, table }: Collection, { cause }: StoreError): boolean {
  const referring = (cause as { readonly table?: unknown } | undefined)?.table;
  return !managed && typeof referring === 'string' && referring !== table.slice(table.indexOf('.') + 1);
}

/** A foreign key of another owner does not follow updates. */
function referredTo(collection: Collection, violated: Violated | undefined): Refusal {
  const name = violatedMember(collection, violated, 'fkey');
  const detail = 'other records refer to this value, and the database does not change them with it';
  return new Refusal('conflict', detail, [
    { pointer: name === undefined ? '/data' : `/data/${name}`, code: 'conflict', detail },
  ]);
}

/** The name of the constraint is part of the schema of the database, and no value of a record. */
function checkViolation(collection: Collection, violated: Violated | undefined): Refusal {
  const name = violatedMember(collection, violated, 'check');
  const detail = `expected what the constraint \`${violated?.constraint}\` of the database allows`;
  return invalid([{ pointer: name === undefined ? '/data' : `/data/${name}`, code: 'check_violation', detail }]);
}

/** The value does not fit into the entry of an index, alone or beside the other values there. */
export function tooLong(pointer: string): Refusal {
  const detail = `too long for an index of the database, of which an entry has at most ${INDEX_ENTRY_BYTES} bytes`;
  return invalid([{ pointer, code: 'too_long', detail }]);
}

/** An index of a partition has a name of its own, and PostgreSQL names none for an entry that is longer than a page. */
function pointerOfIndex(collection: Collection, violated: Violated | undefined): string {
  const named = violatedMember(collection, violated, 'key') ?? violatedMember(collection, violated, 'idx');
  const name = named ?? (isOfKey(collection, violated) ? 'id' : undefined);
  return name === undefined ? '/data' : `/data/${name}`;
}

/**
 * Our constraints are named by their columns (tables.ts). A shard appends to the name; a partition
 * makes one of its own, and then the reported columns decide.
 */
function violatedMember(collection: Collection, violated: Violated | undefined, suffix: Suffix): string | undefined {
  if (violated === undefined) return undefined;
  const members = [...collection.fields.values(), ...collection.relations.values()];
  const indexes = suffix === 'key' ? uniqueIndexes(collection) : [];
  const named = members
    .flatMap((member) =>
      constraintsOf(collection, member, suffix).map((constraint) => ({ constraint, name: member.name })),
    )
    .concat(indexes.map(({ name, member }) => ({ constraint: name, name: member.name })))
    .filter(({ constraint }) => violated.constraint.startsWith(constraint))
    .toSorted((a, b) => b.constraint.length - a.constraint.length)[0];
  return named?.name ?? memberOfColumn(collection, violated.columns.at(-1)) ?? foldedMember(collection, violated);
}

/** The index of a partition has a name of its own, and the key of folded values is an expression: `lower(slug COLLATE …)`. */
function foldedMember({ fields }: Collection, { columns }: Violated): string | undefined {
  const words = new Set(columns.flatMap((element) => element.split(/[^\p{L}\p{N}_$]+/u)));
  return [...fields.values()].find(({ column, uniqueKey }) => uniqueKey?.ignoresCase && words.has(column))?.name;
}

const memberOfColumn = ({ fields, relations }: Collection, column: string | undefined): string | undefined =>
  [...fields.values(), ...relations.values()].find((member) => 'column' in member && member.column === column)?.name;

/** PostgreSQL names a CHECK of one column like ours. */
type Suffix = 'key' | 'fkey' | 'check' | 'idx';

function constraintsOf(collection: Collection, member: Field | Relation, suffix: Suffix): readonly string[] {
  if ('column' in member) {
    const columns = [[member.column], ...(suffix === 'idx' ? [columnsInOrder(collection, member.column)] : [])];
    return columns.map((each) => constraintName(collection.table, each, suffix));
  }
  if (member.kind !== 'many_to_many') return [];
  const { linkTable, sourceColumn, targetColumn } = member;
  if (suffix !== 'idx') return [constraintName(linkTable, [targetColumn], suffix)];
  return [constraintName(linkTable, [], 'pkey'), constraintName(linkTable, [targetColumn, sourceColumn], suffix)];
}

/** @param references in words: those that the caller may read */
export const stillReferenced = (references: readonly string[] = []): Refusal =>
  new Refusal(
    'still_referenced',
    references.length === 0 ? 'other records still reference this one' : references.join('; '),
  );
