/** The formats by name. */

import type { SourceRecord } from '../../../records/transfer/read-record.ts';
import { csvReader, csvWriter } from './csv.ts';
import { jsonReader, jsonWriter } from './json.ts';
import { ndjsonReader, ndjsonWriter } from './ndjson.ts';
import type { Chunks, RecordWriter } from './record.ts';

export interface Format {
  /** @param names the members of a record, in order */
  writer(names: readonly string[]): RecordWriter;
  read(chunks: Chunks): AsyncGenerator<SourceRecord>;
}

export const FORMATS: ReadonlyMap<string, Format> = new Map([
  ['ndjson', { writer: () => ndjsonWriter, read: ndjsonReader }],
  ['json', { writer: () => jsonWriter, read: jsonReader }],
  ['csv', { writer: csvWriter, read: csvReader }],
]);
export const FORMAT_NAMES: readonly string[] = [...FORMATS.keys()];

/** The format by the extension: `tasks.csv` is CSV. */
export function formatOfFile(file: string): string | undefined {
  const extension = /\.([a-z]+)$/.exec(file.toLowerCase())?.[1];
  return extension === 'jsonl' ? 'ndjson' : FORMAT_NAMES.find((name) => name === extension);
}
