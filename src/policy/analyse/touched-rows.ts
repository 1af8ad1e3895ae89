/** The related rows whose change can change what a condition decides, as far as an equality of theirs shows it. */
import type { Condition, Exists, Test } from '../condition.ts';
import { isMember, OPERATORS } from '../operators.ts';
import type { Row } from '../types.ts';
import { conjunctsOf, nodesOf } from '../visit.ts';

/**
 * False: none of these rows of the collection meets an equality that every test of such rows requires, so that no
 * decision depends on them.
 *
 * @param values of the request, by slot
 */
export function isTouchedBy(
  cond: Condition,
  values: readonly unknown[],
  collection: string,
  rows: readonly Row[],
): boolean {
  const tests = nodesOf(cond).filter((node) => node.kind === 'exists' && node.target.name === collection);
  return (
    tests.length === 0 ||
    tests.some((each) => rows.some((row) => each.kind !== 'exists' || mayMeetRow(each, row, values)))
  );
}

function mayMeetRow({ relation, source, condition }: Exists, row: Row, values: readonly unknown[]): boolean {
  if (relation.kind === 'ancestors') return true;
  return conjunctsOf(condition).every((part) => {
    const equality = part.kind === 'test' ? requiredValueOf(part, source.id, values) : undefined;
    return equality === undefined || row[equality.name] === equality.value;
  });
}

/** Undefined: the test is not one of a column of the row for one value. */
function requiredValueOf({ op, negated, left, right }: Test, source: number, values: readonly unknown[]) {
  const operator = OPERATORS[op];
  const isEquality = !negated && operator.family === 'equality' && isMember(operator);
  if (!isEquality || left.kind !== 'column' || left.source.id !== source) return undefined;
  if (right.kind === 'literal') return { name: left.name, value: right.value };
  return right.kind === 'slot' && right.adapt === undefined
    ? { name: left.name, value: values[right.slot] }
    : undefined;
}
