/** Reads a page of the log and the lists of all streams in one snapshot, so that each event of the page can be compared with its list. */
import type { Cells, Database, Queryable } from '../../../src/database/contract.ts';
import type { Members } from '../../../src/records/record-shape.ts';
import type { AccessContext, Records } from '../../../src/records/records.ts';
import type { Schema } from '../../../src/schema/model/model.ts';
import { raw, type Sql } from '../../../src/sql.ts';
import type { FeedModules } from './feed-modules.ts';

/** The records of a list by id, as texts. */
export type ListedRecords = ReadonlyMap<string, string>;

type CompiledFilter = ReturnType<FeedModules['compileFilter']>['filter'];

export interface AskedList {
  readonly access: () => AccessContext;
  readonly filter: CompiledFilter;
  readonly members: Members | undefined;
}

/** The list that a subscriber would ask for now. */
export async function listOf(records: Records, { access, filter, members }: AskedList): Promise<ListedRecords> {
  const { json } = await records.list(access(), { limit: 1_000, offset: 0, filter, members });
  const all = JSON.parse(String(json)) as { readonly id: string | number }[];
  return new Map(all.map((record) => [String(record.id), JSON.stringify(record)]));
}

const LIMIT_MS = 60_000;

export class SnapshotLists {
  readonly #transaction: Database['transaction'];
  readonly #records: Records;
  #tx: Queryable | undefined;
  #last: Promise<unknown> = Promise.resolve();

  /** @param db no write of it wakes a node */
  constructor(db: Database, { createRecords }: FeedModules, schema: Schema) {
    this.#transaction = db.transaction.bind(db);
    const inSnapshot: Database = {
      ...db,
      rows: (statement) => this.#tx!.rows(statement),
      replicaFor: () => inSnapshot,
    };
    this.#records = createRecords(inSnapshot, schema);
  }

  /** The rows of the statement, and the lists in the snapshot that it reads. */
  async read(page: Sql, asked: readonly AskedList[]): Promise<readonly [readonly Cells[], readonly ListedRecords[]]> {
    const reading = this.#last.then(() => this.#read(page, asked));
    this.#last = reading.catch(() => undefined);
    return reading;
  }

  #read(page: Sql, asked: readonly AskedList[]): Promise<readonly [readonly Cells[], readonly ListedRecords[]]> {
    return this.#transaction(
      async (tx) => {
        await tx.run(raw('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ'));
        const rows = await tx.rows(page);
        this.#tx = tx;
        const lists: ListedRecords[] = [];
        for (const each of asked) lists.push(await listOf(this.#records, each));
        return [rows, lists] as const;
      },
      { limitMs: LIMIT_MS },
    );
  }
}
