/** `seed:` of the schema file: records for collections that are empty. For development only. */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { unknownName } from '../../config.ts';
import type { Database } from '../../database/contract.ts';
import { present } from '../../invariant.ts';
import { datetimeOf } from '../../policy/values.ts';
import { ImportRejected, importRecords } from '../../records/transfer/import-records.ts';
import type { Collection, Schema } from '../../schema/model/model.ts';
import { raw, tableIdent } from '../../sql.ts';
import { FORMATS, formatOfFile } from './formats/format.ts';
import { readRecords } from './source-records.ts';

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
  const folder = resolve(cwd, dirname(schema.file), schema.seed);
  const place = (path: string): string => relative(cwd, path) || path;
  if (!existsSync(folder) || !statSync(folder).isDirectory()) {
    return { done: [], issues: [`seed: the folder ${place(folder)} does not exist`] };
  }
  const { files, issues } = seedFiles(folder, schema, place);
  const done: string[] = [];
  for (const { path, collection, format } of inOrderOfReferences(files)) {
    if (only !== undefined && !only.has(collection.name)) continue;
    if (!(await isEmptyTable(db, collection))) continue;
    try {
      const { created } = await importRecords(db, {
        schema,
        collection,
        records: () => readRecords({ file: path, read: present(FORMATS.get(format), 'the format').read }),
        now: datetimeOf(new Date()),
      });
      done.push(`${created} ${created === 1 ? 'record' : 'records'} into ${collection.name} (${place(path)})`);
    } catch (error) {
      if (!(error instanceof ImportRejected)) throw error;
      issues.push(...error.lines(place(path)));
    }
  }
  return { done, issues };
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
