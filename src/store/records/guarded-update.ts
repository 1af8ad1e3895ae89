/** Update rules on a locked row: one and the same rule before and after, or a rule that sees both. */
import type { Permit, UpdatePermit } from '../../policy/access.ts';
import type { Related } from '../../policy/types.ts';
import type { Reading } from './access-context.ts';
import { consultsOthers, type Locked, lockRow, lookAt } from './locked-row.ts';
import { loadRelated } from './related.ts';

interface Parts {
  readonly collection: string;
  readonly id: string;
  readonly permit: Permit;
  readonly before: Locked;
  readonly relatedBefore: Related;
}

const seesBoth = (permit: Permit): boolean =>
  permit.verdict === 'depends' && permit.rules.some(({ namesNext }) => namesNext);

export class GuardedUpdate {
  readonly before: Locked;
  readonly #parts: Parts;
  readonly #permit: UpdatePermit;
  readonly #seesBoth: boolean;

  private constructor(parts: Parts) {
    this.before = parts.before;
    this.#parts = parts;
    this.#permit = parts.permit.update;
    this.#seesBoth = seesBoth(parts.permit);
  }

  /** Undefined: there is no such row. */
  static async lock(
    reading: Reading,
    { collection, id }: { readonly collection: string; readonly id: string },
  ): Promise<GuardedUpdate | undefined> {
    const permit = reading.ask.permit(collection, 'update');
    const conditions = permit.update.columns('t');
    const lock = { collection, id, conditions, other: consultsOthers(permit), strength: 'NO KEY UPDATE' } as const;
    const before = await lockRow(reading, lock);
    if (before === undefined) return undefined;
    // Rules that see both records need what hung on the record before anything is written.
    const needs = seesBoth(permit) ? permit.update.needs.record : [];
    const relatedBefore = await loadRelated(reading, { collection, record: before.row, needs });
    return new GuardedUpdate({ collection, id, permit, before, relatedBefore });
  }

  /** Whether a rule can still come to hold. */
  get isPossible(): boolean {
    return this.isOpen || this.#seesBoth;
  }

  /** Whether it is possible by a rule that speaks of the stored record alone, which the caller then knows to exist. */
  get isOpen(): boolean {
    return this.#permit.verdict === 'allow' || this.before.holds.some(Boolean);
  }

  /** The record as it is when all is written. */
  after(reading: Reading): Promise<Locked> {
    const { collection, id } = this.#parts;
    return lookAt(reading, { collection, id, conditions: this.#permit.columns('t') });
  }

  async allows(reading: Reading, after: Locked): Promise<boolean> {
    if (this.#permit.verdict !== 'depends') return this.#permit.verdict === 'allow';
    if (this.before.holds.some((held, i) => held && after.holds[i])) return true;
    return this.#seesBoth && this.#allowsAcross(reading, after);
  }

  async #allowsAcross(reading: Reading, after: Locked): Promise<boolean> {
    const { collection, before, relatedBefore: related } = this.#parts;
    const nextRelated = await loadRelated(reading, { collection, record: after.row, needs: this.#permit.needs.next });
    // Rules of one record were asked by `allows`, in SQL, which loads nothing.
    const none = before.holds.map(() => false);
    return this.#permit.holds(none, { record: before.row, related, next: after.row, nextRelated });
  }
}
