/** Databases in memory, in which tests run and counterexamples are replayed. */
import { existsSync, readFileSync } from 'node:fs';
import { brotliDecompressSync } from 'node:zlib';
import type { Database } from '../database/contract.ts';
import { openDatabase } from '../database/open-database.ts';
import type { Ask } from './decided-by-sql.ts';

/** An empty database, in the package beside this module's file. A checkout has none. */
const PACKED = new URL('./empty-database.tar.br', import.meta.url);
let emptyDatabase: () => Promise<Blob | undefined> = async () =>
  existsSync(PACKED) ? new Blob([brotliDecompressSync(readFileSync(PACKED))]) : undefined;

/** Later databases begin as copies of this empty one: making one is PostgreSQL's initdb, seconds of a processor. */
export function copyEmptyDatabase(snapshot: () => Promise<Blob>): void {
  emptyDatabase = snapshot;
}

export const openMemoryDatabase = async (): Promise<Database> => openDatabase({ snapshot: await emptyDatabase() });

/** The database opens for the first statement: most comparisons have no counterexample. */
export async function withReplays<T>(work: (ask: Ask) => Promise<T>): Promise<T> {
  let opened: Promise<Database> | undefined;
  const ask: Ask = async (statement) => {
    opened ??= openMemoryDatabase();
    return (await (await opened).rows(statement)) as never;
  };
  try {
    return await work(ask);
  } finally {
    await opened?.then(
      (db) => db.close(),
      () => undefined,
    );
  }
}
