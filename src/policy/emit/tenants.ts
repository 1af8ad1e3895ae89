/**
 * Finds the tenant of the rows in a statement, where rows are divided by tenant: the tenant of the
 * outer row, or of the request.
 */
import { type ColumnRef, type Condition, type Exists, isTo, RECORD, type Test, type Value } from '../condition.ts';
import { isMember, OPERATORS } from '../operators.ts';

type RequiredValues = ReadonlyMap<string, Value>;

export class Tenants {
  /** By the column of the record: what it equals wherever the condition that is being printed counts. */
  #required: RequiredValues = new Map();
  /** Of rows that are bound: the tenant of the row outside. */
  readonly #outer = new Map<number, ColumnRef>();

  /** While `print` prints parts of `cond`, all of `cond` is required. */
  given<T>(cond: Condition, print: () => T): T {
    const around = this.#required;
    this.#required = new Map([...around, ...valuesIn(cond)]);
    try {
      return print();
    } finally {
      this.#required = around;
    }
  }

  bind({ source, colocated }: Exists): void {
    if (colocated !== undefined) this.#outer.set(source.id, colocated.outer);
  }

  /** The value that the condition on the record requires of the tenant. */
  of({ colocated }: Exists): Value | undefined {
    let outer = colocated?.outer;
    for (let next = outer; next !== undefined; next = this.#outer.get(next.source.id)) outer = next;
    return outer?.source.id === RECORD.id ? this.#required.get(outer.column) : undefined;
  }

  /** Rows that are not divided, or of a known tenant, can be found before those outside. */
  areKnown(exists: Exists): boolean {
    return exists.colocated === undefined || this.of(exists) !== undefined;
  }
}

/** What the condition requires of columns of the record that are ids. */
function valuesIn(cond: Condition): RequiredValues {
  const found = new Map<string, Value>();
  for (const item of cond.kind === 'and' ? cond.items : [cond]) {
    if (item.kind !== 'test' || !isOneValue(item)) continue;
    const { left, right } = item;
    if (left.kind !== 'column' || left.source.id !== RECORD.id || left.mask !== undefined) continue;
    const isValue = right.kind === 'slot' || right.kind === 'literal';
    if (isValue && isTo(left.type) && isTo(right.type)) found.set(left.column, right);
  }
  return found;
}

const isOneValue = ({ op, negated }: Test): boolean =>
  !negated && OPERATORS[op].family === 'equality' && isMember(OPERATORS[op]);
