/** Restricts a filter's conditions to values that its author may read: hidden ones are null, in `T` as in `F`. */
import { type ColumnRef, type Exists, FALSE, type Guard } from '../condition.ts';
import type { AncestorRelation, ToOneStep } from '../types.ts';
import type { Readable, Visibility } from '../visibility.ts';

export class Masking {
  readonly #visibility: Visibility | undefined;

  /** Undefined: the condition is of a policy, which sees all stored values. */
  constructor(visibility: Visibility | undefined) {
    this.#visibility = visibility;
  }

  /** Adds the guard that its rows need. A caller who may read none of them finds none. */
  seen(exists: Exists): Exists {
    if (this.#visibility === undefined) return exists;
    const { relation, from, key } = exists;
    if (relation.kind === 'ancestors') return this.#seenAbove(exists, relation);
    const held = relation.kind === 'belongs_to' && key.kind === 'column' ? this.column(from, key) : key;
    const isFoundBy = relation.kind === 'has_one' || relation.kind === 'has_many' ? relation.via : undefined;
    const via = isFoundBy === undefined ? undefined : this.#visibility.member(relation.collection, isFoundBy);
    const records = this.#visibility.records(relation.collection);
    if (held === undefined || records.verdict === 'deny' || via?.verdict === 'deny')
      return { ...exists, condition: FALSE };
    const guard: Guard | undefined =
      via?.verdict === 'depends'
        ? { collection: relation.collection, via: isFoundBy! }
        : records.verdict === 'depends'
          ? { collection: relation.collection }
          : undefined;
    return { ...exists, key: held, ...(guard && { guard }) };
  }

  /** The chain ends before a record that is hidden, and at one whose next step is: that record itself is in it. */
  #seenAbove(exists: Exists, { collection, via }: AncestorRelation): Exists {
    const isSeen = !this.mayHide({ from: collection, relation: via });
    return isSeen ? exists : { ...exists, guard: { collection } };
  }

  /**
   * The column of a row of `from`, absent where the caller may not read it. Undefined: the caller
   * may read it nowhere.
   */
  column(from: string, column: ColumnRef): ColumnRef | undefined {
    const member = column.part?.member ?? column.name;
    const rule = this.#visibility?.member(from, member);
    if (rule === undefined || rule.verdict === 'allow') return column;
    if (rule.verdict === 'deny') return undefined;
    return { ...column, nullable: true, selective: false, mask: { collection: from, member } };
  }

  /** True if there are records behind the step that the caller may not read, or not reach by it. */
  mayHide({ from, relation }: ToOneStep): boolean {
    if (this.#visibility === undefined) return false;
    const isOpen = (rule: Readable | undefined): boolean => rule === undefined || rule.verdict === 'allow';
    return (
      !isOpen(this.#visibility.records(relation.collection)) || !isOpen(this.#visibility.member(from, relation.name))
    );
  }
}
