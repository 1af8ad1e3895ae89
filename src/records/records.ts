/**
 * The records of a schema in a database, for the routes. Every call takes an AccessContext and
 * obeys its permits.
 */
import type { Database, Transaction } from '../database/contract.ts';
import type { Collection, Schema } from '../schema/model/model.ts';
import { type AccessContext, type Hooks, Store } from './access-context.ts';
import { type Capabilities, capabilitiesOf } from './capabilities.ts';
import { type HistoryAnswer, type HistoryRequest, history } from './history.ts';
import { keyDefaultsOf, newIdsOf } from './new-ids.ts';
import { type AggregateRequest, type Aggregates, aggregate } from './page/aggregate.ts';
import { list, type PageReading, type RecordPage } from './page/list.ts';
import type { ListRequest } from './page/page-plan.ts';
import { type ReadRequest, type RecordAnswer, read, type WrittenAnswer } from './read.ts';
import { ShapeMemory } from './shape-memory.ts';
import { type Batch, batch, dryRun, type WantedLocks } from './write/batch.ts';
import { type CreateRequest, create } from './write/create.ts';
import { type MatchedWrites, type MatchingWrite, writeMatching } from './write/matching.ts';
import { deleteRecord, type RemoveRequest } from './write/remove.ts';
import { type UpdateRequest, update } from './write/update.ts';
import { type UpsertAccess, type Upserted, type UpsertRequest, upsert } from './write/upsert.ts';

export type { AccessContext, Hooks } from './access-context.ts';

export interface Records {
  list(access: AccessContext, request: ListRequest): Promise<RecordPage>;
  aggregate(access: AccessContext, request: AggregateRequest): Promise<Aggregates>;
  read(access: AccessContext, request: ReadRequest): Promise<RecordAnswer>;
  /**
   * The caller passes `tx` if the transaction of the write also writes an idempotency record or a
   * file.
   */
  create(access: AccessContext, request: CreateRequest): Promise<WrittenAnswer>;
  update(access: AccessContext, request: UpdateRequest): Promise<WrittenAnswer>;
  remove(access: AccessContext, request: RemoveRequest): Promise<void>;
  /** Updates or creates the record that has a unique value. */
  upsert(access: UpsertAccess, request: UpsertRequest, principal: string): Promise<Upserted>;
  /** The changes of a record that the caller may read. */
  history(access: AccessContext, request: HistoryRequest): Promise<HistoryAnswer>;
  /**
   * Updates or deletes the records that match a filter.
   * @param end the last statements of the transaction; it throws to undo all writes
   */
  matching<T>(write: MatchingWrite, end: (outcome: MatchedWrites, batch: Batch) => Promise<T>): Promise<T>;
  /** The capabilities of the caller for a record that it may read. */
  can(access: AccessContext, id: string): Promise<Capabilities>;
  /** Ids that the database makes for new records. */
  newIds(collection: Collection, count: number): Promise<readonly string[]>;
  /** A transaction of a request, in the time that the schema gives it. */
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
  /** Runs one write and undoes it, for the answer that it would have. */
  dryRun<T>(work: (batch: Batch) => Promise<T>): Promise<T>;
  /** Several writes in one transaction, after the locks that they want. */
  batch<T>(wanted: WantedLocks, work: (batch: Batch) => Promise<T>): Promise<T>;
}

export function createRecords(db: Database, schema: Schema, hooks: Hooks = {}): Records {
  const store = new Store(db, schema, hooks);
  const pages: PageReading = { store, plans: new ShapeMemory((plan) => plan.text) };
  // Also after an error: whether a write was committed may be unknown.
  const noted = <T>(access: AccessContext, write: Promise<T>): Promise<T> =>
    write.finally(() => store.noteWrite(access));
  return {
    list: list.bind(undefined, pages),
    aggregate: (access, request) => aggregate(store, access, request),
    read: (access, request) => read(store, access, request),
    create: (access, request) => {
      const written = create(store, access, request);
      // A transaction of the caller is noted by the caller, after its commit.
      return request.tx === undefined ? noted(access, written) : written;
    },
    update: (access, request) => noted(access, update(store, access, request)),
    upsert: (access, request, principal) => upsert(store, access, request).finally(() => db.noteWrite(principal)),
    remove: (access, request) => noted(access, deleteRecord(store, access, request)),
    matching: (write, end) => noted(write.access, writeMatching(pages, write, end)),
    newIds: (collection, count) => newIdsOf({ q: store.db, collection, count, defaults: keyDefaultsOf(store) }),
    history: (access, request) => history(store, access, request),
    can: (access, id) => capabilitiesOf(store, access, id),
    transaction: (work) => store.transaction(work),
    dryRun: (work) => dryRun(store, work),
    batch: (wanted, work) => batch(store, wanted, work),
  };
}
