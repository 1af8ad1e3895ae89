/** Updates a record. The rules decide on the result before it is written. */
import type { Transaction } from '../../database/contract.ts';
import type { ErrorDetail } from '../../problem.ts';
import { forbidden, invalid, notFound } from '../../refusal.ts';
import { type Relation, tenantKeyOf } from '../../schema/model/model.ts';
import type { Sql } from '../../sql.ts';
import { type AccessContext, actorOf, type Reading, type Store } from '../access-context.ts';
import { firstOf, isTaken, isTooLong, toRefusal, unreadableReferences } from '../constraint-errors.ts';
import type { WrittenAnswer } from '../read.ts';
import { ALWAYS } from '../record-shape.ts';
import { partnerChangeOf, stuckHolders, writePartners } from '../relations/has-one.ts';
import { memberChangeOf, writeMembers } from '../relations/links.ts';
import { inTenantOf, isReadableElsewhere } from '../scope.ts';
import { checksOn } from './checks.ts';
import { type Data, forbiddenMembers, type GuardedMember, guardedMembers, type Input, readInput } from './input.ts';
import { changedSince, LockedUpdate } from './locked-row.ts';
import { placedForUpdate, setsPlace, takeTurn, turnOf, withMadeReferences } from './locks/value-locks.ts';
import { asksForRolesAlone, rolesAfter, unknownRoles, writeRoles } from './role-changes.ts';
import { acceptedCounts, readWritten, type StatementWriter, statementWriter, writtenOf } from './single-statement.ts';
import { updateDecided, type WritePlan, type WriteValues, writePlanOf } from './write-plan.ts';
import type { MemberChange, PartnerChange, Writing } from './written-row.ts';

export interface UpdateRequest {
  readonly id: string;
  readonly data: Data;
  /**
   * Errors found earlier. They are reported, with the store's own, only to a caller who may update
   * the record.
   */
  readonly errors: readonly ErrorDetail[];
  readonly relations: readonly Relation[];
  /** The versions of the record that the caller accepts; undefined: any. */
  readonly ifVersion?: readonly string[] | undefined;
  /** Default: a transaction of its own. With it, the caller runs `afterUsersChanged` after the commit. */
  readonly tx?: Transaction;
}

interface GuardedChange extends UpdateRequest {
  readonly members: readonly GuardedMember[];
  readonly input: Input;
  /** Assigning roles needs no update rule. */
  readonly isRolesAlone: boolean;
  readonly needsTurn: boolean;
}

/** Runs one statement if that can decide, else a transaction. */
export async function update(store: Store, access: AccessContext, request: UpdateRequest): Promise<WrittenAnswer> {
  const { id, data, tx, relations } = request;
  const members = guardedMembers(access, data, 'update');
  const input = readInput(store.schema, access, { mode: 'update', data });
  const isRolesAlone = access.collection.kind === 'users' && asksForRolesAlone(data);
  try {
    const writer = await inTenantOf(statementWriter(store, access, tx), id, 'update');
    const { collection } = access;
    const placed = withMadeReferences(collection, data, input.values);
    const needsTurn = setsPlace(store, { collection, data: placed });
    const change = { ...request, members, input, isRolesAlone, needsTurn };
    const known = await knownUpdate(writer, change);
    const isWhole = tx === undefined && tenantKeyOf(collection) === undefined;
    const turn = needsTurn && isWhole ? turnOf(writer, placedForUpdate(writer, collection, id), placed) : undefined;
    const isOneStatement = known?.plan.isExact && relations.length === 0 && (!needsTurn || turn !== undefined);
    const inTransaction = async (own: Transaction): Promise<WrittenAnswer> => {
      const inside = { ...writer, ...statementWriter(store, writer.access, own) };
      if (needsTurn) await takeTurn(inside, placedForUpdate(inside, collection, id), placed);
      const written = known === undefined || isOneStatement ? undefined : await updateUnlocked(inside, known, change);
      return written ?? updateLocked(inside, own, change);
    };
    const written =
      (isOneStatement ? await updateUnlocked(writer, known, change, turn) : undefined) ??
      (tx ? await inTransaction(tx) : await store.transaction(inTransaction));
    if (tx === undefined && access.collection.kind === 'users') await store.hooks.afterUsersChanged?.([id]);
    return written;
  } catch (error) {
    throw toRefusal(error, access.collection);
  }
}

interface KnownUpdate extends WriteValues {
  readonly plan: WritePlan;
}

/** The plan of the statement that can decide and write; undefined: the locked row decides. */
async function knownUpdate(writer: StatementWriter, change: GuardedChange): Promise<KnownUpdate | undefined> {
  const { store, access, tenant } = writer;
  const { id, input, members } = change;
  const hasErrors = change.errors.length + input.errors.length > 0;
  const writesMore = input.links.length + input.hasOnes.length > 0;
  // A change of a user has to be followed by hooks in its transaction.
  // The owner of a table may change the row that is written, and counts no changes.
  const { kind, countsChanges, history } = access.collection;
  // An entry of a history in a table of its own needs the locked row.
  const isPlain = kind !== 'users' && countsChanges && history?.table === undefined;
  if (hasErrors || writesMore || !isPlain) return undefined;
  const counts = await acceptedCounts(writer, change);
  if (counts === undefined) return undefined;
  const permits = [access.permit(access.collection.name, 'update'), ...members.map(({ permit }) => permit)];
  const { values, references } = input;
  const violations = checksOn(access, access.collection, 'update', values).map(({ violation }) => violation);
  const decided = { references, permits, violations, counts, isInTurn: change.needsTurn };
  const asked = { kind: 'update' as const, id, now: access.now, tenant, values, ...decided };
  return { asked, ...writePlanOf(store, access, asked) };
}

/**
 * Undefined: nothing was written; the locked row shows why. A unique value that is taken is reported
 * by the write itself, which comes after every other check.
 */
async function updateUnlocked(
  writer: StatementWriter,
  known: KnownUpdate,
  change: GuardedChange,
  turn?: Sql,
): Promise<WrittenAnswer | undefined> {
  const { id, relations } = change;
  const { plan } = known;
  const returned = await updateDecided(writer, plan, known, { id, isNew: false, turn });
  if (returned === undefined) return undefined;
  const cells = plan.isExact ? returned : (await writer.q.rows(plan.written.fill(known)))[0]!;
  return writtenOf(writer, id, { view: plan.view, cells, relations });
}

/** Finds the errors in the order of their precedence, writes on the locked row, and reads the result. */
async function updateLocked(reading: Reading, tx: Transaction, change: GuardedChange): Promise<WrittenAnswer> {
  const { id, input, members, isRolesAlone, needsTurn } = change;
  const { name, kind } = reading.access.collection;
  const locked = await LockedUpdate.lock(reading, { collection: name, id, members, needsTurn });
  const message = reading.access.denialMessage?.(name, 'update');
  if (locked === undefined) throw (await isReadableElsewhere(reading, id)) ? forbidden(message) : notFound();
  const { isReadable, version, roles: rolesBefore } = locked.before;
  const refused = (refusedMembers: readonly GuardedMember[] = []) => {
    if (!isReadable) return notFound();
    return refusedMembers.length > 0 ? forbiddenMembers(refusedMembers) : forbidden(message);
  };
  if (isRolesAlone ? !isReadable : !locked.isPossible) throw refused();
  if (locked.impossibleMembers.length > 0) throw refused(locked.impossibleMembers);
  const errors = await errorsOf(reading, change);
  // An error would reveal that the record exists.
  if (errors.length > 0) throw isReadable || locked.isOpen ? invalid(errors) : notFound();
  const writing = await writingOf(reading, id, input);
  const deferred = change.ifVersion?.includes(version) === false ? [changedSince()] : [];
  const stuck = writing.partners.length > 0 ? await stuckHolders(reading, id, writing.partners) : [];
  const isWritten = await locked.write(reading, writing, isRolesAlone ? ALWAYS : undefined).catch((error: unknown) => {
    // A taken value ends the transaction, as a too long one does; the errors that precede it need no further statement.
    if ((isTaken(error) || isTooLong(error)) && input.roles) rolesAfter(reading, rolesBefore, input.roles);
    throw isTaken(error) ? (firstOf([...stuck, ...deferred]) ?? error) : error;
  });
  if (!isWritten) {
    const refusal = await locked.refusalOf(reading, writing);
    throw refusal.failure ?? refused(refusal.members);
  }
  for (const member of writing.members) await writeMembers(reading, id, member);
  const roles = input.roles ? rolesAfter(reading, rolesBefore, input.roles) : rolesBefore;
  if (input.roles) await writeRoles(tx, id, roles);
  if (writing.partners.length > 0) await writePartners(reading, { id, changes: writing.partners, deferred });
  if (deferred.length > 0) throw firstOf(deferred);
  const written = await readWritten(reading, id, change.relations);
  if (kind === 'users') {
    const by = actorOf(reading.access);
    await reading.store.hooks.onUserChanged?.({ id, rolesBefore, rolesAfter: roles, by }, tx);
  }
  return written;
}

/** The errors that need only the request and related records. They are reported after the rules. */
async function errorsOf(reading: Reading, { errors, input }: GuardedChange): Promise<readonly ErrorDetail[]> {
  return [
    ...errors,
    ...input.errors,
    ...(input.references.length > 0 ? await unreadableReferences(reading, input.references) : []),
    ...(input.roles ? unknownRoles(reading.store.schema, input.roles) : []),
  ];
}

/** Works out the whole write before anything is written. */
export async function writingOf(reading: Reading, id: string, { values, links, hasOnes }: Input): Promise<Writing> {
  const members: MemberChange[] = [];
  for (const link of links) members.push(await memberChangeOf(reading, id, link));
  const partners: PartnerChange[] = [];
  for (const setting of hasOnes) partners.push(await partnerChangeOf(reading, id, setting));
  return { values, members, partners };
}
