/** Warns of literals that the enum on the other side does not have. An enum constrains new writes only. */
import { firstNames, nearest } from '../../../../grammar/suggest.ts';
import type { Span } from '../../../../grammar/syntax.ts';
import { OPERATORS } from '../../operators.ts';
import type { CheckedCompare, LiteralOperand } from '../../types.ts';
import { literalValues } from '../outcomes.ts';
import type { Warning } from './warning-list.ts';

/** `text`: what the spans point into. */
export function unknownEnumValues({ op, left, right }: CheckedCompare, text: string): readonly Warning[] {
  const [column, literal] = left.kind === 'literal' ? [right, left] : [left, right];
  const { family } = OPERATORS[op];
  if (literal.kind !== 'literal' || column.kind !== 'column' || column.column.kind !== 'field') return [];
  if (family !== 'equality' && family !== 'list') return [];
  const { name, enum: values } = column.column.field;
  if (values === undefined) return [];
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
