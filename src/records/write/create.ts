/**
 * Creates a record. The rules judge it as it would be stored, and the statement that decides also
 * writes it.
 */
import type { Transaction } from '../../database/contract.ts';
import type { Permit } from '../../policy/access.ts';
import { NO_RELATED } from '../../policy/types.ts';
import { newRecordId } from '../../record-id.ts';
import { forbidden, invalid, type Refusal } from '../../refusal.ts';
import { madeBy, madeByDatabase, type Relation, tenantKeyOf } from '../../schema/model/model.ts';
import { join, raw, type Sql } from '../../sql.ts';
import type { AccessContext, Reading, Store } from '../access-context.ts';
import { firstOf, toRefusal, unreadableReferences } from '../constraint-errors.ts';
import { keyDefaultsOf, newIdsOf } from '../new-ids.ts';
import type { WrittenAnswer } from '../read.ts';
import { recordKeyOf } from '../record-key.ts';
import { writePartners } from '../relations/has-one.ts';
import { writeMembers } from '../relations/links.ts';
import { mayBeOfTenant, tenantOfValues, withinTenant } from '../scope.ts';
import { type AskedCheck, checksOn, failureOf, passesCreate } from './checks.ts';
import {
  type Data,
  forbiddenMembers,
  type GuardedMember,
  guardedMembers,
  type Input,
  readInput,
  type ServerValues,
} from './input.ts';
import { isPlaced, placedCallerOf, setsPlace, turnOfNew } from './locks/value-locks.ts';
import { insertOwned, type OwnedRow } from './owners-changes.ts';
import { recordingHistory } from './row-history.ts';
import { createdRow, newRecord } from './row-in-process.ts';
import { readWritten, type StatementWriter, sendWrite, statementWriter, writtenOf } from './single-statement.ts';
import { createDecided, writePlanOf } from './write-plan.ts';
import { insertDecided, insertStatement, judgeInsert, WRITTEN, type Writing } from './written-row.ts';

export interface CreateRequest {
  readonly data: Data;
  readonly relations: readonly Relation[];
  /** Values that the program sets: the id, and fields that callers cannot write (a file's size). */
  readonly given?: ServerValues;
  /** Default: a transaction of its own. */
  readonly tx?: Transaction;
  /** The transaction has locked the places of the values, or all places of the record. */
  readonly holdsPlaces?: 'values' | 'all';
}

interface Creation {
  readonly id: string;
  readonly permit: Permit;
  readonly members: readonly GuardedMember[];
  readonly checks: readonly AskedCheck[];
  readonly input: Input;
  readonly relations: readonly Relation[];
}

/** Runs one statement if that can decide, else a transaction. */
export async function create(store: Store, access: AccessContext, request: CreateRequest): Promise<WrittenAnswer> {
  const { tx, data, holdsPlaces } = request;
  const read = creationOf(store, access, request);
  const { collection } = access;
  const needsPlaces =
    isPlaced(store, collection) || (holdsPlaces === undefined && setsPlace(store, { collection, data }));
  // A create that fails in any case holds up nobody.
  const isRefused = read.permit.verdict === 'deny' || read.input.errors.length > 0;
  const isInPlace = needsPlaces && holdsPlaces !== 'all' && !isRefused;
  const wanted = { collection, data, caller: placedCallerOf(access) };
  const turn = isInPlace ? turnOfNew(store.schema, wanted, read.input.values) : undefined;
  const isWhole = tx === undefined && tenantKeyOf(collection) === undefined && !madeByDatabase(collection);
  if (turn !== undefined && !isWhole) return createInPlace(store, access, request, turn);
  const tenant = tenantOfValues(access.collection, read.input.values);
  const writer = withinTenant(statementWriter(store, access, tx), tenant);
  try {
    const isMade = madeByDatabase(access.collection) && request.given?.id === undefined;
    const creation = isMade ? await withMadeId(writer, read) : read;
    const written = await createInOneStatement(writer, creation, turn);
    if (written !== undefined) return written;
    if (turn !== undefined) return await createInPlace(store, access, request, turn);
    await requireValid(writer, creation.input);
    const inTransaction = (own: Transaction) => createInTransaction({ ...writer, q: own }, creation);
    return tx ? await inTransaction(tx) : await store.transaction(inTransaction);
  } catch (error) {
    throw toRefusal(error, access.collection);
  }
}

/** The same in a transaction that holds its places. */
function createInPlace(store: Store, access: AccessContext, request: CreateRequest, turn: Sql): Promise<WrittenAnswer> {
  const work = async (tx: Transaction): Promise<WrittenAnswer> => {
    await tx.rows(turn);
    return create(store, access, { ...request, tx, holdsPlaces: 'all' });
  };
  if (request.tx !== undefined) return work(request.tx);
  return store.transaction(work).catch((error: unknown) => {
    throw toRefusal(error, access.collection);
  });
}

/** Throws `forbidden` for members that the caller may never set. */
function creationOf(
  { schema }: Store,
  access: AccessContext,
  { data, relations, given = {} }: CreateRequest,
): Creation {
  const permit = access.permit(access.collection.name, 'create');
  const members = guardedMembers(access, data, 'create');
  const checks = checksOn(access, access.collection, 'create');
  const input = readInput(schema, access, { mode: 'create', data, given });
  const { collection } = access;
  // A create that the rules deny, or that is not valid, gets no id of the database.
  const otherwise = () => (madeBy(collection) === 'service' ? newRecordId() : recordKeyOf(collection).unused);
  const id = typeof given.id === 'string' ? given.id : (input.id ?? otherwise());
  return { id, permit, members, checks, input, relations };
}

/** Nothing is taken from a sequence for a create that fails in any case. */
async function withMadeId(writer: StatementWriter, creation: Creation): Promise<Creation> {
  if (creation.input.errors.length > 0 || creation.permit.verdict === 'deny') return creation;
  const { store, q, access } = writer;
  const defaults = keyDefaultsOf(store);
  const [id] = await newIdsOf({ q, collection: access.collection, count: 1, defaults });
  return { ...creation, id: id! };
}

/** Throws `validation_failed`. */
async function requireValid(reading: Reading, { errors, references }: Input): Promise<void> {
  const all = [...errors, ...(await unreadableReferences(reading, references))];
  if (all.length > 0) throw invalid(all);
}

/**
 * Undefined: nothing was written, or one statement cannot decide; the transaction finds out why.
 * The statement sees that the related records are there. A unique value that is taken is reported
 * by the write itself, which comes after every other check.
 */
async function createInOneStatement(
  writer: StatementWriter,
  creation: Creation,
  turn?: Sql,
): Promise<WrittenAnswer | undefined> {
  const { store, access, tenant } = writer;
  const { id, permit, members, checks, input, relations } = creation;
  const { references } = input;
  const writesMore = input.links.length + input.hasOnes.length + relations.length > 0;
  // A statement never names two tenants.
  if (input.errors.length > 0 || writesMore || !access.collection.countsChanges || !mayBeOfTenant(writer, 'create'))
    return undefined;
  const permits = [permit, ...members.map((member) => member.permit)];
  const writing = newRecord(access, id, input);
  const { values } = writing;
  const violations = checks.map(({ violation }) => violation);
  const decided = { references, permits, violations, counts: [], isInTurn: false };
  const asked = { kind: 'create' as const, id, now: access.now, tenant, values, ...decided };
  const { plan, answers } = writePlanOf(store, access, asked);
  if (!plan.isExact) return undefined;
  const known = { asked, answers };
  if (plan.isDecidedHere && !isPermitted(writer, creation, writing)) return undefined;
  if (plan.decided !== undefined && turn !== undefined) return undefined;
  const sent = { id, isNew: true, turn };
  const cells = plan.decided
    ? await createDecided(writer, plan.decided, known, sent)
    : (await sendWrite(writer, plan.statement.fill(known), sent))[0];
  return cells && writtenOf(writer, id, { view: plan.view, cells, relations });
}

/** The answer of the rules where they read the record and the request alone. */
function isPermitted({ store, access }: Reading, { id, permit, members, checks }: Creation, writing: Writing): boolean {
  const record = createdRow({ schema: store.schema, collection: access.collection }, id, writing);
  const permits = [permit, ...members.map((member) => member.permit)];
  const holds = (each: Permit): boolean => each.test(record, NO_RELATED);
  return permits.every(holds) && !checks.some(({ violation }) => holds(violation));
}

/** The conditions under which the record may be created, each member may be set, and each check passes. */
const conditionsOf = ({ permit, members, checks }: Creation, { tenant }: Reading): readonly Sql[] => [
  ...[permit, ...members.map((member) => member.permit)].map((each) => each.within(tenant).where(WRITTEN)),
  ...checks.map(({ violation }) => passesCreate(violation.within(tenant))),
];

/** @param holds a value for each of `conditionsOf`; the rules come before the checks */
function refusalOf(
  { access }: Reading,
  { members, checks }: Creation,
  [isPermitted, ...holds]: readonly boolean[],
): Refusal {
  if (!isPermitted) return forbidden(access.denialMessage?.(access.collection.name, 'create'));
  const denied = members.filter((_, i) => !holds[i]);
  const failed = checks.filter((_, i) => !holds[members.length + i]);
  return (denied.length === 0 ? failureOf(failed) : undefined) ?? forbiddenMembers(denied);
}

async function createInTransaction(reading: Reading, creation: Creation): Promise<WrittenAnswer> {
  const { id, members, checks, input, relations } = creation;
  const { store, q, access } = reading;
  const writing = newRecord(access, id, input);
  const conditions = conditionsOf(creation, reading);
  if (!access.collection.countsChanges) return createOwned(reading, creation, { writing, conditions });
  const statement = { writing, condition: join(conditions, ' AND '), returning: raw('1') };
  const judged = store.isCluster ? await judgeInsert(reading, { writing, conditions }) : undefined;
  const insert = judged === undefined ? insertStatement(reading, statement) : insertDecided(reading, statement);
  const row = { collection: access.collection.name, ids: [id], tenant: reading.tenant, areNew: true };
  const inserted = judged?.includes(false) ? [] : await recordingHistory(reading, row, () => q.rows(insert));
  if (inserted.length === 0) {
    const isOneRule = members.length + checks.length === 0;
    throw refusalOf(
      reading,
      creation,
      judged ?? (isOneRule ? [false] : await judgeInsert(reading, { writing, conditions })),
    );
  }
  await writeRelated(reading, id, writing);
  return readWritten(reading, id, relations);
}

async function writeRelated(reading: Reading, id: string, writing: Writing): Promise<void> {
  for (const member of writing.members) await writeMembers(reading, id, member);
  const deferred: Refusal[] = [];
  if (writing.partners.length > 0) await writePartners(reading, { id, changes: writing.partners, deferred });
  if (deferred.length > 0) throw firstOf(deferred);
}

/** The database decides on the row, so on its id too. */
async function createOwned(reading: Reading, creation: Creation, asked: OwnedRow): Promise<WrittenAnswer> {
  const { id, holds } = await insertOwned(reading, asked);
  if (id === undefined || holds.includes(false)) throw refusalOf(reading, creation, holds);
  await writeRelated(reading, id, asked.writing);
  return readWritten(reading, id, creation.relations);
}
