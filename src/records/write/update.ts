/** Updates a record. The rules decide on the result before it is written. */

import type { Transaction } from '../../database/contract.ts';
import type { ErrorDetail } from '../../problem.ts';
import { forbidden, invalid, notFound } from '../../refusal.ts';
import type { Relation } from '../../schema/model/model.ts';
import { join, raw } from '../../sql.ts';
import { type AccessContext, actorOf, type Reading, type Store } from '../access-context.ts';
import { firstOf, isTaken, readableReferences, toRefusal, unreadableReferences } from '../constraint-errors.ts';
import type { Written } from '../read.ts';
import { ALWAYS } from '../record-shape.ts';
import { partnerChangeOf, stuckHolders, writePartners } from '../relations/has-one.ts';
import { memberChangeOf, writeMembers } from '../relations/links.ts';
import { inTenantOf, isReadableElsewhere } from '../scope.ts';
import { type Data, forbiddenMembers, type GuardedMember, guardedMembers, type Input, readInput } from './input.ts';
import { changedSince, LockedUpdate } from './locked-row.ts';
import { asksForRolesAlone, rolesAfter, unknownRoles, writeRoles } from './role-changes.ts';
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
  const { id, data, tx, relations } = request;
  const members = guardedMembers(access, data, 'update');
  const input = readInput(access, { mode: 'update', data });
  const isRolesAlone = access.collection.kind === 'users' && asksForRolesAlone(data);
  const change = { ...request, members, input, isRolesAlone };
  try {
    const writer = await inTenantOf(statementWriter(store, access, tx), id, 'update');
    const isOneStatement = relations.length === 0 && new WrittenView(writer).isExactFor('update');
    const inTransaction = async (own: Transaction): Promise<Written> => {
      const inside = { ...writer, ...statementWriter(store, access, own) };
      const written = isOneStatement ? undefined : await updateUnlocked(inside, change);
      return written ?? updateLocked(inside, own, change);
    };
    const written =
      (isOneStatement ? await updateUnlocked(writer, change) : undefined) ??
      (tx ? await inTransaction(tx) : await store.db.transaction(inTransaction));
    if (tx === undefined && access.collection.kind === 'users') await store.hooks.afterUsersChanged?.([id]);
    return written;
  } catch (error) {
    throw toRefusal(error, access.collection);
  }
}

/**
 * Decides and writes by one statement, which also returns the record if it sees the record as written.
 * Undefined: nothing was written, or one statement cannot decide; the locked row shows why. A unique
 * value that is taken is reported by the write itself, which comes after every other check.
 */
async function updateUnlocked(writer: StatementWriter, change: Change): Promise<Written | undefined> {
  const { collection } = writer.access;
  const { id, input, members, relations } = change;
  const hasErrors = change.errors.length + input.errors.length > 0;
  const writesMore = input.links.length + input.hasOnes.length > 0;
  // A change of a user has to be followed by hooks in its transaction.
  if (hasErrors || writesMore || collection.kind === 'users') return undefined;
  const accepted = await versionConditions(writer, change);
  if (accepted === undefined) return undefined;
  const view = new WrittenView(writer);
  const isExact = view.isExactFor('update');
  const permits = [writer.access.permit(collection.name, 'update'), ...members.map(({ permit }) => permit)];
  const consultsOthers = (isExact && view.consultsOthers) || permits.some((permit) => permit.consultsOthers);
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
    returning: isExact ? view.columns : raw('id'),
  });
  const [cells] = await writer.write(statement, id);
  if (cells === undefined) return undefined;
  return isExact ? view.answer(id, cells, relations) : view.read(id, relations);
}

/** Finds the errors in the order of their precedence, writes on the locked row, and reads the result. */
async function updateLocked(reading: Reading, tx: Transaction, change: Change): Promise<Written> {
  const { id, input, members, isRolesAlone } = change;
  const { name, kind } = reading.access.collection;
  const locked = await LockedUpdate.lock(reading, { collection: name, id, members });
  if (locked === undefined) throw (await isReadableElsewhere(reading, id)) ? forbidden() : notFound();
  const { isReadable, version, roles: rolesBefore } = locked.before;
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
    if (isTaken(error) && input.roles) rolesAfter(reading, rolesBefore, input.roles);
    throw isTaken(error) ? (firstOf([...stuck, ...deferred]) ?? error) : error;
  });
  if (!isWritten) throw refused(await locked.refusedMembers(reading, writing));
  for (const member of writing.members) await writeMembers(reading, id, member);
  const roles = input.roles ? rolesAfter(reading, rolesBefore, input.roles) : rolesBefore;
  if (input.roles) await writeRoles(tx, id, roles);
  if (writing.partners.length > 0) await writePartners(reading, { id, changes: writing.partners, deferred });
  if (deferred.length > 0) throw firstOf(deferred);
  const written = await new WrittenView(reading).read(id, change.relations);
  if (kind === 'users') {
    const by = actorOf(reading.access);
    await reading.store.hooks.onUserChanged?.({ id, rolesBefore, rolesAfter: roles, by }, tx);
  }
  return written;
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
