/** Reads one record. Hidden and missing records are indistinguishable. */
import type { Relation } from '../../schema/model.ts';
import type { Cells } from '../database/contract.ts';
import { notFound } from '../refusal.ts';
import { type AccessContext, type Reading, requirePermit, type Store } from './access-context.ts';
import { expanded, toJson } from './expand.ts';
import { selectReadable, VERSION_WIDTH } from './select.ts';

export interface ReadRequest {
  readonly id: string;
  readonly expand: readonly string[];
}
export interface Answer {
  /** The text of the record. */
  readonly json: string;
  /** Opaque; changes with the record. */
  readonly version: string;
}

export async function read(store: Store, ask: AccessContext, { id, expand }: ReadRequest): Promise<Answer> {
  requirePermit(ask, 'read');
  const relations = expanded(ask, expand);
  const reading = { store, q: store.db.replica, ask };
  const cells = await selectReadable(reading, id);
  if (cells === undefined) throw notFound();
  return answerOf(reading, cells, relations);
}

/** `cells`: the version, then the record. */
export async function answerOf(reading: Reading, cells: Cells, relations: readonly Relation[]): Promise<Answer> {
  const { store, q, ask } = reading;
  const versions = await store.versions(q);
  const [json] = await toJson(reading, { rows: [cells], from: VERSION_WIDTH, relations });
  const [count, id] = cells;
  return { json: json!, version: versions.of({ collection: ask.collection.name, id: id!, count: count! }) };
}
