/** One record. What is hidden and what does not exist are one and the same answer. */

import type { Relation } from '../../schema/model.ts';
import type { Cells } from '../database/contract.ts';
import { type AccessContext, notFound, type Reading, requirePermit, type Store } from './access-context.ts';
import { etagOf } from './etag.ts';
import { expanded, toJson } from './expand.ts';
import { selectReadable, VERSION_WIDTH } from './select.ts';

export interface ReadRequest {
  readonly id: string;
  readonly expand: readonly string[];
}
export interface Answer {
  /** The text of the record. */
  readonly json: string;
  readonly etag: string;
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
  const [json] = await toJson(reading, { rows: [cells], from: VERSION_WIDTH, relations });
  return { json: json!, etag: etagOf({ row: cells[0]!, members: cells[1]! }, json!) };
}
