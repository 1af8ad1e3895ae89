/** Records of a file into a collection: all or none, with every error at its line. */
import type { Database, Transaction } from '../../database/contract.ts';
import { present } from '../../invariant.ts';
import { Refusal } from '../../refusal.ts';
import { keyKindOf } from '../../schema/fields/index.ts';
import { type Collection, type Schema, tenantKeyOf } from '../../schema/model/model.ts';
import { param, raw, sql, text } from '../../sql.ts';
import { toRefusal } from '../constraint-errors.ts';
import { newIdsOf, passGivenIds } from '../new-ids.ts';
import { type AskedCheck, checksFor } from '../write/checks.ts';
import { lockAllPlaces } from '../write/locks/value-locks.ts';
import type { DateFormat } from './date-format.ts';
import { ImportStaging } from './import-staging.ts';
import { storedMembersOf } from './members.ts';
import {
  type ImportError,
  type RecordRead,
  RecordReader,
  type SourceRecord,
  type StagedRecord,
  type TargetKey,
} from './read-record.ts';

const RECORD_BATCH = 500;
/** The records that a resumable import commits at once. */
const RECORDS_A_CHUNK = 5_000;
/** More are counted, not kept. */
const MOST_ERRORS = 1_000;

export interface ImportRequest {
  readonly schema: Schema;
  readonly collection: Collection;
  /** Opens the file anew each time: a transaction that met a deadlock is tried again. */
  readonly records: () => AsyncIterable<SourceRecord>;
  /** A unique field (or `id`) that finds the record to update; the others are created. */
  readonly upsert?: string | undefined;
  /** Unique fields by relation: the file names the records of a relation by this field. */
  readonly references?: ReadonlyMap<string, string>;
  readonly dateFormat?: DateFormat | undefined;
  /** Holds the records to the `checks` of the collection. Default: true. */
  readonly isChecked?: boolean;
  /** Checks everything and writes nothing. */
  readonly dryRun?: boolean;
  /** Commits in chunks under this name, and goes on where an earlier import of this name stopped. */
  readonly resumeAs?: string;
  readonly onProgress?: (records: number) => void;
  /** Canonical. */
  readonly now: string;
}
export interface Imported {
  readonly created: number;
  readonly updated: number;
  /** Records that an earlier import of the same name wrote. */
  readonly skipped: number;
}

/**
 * Nothing of the transaction was written. At most 1,000 errors, by line, first those without one;
 * `total` counts all.
 */
export class ImportRejected extends Error {
  readonly errors: readonly ImportError[];
  readonly total: number;
  constructor(errors: readonly ImportError[], total: number) {
    super(`${total} errors`);
    this.name = 'ImportRejected';
    this.errors = errors.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0)).slice(0, MOST_ERRORS);
    this.total = total;
  }

  /** The format that editors recognise: `tasks.csv:3: …`. */
  lines(file: string): readonly string[] {
    const lines = this.errors.map(({ line, message }) => `${file}:${line === undefined ? '' : `${line}:`} ${message}`);
    const more = this.total - this.errors.length;
    return more > 0 ? [...lines, `… and ${more} more`] : lines;
  }
}

/** Undoes the transaction of a dry run. */
class DryRunEnded extends Error {
  readonly imported: Imported;
  constructor(imported: Imported) {
    super('dry run');
    this.imported = imported;
  }
}

/** Throws ImportRejected; RangeError for an `upsert` that is not unique, and for a collection that a cluster divides. */
export async function importRecords(db: Database, request: ImportRequest): Promise<Imported> {
  const { name, key } = request.collection;
  if (key?.parts !== undefined)
    throw new RangeError(
      `\`${name}\` has a key of several columns, and records of such are not written; import it with a tool of its owner`,
    );
  if (db.isCluster && tenantKeyOf(request.collection) !== undefined) {
    throw new RangeError(
      `\`${name}\` is distributed over a cluster, which joins no file with it; import it before it is distributed, or one ` +
        'tenant at a time (`bylaw tenant import`)',
    );
  }
  try {
    return request.resumeAs === undefined ? await importAtOnce(db, request) : await importInChunks(db, request);
  } catch (error) {
    if (error instanceof DryRunEnded) return error.imported;
    throw error;
  }
}

function importAtOnce(db: Database, request: ImportRequest): Promise<Imported> {
  return db.transaction(
    async (tx) => {
      const run = await openRun(tx, request);
      for await (const record of request.records()) await run.take(record);
      const written = await run.finish();
      if (request.dryRun === true) throw new DryRunEnded({ ...written, skipped: 0 });
      return { ...written, skipped: 0 };
      // The time limit of requests does not apply to an import.
    },
    { unlimited: true },
  );
}

/** References are looked for in the database and in the chunk: a circle must lie within one. */
async function importInChunks(db: Database, request: ImportRequest): Promise<Imported> {
  if (request.dryRun === true) {
    throw new RangeError(
      'a dry run commits nothing, so there is nothing to resume; expected one of --dry-run and --resume',
    );
  }
  const progress = new ImportProgress(request.resumeAs!, request.collection.name);
  await progress.prepare(db);
  const total = { created: 0, updated: 0, skipped: await progress.read(db) };
  let seen = 0;
  let chunk: SourceRecord[] = [];
  const commit = async (): Promise<void> => {
    const records = chunk;
    chunk = [];
    const written = await db.transaction(
      async (tx) => {
        const run = await openRun(tx, request, seen - records.length);
        for (const record of records) await run.take(record);
        const done = await run.finish();
        await progress.write(tx, seen);
        return done;
      },
      { unlimited: true },
    );
    total.created += written.created;
    total.updated += written.updated;
  };
  for await (const record of request.records()) {
    seen++;
    if (seen <= total.skipped) continue;
    chunk.push(record);
    if (chunk.length === RECORDS_A_CHUNK) await commit();
  }
  if (chunk.length > 0) await commit();
  await db.transaction((tx) => progress.forget(tx));
  return total;
}

async function openRun(tx: Transaction, request: ImportRequest, before = 0): Promise<Run> {
  const { schema, collection, upsert, now, dateFormat } = request;
  const keyed = targetKeys(request);
  const reader = new RecordReader({ schema, collection, now, keyed, dateFormat });
  const unique = reader.members.filter(({ isUnique }) => isUnique);
  const key = upsert === undefined ? undefined : unique.find(({ name }) => name === upsert);
  if (upsert !== undefined && key === undefined) {
    const names = unique.map(({ name }) => `\`${name}\``).join(', ');
    throw new RangeError(`\`${upsert}\` is not a unique field of \`${collection.name}\`; there are: ${names}`);
  }
  const staging = new ImportStaging(tx, { schema, collection, members: reader.members, upsert: key, keyed });
  await staging.open();
  return new Run(tx, { reader, staging, request, before });
}

/** Throws a RangeError for a relation or a field that there is not. */
function targetKeys({ schema, collection, references = new Map() }: ImportRequest): ReadonlyMap<string, TargetKey> {
  const keys = new Map<string, TargetKey>();
  for (const [name, field] of references) {
    const relation = collection.relations.get(name);
    if (relation?.kind !== 'belongs_to' && relation?.kind !== 'many_to_many')
      throw new RangeError(`\`${name}\` is not a belongs_to or many_to_many of \`${collection.name}\``);
    const target = schema.collections.get(relation.collection)!;
    const unique = storedMembersOf(target, schema).filter(({ isUnique }) => isUnique);
    const member = unique.find((each) => each.name === field);
    if (member === undefined) {
      const names = unique.map((each) => `\`${each.name}\``).join(', ');
      throw new RangeError(`\`${field}\` is not a unique field of \`${target.name}\`; there are: ${names}`);
    }
    keys.set(name, { target, member });
  }
  return keys;
}

interface RunOf {
  readonly reader: RecordReader;
  readonly staging: ImportStaging;
  readonly request: ImportRequest;
  /** The number of records that earlier runs have taken. */
  readonly before: number;
}

/** A run imports the records of one transaction. */
class Run {
  readonly #tx: Transaction;
  readonly #reader: RecordReader;
  readonly #staging: ImportStaging;
  readonly #request: ImportRequest;
  readonly #errors: ImportError[] = [];
  #dropped = 0;
  #batch: RecordRead[] = [];
  #count: number;

  constructor(tx: Transaction, { reader, staging, request, before }: RunOf) {
    this.#tx = tx;
    this.#reader = reader;
    this.#staging = staging;
    this.#request = request;
    this.#count = before;
  }

  async take(record: SourceRecord): Promise<void> {
    const staged = this.#reader.read(record, this.#errors);
    this.#dropped += this.#errors.splice(MOST_ERRORS).length;
    // A record with an error stays out, but the others are still held against each other.
    if (staged !== undefined) this.#batch.push(staged);
    this.#count++;
    if (this.#batch.length >= RECORD_BATCH) await this.#flush();
    if (this.#count % RECORD_BATCH === 0) this.#request.onProgress?.(this.#count);
  }

  async #flush(): Promise<void> {
    await this.#staging.add(await this.#withIds(this.#batch));
    this.#batch = [];
  }

  /** Fills in the ids that the database makes. */
  async #withIds(batch: readonly RecordRead[]): Promise<readonly StagedRecord[]> {
    const { collection } = this.#request;
    const count = batch.filter(({ id }) => id === undefined).length;
    const made = (count === 0 ? [] : await newIdsOf({ q: this.#tx, collection, count })).values();
    const { fromCell } = keyKindOf(collection);
    return batch.map((record) => {
      if (record.id !== undefined) return { ...record, id: record.id };
      const id = present(made.next().value, 'an id for each record');
      return { ...record, id, values: new Map(record.values).set('id', fromCell(id)) };
    });
  }

  async finish(): Promise<{ readonly created: number; readonly updated: number }> {
    await this.#flush();
    this.#request.onProgress?.(this.#count);
    const found = await this.#staging.check();
    const errors = [...this.#errors, ...found];
    if (errors.length > 0) {
      errors.push(...(await this.#failedBeside(found)));
      throw new ImportRejected(errors, errors.length + this.#dropped);
    }
    const { schema, collection } = this.#request;
    // The checks below, and the rules of writes at this time, see all records of a place.
    await lockAllPlaces(this.#tx, schema, collection);
    try {
      const written = await this.#staging.write(this.#request.now);
      await this.#requireChecks();
      if (this.#request.dryRun !== true) await passGivenIds(this.#tx, this.#request.schema, this.#request.collection);
      return written;
    } catch (error) {
      throw rejectionOf(error, this.#request.collection);
    }
  }

  /** The checks of the collection ask the records that were written: as new ones, and of no caller. */
  get #checks(): readonly AskedCheck[] {
    const { collection, now, isChecked = true } = this.#request;
    return isChecked ? checksFor(collection, { auth: null, now }) : [];
  }

  async #requireChecks(): Promise<void> {
    const errors = await this.#staging.failed(this.#checks);
    if (errors.length > 0) throw new ImportRejected(errors, errors.length);
  }

  /** The failed checks of the records without another error, which are written until the rollback. */
  async #failedBeside(found: readonly ImportError[]): Promise<readonly ImportError[]> {
    const { now, collection } = this.#request;
    const checks = this.#checks;
    if (checks.length === 0) return [];
    try {
      await this.#staging.leaveOut(found);
      await this.#staging.write(now);
      return await this.#staging.failed(checks);
    } catch (error) {
      // Without the other records, a value may be taken.
      if (toRefusal(error, collection) instanceof Refusal) return [];
      throw error;
    }
  }
}

/** Reports a conflict that the checks missed: a concurrent write, or a constraint that only the database has. */
function rejectionOf(error: unknown, collection: Collection): unknown {
  const refusal = toRefusal(error, collection);
  if (!(refusal instanceof Refusal)) return error;
  const errors = refusal.errors.map(({ pointer, detail }): ImportError => {
    const name = pointer === undefined || pointer === '/data' ? '' : pointer.slice(pointer.lastIndexOf('/') + 1);
    return { message: name === '' ? detail : `\`${name}\`: ${detail}` };
  });
  return new ImportRejected(errors, errors.length);
}

/** The progress of resumable imports. */
class ImportProgress {
  readonly #name: string;
  readonly #collection: string;

  constructor(name: string, collection: string) {
    this.#name = name;
    this.#collection = collection;
  }

  async prepare(db: Database): Promise<void> {
    await db.transaction((tx) =>
      tx.run(
        raw(`CREATE TABLE IF NOT EXISTS "bylaw_imports" (
  collection text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL, records int8 NOT NULL, PRIMARY KEY (collection, name))`),
      ),
    );
  }

  get #where() {
    return sql`collection = ${text(this.#collection)} AND name = ${text(this.#name)}`;
  }

  async read(db: Database): Promise<number> {
    const [row] = await db.rows(sql`SELECT records FROM "bylaw_imports" WHERE ${this.#where}`);
    return Number(row?.[0] ?? 0);
  }

  async write(tx: Transaction, records: number): Promise<void> {
    await tx.run(sql`
      INSERT INTO "bylaw_imports" (collection, name, records)
      VALUES (${text(this.#collection)}, ${text(this.#name)}, ${param('int8', records)})
      ON CONFLICT (collection, name) DO UPDATE SET records = excluded.records`);
  }

  async forget(tx: Transaction): Promise<void> {
    await tx.run(sql`DELETE FROM "bylaw_imports" WHERE ${this.#where}`);
  }
}
