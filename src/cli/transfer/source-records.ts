/** The records of a file, under the names of the schema. */
import { createReadStream } from 'node:fs';
import { ConfigError } from '../../config.ts';
import type { SourceRecord } from '../../records/transfer/read-record.ts';
import type { Arguments } from '../support/command.ts';
import { decodedText, UndecodableText } from './formats/file-text.ts';
import type { Format } from './formats/format.ts';

interface SourceFile {
  readonly file: string;
  readonly encoding?: string | undefined;
  readonly read: Format['read'];
  /** Receives the bytes that are read. */
  readonly progress?: { update(bytes: number): void };
}

/** Text that cannot be decoded is the error of its line, and the last record. */
export async function* readRecords({ file, encoding, read, progress }: SourceFile): AsyncGenerator<SourceRecord> {
  const stream = createReadStream(file);
  async function* chunks(): AsyncGenerator<Buffer> {
    for await (const chunk of stream) {
      yield chunk as Buffer;
      progress?.update(stream.bytesRead);
    }
  }
  try {
    yield* read(decodedText(chunks(), encoding));
  } catch (error) {
    if (!(error instanceof UndecodableText)) throw error;
    yield { line: error.line, isText: false, error: error.message };
  } finally {
    stream.destroy();
  }
}

/** `--map 'Carrier code=carrier'`. An empty field leaves the values out. Throws ConfigError. */
export function pairsOf(args: Arguments, flag: 'map' | 'ref'): ReadonlyMap<string, string> {
  const pairs = args.all(flag).map((given): readonly [string, string] => {
    const at = given.lastIndexOf('=');
    const isWhole = at > 0 && (flag === 'map' || at < given.length - 1);
    if (!isWhole)
      throw new ConfigError([`--${flag}: expected a name, \`=\` and a field, found ${JSON.stringify(given)}`]);
    return [given.slice(0, at), given.slice(at + 1)];
  });
  for (const [place, what] of [
    [0, 'name'],
    [1, 'field'],
  ] as const) {
    const given = pairs.map((pair) => pair[place]).filter((each) => each !== '');
    const twice = given.find((each, i) => given.indexOf(each) !== i);
    if (twice !== undefined && (flag === 'map' || what === 'name'))
      throw new ConfigError([`--${flag} has the ${what} \`${twice}\` twice`]);
  }
  return new Map(pairs);
}

/** @param fields by their names in the file; an empty one leaves the values out */
export async function* renamed(
  records: AsyncIterable<SourceRecord>,
  fields: ReadonlyMap<string, string>,
): AsyncGenerator<SourceRecord> {
  let isFirst = true;
  for await (const record of records) {
    const { line, members, isText } = record;
    if (members === undefined || fields.size === 0) {
      yield record;
      continue;
    }
    // The header of a CSV names all members; those of a JSON object may be left out.
    const missing = isText && isFirst ? [...fields.keys()].filter((name) => !members.has(name)) : [];
    isFirst = false;
    if (missing.length > 0) {
      yield { line: 1, isText, error: `the header has no ${missing.map((name) => `\`${name}\``).join(', ')}` };
      return;
    }
    const kept = [...members].map(([name, value]) => [fields.get(name) ?? name, value] as const);
    const given = kept.filter(([name]) => name !== '');
    const twice = given.find(([name], i) => given.findIndex(([other]) => other === name) !== i);
    if (twice === undefined) yield { ...record, members: new Map(given) };
    else yield { line, isText, error: `the record gives \`${twice[0]}\` twice` };
  }
}
