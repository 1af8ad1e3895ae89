/**
 * Several writes in one transaction. Each obeys its own rules, on the state that the writes before it
 * left.
 */
import type { Transaction } from '../../database/contract.ts';
import type { AccessContext, Store } from '../access-context.ts';
import type { WrittenAnswer } from '../read.ts';
import { type CreateRequest, create } from './create.ts';
import { lockRows, type WantedRow } from './locks/row-locks.ts';
import { lockValues, type WantedValues } from './locks/value-locks.ts';
import { idsOf, type RemoveRequest, removeIn } from './remove.ts';
import { type UpdateRequest, update } from './update.ts';
import {
  rowsOfUpserts,
  type UpsertAccess,
  type Upserted,
  type UpsertRequest,
  upsert,
  type WantedUpsert,
} from './upsert.ts';

/** The values and records that a batch locks before its first write. */
export interface WantedLocks {
  readonly values: readonly WantedValues[];
  readonly rows: readonly WantedRow[];
  /** They write the records that they find, if there are any. Default: none. */
  readonly upserts?: readonly WantedUpsert[];
}

/**
 * All or nothing: an error of `work` undoes every write. `work` runs again if the database undid it
 * (a deadlock).
 */
export async function batch<T>(store: Store, wanted: WantedLocks, work: (batch: Batch) => Promise<T>): Promise<T> {
  const { result, done } = await store.transaction(async (tx) => {
    const { values, upserts = [] } = wanted;
    const rows = [...wanted.rows, ...(await rowsOfUpserts(store, tx, upserts))];
    // Each write locks its row before its places, too.
    const places = await lockRows(store, tx, rows);
    await lockValues(tx, store.schema, [...values, ...places]);
    const done = new Batch(store, tx);
    return { result: await work(done), done };
  });
  await done.runHooks();
  return result;
}

/** Thrown to undo a transaction that succeeded. */
class DryRunResult<T> extends Error {
  readonly result: T;
  constructor(result: T) {
    super('dry run');
    this.result = result;
  }
}

/** Runs one write and undoes it. Its result and its errors are the same as of the write itself. */
export async function dryRun<T>(store: Store, work: (batch: Batch) => Promise<T>): Promise<T> {
  try {
    return await batch(store, { values: [], rows: [] }, async (running) => {
      throw new DryRunResult(await work(running));
    });
  } catch (error) {
    if (error instanceof DryRunResult) return error.result as T;
    throw error;
  }
}

export class Batch {
  readonly tx: Transaction;
  readonly #store: Store;
  readonly #changedUsers = new Set<string>();
  readonly #removedFiles = new Set<string>();

  constructor(store: Store, tx: Transaction) {
    this.#store = store;
    this.tx = tx;
  }

  create(access: AccessContext, request: CreateRequest): Promise<WrittenAnswer> {
    return create(this.#store, access, { ...request, tx: this.tx, holdsPlaces: 'values' });
  }

  async update(access: AccessContext, request: UpdateRequest): Promise<WrittenAnswer> {
    const written = await update(this.#store, access, { ...request, tx: this.tx });
    if (access.collection.kind === 'users') this.#changedUsers.add(written.id);
    return written;
  }

  upsert(access: UpsertAccess, request: UpsertRequest): Promise<Upserted> {
    return upsert(this.#store, access, { ...request, tx: this.tx });
  }

  async remove(access: AccessContext, request: RemoveRequest): Promise<void> {
    const gone = await removeIn(this.#store, access, request, this.tx);
    for (const id of idsOf(gone, 'users')) this.#changedUsers.add(id);
    for (const id of idsOf(gone, 'files')) this.#removedFiles.add(id);
  }

  /** Call it after the commit. */
  async runHooks(): Promise<void> {
    const { hooks } = this.#store;
    if (this.#removedFiles.size > 0) await hooks.onFilesRemoved?.([...this.#removedFiles]);
    if (this.#changedUsers.size > 0) await hooks.afterUsersChanged?.([...this.#changedUsers]);
  }
}
