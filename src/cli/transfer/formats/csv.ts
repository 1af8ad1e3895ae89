/** CSV (RFC 4180) with a header. An empty cell is null; `""` is the empty string. */
import type { SourceRecord } from '../../../records/transfer/read-record.ts';
import type { Chunks, FormatOptions, RecordWriter } from './record.ts';

/** Spreadsheets calculate a text that begins so, and show the rest of one with a leading quote. */
const FORMULA = /^'*[=+\-@\t\r]/;
const SAFE_FORMULA = /^'+[=+\-@\t\r]/;

export function csvWriter(
  names: readonly string[],
  { hasSafeCells = false, inJson }: FormatOptions = {},
): RecordWriter {
  return {
    head: `${names.map(csvQuoted).join(',')}\r\n`,
    record(json) {
      const record = JSON.parse(json) as Readonly<Record<string, unknown>>;
      const exact =
        inJson === undefined || inJson.size === 0 ? record : (JSON.parse(json, keepDigits) as typeof record);
      return `${names.map((name) => csvCell(inJson?.has(name) ? jsonCell(exact[name]) : record[name], hasSafeCells)).join(',')}\r\n`;
    },
    tail: () => '',
  };
}

/** A number as it was written. `JSON.rawJSON` is newer than the types of the library. */
const keepDigits = (_: string, value: unknown, context?: { readonly source?: string }): unknown =>
  typeof value === 'number' && context?.source !== undefined ? rawJson(context.source) : value;
const rawJson = (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON;

/** Ids stand with spaces between them; other elements may have spaces themselves. */
const jsonCell = (value: unknown): unknown => (value === null || value === undefined ? value : JSON.stringify(value));

function csvCell(value: unknown, isSafe: boolean): string {
  if (value === null || value === undefined) return '';
  if (isSafe && typeof value === 'string' && FORMULA.test(value)) return csvQuoted(`'${value}`);
  return csvQuoted(Array.isArray(value) ? value.join(' ') : String(value));
}

/** Quotes a cell if it must be; the empty string too, so that it is not null. */
const csvQuoted = (text: string): string =>
  text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;

const LONE_RETURN =
  'a carriage return without a line feed: lines end with a line feed, and a cell that has a carriage return needs quotes';

type Cell = string | null;
interface CsvRow {
  readonly line: number;
  readonly cells: readonly Cell[];
  readonly error?: string;
}

export async function* csvReader(
  chunks: Chunks,
  { hasSafeCells = false, ...options }: FormatOptions = {},
): AsyncGenerator<SourceRecord> {
  const textOf = (cell: Cell): Cell =>
    hasSafeCells && cell !== null && SAFE_FORMULA.test(cell) ? cell.slice(1) : cell;
  let names: readonly string[] | undefined;
  let hasRecords = false;
  for await (const { line, cells, error } of csvRowsOf(chunks, options)) {
    if (names === undefined) {
      names = cells.map((cell) => cell ?? '');
      const wrong = error ?? errorOfHeader(names);
      if (wrong !== undefined) {
        yield { line, isText: true, error: wrong };
        return;
      }
    } else if (error !== undefined) {
      yield { line, isText: true, error };
    } else if (cells.length === 1 && cells[0] === null && names.length > 1) {
      // A blank line.
    } else if (cells.length !== names.length) {
      yield { line, isText: true, error: `expected ${names.length} cells, found ${cells.length}` };
    } else {
      hasRecords = true;
      yield { line, isText: true, members: new Map(names.map((name, i) => [name, textOf(cells[i]!)])) };
    }
  }
  if (names !== undefined && !hasRecords)
    yield { line: 1, isText: true, isHeader: true, members: new Map(names.map((name) => [name, null])) };
}

function errorOfHeader(names: readonly string[]): string | undefined {
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined) return `the header names \`${twice}\` twice`;
  return names.includes('') ? 'the header has a cell without a name' : undefined;
}

async function* csvRowsOf(chunks: Chunks, options: FormatOptions): AsyncGenerator<CsvRow> {
  const scanner = new CsvScanner(options);
  for await (const chunk of chunks) yield* scanner.push(chunk);
  yield* scanner.end();
}

class CsvScanner {
  #line = 1;
  #rowLine = 1;
  #cells: Cell[] = [];
  #cell = '';
  /**
   * The position in a cell: outside quotes, inside, after a quote that may be the first of two, or after a carriage return
   * outside quotes.
   */
  #state: 'plain' | 'quoted' | 'quote' | 'return' = 'plain';
  #wasQuoted = false;
  #error: string | undefined;
  #isFirst = true;
  readonly #delimiter: string;
  readonly #nullText: string;

  constructor({ delimiter = ',', nullText = '' }: FormatOptions) {
    this.#delimiter = delimiter;
    this.#nullText = nullText;
  }

  *push(chunk: string): Generator<CsvRow> {
    for (const char of chunk) {
      if (this.#isFirst && char === '\uFEFF') {
        this.#isFirst = false;
        continue;
      }
      this.#isFirst = false;
      yield* this.#take(char);
      if (char === '\n') this.#line++;
    }
  }

  *end(): Generator<CsvRow> {
    if (this.#state === 'quoted') this.#error = 'a quoted cell does not end: expected `"`';
    if (this.#state === 'return') this.#error = LONE_RETURN;
    if (this.#error !== undefined || this.#cells.length > 0 || this.#cell !== '' || this.#wasQuoted)
      yield this.#endRow();
  }

  *#take(char: string): Generator<CsvRow> {
    if (this.#state === 'return' && char !== '\n') {
      this.#error = LONE_RETURN;
      this.#state = 'plain';
    }
    if (this.#state === 'quoted') {
      if (char === '"') this.#state = 'quote';
      else this.#cell += char;
    } else if (this.#state === 'quote' && char === '"') {
      this.#cell += char;
      this.#state = 'quoted';
    } else if (char === this.#delimiter) {
      this.#endCell();
    } else if (char === '\n') {
      const row = this.#endRow();
      this.#rowLine = this.#line + 1;
      yield row;
    } else if (char === '"' && this.#cell === '' && !this.#wasQuoted) {
      this.#state = 'quoted';
      this.#wasQuoted = true;
    } else if (char === '\r') {
      this.#state = 'return';
    } else {
      if (this.#wasQuoted) this.#error ??= `expected ${JSON.stringify(this.#delimiter)} behind a quoted cell`;
      this.#cell += char;
    }
  }

  #endCell(): void {
    const isNull = !this.#wasQuoted && (this.#cell === '' || this.#cell === this.#nullText);
    this.#cells.push(isNull ? null : this.#cell);
    this.#cell = '';
    this.#wasQuoted = false;
    this.#state = 'plain';
  }

  #endRow(): CsvRow {
    this.#endCell();
    const row = { line: this.#rowLine, cells: this.#cells, error: this.#error };
    this.#cells = [];
    this.#error = undefined;
    return row;
  }
}
