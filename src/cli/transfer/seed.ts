/** `seed:` of the schema file: records for collections that are empty. For development only. */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { ConfigError, unknownName } from '../../config.ts';
import type { Database } from '../../database/contract.ts';
import { present } from '../../invariant.ts';
import { datetimeOf } from '../../policy/values.ts';
import { DateFormat } from '../../records/transfer/date-format.ts';
import { ImportRejected, type ImportRequest, importRecords } from '../../records/transfer/import-records.ts';
import type { Collection, Schema, SeedForm } from '../../schema/model/model.ts';
import { raw, tableIdent } from '../../sql.ts';
import { encodingOf, FORMATS, type Format, formatOfFile, formatOptionsOf } from './formats/format.ts';
import { readRecords, renamed } from './source-records.ts';

export interface Seeded {
  /** Lines such as `12 records into posts (seed/posts.csv)`. */
  readonly done: readonly string[];
  /** Lines with the file and the line in it. */
  readonly issues: readonly string[];
}
export interface SeedRequest {
  readonly schema: Schema;
  readonly cwd: string;
  /** Default: every collection. */
  readonly only?: ReadonlySet<string>;
}
interface SeedFile {
  readonly path: string;
  readonly collection: Collection;
  readonly format: string;
}

/**
 * Loads the seed of the schema into empty collections. A file is loaded as a whole or not at all; an
 * error in a file does not affect the others.
 */
export async function loadSeed(db: Database, { schema, cwd, only }: SeedRequest): Promise<Seeded> {
  if (schema.seed === undefined) return { done: [], issues: [] };
  const folder = resolve(cwd, dirname(schema.file), schema.seed.folder);
  const place = (path: string): string => relative(cwd, path) || path;
  if (!existsSync(folder) || !statSync(folder).isDirectory()) {
    return { done: [], issues: [`seed: the folder ${place(folder)} does not exist`] };
  }
  const { files, issues } = seedFiles(folder, schema, place);
  for (const name of schema.seed.files.keys())
    if (!existsSync(join(folder, name))) issues.push(`seed: the file ${place(join(folder, name))} does not exist`);
  const done: string[] = [];
  for (const { path, collection, format } of inOrderOfReferences(files)) {
    if (only !== undefined && !only.has(collection.name)) continue;
    if (!(await isEmptyTable(db, collection))) continue;
    try {
      const form = schema.seed.files.get(basename(path));
      const source = seedSourceOf(path, present(FORMATS.get(format), 'the format'), form);
      const { created } = await importRecords(db, { schema, collection, ...source, now: datetimeOf(new Date()) });
      done.push(`${created} ${created === 1 ? 'record' : 'records'} into ${collection.name} (${place(path)})`);
    } catch (error) {
      issues.push(...issuesOfSeed(error, place(path)));
    }
  }
  return { done, issues };
}

type SeedSource = Pick<ImportRequest, 'records' | 'references' | 'dateFormat'>;

/** Throws a ConfigError or RangeError for a form that no file has. */
function seedSourceOf(file: string, format: Format, form?: SeedForm): SeedSource {
  if (form === undefined) return { records: () => readRecords({ file, read: format.read }) };
  const { references, names, dateFormat } = form;
  const flags: Readonly<Record<string, string | undefined>> = { delimiter: form.delimiter, null: form.nullText };
  const args = { has: (flag: string) => flags[flag] !== undefined, get: (flag: string) => flags[flag] };
  const options = formatOptionsOf(args, format);
  const encoding = encodingOf(form.encoding);
  return {
    records: () => renamed(readRecords({ file, encoding, read: (texts) => format.read(texts, options) }), names),
    references,
    ...(dateFormat !== undefined && { dateFormat: new DateFormat(dateFormat) }),
  };
}

function issuesOfSeed(error: unknown, file: string): readonly string[] {
  if (error instanceof ImportRejected) return error.lines(file);
  if (error instanceof ConfigError) return error.issues.map((issue) => `${file}: ${issue}`);
  if (error instanceof RangeError) return [`${file}: ${error.message}`];
  throw error;
}

interface FoundSeed {
  readonly files: readonly SeedFile[];
  readonly issues: string[];
}

function seedFiles(folder: string, { collections }: Schema, place: (path: string) => string): FoundSeed {
  const files: SeedFile[] = [];
  const issues: string[] = [];
  for (const name of readdirSync(folder).toSorted()) {
    const path = join(folder, name);
    const format = formatOfFile(name);
    if (format === undefined || name.startsWith('.')) continue;
    const stem = name.slice(0, name.lastIndexOf('.'));
    const collection = collections.get(stem);
    if (collection === undefined)
      issues.push(`${place(path)}: ${unknownName('collection', stem, [...collections.keys()])}`);
    else if (collection.kind === 'files')
      issues.push(`${place(path)}: files are uploaded, their bytes cannot be in a seed`);
    else if (files.some((file) => file.collection === collection))
      issues.push(`${place(path)}: a second file for ${stem}`);
    else files.push({ path, collection, format });
  }
  return { files, issues };
}

/** Referenced collections come first. In a cycle, the order is alphabetical. */
function inOrderOfReferences(files: readonly SeedFile[]): readonly SeedFile[] {
  const byName = new Map(files.map((file) => [file.collection.name, file]));
  const ordered = new Set<SeedFile>();
  const open = new Set<SeedFile>();
  const add = (file: SeedFile): void => {
    if (open.has(file)) return;
    open.add(file);
    for (const { kind, collection } of file.collection.relations.values()) {
      const other = byName.get(collection);
      if (other !== undefined && (kind === 'belongs_to' || kind === 'many_to_many')) add(other);
    }
    ordered.add(file);
  };
  for (const file of files) add(file);
  return [...ordered];
}

async function isEmptyTable(db: Database, { table }: Collection): Promise<boolean> {
  const [row] = await db.rows(raw(`SELECT EXISTS (SELECT 1 FROM ${tableIdent(table).text})`));
  return row?.[0] === 'f';
}
