/** Updates a record. The rules decide on the result before it is written. */

import type { Transaction } from '../../database/contract.ts';
import type { ErrorDetail } from '../../problem.ts';
import { forbidden, invalid, notFound } from '../../refusal.ts';
import type { Relation } from '../../schema/model/model.ts';
import { join } from '../../sql.ts';
import { type AccessContext, actorOf, type Reading, type Store } from '../access-context.ts';
import { firstOf, isTaken, readableReferences, toRefusal, unreadableReferences } from '../constraint-errors.ts';
import { answerOf, type Written } from '../read.ts';
import { ALWAYS } from '../record-shape.ts';
import { partnerChangeOf, stuckHolders, writePartners } from '../relations/has-one.ts';
import { memberChangeOf, writeMembers } from '../relations/links.ts';
import { inTenantOf, isReadableElsewhere } from '../scope.ts';
import { type Data, forbiddenMembers, type GuardedMember, guardedMembers, type Input, readInput } from './input.ts';
import { changedSince, LockedUpdate, readLocked } from './locked-row.ts';
import { asksForRolesAlone, rolesAfter, rolesOf, unknownRoles, writeRoles } from './role-changes.ts';
import {
  type StatementWriter,
  statementWriter,
  versionConditions,
  versionUnchanged,
  WrittenView,
} from './single-statement.ts';
import {
  type MemberChange,
  type PartnerChange,
  STORED,
  updateStatement,
  WRITTEN,
  type Writing,
} from './written-row.ts';

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

interface Change extends UpdateRequest {
  readonly members: readonly GuardedMember[];
  readonly input: Input;
  /** Assigning roles needs no update rule. */
  readonly isRolesAlone: boolean;
}

/** Runs one statement if that can decide, else a transaction. */
export async function update(store: Store, access: AccessContext, request: UpdateRequest): Promise<Written> {
  const { id, data, tx } = request;
  const members = guardedMembers(access, data, 'update');
  const input = readInput(access, { mode: 'update', data });
  const isRolesAlone = access.collection.kind === 'users' && asksForRolesAlone(data);
  const change = { ...request, members, input, isRolesAlone };
  try {
    const writer = await inTenantOf(statementWriter(store, access, tx), id, 'update');
    const inTransaction = (own: Transaction) =>
      updateInTransaction({ store, q: own, access, tenant: writer.tenant }, own, change);
    const written =
      (await updateInOneStatement(writer, change)) ??
      (tx ? await inTransaction(tx) : await store.db.transaction(inTransaction));
    if (tx === undefined && access.collection.kind === 'users') await store.hooks.afterUsersChanged?.([id]);
    return written;
  } catch (error) {
    throw toRefusal(error, access.collection);
  }
}

/**
 * Undefined: nothing was written, or one statement cannot decide; the transaction finds out why. A
 * unique value that is taken is reported by the write itself, which comes after every other check.
 */
async function updateInOneStatement(writer: StatementWriter, change: Change): Promise<Written | undefined> {
  const { collection } = writer.access;
  const { id, input, members, relations } = change;
  const hasErrors = change.errors.length + input.errors.length > 0;
  const writesMore = input.links.length + input.hasOnes.length + relations.length > 0;
  // A change of a user has to be followed by hooks in its transaction.
  if (hasErrors || writesMore || collection.kind === 'users') return undefined;
  const view = new WrittenView(writer);
  if (!view.isExact) return undefined;
  const accepted = await versionConditions(writer, change);
  if (accepted === undefined) return undefined;
  const permits = [writer.access.permit(collection.name, 'update'), ...members.map(({ permit }) => permit)];
  const consultsOthers = view.consultsOthers || permits.some((permit) => permit.consultsOthers);
  const conditions = [
    ...permits.map(({ update: rules }) => rules.allows(STORED, WRITTEN)),
    ...readableReferences(writer, input.references),
    ...(consultsOthers ? [versionUnchanged(writer, id)] : []),
    ...accepted,
  ];
  const statement = updateStatement(writer, {
    collection: collection.name,
    id,
    writing: { values: input.values, members: [], partners: [] },
    condition: join(conditions, ' AND '),
    returning: view.columns(STORED),
  });
  const [cells] = await writer.write(statement, id);
  return cells && view.answer(id, cells);
}

/** Finds the errors in the order of their precedence, writes on the locked row, and reads the result. */
async function updateInTransaction(reading: Reading, tx: Transaction, change: Change): Promise<Written> {
  const { id, input, members, isRolesAlone } = change;
  const { name, kind } = reading.access.collection;
  const locked = await LockedUpdate.lock(reading, { collection: name, id, members });
  if (locked === undefined) throw (await isReadableElsewhere(reading, id)) ? forbidden() : notFound();
  const { isReadable, version } = locked.before;
  const refused = (refusedMembers: readonly GuardedMember[] = []) => {
    if (!isReadable) return notFound();
    return refusedMembers.length > 0 ? forbiddenMembers(refusedMembers) : forbidden();
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
    // A taken value ends the transaction; the errors that precede it need no further statement.
    if (isTaken(error) && input.roles) rolesAfter(reading, locked.before.row, input.roles);
    throw isTaken(error) ? (firstOf([...stuck, ...deferred]) ?? error) : error;
  });
  if (!isWritten) throw refused(await locked.refusedMembers(reading, writing));
  for (const member of writing.members) await writeMembers(reading, id, member);
  if (input.roles) await writeRoles(tx, id, rolesAfter(reading, locked.before.row, input.roles));
  if (writing.partners.length > 0) await writePartners(reading, { id, changes: writing.partners, deferred });
  if (deferred.length > 0) throw firstOf(deferred);
  const after = await readLocked(reading, name, id);
  if (kind === 'users') {
    const by = actorOf(reading.access);
    const [rolesBefore, rolesNow] = [rolesOf(locked.before.row), rolesOf(after.row)];
    await reading.store.hooks.onUserChanged?.({ id, rolesBefore, rolesAfter: rolesNow, by }, tx);
  }
  return after.isReadable ? { id, ...(await answerOf(reading, after.cells, change.relations)) } : { id };
}

/** The errors that need only the request and related records. They are reported after the rules. */
async function errorsOf(reading: Reading, { errors, input }: Change): Promise<readonly ErrorDetail[]> {
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
