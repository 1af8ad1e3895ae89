/** The type rules of comparisons with facts of the request. */
import type { List } from '../../../grammar/syntax.ts';
import { equal, OPERATORS } from '../operators.ts';
import { parseNetwork } from '../request/networks.ts';
import { ADDRESS_FACT, REQUEST_FACTS } from '../request/request-facts.ts';
import type { Checked, LiteralOperand, RequestOperand } from '../types.ts';
import type { CheckIssue } from './place.ts';
import type { Pair, Side } from './sides.ts';

const comparedFact = (side: Side): RequestOperand | undefined =>
  side.kind === 'fixed' && side.operand.kind === 'request' && side.operand.source === 'fact' ? side.operand : undefined;

export const isAddressFact = (side: Side): boolean => comparedFact(side)?.name === ADDRESS_FACT;

/** The literals of a side; undefined if it is another value. */
function literalsOf(side: Side): readonly FactLiteral[] | undefined {
  if (side.kind === 'list') return side.list.items.map((item) => ({ value: literalValueOf(item), span: item.span }));
  if (side.kind === 'literal') {
    return [{ value: literalValueOf(side.literal), span: side.span }];
  }
  if (side.kind !== 'fixed' || side.operand.kind !== 'literal' || side.operand.list) return undefined;
  return [{ value: side.operand.value, span: side.span }];
}
function literalValueOf(literal: List['items'][number]): unknown {
  if (literal.kind === 'number') return Number(literal.source);
  return literal.kind === 'null' ? null : literal.value;
}
interface FactLiteral {
  readonly value: unknown;
  readonly span: LiteralOperand['span'];
}

/** A literal that the fact never has, so that the comparison would be a constant. */
export function impossibleFact({ expr, left, right }: Pair): CheckIssue | undefined {
  const fact = comparedFact(left) ?? comparedFact(right);
  const values = fact && REQUEST_FACTS.get(fact.name)?.values;
  const { family } = OPERATORS[expr.op];
  if (fact === undefined || values === undefined || (family !== 'equality' && family !== 'list')) return undefined;
  const literals = literalsOf(comparedFact(left) === undefined ? left : right) ?? [];
  const [least, ...others] = values;
  const written = typeof least;
  const outside = literals.find(({ value }) => typeof value === written && !values.has(value as string | number));
  if (outside === undefined) return undefined;
  const expected =
    written === 'number' ? `${least} to ${others.at(-1)}` : [...values].map((value) => `\`"${value}"\``).join(', ');
  const message = `\`@${fact.name}\` is never ${JSON.stringify(outside.value)}; expected ${expected}`;
  return { code: 'fact_value_unknown', message, span: outside.span };
}

/** `@request.ip in ["10.0.0.0/8"]`: one fact of the request, true if its address is in one of the networks. */
export function addressTest({ expr, left, right, at }: Pair): Checked | undefined {
  const [fact, other] = isAddressFact(left) ? [comparedFact(left)!, right] : [comparedFact(right)!, left];
  const { family, negative } = OPERATORS[expr.op];
  const texts = literalsOf(other);
  const isTested = family === 'equality' || (family === 'list' && other === right);
  if (!isTested || texts === undefined) {
    const message =
      '`@request.ip` is compared with literal addresses and networks by `=`, `!=`, `in` and `not in`, such as `@request.ip in ["10.0.0.0/8"]`';
    return at.report({ code: 'type_mismatch', message, span: expr.span });
  }
  const wrong = texts.find(({ value }) => typeof value !== 'string' || parseNetwork(value) === undefined);
  if (wrong !== undefined) {
    const expected = '`10.0.0.0/8` or `2001:db8::/32`, with zeros behind the prefix';
    const message = `${JSON.stringify(wrong.value)} is not an address or a network; expected one such as ${expected}`;
    return at.report({ code: 'network_malformed', message, span: wrong.span });
  }
  const { span } = expr;
  if (texts.length === 0) return { kind: 'const', value: negative === true, span };
  const operand: RequestOperand = { ...fact, type: 'bool', detail: texts.map(({ value }) => value).join(' ') };
  const yes: LiteralOperand = { kind: 'literal', value: true, type: 'bool', list: false, span };
  const test: Checked = { ...equal(operand, yes, span), synthetic: true };
  return negative ? { kind: 'not', item: test, span } : test;
}
