/** `bylaw import`: imports the records of a file into a collection, all or none. */
import { createHash } from 'node:crypto';
import { createReadStream, existsSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { SingleBar } from 'cli-progress';
import { ConfigError, unknownName } from '../../config.ts';
import { datetimeOf } from '../../policy/values.ts';
import { DateFormat } from '../../records/transfer/date-format.ts';
import { type Imported, ImportRejected, importRecords } from '../../records/transfer/import-records.ts';
import type { Collection } from '../../schema/model/model.ts';
import { type Arguments, type Command, DATABASE_SETTINGS, type Io } from '../support/command.ts';
import { openWorkspace } from '../support/workspace.ts';
import { requireCollection } from './export.ts';
import { encodingOf, FORMAT_NAMES, FORMATS, type Format, formatOfFile, formatOptionsOf } from './formats/format.ts';
import { pairsOf, readRecords, renamed } from './source-records.ts';

export const command: Command = {
  name: 'import',
  summary: 'creates the records of a file in a collection, or updates them; all or none',
  positionals: ['COLLECTION', 'FILE'],
  settings: DATABASE_SETTINGS,
  flags: {
    format: { value: 'FORMAT', about: `one of ${FORMAT_NAMES.join(', ')}`, default: "the file's extension" },
    encoding: {
      value: 'NAME',
      about: 'the encoding of the file; UTF-16 is known by its first bytes',
      default: 'utf-8',
    },
    delimiter: { value: 'CHARACTER', about: 'csv: the character between cells, or `tab`', default: ',' },
    null: { value: 'TEXT', about: 'csv: a cell without quotes that is null, as the empty one is' },
    'safe-cells': { about: 'csv: removes the quotes that an export with --safe-cells has put' },
    map: {
      value: 'NAME=FIELD',
      repeated: true,
      about: 'the values that have this name in the file are those of the field; without a field they are left out',
    },
    ref: {
      value: 'RELATION=FIELD',
      repeated: true,
      about: 'the file names the records of the relation by this unique field of theirs, and not by their ids',
    },
    'date-format': {
      value: 'FORMAT',
      about: 'the form of dates, such as `DD.MM.YYYY` or `M/D/YYYY HH:mm`; times are in UTC',
    },
    'no-checks': { about: 'writes also records that fail the `checks` of the collection' },
    'dry-run': { about: 'reports every error and changes nothing' },
    upsert: { value: 'FIELD', about: 'updates the record that has the same value in this unique field' },
    resume: { about: 'commits every 5,000 records, and goes on where the import of this file stopped' },
  },
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
  const [name = '', given = ''] = args.positionals;
  const file = resolve(io.cwd, given);
  const format = requireFormat(args.get('format') ?? formatOfFile(file), given);
  const options = formatOptionsOf(args, format);
  const encoding = encodingOf(args.get('encoding'));
  const names = pairsOf(args, 'map');
  const references = pairsOf(args, 'ref');
  if (!existsSync(file)) throw new ConfigError([`the file ${given} does not exist`]);
  const { db, schema, close } = await openWorkspace(args, io, { writes: !args.has('dry-run') });
  const progress = new ProgressLine(io, statSync(file).size);
  try {
    const collection = requireCollection(schema.collections, name);
    requireImportable(collection);
    const imported = await importRecords(db, {
      schema,
      collection,
      records: () =>
        renamed(readRecords({ file, encoding, read: (texts) => format.read(texts, options), progress }), names),
      upsert: args.get('upsert'),
      references,
      dateFormat: dateFormatOf(args.get('date-format')),
      isChecked: !args.has('no-checks'),
      dryRun: args.has('dry-run'),
      resumeAs: args.has('resume') ? await fileHash(file) : undefined,
      now: datetimeOf(new Date()),
    });
    progress.end();
    io.stdout.write(importSummary(imported, args.has('dry-run')));
    return 0;
  } catch (error) {
    progress.end();
    if (error instanceof RangeError) throw new ConfigError([error.message]);
    if (!(error instanceof ImportRejected)) throw error;
    io.stderr.write(reportOf(error, given, args.has('resume')));
    return 1;
  } finally {
    await close();
  }
}

function requireFormat(name: string | undefined, file: string): Format {
  if (name === undefined && /\.(?:xlsx?|ods|numbers)$/i.test(file))
    throw new ConfigError([`${file} is a spreadsheet, which is not read; save it as CSV, and import that`]);
  if (name === undefined) throw new ConfigError([`expected --format, one of ${FORMAT_NAMES.join(', ')}`]);
  const format = FORMATS.get(name);
  if (format === undefined) throw new ConfigError([unknownName('format', name, FORMAT_NAMES)]);
  return format;
}

/** The record of a file without its bytes would promise missing content. */
function requireImportable({ kind }: Collection): void {
  if (kind === 'files')
    throw new ConfigError(['files are uploaded, not imported: their bytes belong to their records']);
}

const dateFormatOf = (text: string | undefined): DateFormat | undefined =>
  text === undefined ? undefined : new DateFormat(text);

async function fileHash(file: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

/** Progress on a terminal. */
class ProgressLine {
  readonly #bar: SingleBar | undefined;

  constructor(io: Io, bytes: number) {
    if ((io.stderr as Partial<NodeJS.WriteStream>).isTTY !== true || bytes === 0) return;
    this.#bar = new SingleBar({
      format: '{bar} {percentage}% of {total} bytes, {eta_formatted} left',
      stream: io.stderr as NodeJS.WriteStream,
      clearOnComplete: true,
    });
    this.#bar.start(bytes, 0);
  }

  update(bytes: number): void {
    this.#bar?.update(bytes);
  }

  end(): void {
    this.#bar?.stop();
  }
}

function importSummary({ created, updated, skipped }: Imported, isDryRun: boolean): string {
  const parts = [`${created} created`, `${updated} updated`, ...(skipped > 0 ? [`${skipped} of an earlier run`] : [])];
  const counts = created + updated + skipped === 0 ? `${parts.join(', ')}: the file has no records` : parts.join(', ');
  return isDryRun ? `dry run, nothing was stored: ${counts}\n` : `${counts}\n`;
}

function reportOf(rejected: ImportRejected, file: string, isResumable: boolean): string {
  const { total } = rejected;
  const lines = rejected.lines(file).join('\n');
  const kept = isResumable
    ? 'the chunks before this one are stored; mend the file and import it with --upsert id'
    : 'nothing was stored';
  return `${lines}\n${total} ${total === 1 ? 'error' : 'errors'}; ${kept}\n`;
}
