/**
 * The ids that a condition requires in a belongs_to column of the record. With such an id, all that
 * it allows is in one place.
 */
import { type Condition, isTo, RECORD, type Test, type Value } from './condition.ts';
import { isMember, OPERATORS } from './operators.ts';

/**
 * Every record that meets the condition, stored or being created, has each of these ids in the
 * column. Empty: records with different ids can meet it.
 */
export function pinsOf(cond: Condition, column: string): readonly Value[] {
  switch (cond.kind) {
    case 'test':
      return pinsOfTest(cond, column);
    case 'and':
      return cond.items.flatMap((item) => pinsOf(item, column));
    case 'or': {
      const [first = [], ...others] = cond.items.map((item) => pinsOf(item, column));
      return first.filter((pin) => others.every((pins) => pins.some((other) => isSame(pin, other))));
    }
    case 'const':
    case 'null':
    case 'exists':
      return [];
  }
}

/** `values`: of the slots. */
export const pinnedIds = (pins: readonly Value[], values: readonly unknown[]): readonly string[] =>
  pins.map((pin) => (pin.kind === 'slot' ? values[pin.slot] : pin.value) as string);

function pinsOfTest({ op, negated, left, right }: Test, column: string): readonly Value[] {
  const operator = OPERATORS[op];
  if (negated || operator.family !== 'equality' || !isMember(operator)) return [];
  if (left.kind !== 'column' || left.source.id !== RECORD.id || left.column !== column) return [];
  // An id beside a string is compared as text.
  return (right.kind === 'literal' || right.kind === 'slot') && isTo(right.type) ? [right] : [];
}

function isSame(a: Value, b: Value): boolean {
  if (a.kind === 'slot') return b.kind === 'slot' && a.slot === b.slot;
  return b.kind === 'literal' && a.value === b.value;
}
