/**
 * Writes on a row that the transaction has locked: whether the caller may read it, which rules hold
 * for it, and the update that these rules decide.
 */
import { readTextArray } from '../../database/cells.ts';
import type { UpdatePermit } from '../../policy/access.ts';
import { Refusal } from '../../refusal.ts';
import { empty, ident, join, raw, type Sql, sql, uuid } from '../../sql.ts';
import { type Reading, readable } from '../access-context.ts';
import { scopeOf } from '../scope.ts';
import { versionColumn } from '../versions.ts';
import type { GuardedMember } from './input.ts';
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
  const { collection, id, strength, conditions, isOpen, consultsOthers } = lock;
  const given = isOpen ? [] : conditions.slice(0, 1);
  const forUpdate = sql` FOR ${raw(strength)}`;
  if (!consultsOthers && !reading.access.permit(collection, 'read').consultsOthers)
    return (await readRow(reading, lock, given, forUpdate)) ?? refusedRow(reading, lock);
  const found = await reading.q.rows(sql`
    SELECT 1
      FROM ${scopeOf(reading)
        .from(collection, STORED)
        .where(hasId(id), ...given)}${forUpdate}`);
  return found.length === 0 ? refusedRow(reading, lock) : readRow(reading, lock);
}

/** Read without a lock, to build the error. */
async function refusedRow(reading: Reading, lock: Lock): Promise<LockedRow | undefined> {
  const seen = lock.isOpen ? undefined : await readRow(reading, lock);
  return seen && { ...seen, holds: seen.holds.map(() => false) };
}

const hasId = (id: string): Sql => sql`${raw(STORED)}.id = ${uuid(id)}`;

async function readRow(
  reading: Reading,
  { collection, id, conditions }: Lock,
  given: readonly Sql[] = [],
  lock = empty,
): Promise<LockedRow | undefined> {
  const { store, q, access } = reading;
  const versions = await store.versions(q);
  const hasRoles = store.shape(collection).collection.kind === 'users';
  const roles = hasRoles ? ident(STORED, 'roles') : raw(`'{}'`);
  const questions = [readable(access, collection, STORED), ...conditions].map((condition) => sql`(${condition})`);
  const [cells] = await q.rows(sql`
    SELECT ${join([versionColumn(STORED), roles, ...questions], ', ')}
      FROM ${scopeOf(reading)
        .from(collection, STORED)
        .where(hasId(id), ...given)}${lock}`);
  if (cells === undefined) return undefined;
  const [count, names, ...answers] = cells;
  const [isReadable, ...holds] = answers.map((cell) => cell === 't');
  return {
    version: versions.of({ collection, id, count: count! }),
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
}

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

  private constructor(target: UpdateTarget, before: LockedRow, rules: readonly UpdatePermit[]) {
    const [isPossible, ...members] = rules.map(({ seesBoth }, i) => seesBoth || before.holds[i]!);
    this.before = before;
    this.isPossible = isPossible!;
    this.isOpen = before.holds[0]!;
    this.impossibleMembers = target.members.filter((_, i) => !members[i]);
    this.#target = target;
    this.#rules = rules;
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
    return before && new LockedUpdate(target, before, rules);
  }

  /**
   * Writes the row where the rules allow the result; false: nothing was written. Members and
   * partners are left to the caller.
   *
   * @param condition default: that the rules allow the update
   */
  async write(reading: Reading, writing: Writing, condition = this.#isAllowed(writing)): Promise<boolean> {
    const { now } = reading.access;
    const statement = updateStatement(reading, { ...this.#target, now, writing, condition, returning: raw('id') });
    return (await reading.q.rows(statement)).length > 0;
  }

  /** The members whose rules denied a `write` that wrote nothing; none if the record's own rules did. */
  async refusedMembers(reading: Reading, writing: Writing): Promise<readonly GuardedMember[]> {
    const { members } = this.#target;
    if (members.length === 0) return [];
    const [isPermitted, ...holds] = await this.#judge(reading, writing);
    return isPermitted ? members.filter((_, i) => !holds[i]) : [];
  }

  /** True if `write` would write. */
  async allows(reading: Reading, writing: Writing): Promise<boolean> {
    return (await this.#judge(reading, writing)).every(Boolean);
  }

  #judge(reading: Reading, writing: Writing): Promise<readonly boolean[]> {
    const { now } = reading.access;
    return judgeUpdate(reading, { ...this.#target, now, writing, conditions: this.#conditionsFor(writing) });
  }

  #isAllowed(writing: Writing): Sql {
    return join(this.#conditionsFor(writing), ' AND ');
  }

  #conditionsFor(writing: Writing): readonly Sql[] {
    const changed = changedColumns(writing);
    return this.#rules.map((rule) => rule.allows(STORED, WRITTEN, changed));
  }
}
