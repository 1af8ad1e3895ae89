/** Pairs of tests under one `and` or `or` that name one column, one walk or one relation: where a simplifier merges, and where it must not. */
import type {
  Checked,
  CheckedOperand,
  CheckedQuantified,
  ColumnOperand,
  ToOneStep,
} from '../../../src/policy/types.ts';

import { memberName } from '../../../src/policy/visit.ts';

export type Polarity = '+' | '-';
type Junction = Extract<Checked, { kind: 'and' | 'or' }>;

/** The test that is true where each is false. */
const OPPOSITES: Readonly<Record<string, string>> = {
  '=': '!=',
  '!=': '=',
  '<': '>=',
  '<=': '>',
  '>': '<=',
  '>=': '<',
  in: 'not in',
  'not in': 'in',
  'is null': 'is not null',
  'is not null': 'is null',
};
const LEAVES = Object.keys(OPPOSITES);
const RANGES = ['any', 'all', 'none', 'not any', 'not all', 'not none'];
const LEAF_KINSHIPS = ['one column', 'one record', 'two records'];
const RANGE_KINSHIPS = ['one range', 'two ranges'];

/** Every pair of which one side is a leaf of a column, or both are quantifiers over one relation. */
export function pairShapes(): readonly string[] {
  const pairs = (kinships: readonly string[], tests: readonly string[]): readonly string[] =>
    ['and', 'or'].flatMap((kind) =>
      kinships.flatMap((kinship) =>
        tests.flatMap((a, i) => tests.slice(i).map((b) => `${a} ${kind} ${b} of ${kinship}`)),
      ),
    );
  return [...pairs(LEAF_KINSHIPS, LEAVES), ...pairs(RANGE_KINSHIPS, RANGES)];
}

/** Under a negation, `and` is `or` and every test is its opposite. */
export function pairsOf({ kind, items }: Junction, polarity: Polarity): readonly string[] {
  const word = (kind === 'and') === (polarity === '+') ? 'and' : 'or';
  const tests = items.map((item) => testOf(item, polarity === '-')).filter((test) => test !== undefined);
  return tests.flatMap((a, i) =>
    tests.slice(i + 1).flatMap((b) => {
      const kinship = kinshipOf(a, b);
      if (kinship === undefined) return [];
      const order = kinship.endsWith('range') || kinship.endsWith('ranges') ? RANGES : LEAVES;
      const [first, second] = order.indexOf(a.test) <= order.indexOf(b.test) ? [a, b] : [b, a];
      return [`${first.test} ${word} ${second.test} of ${kinship}`];
    }),
  );
}

interface PairedTest {
  readonly test: string;
  readonly of: ColumnOperand | CheckedQuantified['path'];
}

function testOf(checked: Checked, isNegated: boolean): PairedTest | undefined {
  switch (checked.kind) {
    case 'not':
      return testOf(checked.item, !isNegated);
    case 'is null':
      return leaf(checked.negated ? 'is not null' : 'is null', checked.operand, isNegated);
    case 'compare':
      return leaf(checked.op, checked.left, isNegated);
    case 'quantified':
      return { test: `${isNegated ? 'not ' : ''}${checked.quantifier}`, of: checked.path };
    default:
      return undefined;
  }
}

function leaf(test: string, operand: CheckedOperand, isNegated: boolean): PairedTest | undefined {
  const opposite = OPPOSITES[test];
  if (opposite === undefined || operand.kind !== 'column') return undefined;
  return { test: isNegated ? opposite : test, of: operand };
}

function kinshipOf(a: PairedTest, b: PairedTest): string | undefined {
  if ('relation' in a.of && 'relation' in b.of) {
    if (a.of.relation !== b.of.relation || a.of.from !== b.of.from) return undefined;
    return walkOf(a.of) === walkOf(b.of) ? 'one range' : 'two ranges';
  }
  if (!('column' in a.of) || !('column' in b.of)) return undefined;
  const isOneColumn = columnOf(a.of) === columnOf(b.of);
  if (walkOf(a.of) === walkOf(b.of))
    return isOneColumn ? 'one column' : a.of.steps.length > 0 ? 'one record' : undefined;
  return isOneColumn ? 'two records' : undefined;
}

interface Walk {
  readonly scope: ColumnOperand['scope'];
  readonly collection: string;
  readonly steps: readonly ToOneStep[];
}

function walkOf({ scope, collection, steps }: Walk): string {
  const start = scope.kind === 'variable' ? `variable ${scope.name}` : scope.kind;
  return [start, collection, ...steps.map(({ relation }) => relation.name)].join();
}

function columnOf({ collection, steps, column }: ColumnOperand): string {
  const of = steps.at(-1)?.relation.collection ?? collection;
  return `${of}.${column.kind === 'id' || column.kind === 'element' ? column.kind : memberName(column)}`;
}
