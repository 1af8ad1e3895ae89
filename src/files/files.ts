/** The room's face: where the bytes are, and what is done to them beside the records. */
import type { Schema } from '../schema/model.ts';
import { param, sql } from '../sql.ts';
import type { Database } from '../store/contract.ts';
import { createLinks, type Links } from './links.ts';
import type { Storage } from './storage.ts';
import { readIdentity } from './tables.ts';
import { Variants } from './variants.ts';

const HOUR = 3_600_000;
/** Bytes and their record come within moments of each other; a quarter of an hour forgives a slow one. */
const GRACE = 900_000;

export interface Files {
  readonly storage: Storage;
  readonly links: Links;
  readonly variants: Variants;
  /** Removes bytes without a record: how many. `grace` in milliseconds. */
  sweep(grace?: number): Promise<number>;
  close(): void;
}

export interface FilesParts {
  readonly db: Database;
  readonly schema: Schema;
  /** Given the name under which this database's bytes are kept apart from others'. */
  readonly openStorage: (storeId: string) => Storage;
  readonly onFault: (error: unknown) => void;
}

/** Sweeps before it answers where no other process can be at work: on the embedded database. */
export async function createFiles({ db, schema, openStorage, onFault }: FilesParts): Promise<Files> {
  const { storeId, linkKey } = await readIdentity(db);
  const storage = openStorage(storeId);
  const sweep = (grace = GRACE): Promise<number> => storage.sweep({ grace, alive: (ids) => aliveAmong(db, ids) });
  const tend = (grace?: number): Promise<unknown> => sweep(grace).catch(onFault);
  if (db.kind === 'embedded') await tend(0);
  else void tend();
  const timer = setInterval(() => void tend(), HOUR);
  timer.unref();
  return {
    storage,
    links: createLinks(linkKey),
    variants: new Variants(storage, schema.uploads.images),
    sweep,
    close: () => clearInterval(timer),
  };
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** What is no identifier is nobody's. */
async function aliveAmong(db: Database, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const known = ids.filter((id) => UUID.test(id));
  if (known.length === 0) return new Set();
  const rows = await db.rows(sql`SELECT id::text FROM "files" WHERE id = ANY(${param('uuid[]', known)})`);
  return new Set(rows.map(([id]) => id!));
}
