/** `within(@record.at, 52.1, 4.3, 5km)`: a comparison whose right side is a circle. */
import type { IToken } from 'chevrotain';
import { reportIssue, type TokenReport } from './read-tokens.ts';
import type { Expr, Name, Operand, Span, TextLiteral } from './syntax.ts';
import { WITHIN } from './tokens.ts';

interface WithinCall {
  readonly name: Name;
  readonly args: readonly Operand[];
  readonly distance: IToken | undefined;
  readonly span: Span;
}
const DISTANCE = /^[1-9][0-9]{0,7}(?:m|km)$/;
const EXPECTED =
  '`within` takes a point, a latitude (-90 to 90), a longitude (-180 to 180) and a distance in m or km; ' +
  'expected one such as `within(@record.at, 52.1, 4.3, 5km)`';

/** The text of the circle is `52.1, 4.3, 5km`. */
export function readWithin({ name, args, distance, span }: WithinCall, report: TokenReport): Expr {
  const [point, ...place] = args;
  const degrees = place.map((each) => (each.kind === 'number' ? Number(each.source) : Number.NaN));
  const isPlace = degrees.length === 2 && degrees.every((each, i) => Math.abs(each) <= 90 * (i + 1));
  const text = distance?.image ?? '';
  const right: TextLiteral = { kind: 'text', value: [...degrees, text].join(', '), span: place[0]?.span ?? span };
  const isCalled = name.name === WITHIN;
  if (!isCalled || point === undefined || !isPlace || !DISTANCE.test(text)) {
    const message = isCalled
      ? EXPECTED
      : `\`${text}\` is not an argument of \`${name.name}(…)\`; expected a path or a literal`;
    reportIssue(report, { code: 'arguments_malformed', message, span });
    report.broken.add(right);
  }
  return { kind: 'compare', op: WITHIN, opSpan: name.span, left: point ?? right, right, span };
}
