import { parseFileJson } from '../../../http/json-text.ts';
import type { SourceRecord } from '../../../records/transfer/read-record.ts';
import { reasonOf } from '../../../thrown.ts';

/** Texts of a file, in pieces of any size. */
export type Chunks = AsyncIterable<string>;

export interface FormatOptions {
  /** Cells of CSV that a spreadsheet would calculate have a leading quote. */
  readonly hasSafeCells?: boolean;
  /** The members whose cells in CSV are JSON. */
  readonly inJson?: ReadonlySet<string>;
  /** The character between cells of CSV. Default: a comma. */
  readonly delimiter?: string | undefined;
  /** A cell of CSV without quotes that is null, as the empty one is. */
  readonly nullText?: string | undefined;
}

export interface RecordWriter {
  readonly head: string;
  /** @param json a record, as JSON text */
  record(json: string, index: number): string;
  readonly tail: (count: number) => string;
}
export function recordOfJson(text: string, line: number): SourceRecord {
  let value: unknown;
  try {
    value = parseFileJson(text);
  } catch (error) {
    return { line, isText: false, error: `cannot be read as JSON: ${reasonOf(error)}` };
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { line, isText: false, error: 'expected a JSON object' };
  return { line, isText: false, members: new Map(Object.entries(value)) };
}
