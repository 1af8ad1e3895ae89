/** The place in the file of each character of a YAML scalar's value. */
import { Scalar } from 'yaml';
import { present } from '../../invariant.ts';

/** A piece of the file and the text that it encodes. */
interface SourceUnit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

const WHITE = /[ \t\r\n]/;
const YAML_ESCAPES: Readonly<Record<string, string>> = {
  '0': '\0',
  a: '\x07',
  b: '\b',
  t: '\t',
  n: '\n',
  v: '\v',
  f: '\f',
  r: '\r',
  e: '\x1b',
  N: '\x85',
  _: '\xa0',
  L: '\u2028',
  P: '\u2029',
};
const HEX_DIGITS: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };

function escapeAt(source: string, start: number): SourceUnit {
  const letter = source[start + 1] ?? '';
  if (letter === '\n' || letter === '\r') return { start, end: start + 1, text: '' };
  const digits = HEX_DIGITS[letter];
  if (digits === undefined) return { start, end: start + 2, text: YAML_ESCAPES[letter] ?? letter };
  const end = start + 2 + digits;
  return { start, end, text: String.fromCodePoint(Number.parseInt(source.slice(start + 2, end), 16)) };
}

function unitAt(source: string, start: number, style: Scalar['type']): SourceUnit {
  if (style === Scalar.QUOTE_DOUBLE && source[start] === '\\') return escapeAt(source, start);
  if (style === Scalar.QUOTE_SINGLE && source.startsWith("''", start)) return { start, end: start + 2, text: "'" };
  return { start, end: start + 1, text: source[start] ?? '' };
}

/** The bounds of the value, without quotes and block headers. */
function scalarRange(source: string, node: Scalar): { readonly start: number; readonly end: number } {
  const [start, end] = present(node.range, 'the range of a parsed node');
  if (node.type === Scalar.QUOTE_SINGLE || node.type === Scalar.QUOTE_DOUBLE) return { start: start + 1, end: end - 1 };
  if (node.type === Scalar.BLOCK_LITERAL || node.type === Scalar.BLOCK_FOLDED) {
    const header = source.indexOf('\n', start);
    return { start: header === -1 ? end : header + 1, end };
  }
  return { start, end };
}

/**
 * Returns an offset for each UTF-16 unit of the value, and one for its end. Styles differ in white space and
 * escapes only, so the other characters have the same order in the file, and both texts are walked together.
 */
export function offsetsOf(source: string, node: Scalar): readonly number[] {
  const value = String(node.value);
  const content = scalarRange(source, node);
  const offsets: number[] = [];
  let at = content.start;
  while (offsets.length < value.length && at < content.end) {
    const unit = unitAt(source, at, node.type);
    const wanted = value.charAt(offsets.length);
    const raw = unit.end - unit.start === 1;
    if (unit.text !== '' && value.startsWith(unit.text, offsets.length)) {
      for (let i = 0; i < unit.text.length; i++) offsets.push(unit.start);
      at = unit.end;
    } else if (raw && WHITE.test(wanted) && WHITE.test(unit.text)) {
      // A folded line end: the value has a space where the file has a line end and an indentation.
      offsets.push(unit.start);
      at = afterWhite(source, unit.end, content.end);
    } else if (raw && WHITE.test(wanted)) {
      offsets.push(unit.start);
    } else at = unit.end;
  }
  while (offsets.length <= value.length)
    offsets.push(offsets.length === value.length ? offsetOfEnd(offsets, at, content.end) : content.end);
  return offsets;
}

const offsetOfEnd = (offsets: readonly number[], at: number, end: number): number =>
  offsets.length === 0 ? at : Math.min(at, end);

function afterWhite(source: string, start: number, end: number): number {
  let at = start;
  while (at < end && WHITE.test(source.charAt(at))) at++;
  return at;
}

export const singleQuoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;

const UNSAFE_IN_PLAIN = /[:#,[\]{}]|^[\s\-?&*!|>'"%@`]|^$|\s$|^(?:true|false|null|~|[-+.\d].*)$/i;

/**
 * `text` as it is written inside a scalar of that style; `undefined` if the whole scalar must be
 * quoted anew.
 */
export function writtenIn(style: Scalar['type'], text: string): string | undefined {
  switch (style) {
    case Scalar.QUOTE_SINGLE:
      return text.includes('\n') ? undefined : text.replaceAll("'", "''");
    case Scalar.QUOTE_DOUBLE:
      return JSON.stringify(text).slice(1, -1);
    case Scalar.PLAIN:
      return UNSAFE_IN_PLAIN.test(text) || text.includes('\n') ? undefined : text;
    default:
      return text.includes('\n') ? undefined : text;
  }
}
