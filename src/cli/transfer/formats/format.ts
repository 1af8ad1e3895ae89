/** The formats by name. */
import { ConfigError } from '../../../config.ts';
import type { SourceRecord } from '../../../records/transfer/read-record.ts';
import type { Arguments } from '../../support/command.ts';
import { csvReader, csvWriter } from './csv.ts';
import { isEncoding } from './file-text.ts';
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

/** Flags of CSV alone. */
const OF_CSV = ['safe-cells', 'delimiter', 'null'] as const;

/** Throws ConfigError. */
export function formatOptionsOf(args: Pick<Arguments, 'has' | 'get'>, format: Format): FormatOptions {
  const given = format === FORMATS.get('csv') ? [] : OF_CSV.filter((flag) => args.has(flag));
  if (given.length > 0) throw new ConfigError(given.map((flag) => `--${flag} needs the format csv`));
  const delimiter = args.get('delimiter');
  return {
    hasSafeCells: args.has('safe-cells'),
    delimiter: delimiter === undefined ? undefined : delimiterOf(delimiter),
    nullText: args.get('null'),
  };
}

/** The name of an encoding; throws ConfigError. */
export function encodingOf(given: string | undefined): string | undefined {
  if (given !== undefined && !isEncoding(given)) throw new ConfigError([`--encoding: unknown encoding ${given}`]);
  return given;
}

function delimiterOf(given: string): string {
  const character = given === 'tab' ? '\t' : given;
  if ([...character].length === 1 && !/["\r\n]/.test(character)) return character;
  throw new ConfigError([`--delimiter: expected one character, or \`tab\`, found ${JSON.stringify(given)}`]);
}
