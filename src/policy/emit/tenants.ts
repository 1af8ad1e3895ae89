/**
 * Finds the tenant of the rows in a statement: the value that the condition requires of it, or else
 * the tenant of the outer row.
 */
import { type ColumnRef, type Condition, type Exists, isRoot, RECORD, type Test, type Value } from '../condition.ts';
import { isMember, OPERATORS } from '../operators.ts';
import { isTo } from '../scalar-types.ts';
import { conjunctsOf } from '../visit.ts';

type RequiredValues = ReadonlyMap<string, Value>;

export class Tenants {
  /** The values that the condition requires, by column of the record. */
  #required: RequiredValues = new Map();
  /** The tenant of the outer row, by bound row. */
  readonly #outer = new Map<number, ColumnRef>();

  /** While `print` prints parts of `cond`, all of `cond` is required. */
  given<T>(cond: Condition, print: () => T): T {
    const around = this.#required;
    this.#required = new Map([...around, ...requiredValues(cond)]);
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
  of(exists: Exists): Value | undefined {
    const column = this.ofRecord(exists);
    return column?.source.id === RECORD.id ? this.#required.get(column.column) : undefined;
  }

  /** The column of the record, or of the resulting record, that holds the tenant of the rows. */
  ofRecord({ colocated }: Exists): ColumnRef | undefined {
    let outer = colocated?.outer;
    for (let next = outer; next !== undefined; next = this.#outer.get(next.source.id)) outer = next;
    return outer !== undefined && isRoot(outer.source.id) ? outer : undefined;
  }

  /** Rows without a tenant, or of a known tenant, can be found before the outer rows. */
  areKnown(exists: Exists): boolean {
    return exists.colocated === undefined || this.of(exists) !== undefined;
  }
}

/** The values that the condition requires of id columns of the record. */
function requiredValues(cond: Condition): RequiredValues {
  const found = new Map<string, Value>();
  for (const item of conjunctsOf(cond)) {
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
