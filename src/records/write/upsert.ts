/**
 * Writes the record that has a unique value: updates it, or creates it. A record that the caller may not read is not
 * found, so that the create fails as any create of a taken value does.
 */
import type { Queryable, Transaction } from '../../database/contract.ts';
import type { ErrorDetail } from '../../problem.ts';
import { invalid, Refusal } from '../../refusal.ts';
import { keyKindOf } from '../../schema/fields/index.ts';
import { foldedKey } from '../../schema/model/indexes.ts';
import {
  type Collection,
  madeBy,
  type Relation,
  tenantKeyOf,
  type UniqueField,
  withinOf,
} from '../../schema/model/model.ts';
import { empty, ident, param, raw, type Sql, sql } from '../../sql.ts';
import { type AccessContext, type Reading, readable, type Store } from '../access-context.ts';
import type { WrittenAnswer } from '../read.ts';
import { recordKeyOf } from '../record-key.ts';
import { scopeOf, tenantOfValues, withinTenant } from '../scope.ts';
import { versionColumn } from '../versions.ts';
import { create } from './create.ts';
import { type ColumnValue, type Data, readInput } from './input.ts';
import type { WantedRow } from './locks/row-locks.ts';
import { hasPlacesInTurn } from './locks/value-locks.ts';
import { update } from './update.ts';

/** Throws `forbidden` where the rules deny the action to the caller. */
export interface UpsertAccess {
  /** Undefined: the caller may read no record. */
  readonly read: AccessContext | undefined;
  create(data: Data): AccessContext;
  update(data: Data): AccessContext;
}

export interface UpsertRequest {
  readonly field: UniqueField;
  /** Has the value of the field. */
  readonly data: Data;
  readonly relations: readonly Relation[];
  /** False: a record that is not found is `changed`. Default: it is created. */
  readonly mayCreate?: boolean;
  /** False: a record that is found is `changed`. Default: it is updated. */
  readonly mayUpdate?: boolean;
  /** The versions of the found record that the caller accepts; undefined: any. */
  readonly ifVersion?: readonly string[] | undefined;
  /** Default: a transaction of its own. A lost race then ends it with `unique_violation`: the caller runs it again. */
  readonly tx?: Transaction;
}

export interface Upserted {
  readonly isCreated: boolean;
  readonly written: WrittenAnswer;
}

const UPSERT_ATTEMPTS = 4;

export async function upsert(store: Store, access: UpsertAccess, request: UpsertRequest): Promise<Upserted> {
  const { tx } = request;
  if (tx !== undefined) return upsertIn(store, access, request, tx);
  for (let attempt = 1; ; attempt++) {
    try {
      // The first attempt finds the record by a statement, and writes by another one that notices a change since.
      if (attempt === 1) return await upsertIn(store, access, request);
      return await store.transaction((own) => upsertIn(store, access, request, own));
    } catch (error) {
      if (attempt === UPSERT_ATTEMPTS || !isLostRace(error, attempt)) throw error;
    }
  }
}

/** Another write came between. A hidden record, and a taken value of another field, are refused again. */
function isLostRace(error: unknown, attempt: number): boolean {
  if (!(error instanceof Refusal)) return false;
  // Only the first attempt writes a record that it has not locked.
  if (error.code === 'changed') return attempt === 1;
  return error.code === 'unique_violation' || error.code === 'not_found';
}

async function upsertIn(
  store: Store,
  access: UpsertAccess,
  request: UpsertRequest,
  tx?: Transaction,
): Promise<Upserted> {
  const { field, data, relations, mayCreate = true, mayUpdate = true } = request;
  const found = access.read && (await findRecord({ store, q: tx ?? store.db, access: access.read }, request, true));
  if (found === undefined && !mayCreate) throw new Refusal('changed', 'no record that you may read has the value');
  if (found !== undefined && !mayUpdate) throw new Refusal('changed', 'a record has the value already');
  if (found === undefined) {
    const written = await create(store, access.create(data), { data, relations, tx });
    return { isCreated: true, written };
  }
  const { collection } = access.read!;
  const changed = changedByUpsert(collection, field, data);
  const { id } = found;
  const ifVersion = acceptedVersions(found, request, tx);
  const change = { id, data: changed, errors: errorsOfId(collection, data, id), relations, ifVersion, tx };
  return { isCreated: false, written: await update(store, access.update(changed), change) };
}

/** A record that is not locked is written as it was found. */
function acceptedVersions(
  { version }: FoundRecord,
  { ifVersion }: UpsertRequest,
  tx: Transaction | undefined,
): readonly string[] | undefined {
  if (tx !== undefined || version === undefined) return ifVersion;
  return ifVersion === undefined || ifVersion.includes(version) ? [version] : [];
}

/**
 * The record has the values by which it was found, and no rule is asked about writing them. The id that callers give a
 * new record is compared with that of the found one.
 */
export function changedByUpsert(collection: Collection, field: UniqueField, data: Data): Data {
  const held = new Set([field.name, ...withinOf(field), tenantKeyOf(collection)?.by]);
  if (madeBy(collection) === 'caller') held.add('id');
  return Object.fromEntries(Object.entries(data).filter(([name]) => !held.has(name)));
}

/** A repeated request has the id of the record that the first one created. */
function errorsOfId(collection: Collection, data: Data, id: string): readonly ErrorDetail[] {
  if (madeBy(collection) !== 'caller' || !Object.hasOwn(data, 'id')) return [];
  const read = keyKindOf(collection).fromJson(data.id, {});
  if (!read.error && String(read.value) === id) return [];
  const detail = 'the record that has the value has another id, which never changes';
  return [{ pointer: '/data/id', code: 'read_only', detail }];
}

/** An upsert of a batch, whose caller may read records and update them. */
export interface WantedUpsert extends UpsertKey {
  readonly read: AccessContext;
  readonly update: AccessContext;
}

/** The stored records of upserts that have places: every write locks its row before its places. */
export async function rowsOfUpserts(
  store: Store,
  tx: Transaction,
  upserts: readonly WantedUpsert[],
): Promise<readonly WantedRow[]> {
  const rows: WantedRow[] = [];
  for (const { read, update, field, data } of upserts) {
    const { collection } = read;
    if (!hasPlacesInTurn(store, collection)) continue;
    const found = await foundRecord({ store, q: tx, access: read }, { field, data });
    const changed = changedByUpsert(collection, field, data);
    if (found !== undefined) rows.push({ access: update, action: 'update', id: found.id, data: changed });
  }
  return rows;
}

/** Undefined too where a value of the key is not valid, which the operation reports. */
async function foundRecord(asked: KeyReading, key: UpsertKey): Promise<FoundRecord | undefined> {
  try {
    return await findRecord(asked, key, false);
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}

type UpsertKey = Pick<UpsertRequest, 'field' | 'data'>;
type KeyReading = Reading & { readonly q: Queryable };

interface FoundRecord {
  readonly id: string;
  /** Undefined: its table counts no changes. */
  readonly version: string | undefined;
}

/** @param locks the record, if this is a transaction */
async function findRecord(
  asked: KeyReading,
  { field, data }: UpsertKey,
  locks: boolean,
): Promise<FoundRecord | undefined> {
  const { store, access, q } = asked;
  const { collection } = access;
  const names = [field.name, ...withinOf(field)];
  const { values, errors } = readInput(store.schema, access, { mode: 'create', data });
  const ofKey = errors.filter(({ pointer }) => names.some((name) => pointer === `/data/${name}`));
  if (ofKey.length > 0) throw invalid(errors);
  const tenant = tenantOfValues(collection, values);
  if (tenantKeyOf(collection) !== undefined && tenant === undefined) return undefined;
  const reading = withinTenant(asked, tenant);
  const conditions = keyConditions(reading, field, values);
  if (conditions === undefined) return undefined;
  const isLocked = locks && 'inTransaction' in q && collection.countsChanges;
  const scope = scopeOf(reading);
  const rows = isLocked ? scope.lockable(collection.name, 't') : scope.from(collection.name, 't');
  const isReadable = [
    readable(reading.access, collection.name, 't'),
    ...names.flatMap((name) => reading.access.member(collection.name, name, 'read')?.where('t') ?? []),
  ];
  const [row] = await q.rows(sql`
    SELECT ${recordKeyOf(collection).of('t')}, ${versionColumn(collection, 't')}
      FROM ${rows.where(...conditions, ...isReadable)}${isLocked ? raw(' FOR NO KEY UPDATE') : empty}`);
  const [id, count] = row ?? [];
  if (id == null) return undefined;
  const versions = await store.versions(q);
  return { id, version: count == null ? undefined : versions.of({ collection: collection.name, id, count }) };
}

/** Undefined: a value of the key is null, which no record has. */
function keyConditions(
  { access: { collection } }: Reading,
  field: UniqueField,
  values: readonly ColumnValue[],
): readonly Sql[] | undefined {
  const conditions: Sql[] = [];
  for (const name of [field.name, ...withinOf(field)]) {
    const member = collection.fields.get(name) ?? collection.relations.get(name);
    const given = values.find(({ column }) => member !== undefined && 'column' in member && column === member.column);
    if (given === undefined || given.value === null) return undefined;
    const { column, type, value, castTo } = given;
    const wanted = sql`${param(type, value)}${castTo === undefined ? empty : raw(`::${castTo}`)}`;
    const isFolded = name === field.name && field.uniqueKey?.ignoresCase === true;
    const asKept = isFolded ? foldedKey : (value: Sql): Sql => value;
    conditions.push(sql`${asKept(ident('t', column))} = ${asKept(wanted)}`);
  }
  return conditions;
}
