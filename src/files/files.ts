/** The face of the files room: storage, links and variants, and the deletion of bytes whose records are gone. */
import { namedCells } from '../database/cells.ts';
import type { Database } from '../database/contract.ts';
import { memoized } from '../memoized.ts';
import { Problem } from '../problem.ts';
import { QueuePerKey } from '../queue-per-key.ts';
import type { Schema, Uploads } from '../schema/model/model.ts';
import { param, sql } from '../sql.ts';
import { withDeadline } from '../with-deadline.ts';
import { readIdentity } from './file-tables.ts';
import { createLinks, type SignedLinks } from './signed-links.ts';
import { Ownership } from './storage/ownership.ts';
import type { Storage } from './storage/storage.ts';
import { Sweeper } from './storage/sweeper.ts';
import { Variants } from './variants/variants.ts';

/**
 * Bytes and their record are written within moments of each other; a quarter of an hour allows for
 * slow uploads.
 */
const GRACE = 900_000;
/** Files whose bytes are deleted concurrently. */
const REMOVALS_AT_ONCE = 8;
/**
 * Milliseconds that a response waits for the deletion of bytes; the deletion of thousands goes on
 * after it.
 */
const PATIENCE = 2_000;

/**
 * Uploads of one caller that are open at a time. An open upload has up to 33 MiB of memory where a bucket is slower than
 * its client, and some disk; later ones wait with their bytes unread.
 */
const UPLOADS = { running: 8, waiting: 128, patienceMs: 60_000 };

const tooManyUploads = (): Problem =>
  new Problem('rate_limited', 'too many of your uploads are under way; send the next when one of them has ended');

export interface Files {
  readonly storage: Storage;
  /** Runs uploads, by the ids of their callers. */
  readonly uploads: QueuePerKey;
  readonly links: SignedLinks;
  readonly variants: Variants;
  /**
   * Deletes the bytes of files whose records are gone. Never throws and never takes long: the sweep
   * deletes the rest.
   */
  discard(ids: readonly string[]): Promise<void>;
  /**
   * Deletes bytes without a record, and returns how many. Newer bytes than `grace` milliseconds stay;
   * by default, all that were stored since the last settled claim.
   */
  sweep(grace?: number): Promise<number>;
  /** Keeps all bytes until the returned function is called; the sweep deletes them later. */
  keepBytes(): () => void;
  /** The same storage, with the image sizes of another schema. */
  withSizes(images: Uploads['images']): Files;
  close(): Promise<void>;
}

export interface FilesParts {
  readonly db: Database;
  readonly schema: Schema;
  /** `storeId` names the bytes of this database. */
  readonly openStorage: (storeId: string) => Promise<Storage>;
  /** See `placeOfDatabase`. */
  readonly place: string;
  readonly onError: (what: string, error: unknown) => void;
}

/** On the embedded database, which no other process can use, it resolves after a first sweep. */
export async function createFiles({ db, schema, openStorage, place, onError }: FilesParts): Promise<Files> {
  const { storeId, linkKey } = await readIdentity(db);
  const storage = await openStorage(storeId);
  const ownership = new Ownership(db, storage, place);
  let keepers = 0;
  const sweep = async (grace: number | undefined, signal: AbortSignal): Promise<number> => {
    if (keepers > 0) return 0;
    const objection = await ownership.objection();
    if (objection !== undefined) {
      onError('nothing is swept', new Error(objection));
      return 0;
    }
    await ownership.claim();
    // The bytes of a file may be older than its record by the grace.
    const age = grace ?? GRACE + (await ownership.settledAge());
    return storage.sweep({ grace: age, alive: aliveIn(db, signal) });
  };
  const sweeper = new Sweeper({
    sweep,
    onError: (error) => onError('the sweep of the files failed', error),
  });
  if (db.kind === 'embedded') await sweeper.start(0);
  else void sweeper.start();
  const files: Files = {
    storage,
    uploads: new QueuePerKey(UPLOADS, tooManyUploads),
    links: createLinks(linkKey),
    variants: new Variants(storage, schema.uploads.images),
    async discard(ids) {
      if (keepers > 0) return;
      const onFailure = (error: unknown) => onError('the bytes of a deleted file are left to the sweep', error);
      await withDeadline(removeAll(ids, { storage, ownership, onError: onFailure }), PATIENCE, () => undefined);
    },
    keepBytes() {
      keepers++;
      return memoized(() => {
        keepers--;
      });
    },
    sweep: (grace) => sweeper.sweep(grace),
    withSizes: (images) => ({ ...files, variants: new Variants(storage, images) }),
    close: () => sweeper.stop(),
  };
  return files;
}

interface Removal {
  readonly storage: Storage;
  readonly ownership: Ownership;
  readonly onError: (error: unknown) => void;
}

async function removeAll(ids: readonly string[], { storage, ownership, onError }: Removal): Promise<void> {
  if (ids.length === 0) return;
  const isOurs = await ownership.objection().then(
    (objection) => objection === undefined,
    (error: unknown) => {
      onError(error);
      return false;
    },
  );
  if (!isOurs) return;
  // The workers share one iterator: each takes the next id.
  const waiting = ids.values();
  const remove = async (): Promise<void> => {
    for (const id of waiting) await storage.remove(id).catch(onError);
  };
  await Promise.all(Array.from({ length: REMOVALS_AT_ONCE }, remove));
}

const FILE_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Checks the signal for every batch, so that a sweep ends with the service. */
const aliveIn =
  (db: Database, signal: AbortSignal) =>
  (ids: readonly string[]): Promise<ReadonlySet<string>> => {
    signal.throwIfAborted();
    return aliveAmong(db, ids);
  };

/** Names that are not ids have no record. */
async function aliveAmong(db: Database, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const known = ids.filter((id) => FILE_ID.test(id));
  if (known.length === 0) return new Set();
  const rows = await db.rows(sql`
    SELECT id::text
      FROM "files"
     WHERE id = ANY(${param('uuid[]', known)})`);
  return new Set(rows.map((cells) => namedCells(cells, 'id').id));
}
