/**
 * The parameters of a header such as `Content-Disposition`, read in one pass without a regular
 * expression.
 */

/**
 * The parameters behind the first `;`, by name in lower case; of equal names the first counts.
 * Linear in the length of the header. A quoted value keeps every backslash that escapes neither `"`
 * nor `\`: browsers send Windows paths as they are. A value whose quotation mark is never closed
 * ends at its last `\"`, and is left out where there is none.
 */
export function headerParameters(header: string): ReadonlyMap<string, string> {
  const parameters = new Map<string, string>();
  let at = header.indexOf(';');
  while (at !== -1) {
    const equals = header.indexOf('=', at + 1);
    if (equals === -1) break;
    // A `;` before the `=` begins another parameter; this one has no value.
    const start = header.lastIndexOf(';', equals) + 1;
    const name = header.slice(start, equals).trim().toLowerCase();
    const quote = skipSpaces(header, equals + 1);
    const isQuoted = header[quote] === '"';
    const value = isQuoted ? quotedAt(header, quote) : headerTokenAt(header, quote);
    if (value === undefined) break;
    if (!parameters.has(name)) parameters.set(name, value.text);
    at = header.indexOf(';', value.end);
  }
  return parameters;
}

interface ParameterValue {
  readonly text: string;
  /** Index behind the value. */
  readonly end: number;
}

function headerTokenAt(header: string, start: number): ParameterValue {
  const semicolon = header.indexOf(';', start);
  const end = semicolon === -1 ? header.length : semicolon;
  return { text: header.slice(start, end).trim(), end };
}

function quotedAt(header: string, quote: number): ParameterValue | undefined {
  let text = '';
  let beforeLastEscapedQuote: ParameterValue | undefined;
  for (let i = quote + 1; i < header.length; i++) {
    const character = header.charAt(i);
    const next = header[i + 1];
    if (character === '"') return { text, end: i + 1 };
    if (character === '\\' && (next === '"' || next === '\\')) {
      if (next === '"') beforeLastEscapedQuote = { text: `${text}\\`, end: i + 2 };
      text += next;
      i++;
    } else text += character;
  }
  return beforeLastEscapedQuote;
}

function skipSpaces(header: string, from: number): number {
  let at = from;
  while (header[at] === ' ' || header[at] === '\t') at++;
  return at;
}
