/** Runs the operations of a batch as their own requests would be run. Not a route. */
import type { Context } from 'koa';
import { versionsOf } from '../../http/answer/send.ts';
import type { App } from '../../http/app.ts';
import { type Admit, admitOf, notFoundProblem } from '../../http/gate.ts';
import { present } from '../../invariant.ts';
import type { RecordReference } from '../../records/idempotency.ts';
import type { WrittenAnswer } from '../../records/read.ts';
import type { Batch } from '../../records/write/batch.ts';
import { keyKindOf } from '../../schema/fields/index.ts';
import type { Collection } from '../../schema/model/model.ts';
import { requireChange, requireRecordId } from '../records/request.ts';
import { uniqueFieldOf, upsertAccessOf } from '../records/upsert-request.ts';
import type { BatchOperation } from './operations.ts';

export interface BatchResult {
  /** The JSON text. */
  readonly text: string;
  /** The same text with the id only. */
  readonly outline: string;
  /** The record that was written; undefined: it was deleted. */
  readonly record: RecordReference | undefined;
}

/** The same gate, the same checks in the same order. */
export class OperationRunner {
  readonly #app: App;
  readonly #batch: Batch;
  readonly #admit: Admit;

  constructor(ctx: Context, app: App, batch: Batch) {
    this.#app = app;
    this.#batch = batch;
    this.#admit = admitOf(ctx, app);
  }

  async run(operation: BatchOperation): Promise<BatchResult> {
    const collection = this.#requestedCollection(operation);
    if (operation.op === 'upsert') return this.#upsert(collection, operation);
    const admission = this.#admit(collection, operation.op);
    switch (operation.op) {
      case 'create': {
        const { data, id, given } = operation;
        const request = { data, relations: [], given: id === undefined ? given : { ...given, id } };
        return resultOf(collection, 201, await this.#batch.create(admission.access(data), request));
      }
      case 'update': {
        const { data } = operation;
        requireChange(data);
        const access = admission.access(data);
        const target = { id: requireRecordId(collection, operation.id), ifVersion: versionsOf(operation.ifMatch) };
        const written = await this.#batch.update(access, { ...target, data, errors: [], relations: [] });
        return resultOf(collection, 200, written);
      }
      case 'delete': {
        const target = { id: requireRecordId(collection, operation.id), ifVersion: versionsOf(operation.ifMatch) };
        await this.#batch.remove(admission.access(), target);
        return { text: DELETED_RESULT, outline: DELETED_RESULT, record: undefined };
      }
    }
  }

  async #upsert(collection: Collection, { on, data }: Extract<BatchOperation, { op: 'upsert' }>): Promise<BatchResult> {
    const access = upsertAccessOf(this.#admit, collection);
    const field = present(uniqueFieldOf(collection, on), 'a unique field');
    const { isCreated, written } = await this.#batch.upsert(access, { field, data, relations: [] });
    return resultOf(collection, isCreated ? 201 : 200, written);
  }

  #requestedCollection({ collection }: BatchOperation): Collection {
    const found = this.#app.schema.collections.get(collection);
    if (found === undefined) throw notFoundProblem();
    return found;
  }
}

const DELETED_RESULT = '{"status":204}';

function resultOf(collection: Collection, status: number, written: WrittenAnswer): BatchResult {
  const { id } = written;
  const record = { collection: collection.name, id };
  return { text: resultText(status, collection, written), outline: resultText(status, collection, { id }), record };
}

/** Only the id where the caller may not read the result. */
export const resultText = (status: number, collection: Collection, { id, json }: WrittenAnswer): string =>
  `{"status":${status},"data":${json ?? `{"id":${keyKindOf(collection).toJson(id)}}`}}`;
