/**
 * A strict reading of a JSON body: what two readers could take for two different things is an
 * error. JSON.parse alone lets the last of two equal keys win, and a lenient UTF-8 decoder puts
 * U+FFFD where bytes were wrong.
 */
import { Problem } from '../../problem.ts';
import { reasonOf } from '../../thrown.ts';

const MAX_JSON_DEPTH = 32;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Throws `malformed_json`. */
export function readJsonBody(bytes: Uint8Array): unknown {
  const text = decode(bytes);
  if (text.startsWith('\uFEFF')) throw malformedJson('the body begins with a byte order mark; send plain UTF-8');
  // JSON.parse of V8 keeps its stack on the heap: depth is safe to check afterwards.
  const value = parseJson(text);
  checkStructure(text);
  return value;
}

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch (cause) {
    throw malformedJson('the body is not valid UTF-8', cause);
  }
}

function parseJson(text: string): unknown {
  if (text === '') throw malformedJson('the body is empty; send a JSON object');
  try {
    return JSON.parse(text);
  } catch (cause) {
    const place = /position (\d+)/.exec(reasonOf(cause))?.[1];
    throw malformedJson(`the body is not valid JSON${place === undefined ? '' : ` (at character ${place})`}`, cause);
  }
}

/** Character by character: matching a pattern would make an array for each token. */
function checkStructure(text: string): void {
  /** The keys so far of each open object; undefined for an array. */
  const open: (Set<string> | undefined)[] = [];
  /** Where the last string is, with its quotation marks. */
  let start = 0;
  let end = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '"') {
      start = at;
      at = lastOfString(text, at);
      end = at + 1;
    } else if (character === ':') addKey(open.at(-1), text.slice(start, end));
    else if (character === '{') open.push(new Set());
    else if (character === '[') open.push(undefined);
    else if (character === '}' || character === ']') open.pop();
    if (open.length > MAX_JSON_DEPTH) throw malformedJson(`the body is nested more than ${MAX_JSON_DEPTH} levels deep`);
  }
}

/** INVARIANT: the text is JSON, so every string that opens closes. */
function lastOfString(text: string, start: number): number {
  let at = start + 1;
  while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at;
}

function addKey(keys: Set<string> | undefined, token: string): void {
  const key: string = token.includes('\\') ? JSON.parse(token) : token.slice(1, -1);
  if (keys?.has(key)) throw malformedJson(`the key ${JSON.stringify(key)} is given twice in one object`);
  keys?.add(key);
}

function malformedJson(detail: string, cause?: unknown): Problem {
  return new Problem('malformed_json', detail, { cause });
}
