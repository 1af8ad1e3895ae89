/**
 * Setting a has_one moves the unique reference on the other side: the current holder is cleared,
 * and the new one is set. Each is a separate update of a record of the other collection, under its
 * update rules, after the record's own write.
 */
import { forbidden, invalid, Refusal } from '../../refusal.ts';
import type { BelongsTo, HasOne } from '../../schema/model/model.ts';
import { ident, sql } from '../../sql.ts';
import { type Reading, readableReference } from '../access-context.ts';
import { firstOf, isTaken, isTooLong, ownersRefusal, tooLong } from '../constraint-errors.ts';
import { type RecordKey, recordKeyIn, recordKeyOf } from '../record-key.ts';
import { scopeOf } from '../scope.ts';
import { columnValueOf, forbiddenMembers, type HasOneSetting } from '../write/input.ts';
import { LockedUpdate } from '../write/locked-row.ts';
import { placedForUpdate, setsPlace, takeTurn } from '../write/locks/value-locks.ts';
import type { PartnerChange, Writing } from '../write/written-row.ts';

/**
 * The change of a record that this transaction has locked. A partner that the caller may not read
 * cannot be cleared: it stays.
 */
export async function partnerChangeOf(reading: Reading, id: string, setting: HasOneSetting): Promise<PartnerChange> {
  if (setting.id !== null) return { ...setting, partner: setting.id };
  const holder = await holderOf(reading, setting.relation, id);
  if (holder === undefined || (await isReadable(reading, setting.relation, holder)))
    return { ...setting, partner: null };
  return { ...setting, partner: holder };
}

interface PartnerWrites {
  readonly id: string;
  readonly changes: readonly PartnerChange[];
  /** Errors of the record's own write; those of the partners are added. */
  readonly deferred: Refusal[];
}

/**
 * The errors of holders that cannot let go, as far as they show before the record's own write. They
 * precede a taken value, which ends the transaction.
 */
export async function stuckHolders(
  reading: Reading,
  id: string,
  changes: readonly PartnerChange[],
): Promise<readonly Refusal[]> {
  const stuck: Refusal[] = [];
  for (const { relation, partner, pointer } of changes) {
    if (!viaOf(reading, relation).needed) continue;
    const holder = await holderOf(reading, relation, id);
    if (holder === undefined || holder === partner) continue;
    const held = await lockHolder(reading, { relation, holder, pointer });
    if (held?.isSeen && held.mayChange) stuck.push(cannotLetGo(relation, pointer));
  }
  return stuck;
}

/** Runs after the record's own write: each partner is a separate operation. */
export async function writePartners(reading: Reading, { id, changes, deferred }: PartnerWrites): Promise<void> {
  for (const change of changes) {
    try {
      const held = await writePartner(reading, id, change);
      if (held !== undefined) deferred.push(held);
    } catch (error) {
      // Another write has taken the place meanwhile; the transaction cannot go on.
      if (isTaken(error)) throw firstOf([...deferred, heldByHidden(change.pointer)]);
      if (isTooLong(error)) throw tooLong(change.pointer);
      throw ownersRefusal(error, reading.store.shape(change.relation.collection).collection);
    }
  }
}

/** Resolves with the reason why the current holder keeps the relation. */
async function writePartner(reading: Reading, id: string, change: PartnerChange): Promise<Refusal | undefined> {
  const { relation, partner, pointer, id: wanted } = change;
  const holder = await holderOf(reading, relation, id);
  if (holder === partner || (holder === undefined && partner === null)) return undefined;
  const held =
    holder === undefined ? undefined : await clearHolder(reading, { relation, holder, pointer }, wanted !== null);
  if (wanted !== null) await setHolder(reading, { relation, holder: wanted, id, pointer, isFree: held === undefined });
  return held;
}

/** The id of the current holder, whose row it locks. */
async function holderOf(reading: Reading, relation: HasOne, id: string): Promise<string | undefined> {
  const refersToOwner = sql`x.${ident(relation.viaColumn)} = ${ownerKey(reading).param(id)}`;
  const [row] = await reading.q.rows(sql`
    SELECT ${partnerKey(reading, relation).of('x')}
      FROM ${scopeOf(reading).lockable(relation.collection, 'x').where(refersToOwner)}
       FOR UPDATE`);
  return row?.[0] ?? undefined;
}

/**
 * The check is a separate statement after the lock, because a statement that waits for a lock sees
 * other rows as they were before the wait.
 */
async function isReadable(reading: Reading, relation: HasOne, id: string): Promise<boolean> {
  const { q, access } = reading;
  const isHolder = partnerKey(reading, relation).is('x', id);
  const rows = await q.rows(sql`
    SELECT 1
      FROM ${scopeOf(reading)
        .from(relation.collection, 'x')
        .where(isHolder, readableReference(access, relation, 'x'))}`);
  return rows.length > 0;
}

/**
 * Throws `forbidden`; resolves with what else keeps the holder where it is.
 * @param isMoved another record becomes the holder
 */
async function clearHolder(reading: Reading, partner: Partner, isMoved: boolean): Promise<Refusal | undefined> {
  const { relation, pointer } = partner;
  const held = await lockHolder(reading, partner);
  if (held === undefined) return undefined;
  const { locked, isSeen, mayChange } = held;
  const refused = (): Refusal => {
    if (isSeen || !isMoved) throw forbidden();
    return heldByHidden(pointer);
  };
  if (!mayChange) return refused();
  if (viaOf(reading, relation).needed) return isSeen ? cannotLetGo(relation, pointer) : refused();
  const writing = pointingAt(reading, relation, null);
  if (await locked.write(reading, writing)) return undefined;
  const refusal = isSeen ? await locked.refusalOf(reading, writing) : undefined;
  return refusal?.failure ?? refused();
}

interface LockedHolder {
  readonly locked: LockedUpdate;
  /** The caller may read the record and its reference. */
  readonly isSeen: boolean;
  /** The rules for changing the reference can come to hold. */
  readonly mayChange: boolean;
}

async function lockHolder(reading: Reading, partner: Partner): Promise<LockedHolder | undefined> {
  const locked = await lockPartner(reading, partner, null);
  if (locked === undefined) return undefined;
  const isSeen = locked.before.isReadable && (await isReadable(reading, partner.relation, partner.holder));
  return { locked, isSeen, mayChange: locked.isPossible && locked.impossibleMembers.length === 0 };
}

interface Partner {
  readonly relation: HasOne;
  readonly holder: string;
  readonly pointer: string;
}
interface Taking extends Partner {
  readonly id: string;
  /** Otherwise it is judged and not written. */
  readonly isFree: boolean;
}

/**
 * The update sets the reference, which can have rules of its own.
 * @param id of the record that the partner is to refer to
 */
async function lockPartner(
  reading: Reading,
  { relation, holder, pointer }: Partner,
  id: string | null,
): Promise<LockedUpdate | undefined> {
  const { collection, via } = relation;
  const moved = { collection: reading.store.shape(collection).collection, data: { [via]: id } };
  const needsTurn = setsPlace(reading.store, moved);
  if (needsTurn) await takeTurn(reading, placedForUpdate(reading, moved.collection, holder), moved.data);
  const permit = reading.access.member(collection, via, 'update');
  const members = permit === undefined ? [] : [{ permit, pointer }];
  return LockedUpdate.lock(reading, { collection, id: holder, members, pointer, needsTurn });
}

async function setHolder(reading: Reading, taking: Taking): Promise<void> {
  const locked = await lockPartner(reading, taking, taking.id);
  if (!locked?.isPossible) throw forbidden();
  if (locked.impossibleMembers.length > 0) throw forbiddenMembers(locked.impossibleMembers);
  const writing = pointingAt(reading, taking.relation, taking.id);
  if (await (taking.isFree ? locked.write(reading, writing) : locked.allows(reading, writing))) return;
  const { members: denied, failure } = await locked.refusalOf(reading, writing);
  throw failure ?? (denied.length > 0 ? forbiddenMembers(denied) : forbidden());
}

function pointingAt(reading: Reading, relation: HasOne, id: string | null): Writing {
  return { values: [columnValueOf(viaOf(reading, relation), ownerKey(reading).type, id)], members: [], partners: [] };
}

const ownerKey = ({ access }: Reading): RecordKey => recordKeyOf(access.collection);
const partnerKey = ({ store }: Reading, { collection }: HasOne): RecordKey => recordKeyIn(store.schema, collection);

function viaOf({ store }: Reading, relation: HasOne): BelongsTo {
  return store.shape(relation.collection).collection.relations.get(relation.via) as BelongsTo;
}

function cannotLetGo({ name, collection, via }: HasOne, pointer: string): Refusal {
  const detail = `the current \`${name}\`, a record of \`${collection}\`, must have a \`${via}\`; give it another one first`;
  return invalid([{ pointer, code: 'required', detail }]);
}

/** Reveals only that there is a holder: there can be one at most. */
function heldByHidden(pointer: string): Refusal {
  const detail = 'the place is held by another record';
  return new Refusal('unique_violation', detail, [{ pointer, code: 'unique_violation', detail }]);
}
