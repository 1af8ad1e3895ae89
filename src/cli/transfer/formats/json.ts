/** A JSON list of objects. */
import type { SourceRecord } from '../../../records/transfer/read-record.ts';
import { type Chunks, type RecordWriter, recordOfJson } from './record.ts';

export const jsonWriter: RecordWriter = {
  head: '[',
  record: (json, index) => `${index === 0 ? '\n' : ',\n'}${json}`,
  tail: (count) => (count === 0 ? ']\n' : '\n]\n'),
};

/**
 * Cuts the list into its elements, so that a file of any size streams; each element is then read by
 * JSON.parse.
 */
export async function* jsonReader(chunks: Chunks): AsyncGenerator<SourceRecord> {
  const scanner = new ListScanner();
  for await (const chunk of chunks) yield* scanner.push(chunk);
  yield* scanner.end();
}

class ListScanner {
  #line = 1;
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  #state: 'before' | 'inside' | 'after' = 'before';
  #element = '';
  #elementLine = 0;
  #needsElement = false;

  *push(chunk: string): Generator<SourceRecord> {
    for (const char of chunk) {
      yield* this.#take(char);
      if (char === '\n') this.#line++;
    }
  }

  *end(): Generator<SourceRecord> {
    if (this.#state === 'after') return;
    const error = this.#state === 'before' ? 'expected a JSON list: `[`' : 'the list does not end: expected `]`';
    yield { line: this.#line, isText: false, error };
  }

  *#take(char: string): Generator<SourceRecord> {
    const isBlank = char === ' ' || char === '\t' || char === '\n' || char === '\r' || char === '\uFEFF';
    if (this.#state !== 'inside') {
      if (isBlank) return;
      if (this.#state === 'before' && char === '[') this.#state = 'inside';
      else if (this.#state === 'before') {
        this.#state = 'after';
        yield { line: this.#line, isText: false, error: 'expected a JSON list: `[`' };
      }
      return;
    }
    if (this.#isInString) return this.#takeInString(char);
    if (this.#depth === 0 && (char === ',' || char === ']')) return yield* this.#endElement(char);
    if (this.#element === '' && isBlank) return;
    if (this.#element === '') this.#elementLine = this.#line;
    this.#element += char;
    if (char === '"') this.#isInString = true;
    else if (char === '{' || char === '[') this.#depth++;
    else if (char === '}' || char === ']') this.#depth--;
  }

  #takeInString(char: string): void {
    this.#element += char;
    if (this.#isEscaped) this.#isEscaped = false;
    else if (char === '\\') this.#isEscaped = true;
    else if (char === '"') this.#isInString = false;
  }

  *#endElement(char: string): Generator<SourceRecord> {
    if (this.#element !== '') yield recordOfJson(this.#element, this.#elementLine);
    else if (char === ',' || this.#needsElement)
      yield { line: this.#line, isText: false, error: 'expected a record before this' };
    this.#element = '';
    this.#needsElement = char === ',';
    if (char === ']') this.#state = 'after';
  }
}
