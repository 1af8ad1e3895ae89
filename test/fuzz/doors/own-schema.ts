/** A database of PostgreSQL without tables: a schema that is dropped afterwards, with the one beside it. */
import pg from 'pg';
import type { Database } from '../../../src/database/contract.ts';
import type { Doors } from './store-modules.ts';

interface OwnSchema {
  /** The URL of the server, with a query string. */
  readonly url: string;
  readonly schema: string;
  readonly openDatabase: Doors['openDatabase'];
}

/** The schema of the tables that another program owns. */
export const placeBeside = (schema: string): string => `${schema}_shop`;

export async function inOwnSchema<T>(
  { url, schema, openDatabase }: OwnSchema,
  work: (db: Database) => Promise<T>,
): Promise<T> {
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  try {
    await admin.query(`CREATE SCHEMA ${schema}`);
    const own = `${url}&options=${encodeURIComponent(`-c search_path=${schema}`)}`;
    const db = await openDatabase({ url: own, poolSize: 1, pipelines: 1 });
    try {
      return await work(db);
    } finally {
      await db.close();
    }
  } finally {
    await admin.query(`DROP SCHEMA ${schema} CASCADE`);
    await admin.query(`DROP SCHEMA IF EXISTS ${placeBeside(schema)} CASCADE`);
    await admin.end();
  }
}
