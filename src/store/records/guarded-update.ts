/** Update rules on a locked row: one and the same rule before and after, or a rule that sees both. */
import type { UpdatePermit } from '../../policy/access.ts';
import type { Reading } from './access-context.ts';
import { type Locked, lockRow } from './locked-row.ts';
import { STORED, updateWhere, WRITTEN, type Writing } from './written-row.ts';

interface Target {
  readonly collection: string;
  readonly id: string;
}

export class GuardedUpdate {
  readonly before: Locked;
  readonly #target: Target;
  readonly #permit: UpdatePermit;

  private constructor(target: Target, permit: UpdatePermit, before: Locked) {
    this.before = before;
    this.#target = target;
    this.#permit = permit;
  }

  /** Undefined: there is no such row. */
  static async lock(reading: Reading, target: Target): Promise<GuardedUpdate | undefined> {
    const permit = reading.access.permit(target.collection, 'update');
    const conditions = permit.update.columns(STORED);
    const lock = { ...target, conditions, other: permit.consultsOthers, strength: 'NO KEY UPDATE' } as const;
    const before = await lockRow(reading, lock);
    return before && new GuardedUpdate(target, permit.update, before);
  }

  /** Whether a rule can still come to hold. */
  get isPossible(): boolean {
    return this.isOpen || this.#permit.seesBoth;
  }

  /**
   * Whether it is possible by a rule that reads the stored record alone, which the caller then
   * knows to exist.
   */
  get isOpen(): boolean {
    return this.#permit.verdict === 'allow' || this.before.holds.some(Boolean);
  }

  /**
   * Writes the row where a rule allows the result; false: nothing was written. Members and partners
   * are left to the caller.
   */
  write({ store, q, access }: Reading, writing: Writing): Promise<boolean> {
    const condition = this.#permit.allows(STORED, WRITTEN);
    return updateWhere(store, q, { ...this.#target, writing, condition, now: access.now });
  }
}
