/** Runs the operations of a batch as their own requests would be run. Not a route. */
import type { Context } from 'koa';
import { versionsOf } from '../../http/answer/send.ts';
import type { App } from '../../http/app.ts';
import { type Admit, admitOf, notFoundProblem } from '../../http/gate.ts';
import { parseUuid } from '../../policy/values.ts';
import type { RecordReference } from '../../records/idempotency.ts';
import type { Written } from '../../records/read.ts';
import type { Batch } from '../../records/write/batch.ts';
import type { Collection } from '../../schema/model/model.ts';
import { requireChange } from '../records/request.ts';
import type { Operation } from './operations.ts';

interface Running {
  readonly ctx: Context;
  readonly app: App;
  readonly batch: Batch;
}

export interface OperationResult {
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

  constructor({ ctx, app, batch }: Running) {
    this.#app = app;
    this.#batch = batch;
    this.#admit = admitOf(ctx, app);
  }

  async run(operation: Operation): Promise<OperationResult> {
    const admission = this.#admit(this.#requestedCollection(operation), operation.op);
    switch (operation.op) {
      case 'create': {
        const { data, id, given } = operation;
        const request = { data, relations: [], given: { ...given, id } };
        return resultOf(operation, await this.#batch.create(admission.access(data), request));
      }
      case 'update': {
        const { data } = operation;
        requireChange(data);
        const access = admission.access(data);
        const request = { id: idOf(operation), data, errors: [], relations: [], ifVersion: ifVersionOf(operation) };
        return resultOf(operation, await this.#batch.update(access, request));
      }
      case 'delete':
        await this.#batch.remove(admission.access(), { id: idOf(operation), ifVersion: ifVersionOf(operation) });
        return { text: DELETED, outline: DELETED, record: undefined };
    }
  }

  #requestedCollection({ collection }: Operation): Collection {
    const found = this.#app.schema.collections.get(collection);
    if (found === undefined) throw notFoundProblem();
    return found;
  }
}

type ChangeOperation = Extract<Operation, { op: 'update' | 'delete' }>;

function idOf({ id }: ChangeOperation): string {
  const read = parseUuid(id);
  if (read === undefined) throw notFoundProblem();
  return read;
}

const ifVersionOf = ({ ifMatch }: ChangeOperation): readonly string[] | undefined => versionsOf(ifMatch);

const DELETED = '{"status":204}';

function resultOf({ op, collection }: Operation, written: Written): OperationResult {
  const { id } = written;
  return { text: resultText(op, written), outline: resultText(op, { id }), record: { collection, id } };
}

/** Only the id where the caller may not read the result. */
export const resultText = (op: Operation['op'], { id, json }: Written): string =>
  `{"status":${op === 'create' ? 201 : 200},"data":${json ?? JSON.stringify({ id })}}`;
