/** Reads one record. Hidden and missing records are indistinguishable. */
import type { Cells, Transaction } from '../database/contract.ts';
import { notFound, Refusal } from '../refusal.ts';
import type { Relation } from '../schema/model/model.ts';
import { sql } from '../sql.ts';
import { roomForAnswer } from '../unread-answers.ts';
import { type AccessContext, type Reading, readable, type Store } from './access-context.ts';
import { expandsOf, toJson } from './expand.ts';
import { type JsonText, withMembers } from './json-pieces.ts';
import { ReadBudget, readWithinBudget } from './read-budget.ts';
import { recordKeyOf } from './record-key.ts';
import { RecordView } from './record-view.ts';
import { inTenantOf, scopeOf } from './scope.ts';
import { VERSION_WIDTH, versionColumn } from './versions.ts';

export interface ReadRequest {
  readonly id: string;
  readonly relations: readonly Relation[];
  /** Default: read outside any transaction. */
  readonly tx?: Transaction | undefined;
}
export interface RecordAnswer {
  /** The text of the record. */
  readonly json: JsonText;
  /** Opaque; changes with the record. */
  readonly version: string;
}

/** The answer to a write: only the id where the caller may not read the written record. */
export type WrittenAnswer = { readonly id: string } & Partial<RecordAnswer>;

export async function read(store: Store, caller: AccessContext, request: ReadRequest): Promise<RecordAnswer> {
  const { id, relations, tx } = request;
  const asked: Reading = { store, q: tx ?? store.readerFor(caller), access: caller };
  const reading = await inTenantOf(asked, id, 'read');
  const { access } = reading;
  const { name: collection } = access.collection;
  const view = new RecordView(store, access, { collection, tenant: reading.tenant });
  const [cells] = await reading.q.rows(sql`
    SELECT ${versionColumn(access.collection, 't')}, ${view.columns('t')}
      FROM ${scopeOf(reading)
        .from(collection, 't')
        .where(recordKeyOf(access.collection).is('t', id), readable(access, collection, 't'))}`);
  if (cells === undefined) throw notFound();
  if (relations.length === 0) return recordAnswer(reading, { view, cells, relations });
  const options = { schema: store.schema, reader: reading.q };
  return readWithinBudget(options, (budget) => recordAnswer(reading, { view, cells, relations }, budget));
}

export interface ShownRecord {
  readonly view: RecordView;
  /** The version, then the cells of the view. */
  readonly cells: Cells;
  readonly relations: readonly Relation[];
}

/** Throws `query_too_expensive`. */
async function recordAnswer(reading: Reading, shown: ShownRecord, given?: ReadBudget): Promise<RecordAnswer> {
  const { view, cells, relations } = shown;
  const { store, q, access } = reading;
  const { name: collection } = access.collection;
  const versions = await store.versions(q);
  const [count, id] = cells;
  const version = versions.of({ collection, id: id!, count: count ?? view.json(cells, VERSION_WIDTH) });
  if (relations.length === 0) return { json: view.json(cells, VERSION_WIDTH), version };
  const expanded = { collection, rows: [cells], from: VERSION_WIDTH, expands: expandsOf(relations) };
  const budget = given ?? writeBudget(reading);
  const [json] = await toJson({ ...reading, q: budget, budget }, expanded);
  return { json: json!, version };
}

/** A write holds locks, so its answer waits neither for a place nor until the client has read earlier ones. */
function writeBudget({ store: { schema }, q }: Reading): ReadBudget {
  return new ReadBudget({ schema, reader: q, mostBytes: Math.min(schema.limits.answer, roomForAnswer()) });
}

/** Answers a write. An answer over the limit names the relations that it leaves out, because the write is not undone. */
export async function answerOfWrite(reading: Reading, shown: ShownRecord): Promise<RecordAnswer> {
  try {
    return await recordAnswer(reading, shown);
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'query_too_expensive') throw error;
    const { json, version } = await recordAnswer(reading, { ...shown, relations: [] });
    const left = JSON.stringify(shown.relations.map(({ name }) => name));
    return { json: withMembers(json, `"expand":{},"expand_more":${left}`), version };
  }
}
