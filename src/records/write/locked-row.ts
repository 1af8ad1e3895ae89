/**
 * Writes on a row that the transaction has locked: whether the caller may read it, which rules hold
 * for it, and the update that these rules decide.
 */

import { readTextArray } from '../../database/cells.ts';
import type { UpdatePermit } from '../../policy/access.ts';
import { forbidden, notFound, Refusal } from '../../refusal.ts';
import { empty, ident, join, raw, type Sql, sql, text } from '../../sql.ts';
import { type Reading, readable } from '../access-context.ts';
import { recordKeyIn } from '../record-key.ts';
import { RecordView } from '../record-view.ts';
import { scopeOf } from '../scope.ts';
import { versionColumn } from '../versions.ts';
import { type AskedCheck, checksOn, failureOf, passesUpdate } from './checks.ts';
import type { GuardedMember } from './input.ts';
import { hasTurn, turnName } from './locks/value-locks.ts';
import { updateOwned } from './owners-changes.ts';
import { possibleValues } from './possible-values.ts';
import { recordingHistory } from './row-history.ts';
import { changedColumns, judgeUpdate, STORED, updateStatement, WRITTEN, type Writing } from './written-row.ts';

export interface LockedRow {
  readonly version: string;
  readonly isReadable: boolean;
  /** A value for each of `conditions`; NULL is not true. */
  readonly holds: readonly boolean[];
  /** The roles of a user. */
  readonly roles: readonly string[];
}

interface Lock {
  readonly collection: string;
  readonly id: string;
  /** Conditions of the row `STORED`: first the record's, then those of its members. */
  readonly conditions: readonly Sql[];
  /** The conditions read other rows than the locked one. */
  readonly consultsOthers: boolean;
  readonly strength: 'UPDATE' | 'NO KEY UPDATE';
  /** The write may be allowed where the record's condition does not hold. */
  readonly isOpen: boolean;
}

/**
 * Locks first and reads afterwards if anything but the row itself is read: a statement that waited
 * for a lock sees the locked row as it is now, but every other row as it was before the wait.
 * A row is not locked if the record's condition does not hold: a caller who may not write it must not hold up those
 * who may. Returns undefined for a missing row.
 */
export async function lockRow(reading: Reading, lock: Lock): Promise<LockedRow | undefined> {
  const { collection, strength, conditions, isOpen, consultsOthers } = lock;
  const given = isOpen ? [] : conditions.slice(0, 1);
  const forUpdate = sql` FOR ${raw(strength)}`;
  const { countsChanges, hasNoRowLocks } = reading.store.shape(collection).collection;
  if (hasNoRowLocks) return lockId(reading, lock);
  if (countsChanges && !consultsOthers && !reading.access.permit(collection, 'read').consultsOthers)
    return (await readRow(reading, lock, given, forUpdate)) ?? refusedRow(reading, lock);
  const found = await reading.q.rows(sql`
    SELECT 1
      FROM ${scopeOf(reading)
        .lockable(collection, STORED)
        .where(hasId(reading, lock), ...given)}${forUpdate}`);
  return found.length === 0 ? refusedRow(reading, lock) : readRow(reading, lock);
}

/** Locks the id among the writes of the service; programs that write the tables below the view do not wait for it. */
async function lockId(reading: Reading, lock: Lock): Promise<LockedRow | undefined> {
  const seen = await readRow(reading, lock);
  if (seen === undefined || (!lock.isOpen && seen.holds[0] !== true)) return refusedRow(reading, lock);
  const key = text(`${lock.collection}/${lock.id}`);
  await reading.q.rows(sql`SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || '/' || ${key}, 0))::text`);
  return readRow(reading, lock);
}

/** Read without a lock, to build the error. */
async function refusedRow(reading: Reading, lock: Lock): Promise<LockedRow | undefined> {
  const seen = lock.isOpen ? undefined : await readRow(reading, lock);
  return seen && { ...seen, holds: seen.holds.map(() => false) };
}

const hasId = ({ store }: Reading, { collection, id }: Lock): Sql =>
  recordKeyIn(store.schema, collection).is(STORED, id);

async function readRow(
  reading: Reading,
  lock: Lock,
  given: readonly Sql[] = [],
  strength = empty,
): Promise<LockedRow | undefined> {
  const { collection, id, conditions } = lock;
  const { store, q, access } = reading;
  const versions = await store.versions(q);
  const { kind, countsChanges } = store.shape(collection).collection;
  const roles = kind === 'users' ? ident(STORED, 'roles') : raw(`'{}'`);
  const view = countsChanges ? undefined : new RecordView(store, access, { collection, tenant: reading.tenant });
  const questions = [readable(access, collection, STORED), ...conditions].map((condition) => sql`(${condition})`);
  const [cells] = await q.rows(sql`
    SELECT ${join([versionColumn({ countsChanges }, STORED), roles, ...questions, ...(view ? [view.columns(STORED)] : [])], ', ')}
      FROM ${scopeOf(reading)
        .from(collection, STORED)
        .where(hasId(reading, lock), ...given)}${strength}`);
  if (cells === undefined) return undefined;
  const [count, names, ...answers] = cells;
  const [isReadable, ...holds] = answers.slice(0, questions.length).map((cell) => cell === 't');
  return {
    version: versions.of({ collection, id, count: count ?? view!.json(cells, 2 + questions.length) }),
    isReadable: isReadable!,
    holds,
    roles: readTextArray(names!),
  };
}

export const changedSince = (): Refusal =>
  new Refusal('changed', 'the record has changed since it was read; read it again');

// ---------------------------------------------------------------- updates

interface UpdateTarget {
  readonly collection: string;
  readonly id: string;
  /** The members that the update sets, and that have rules of their own. */
  readonly members: readonly GuardedMember[];
  /** The place in the body of the relation that moves the record; undefined: it is the record of the request. */
  readonly pointer?: string;
  /** Default: false. */
  readonly needsTurn?: boolean;
}

/** Why a write wrote nothing. */
interface UpdateRefusal {
  /** The members whose rules denied it. */
  readonly members: readonly GuardedMember[];
  /** The checks that it fails, where all rules allow it. */
  readonly failure: Refusal | undefined;
}
interface FailedConditions extends Pick<UpdateRefusal, 'members'> {
  readonly failed: readonly AskedCheck[];
}
const NO_REASON: UpdateRefusal = { members: [], failure: undefined };

/** An update of a locked row: one and the same rule before and after, or a rule that sees both. */
export class LockedUpdate {
  readonly before: LockedRow;
  /** A rule of the record can still come to hold. */
  readonly isPossible: boolean;
  /** A rule that reads the stored record alone holds, so the caller knows that it exists. */
  readonly isOpen: boolean;
  /** The members that the caller may not set to any value. */
  readonly impossibleMembers: readonly GuardedMember[];
  readonly #target: UpdateTarget;
  /** The rules that permit the update: first the record's, then each member's. */
  readonly #rules: readonly UpdatePermit[];
  readonly #checks: readonly AskedCheck[];

  private constructor(
    target: UpdateTarget,
    before: LockedRow,
    rules: readonly UpdatePermit[],
    checks: readonly AskedCheck[],
  ) {
    const [isPossible, ...members] = rules.map(({ seesBoth }, i) => seesBoth || before.holds[i]!);
    this.before = before;
    this.isPossible = isPossible!;
    this.isOpen = before.holds[0]!;
    this.impossibleMembers = target.members.filter((_, i) => !members[i]);
    this.#target = target;
    this.#rules = rules;
    this.#checks = checks;
  }

  /** Returns undefined for a missing row. */
  static async lock(reading: Reading, target: UpdateTarget): Promise<LockedUpdate | undefined> {
    const { collection, id, members } = target;
    const permits = [
      reading.access.permit(collection, 'update'),
      ...members.map(({ permit }) => permit.within(reading.tenant)),
    ];
    const rules = permits.map(({ update }) => update);
    const { verdict, seesBoth } = rules[0]!;
    const before = await lockRow(reading, {
      collection,
      id,
      conditions: rules.map((rule) => rule.holds(STORED)),
      consultsOthers: permits.some((permit) => permit.consultsOthers),
      strength: 'NO KEY UPDATE',
      // A caller who may read a user may perhaps assign roles.
      isOpen: verdict === 'allow' || seesBoth || collection === 'users',
    });
    const { access, store, tenant } = reading;
    const checks = checksOn(access, store.shape(collection).collection, 'update');
    const asked = checks.map(({ check, violation }) => ({ check, violation: violation.within(tenant) }));
    return before && new LockedUpdate(target, before, rules, asked);
  }

  /**
   * Writes the row where the rules allow the result; false: nothing was written. Members and
   * partners are left to the caller.
   *
   * @param given default: that the rules allow the update and the checks pass
   */
  async write(reading: Reading, writing: Writing, given?: Sql): Promise<boolean> {
    const { now } = reading.access;
    const conditions = given === undefined ? this.#conditionsFor(reading, writing) : [given];
    if (!reading.store.shape(this.#target.collection).collection.countsChanges) {
      const { id, holds } = await updateOwned(reading, { ...this.#target, now, writing, conditions });
      // The row is written, and does not become a record that the rules and the checks allow.
      if (id !== undefined && holds.includes(false)) throw this.#refusalOfStored(holds);
      return id !== undefined;
    }
    const condition = join(conditions, ' AND ');
    const statement = updateStatement(reading, { ...this.#target, now, writing, condition, returning: raw('1') });
    const { collection, id } = this.#target;
    const row = { collection, ids: [id], tenant: reading.tenant };
    return (await recordingHistory(reading, row, () => reading.q.rows(statement))).length > 0;
  }

  /** The reasons of a `write` that wrote nothing; none if the record's own rules denied it. */
  async refusalOf(reading: Reading, writing: Writing): Promise<UpdateRefusal> {
    if (this.#target.members.length + this.#checks.length === 0) return NO_REASON;
    const { members, failed } = this.#reasons(await this.#judge(reading, writing));
    const checks = failed.map(({ check }) => check);
    const possible = await possibleValues(reading, this.#target, checks);
    return { members, failure: failureOf(failed, { pointer: this.#target.pointer, possible }) };
  }

  /** @param holds a value for each of `#conditionsFor`; the rules come before the checks */
  #reasons(holds: readonly boolean[]): FailedConditions {
    const { members } = this.#target;
    const [isPermitted, ...ofMembers] = holds.slice(0, this.#rules.length);
    if (!isPermitted) return { members: [], failed: [] };
    if (ofMembers.includes(false)) return { members: members.filter((_, i) => !ofMembers[i]), failed: [] };
    return { members: [], failed: this.#checks.filter((_, i) => !holds[this.#rules.length + i]) };
  }

  #refusalOfStored(holds: readonly boolean[]): Refusal {
    const failure = failureOf(this.#reasons(holds).failed, this.#target);
    return failure ?? (this.before.isReadable ? forbidden() : notFound());
  }

  /** True if `write` would write. */
  async allows(reading: Reading, writing: Writing): Promise<boolean> {
    return (await this.#judge(reading, writing)).every(Boolean);
  }

  #judge(reading: Reading, writing: Writing): Promise<readonly boolean[]> {
    const { now } = reading.access;
    return judgeUpdate(reading, { ...this.#target, now, writing, conditions: this.#conditionsFor(reading, writing) });
  }

  #conditionsFor({ store }: Reading, writing: Writing): readonly Sql[] {
    const changed = changedColumns(store.shape(this.#target.collection).collection, writing);
    const [own, ...ofMembers] = this.#rules.map((rule) => rule.allows(STORED, WRITTEN, changed));
    const { collection, id, needsTurn } = this.#target;
    return [
      needsTurn ? sql`${own!} AND ${hasTurn(turnName(collection, id))}` : own!,
      ...ofMembers,
      ...this.#checks.map(({ violation }) => passesUpdate(violation, changed)),
    ];
  }
}
