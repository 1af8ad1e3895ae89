/**
 * Updates a record in one transaction, on the locked row. The rules decide on the result before it
 * is written.
 */

import type { Transaction } from '../../database/contract.ts';
import type { ErrorDetail } from '../../problem.ts';
import { forbidden, invalid, notFound } from '../../refusal.ts';
import type { Relation } from '../../schema/model/model.ts';
import { type AccessContext, actorOf, type Reading, type Store } from '../access-context.ts';
import { toRefusal, uniqueViolation, unreadableReferences } from '../constraint-errors.ts';
import type { Data } from '../data.ts';
import type { Written } from '../read.ts';
import { answerOf } from '../read.ts';
import { ALWAYS } from '../record-shape.ts';
import { partnerChangeOf, writePartners } from '../relations/has-one.ts';
import { memberChangeOf, writeMembers } from '../relations/links.ts';
import { forbiddenMembers, type GuardedMember, guardedMembers } from '../relations/member-writes.ts';
import { inTenantOf, isReadableElsewhere } from '../scope.ts';
import { type AtOnce, atOnce } from './at-once.ts';
import { GuardedUpdate } from './guarded-update.ts';
import { type Input, readInput } from './input.ts';
import { assertVersion, lookAt } from './locked-row.ts';
import { Objections, unlessTaken } from './objections.ts';
import { asksForRolesAlone, rolesAfter, rolesOf, unknownRoles, writeRoles } from './role-changes.ts';
import { setsUnique, withoutUniques } from './unique-values.ts';
import { updateAtOnce } from './update-at-once.ts';
import { type MemberChange, type PartnerChange, updateWhere, type Writing } from './written-row.ts';

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
}

export async function update(store: Store, access: AccessContext, request: UpdateRequest): Promise<Written> {
  const change = changeOf(access, request);
  try {
    const within = await inTenantOf(atOnce(store, access), request.id, 'update');
    const { tenant } = within;
    const written =
      (await tryAtOnce(within, change)) ??
      (await store.db.transaction((tx) => updateIn({ store, q: tx, access, tenant }, tx, change)));
    if (access.collection.kind === 'users') await store.hooks.afterUsersChanged?.([written.id]);
    return written;
  } catch (error) {
    throw toRefusal(error, access.collection);
  }
}

/** As one of several writes of a transaction. The caller runs `afterUsersChanged` after the commit. */
export async function updateWithin(
  store: Store,
  access: AccessContext,
  { tx, ...request }: UpdateRequest & { readonly tx: Transaction },
): Promise<Written> {
  const change = changeOf(access, request);
  try {
    const within = await inTenantOf(atOnce(store, access, tx), request.id, 'update');
    const written = await tryAtOnce(within, change);
    return written ?? (await updateIn({ store, q: tx, access, tenant: within.tenant }, tx, change));
  } catch (error) {
    throw toRefusal(error, access.collection);
  }
}

function changeOf(access: AccessContext, request: UpdateRequest): Change {
  const isUsers = access.collection.kind === 'users';
  const members = guardedMembers(access, request.data, 'update');
  const input = readInput(access, { mode: 'update', data: request.data });
  return { ...request, members, input, isRolesAlone: isUsers && asksForRolesAlone(request.data) };
}

/**
 * Undefined: the transaction has to find out more. A unique value that is taken is reported by the
 * write itself, which comes after every other check.
 */
async function tryAtOnce(within: AtOnce, change: Change): Promise<Written | undefined> {
  const { errors, input, relations } = change;
  const hasErrors = errors.length + input.errors.length > 0;
  return hasErrors || relations.length > 0 ? undefined : updateAtOnce(within, change);
}

/** Those that need only the request and related records. They are reported after the rules. */
async function errorsOf(reading: Reading, { errors, input }: Change): Promise<readonly ErrorDetail[]> {
  return [
    ...errors,
    ...input.errors,
    ...(await unreadableReferences(reading, input.references)),
    ...(input.roles ? unknownRoles(reading.store.schema, input.roles) : []),
  ];
}

interface Change extends UpdateRequest {
  readonly members: readonly GuardedMember[];
  readonly input: Input;
  /** Assigning roles needs no update rule. */
  readonly isRolesAlone: boolean;
}

async function updateIn(reading: Reading, tx: Transaction, change: Change): Promise<Written> {
  const { id, input, isRolesAlone } = change;
  const { name, kind } = reading.access.collection;
  const guarded = await GuardedUpdate.lock(reading, { collection: name, id, members: change.members });
  if (guarded === undefined) throw (await isReadableElsewhere(reading, id)) ? forbidden() : notFound();
  const { isReadable, version, row } = guarded.before;
  const rolesBefore = rolesOf(row);
  const refused = (members: readonly GuardedMember[] = []) => {
    if (!isReadable) return notFound();
    return members.length > 0 ? forbiddenMembers(members) : forbidden();
  };
  if (isRolesAlone ? !isReadable : !guarded.isPossible) throw refused();
  if (guarded.impossibleMembers.length > 0) throw refused(guarded.impossibleMembers);
  const errors = await errorsOf(reading, change);
  // An error would reveal that the record exists.
  if (errors.length > 0) throw isReadable || guarded.isOpen ? invalid(errors) : notFound();
  const writing = await writingOf(reading, id, input);
  const objections = new Objections();
  objections.check(() => assertVersion(version, change.ifVersion));
  const isWritten = isRolesAlone
    ? await writeUnasked(reading, id, writing)
    : await writeRow(reading, tx, { id, guarded, writing, objections });
  if (!isWritten) throw refused(await guarded.refusedMembers(reading, writing));
  for (const member of writing.members) await writeMembers(reading, id, member);
  if (input.roles) {
    const roles = rolesAfter(reading.store.schema, reading.access, { before: rolesBefore, change: input.roles });
    await writeRoles(tx, id, roles);
  }
  await writePartners(reading, { id, changes: writing.partners, objections });
  objections.raise();
  const after = await lookAt(reading, { collection: name, id, conditions: [] });
  if (kind === 'users') {
    const by = actorOf(reading.access);
    await reading.store.hooks.onUserChanged?.({ id, rolesBefore, rolesAfter: rolesOf(after.row), by }, tx);
  }
  return after.isReadable ? { id, ...(await answerOf(reading, after.cells, change.relations)) } : { id };
}

interface JudgedUpdate {
  readonly id: string;
  readonly guarded: GuardedUpdate;
  readonly writing: Writing;
  readonly objections: Objections;
}

/** False: a rule refuses it. What follows is judged beside the row, or beside one that stands in for it. */
function writeRow(
  reading: Reading,
  tx: Transaction,
  { id, guarded, writing, objections }: JudgedUpdate,
): Promise<boolean> {
  const { collection } = reading.access;
  const write = () => guarded.write(reading, writing);
  if (!setsUnique(collection, writing.values)) return write();
  const standing = { ...writing, values: withoutUniques(collection, writing.values) };
  return unlessTaken(tx, {
    write,
    standIn: () => writeUnasked(reading, id, standing),
    onTaken: (error) => objections.note(uniqueViolation(collection, error.violated)),
  });
}

/** Where no rule decides, or the rules have decided already. */
function writeUnasked({ store, q, access, tenant }: Reading, id: string, writing: Writing): Promise<boolean> {
  const { collection, now } = access;
  return updateWhere(store, q, { collection: collection.name, id, writing, condition: ALWAYS, now, tenant });
}

/** Works out the whole write before anything is written. */
export async function writingOf(reading: Reading, id: string, { values, links, hasOnes }: Input): Promise<Writing> {
  const members: MemberChange[] = [];
  for (const link of links) members.push(await memberChangeOf(reading, id, link));
  const partners: PartnerChange[] = [];
  for (const setting of hasOnes) partners.push(await partnerChangeOf(reading, id, setting));
  return { values, members, partners };
}
