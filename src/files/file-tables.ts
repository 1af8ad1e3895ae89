/** The table of the files room, whose name no collection can have. */
import { randomBytes } from 'node:crypto';
import { v4 as uuidv4 } from 'uuid';
import { namedCells } from '../database/cells.ts';
import type { Database } from '../database/contract.ts';
import { raw, type Sql, sql, text, uuid } from '../sql.ts';

/**
 * The identity of the store, in a single row. `store_id` names the bytes of this database, so that a
 * sweep never deletes the bytes of another database in the same folder or bucket.
 */
export const fileTables: readonly Sql[] = [
  raw(`CREATE TABLE IF NOT EXISTS "_files_store" (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  store_id uuid NOT NULL,
  link_key text NOT NULL
)`),
  // The latest marks that this database has put on its storage; see ownership.ts.
  raw(`CREATE TABLE IF NOT EXISTS "_files_marks" (
  mark uuid PRIMARY KEY,
  at timestamptz NOT NULL
)`),
];

export interface StoreIdentity {
  readonly storeId: string;
  /** Signs links; every node has the same. */
  readonly linkKey: Buffer;
}

/** The first process that reads the identity creates it. */
export async function readIdentity(db: Database): Promise<StoreIdentity> {
  await db.write(sql`
    INSERT INTO "_files_store" (store_id, link_key)
    VALUES (${uuid(uuidv4())}, ${text(randomBytes(32).toString('base64url'))})
        ON CONFLICT DO NOTHING
    RETURNING one`);
  const [row] = await db.rows(raw('SELECT store_id, link_key FROM "_files_store"'));
  const { storeId, linkKey } = namedCells(row, 'storeId', 'linkKey');
  return { storeId, linkKey: Buffer.from(linkKey, 'base64url') };
}
