/** The text of a policy with a question about each argument in the place of a call, so that a checker resolves the arguments where they stand. */
import { parse } from '../../../grammar/parser.ts';
import { isChange } from '../check/changed.ts';
import { callsIn } from '../check/condition-calls.ts';

export interface ExpandedText {
  readonly text: string;
  /** The index in the former text; undefined: the place was added. */
  originOf(index: number): number | undefined;
}
interface Piece {
  readonly text: string;
  /** The start in the former text; undefined: it is not in it. */
  readonly from: number | undefined;
}

/** `is_member(@record.team) or x` → `(@record.team is null) or x`. */
export function withoutConditionCalls(text: string): ExpandedText {
  const { tree } = parse(text);
  const calls = (tree === undefined ? [] : callsIn(tree)).filter((call) => !isChange(call));
  const pieces: Piece[] = [];
  let at = 0;
  for (const { span, args } of calls.toSorted((a, b) => a.span.start - b.span.start)) {
    pieces.push({ text: text.slice(at, span.start), from: at }, added('('));
    // A whole record has its id as a step, which no text names.
    const paths = args.filter((arg) => arg.kind === 'path' && arg.steps[0]?.span.start !== arg.span.start);
    paths.forEach((path, i) => {
      if (i > 0) pieces.push(added(' or '));
      pieces.push({ text: text.slice(path.span.start, path.span.end), from: path.span.start }, added(' is null'));
    });
    pieces.push(added(paths.length === 0 ? 'true)' : ')'));
    at = span.end;
  }
  pieces.push({ text: text.slice(at), from: at });
  return { text: pieces.map((piece) => piece.text).join(''), originOf: (index) => originIn(pieces, index) };
}

const added = (text: string): Piece => ({ text, from: undefined });

function originIn(pieces: readonly Piece[], index: number): number | undefined {
  let start = 0;
  for (const { text, from } of pieces) {
    if (index < start + text.length || (index === start + text.length && from !== undefined))
      return from === undefined ? undefined : from + index - start;
    start += text.length;
  }
  return undefined;
}
