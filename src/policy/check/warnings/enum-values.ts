/** Warns of literals that the enum on the other side does not have. An enum constrains new writes only. */
import { firstNames, nearest } from '../../../../grammar/suggest.ts';
import type { Span } from '../../../../grammar/syntax.ts';
import { OPERATORS } from '../../operators.ts';
import type { CatalogField, CheckedCompare, LiteralOperand } from '../../types.ts';
import { literalValues } from '../outcomes.ts';
import type { Warning } from './warning-list.ts';

/** The values of the enum that a test of equality compares. */
export function enumMet({ op, left, right }: CheckedCompare): readonly (string | number)[] | undefined {
  const { family } = OPERATORS[op];
  return family === 'equality' || family === 'list' ? enumFieldOf({ left, right })?.enum : undefined;
}

function enumFieldOf({ left, right }: Pick<CheckedCompare, 'left' | 'right'>): CatalogField | undefined {
  const column = left.kind === 'column' ? left : right;
  return column.kind === 'column' && column.column.kind === 'field' ? column.column.field : undefined;
}

/** `text`: what the spans point into. */
export function unknownEnumValues(compare: CheckedCompare, text: string): readonly Warning[] {
  const { left, right } = compare;
  const literal = left.kind === 'literal' ? left : right;
  const values = enumMet(compare);
  if (literal.kind !== 'literal' || values === undefined) return [];
  const { name } = enumFieldOf(compare)!;
  const known = values.map(String);
  const unknown = literalValues(literal).filter((value) => !known.includes(String(value)));
  return unknown.map((value) => {
    const near = nearest(String(value), known);
    const expected = near === undefined ? `expected ${firstNames(known)}` : `did you mean \`${near}\`?`;
    const message = `\`${name}\` is an enum without \`${value}\`, so only a record that was stored under another enum can equal it; ${expected}`;
    const span = valueSpan(value, literal, text);
    const given = { code: 'enum_unknown' as const, message, span: span ?? literal.span };
    if (near === undefined || span === undefined) return given;
    const replacement = typeof value === 'string' ? JSON.stringify(near) : near;
    return { ...given, suggestion: near, fix: { span, replacement } };
  });
}

/** The span of the value; undefined if it is spelt with escapes. */
function valueSpan(value: string | number | boolean, { span, list }: LiteralOperand, text: string): Span | undefined {
  if (!list) return span;
  const { start, end, source = text } = span;
  const spellings = typeof value === 'string' ? [JSON.stringify(value), `'${value}'`] : [String(value)];
  for (const spelling of spellings) {
    const at = source.slice(start, end).indexOf(spelling);
    if (at >= 0) return { ...span, start: start + at, end: start + at + spelling.length };
  }
  return undefined;
}
