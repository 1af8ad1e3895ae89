/**
 * Several writes in one transaction. Each is judged by its own rules, on the state that the writes
 * before it left.
 */
import type { Collection } from '../../../schema/model.ts';
import { raw } from '../../../sql.ts';
import type { Transaction } from '../../database/contract.ts';
import type { AccessContext, Store } from '../access-context.ts';
import type { Data } from '../data.ts';
import type { Written } from '../read.ts';
import { type CreateRequest, createWithin } from './create.ts';
import { idsOf, type RemoveRequest, removeWithin } from './remove.ts';
import { uniqueKeys } from './unique-queue.ts';
import { type UpdateRequest, updateWithin } from './update.ts';

/** The values that a write sets, as its body has them. */
export interface UniqueValues {
  readonly collection: Collection;
  readonly data: Data;
}

/**
 * All or nothing: what `work` throws undoes every write. It can run again where the database undid
 * it (a deadlock).
 */
export async function batch<T>(
  store: Store,
  wanted: readonly UniqueValues[],
  work: (batch: Batch) => Promise<T>,
): Promise<T> {
  const { result, done } = await store.uniqueQueue.run(keysOf(wanted), () =>
    store.db.transaction(async (tx) => {
      const done = await Batch.begin(store, tx);
      return { result: await work(done), done };
    }),
  );
  await done.runHooks();
  return result;
}

/** Thrown to undo a transaction that went well. */
class Rehearsed<T> extends Error {
  readonly result: T;
  constructor(result: T) {
    super('rehearsed');
    this.result = result;
  }
}

/** As `batch`, but nothing is written: what `work` gives, or throws, is what it would be. */
export async function rehearse<T>(
  store: Store,
  wanted: readonly UniqueValues[],
  work: (batch: Batch) => Promise<T>,
): Promise<T> {
  try {
    return await batch(store, wanted, async (running) => {
      throw new Rehearsed(await work(running));
    });
  } catch (error) {
    if (error instanceof Rehearsed) return error.result as T;
    throw error;
  }
}

const keysOf = (wanted: readonly UniqueValues[]): readonly string[] => [
  ...new Set(wanted.flatMap(({ collection, data }) => uniqueKeys(collection, valuesOf(collection, data)))),
];

/** The data is as it was sent: what is not a scalar is refused by the operation, in its turn. */
function valuesOf({ fields, relations }: Collection, data: Data): Parameters<typeof uniqueKeys>[1] {
  return [...fields.values(), ...relations.values()].flatMap((member) =>
    'column' in member && Object.hasOwn(data, member.name) && typeof data[member.name] !== 'object'
      ? [{ column: member.column, value: data[member.name] }]
      : [],
  );
}

/**
 * INVARIANT: between two writes, unique constraints are immediate; a write that needs them deferred
 * sets and resets them.
 */
export class Batch {
  readonly tx: Transaction;
  readonly #store: Store;
  readonly #changedUsers = new Set<string>();
  readonly #removedFiles = new Set<string>();

  private constructor(store: Store, tx: Transaction) {
    this.#store = store;
    this.tx = tx;
  }

  static async begin(store: Store, tx: Transaction): Promise<Batch> {
    await tx.run(raw('SET CONSTRAINTS ALL IMMEDIATE'));
    return new Batch(store, tx);
  }

  create(access: AccessContext, request: CreateRequest): Promise<Written> {
    return createWithin(this.#store, access, { ...request, tx: this.tx });
  }

  async update(access: AccessContext, request: UpdateRequest): Promise<Written> {
    const written = await updateWithin(this.#store, access, { ...request, tx: this.tx });
    if (access.collection.kind === 'users') this.#changedUsers.add(written.id);
    return written;
  }

  async remove(access: AccessContext, request: RemoveRequest): Promise<void> {
    const gone = await removeWithin(this.#store, access, { ...request, tx: this.tx });
    for (const id of idsOf(gone, 'users')) this.#changedUsers.add(id);
    for (const id of idsOf(gone, 'files')) this.#removedFiles.add(id);
  }

  /** After the commit. */
  async runHooks(): Promise<void> {
    const { hooks } = this.#store;
    if (this.#removedFiles.size > 0) await hooks.onFilesRemoved?.([...this.#removedFiles]);
    if (this.#changedUsers.size > 0) await hooks.afterUsersChanged?.([...this.#changedUsers]);
  }
}
