/** Update rules on a locked row: one and the same rule before and after, or a rule that sees both. */
import type { Permit, UpdatePermit } from '../../policy/access.ts';
import { join, type Sql } from '../../sql.ts';
import type { Reading } from '../access-context.ts';
import type { GuardedMember } from '../relations/member-writes.ts';
import { type Locked, lockRow } from './locked-row.ts';
import { judgeUpdate, STORED, updateWhere, WRITTEN, type Writing } from './written-row.ts';

interface Target {
  readonly collection: string;
  readonly id: string;
  /** That the update sets, and that have rules of their own. */
  readonly members?: readonly GuardedMember[];
}

/** The rules of the record, or of a member of it, on the stored row. */
class StoredRules {
  readonly #permit: UpdatePermit;
  readonly #holds: readonly boolean[];

  /** `holds`: in the order of the permit's columns. */
  constructor(permit: UpdatePermit, holds: readonly boolean[]) {
    this.#permit = permit;
    this.#holds = holds;
  }

  /** Whether a rule can still come to hold. */
  get isPossible(): boolean {
    return this.isOpen || this.#permit.seesBoth;
  }

  /** Whether it is possible by a rule that reads the stored record alone. */
  get isOpen(): boolean {
    return this.#permit.verdict === 'allow' || this.#holds.some(Boolean);
  }

  /** Whether the update is permitted. */
  get allows(): Sql {
    return this.#permit.allows(STORED, WRITTEN);
  }
}

export class GuardedUpdate {
  readonly before: Locked;
  readonly #target: Target;
  readonly #record: StoredRules;
  /** In the order of the members. */
  readonly #members: readonly StoredRules[];

  private constructor(target: Target, before: Locked, [record, ...members]: readonly StoredRules[]) {
    this.before = before;
    this.#target = target;
    this.#record = record!;
    this.#members = members;
  }

  /** Undefined: there is no such row. */
  static async lock(reading: Reading, target: Target): Promise<GuardedUpdate | undefined> {
    const { collection, id, members = [] } = target;
    const permits: readonly Permit[] = [
      reading.access.permit(collection, 'update'),
      ...members.map(({ permit }) => permit),
    ];
    const columns = permits.map(({ update }) => update.columns(STORED));
    const other = permits.some(({ consultsOthers }) => consultsOthers);
    const { update } = permits[0]!;
    // Whoever may read a user may perhaps assign roles.
    const isOpen = update.verdict === 'allow' || update.seesBoth || collection === 'users';
    const lock = { collection, id, conditions: columns.flat(), other, strength: 'NO KEY UPDATE', isOpen } as const;
    const before = await lockRow(reading, lock);
    if (before === undefined) return undefined;
    let from = 0;
    const rules = permits.map(({ update }, i) => {
      const holds = before.holds.slice(from, from + columns[i]!.length);
      from += columns[i]!.length;
      return new StoredRules(update, holds);
    });
    return new GuardedUpdate(target, before, rules);
  }

  /** Whether a rule of the record can still come to hold. */
  get isPossible(): boolean {
    return this.#record.isPossible;
  }

  /** By a rule that reads the stored record alone, so that the caller knows that it exists. */
  get isOpen(): boolean {
    return this.#record.isOpen;
  }

  /** The members that the caller may not set, whatever their values. */
  get impossibleMembers(): readonly GuardedMember[] {
    return this.#membersOf(({ isPossible }) => !isPossible);
  }

  /**
   * Writes the row where the rules allow the result; false: nothing was written. Members and
   * partners are left to the caller.
   */
  write({ store, q, access, tenant }: Reading, writing: Writing): Promise<boolean> {
    const condition = join(this.#conditions, ' AND ');
    return updateWhere(store, q, { ...this.#target, writing, condition, now: access.now, tenant });
  }

  /** After `write` wrote nothing: the members whose rules refused it; none where the record's own did. */
  async refusedMembers(reading: Reading, writing: Writing): Promise<readonly GuardedMember[]> {
    if (this.#members.length === 0) return [];
    const [isPermitted, ...held] = await this.#judge(reading, writing);
    return isPermitted ? this.#membersOf((_, i) => !held[i]) : [];
  }

  /** Whether `write` would write. */
  async allows(reading: Reading, writing: Writing): Promise<boolean> {
    return (await this.#judge(reading, writing)).every(Boolean);
  }

  #judge({ store, q, access, tenant }: Reading, writing: Writing): Promise<readonly boolean[]> {
    const conditions = this.#conditions;
    return judgeUpdate(store, q, { ...this.#target, writing, conditions, now: access.now, tenant });
  }

  get #conditions(): readonly Sql[] {
    return [this.#record, ...this.#members].map(({ allows }) => allows);
  }

  #membersOf(test: (rules: StoredRules, i: number) => boolean): readonly GuardedMember[] {
    const { members = [] } = this.#target;
    return members.filter((_, i) => test(this.#members[i]!, i));
  }
}
