/** Changes a record, in one transaction on the locked row: decided on the result before it is written. */
import type { Fault } from '../../problem.ts';
import type { Relation } from '../../schema/model.ts';
import { raw } from '../../sql.ts';
import type { Transaction } from '../database/contract.ts';
import { forbidden, invalid, notFound } from '../refusal.ts';
import type { AccessContext, Reading, Store } from './access-context.ts';
import { toRefusal, unreadableMentions } from './constraint-errors.ts';
import type { Written } from './create.ts';
import { expanded } from './expand.ts';
import { GuardedUpdate } from './guarded-update.ts';
import { partnerChangeOf, writePartner } from './has-one.ts';
import { type Input, isObject, readInput } from './input.ts';
import { memberChangeOf, writeMembers } from './links.ts';
import { assertVersion, lookAt } from './locked-row.ts';
import { answerOf } from './read.ts';
import { TRUE } from './record-shape.ts';
import { mayAssignSome, rolesAfter, unknownRoles, writeRoles } from './roles.ts';
import { uniqueKeys } from './unique-queue.ts';
import { type MemberChange, type PartnerChange, updateWhere, type Writing } from './written-row.ts';

export interface UpdateRequest {
  readonly id: string;
  readonly data: unknown;
  readonly expand: readonly string[];
  /** The versions of the record that may be changed; undefined: any. */
  readonly ifVersion?: readonly string[] | undefined;
}

export async function update(store: Store, ask: AccessContext, request: UpdateRequest): Promise<Written> {
  const { data } = request;
  const isAboutRoles = ask.collection.kind === 'users' && isObject(data) && Object.hasOwn(data, 'roles');
  const isRolesAlone = isAboutRoles && Object.keys(data as object).length === 1;
  requireUpdatePermit(store, ask, { isAboutRoles, isRolesAlone });
  const relations = expanded(ask, request.expand);
  const input = readInput(ask, data, 'update');
  // Of the request and the related records alone, so that the row is locked for as short as can be; told in its turn.
  const faults = [...input.faults, ...(await unreadableMentions({ store, q: store.db, ask }, input.mentions))];
  const unknown = input.roles ? unknownRoles(store.schema, input.roles) : [];
  const change: Change = { ...request, input, relations, faults: [...faults, ...unknown], isRolesAlone };
  try {
    return await store.rivals.run(uniqueKeys(ask.collection, input.values), () =>
      store.db.transaction((tx) => updateIn({ store, q: tx, ask }, tx, change)),
    );
  } catch (error) {
    throw toRefusal(error, ask.collection);
  }
}

/** Role assignment asks for no update rule, everything else does. */
function requireUpdatePermit(
  store: Store,
  ask: AccessContext,
  { isAboutRoles, isRolesAlone }: { readonly isAboutRoles: boolean; readonly isRolesAlone: boolean },
): void {
  if (isAboutRoles && !mayAssignSome(store.schema, ask)) throw forbidden();
  if (!isRolesAlone && ask.permit(ask.collection.name, 'update').verdict === 'deny') throw forbidden();
}

interface Change extends UpdateRequest {
  readonly input: Input;
  readonly relations: readonly Relation[];
  readonly faults: readonly Fault[];
  readonly isRolesAlone: boolean;
}

async function updateIn(reading: Reading, tx: Transaction, change: Change): Promise<Written> {
  const { id, input, isRolesAlone } = change;
  const { name, kind } = reading.ask.collection;
  const guarded = await GuardedUpdate.lock(reading, { collection: name, id });
  if (guarded === undefined) throw notFound();
  const { isReadable, version, row } = guarded.before;
  const refused = () => (isReadable ? forbidden() : notFound());
  if (isRolesAlone ? !isReadable : !guarded.isPossible) throw refused();
  // A fault would reveal that the record exists.
  if (change.faults.length > 0) throw isReadable || guarded.isOpen ? invalid(change.faults) : notFound();
  const writing = await writingOf(reading, id, input);
  const isWritten = isRolesAlone
    ? await updateWhere(reading.store, tx, { collection: name, id, writing, condition: TRUE, now: reading.ask.now })
    : await guarded.write(reading, writing);
  if (!isWritten) throw refused();
  for (const member of writing.members) await writeMembers(reading, id, member);
  if (input.roles) {
    const roles = rolesAfter(reading.store.schema, reading.ask, { before: row.roles as string[], change: input.roles });
    await writeRoles(tx, { id, roles });
  }
  for (const partner of writing.partners) await writePartner(reading, id, partner);
  const after = await lookAt(reading, { collection: name, id, conditions: [] });
  assertVersion(version, change.ifVersion);
  await tx.run(raw('SET CONSTRAINTS ALL IMMEDIATE'));
  if (kind === 'users') await reading.store.hooks.onUserChanged?.(id, tx);
  return after.isReadable ? { id, ...(await answerOf(reading, after.cells, change.relations)) } : { id };
}

/** What becomes of the record, before anything is written. */
async function writingOf(reading: Reading, id: string, { values, links, hasOnes }: Input): Promise<Writing> {
  const members: MemberChange[] = [];
  for (const link of links) members.push(await memberChangeOf(reading, id, link));
  const partners: PartnerChange[] = [];
  for (const setting of hasOnes) partners.push(await partnerChangeOf(reading, id, setting));
  return { values, members, partners };
}
