/** The formats by name. */
import { ConfigError } from '../../../config.ts';
import type { SourceRecord } from '../../../records/transfer/read-record.ts';
import type { Arguments } from '../../support/command.ts';
import { csvReader, csvWriter } from './csv.ts';
import { jsonReader, jsonWriter } from './json.ts';
import { ndjsonReader, ndjsonWriter } from './ndjson.ts';
import type { Chunks, FormatOptions, RecordWriter } from './record.ts';

export interface Format {
  /** @param names the members of a record, in order */
  writer(names: readonly string[], options?: FormatOptions): RecordWriter;
  read(chunks: Chunks, options?: FormatOptions): AsyncGenerator<SourceRecord>;
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

const SAFE_CELLS = 'safe-cells';

/** Throws ConfigError. */
export function formatOptionsOf(args: Arguments, format: Format): FormatOptions {
  const hasSafeCells = args.has(SAFE_CELLS);
  if (hasSafeCells && format !== FORMATS.get('csv')) throw new ConfigError([`--${SAFE_CELLS} needs the format csv`]);
  return { hasSafeCells };
}
