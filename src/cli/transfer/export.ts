/** `bylaw export`: writes all records of collections to files or to standard output. */
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { resolve } from 'node:path';
import type { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { ConfigError, unknownName } from '../../config.ts';
import type { Database } from '../../database/contract.ts';
import { isOpaque } from '../../policy/scalar-types.ts';
import { exportRecords } from '../../records/transfer/export-records.ts';
import { manyToManyOf, storedMembersOf } from '../../records/transfer/members.ts';
import type { Collection, Schema } from '../../schema/model/model.ts';
import { type Arguments, type Command, DATABASE_SETTINGS, type Io } from '../support/command.ts';
import { makeGivenFolder } from '../support/given-file.ts';
import { openMigratedDatabase } from '../support/workspace.ts';
import { FORMAT_NAMES, FORMATS, type Format, formatOptionsOf } from './formats/format.ts';
import type { FormatOptions } from './formats/record.ts';

export const command: Command = {
  name: 'export',
  summary: 'writes all records of a collection to standard output, or of several (default: all) into a folder',
  positionals: ['[COLLECTION…]'],
  settings: DATABASE_SETTINGS,
  flags: {
    format: { value: 'FORMAT', about: `one of ${FORMAT_NAMES.join(', ')}`, default: 'ndjson' },
    'safe-cells': { about: 'csv: puts a quote before a text that a spreadsheet would calculate' },
    out: { value: 'DIR', about: 'writes a file for each collection into this folder' },
  },
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
  const name = args.get('format') ?? 'ndjson';
  const format = FORMATS.get(name);
  if (format === undefined) throw new ConfigError([unknownName('format', name, FORMAT_NAMES)]);
  const options = formatOptionsOf(args, format);
  const out = args.get('out');
  if (out === undefined && args.positionals.length !== 1)
    throw new ConfigError(['expected one COLLECTION, or --out DIR for several']);
  const { db, schema, close } = await openMigratedDatabase(args, io, { writes: false });
  try {
    const names = args.positionals.length > 0 ? args.positionals : [...schema.collections.keys()];
    const collections = names.map((each) => requireCollection(schema.collections, each));
    if (out !== undefined) await writeFiles(out, { db, schema, collections, format, options, extension: name, io });
    else for (const collection of collections) await write(io.stdout, { db, schema, collection, format, options });
    return 0;
  } catch (error) {
    if (error instanceof ReaderGone) return 0;
    throw error;
  } finally {
    await close();
  }
}

interface FilesToWrite extends Omit<CollectionExport, 'collection'> {
  readonly collections: readonly Collection[];
  readonly extension: string;
  readonly io: Io;
}

async function writeFiles(folder: string, { extension, io, collections, ...given }: FilesToWrite): Promise<void> {
  makeGivenFolder(folder, io);
  for (const collection of collections) {
    const stream = createWriteStream(resolve(io.cwd, folder, `${collection.name}.${extension}`));
    const count = await write(stream, { ...given, collection });
    stream.end();
    await finished(stream);
    io.stderr.write(`${collection.name}.${extension}: ${count} records\n`);
  }
}

interface CollectionExport {
  readonly db: Database;
  readonly schema: Schema;
  readonly collection: Collection;
  readonly format: Format;
  readonly options: FormatOptions;
}

/** → the number of records. */
async function write(
  target: Io['stdout'],
  { db, schema, collection, format, options }: CollectionExport,
): Promise<number> {
  const fields = [...collection.fields.values()].filter(({ type }) => isOpaque(type));
  const inJson = new Set(fields.map(({ name }) => name));
  const writer = format.writer(memberNames(schema, collection), { ...options, inJson });
  await put(target, writer.head);
  let count = 0;
  for await (const json of exportRecords({ q: db, schema }, collection))
    await put(target, writer.record(json, count++));
  await put(target, writer.tail(count));
  return count;
}

/** Waits for a reader that is slower than the database. Throws ReaderGone. */
async function put(target: Io['stdout'], text: string): Promise<void> {
  const stream = target as Writable;
  if (stream.destroyed === true) throw new ReaderGone();
  if (text === '' || stream.write(text) !== false) return;
  await once(stream, 'drain').catch(() => {
    throw new ReaderGone();
  });
}

/** `bylaw export … | head`: the reader closed the pipe. The process sets the exit code. */
class ReaderGone extends Error {}

function memberNames(schema: Schema, collection: Collection): readonly string[] {
  const stored = storedMembersOf(collection, schema).map(({ name }) => name);
  const roles = collection.kind === 'users' ? ['roles'] : [];
  return [...stored, ...roles, ...manyToManyOf(collection).map(({ name }) => name)];
}

/** Throws ConfigError. */
export function requireCollection(collections: ReadonlyMap<string, Collection>, name: string): Collection {
  const collection = collections.get(name);
  if (collection === undefined) throw new ConfigError([unknownName('collection', name, [...collections.keys()])]);
  return collection;
}
