/** Update rules on a locked row: one and the same rule before and after, or a rule that sees both. */
import type { Permit, UpdatePermit } from '../policy/access.ts';
import type { Related } from '../policy/types.ts';
import type { Reading, Store } from './ask.ts';
import type { Queryable } from './contract.ts';
import { type Locked, lockRow, lookAt } from './locked.ts';
import { loadRelated } from './related.ts';

export class GuardedUpdate {
  readonly before: Locked;
  readonly #collection: string;
  readonly #id: string;
  readonly #permit: UpdatePermit;
  readonly #seesBoth: boolean;
  readonly #relatedBefore: Related;

  private constructor(parts: {
    collection: string;
    id: string;
    permit: Permit;
    before: Locked;
    relatedBefore: Related;
  }) {
    this.#collection = parts.collection;
    this.#id = parts.id;
    this.#permit = parts.permit.update;
    this.#seesBoth = seesBoth(parts.permit);
    this.before = parts.before;
    this.#relatedBefore = parts.relatedBefore;
  }

  /** Undefined: there is no such row. */
  static async lock(
    reading: Reading,
    { collection, id }: { readonly collection: string; readonly id: string },
  ): Promise<GuardedUpdate | undefined> {
    const permit = reading.ask.permit(collection, 'update');
    const before = await lockRow(reading, { collection, id, conditions: permit.update.columns('t') });
    if (before === undefined) return undefined;
    // Rules that see both records need what hung on the record before anything is written.
    const needs = seesBoth(permit) ? permit.update.needs.record : [];
    const relatedBefore = await loadRelated(reading, { collection, record: before.row, needs });
    return new GuardedUpdate({ collection, id, permit, before, relatedBefore });
  }

  /** Whether a rule can still come to hold. */
  get isPossible(): boolean {
    return this.#permit.verdict === 'allow' || this.#holdsBefore || this.#seesBoth;
  }

  /** Whether it is possible by a rule that speaks of the stored record alone, which the caller then knows to exist. */
  get isOpen(): boolean {
    return this.#permit.verdict === 'allow' || this.#holdsBefore;
  }

  get #holdsBefore(): boolean {
    return this.before.holds.some(Boolean);
  }

  /** To be asked when all is written. */
  async isAllowed(reading: Reading): Promise<boolean> {
    if (this.#permit.verdict !== 'depends') return this.#permit.verdict === 'allow';
    const collection = this.#collection;
    const after = await lookAt(reading, { collection, id: this.#id, conditions: this.#permit.columns('t') });
    if (this.before.holds.some((held, i) => held && after.holds[i])) return true;
    return this.#seesBoth && this.#isAllowedAcross(reading, after);
  }

  async #isAllowedAcross(reading: { store: Store; q: Queryable }, after: Locked): Promise<boolean> {
    const needs = this.#permit.needs.next;
    const nextRelated = await loadRelated(reading, { collection: this.#collection, record: after.row, needs });
    const none = this.before.holds.map(() => false);
    const change = { record: this.before.row, related: this.#relatedBefore, next: after.row, nextRelated };
    return this.#permit.holds(none, change);
  }
}

const seesBoth = (permit: Permit): boolean =>
  permit.verdict === 'depends' && permit.rules.some(({ namesNext }) => namesNext);
