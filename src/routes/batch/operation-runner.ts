/** Runs the operations of a batch as their own requests would be run. Not a route. */
import type { Context } from 'koa';
import { versionsOf } from '../../http/answer/send.ts';
import type { App } from '../../http/app.ts';
import { type Admit, admitOf, notFoundProblem } from '../../http/gate.ts';
import { parseUuid } from '../../policy/values.ts';
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

  /** The JSON text of the result. */
  async run(operation: Operation): Promise<string> {
    const admission = this.#admit(this.#requestedCollection(operation), operation.op);
    switch (operation.op) {
      case 'create': {
        const { data, id, given } = operation;
        const request = { data, relations: [], given: { ...given, id } };
        return resultOf(201, await this.#batch.create(admission.access(data), request));
      }
      case 'update': {
        const { data } = operation;
        requireChange(data);
        const access = admission.access(data);
        const request = { id: idOf(operation), data, errors: [], relations: [], ifVersion: ifVersionOf(operation) };
        return resultOf(200, await this.#batch.update(access, request));
      }
      case 'delete':
        await this.#batch.remove(admission.access(), { id: idOf(operation), ifVersion: ifVersionOf(operation) });
        return '{"status":204}';
    }
  }

  #requestedCollection({ collection }: Operation): Collection {
    const found = this.#app.schema.collections.get(collection);
    if (found === undefined) throw notFoundProblem();
    return found;
  }
}

type Change = Extract<Operation, { op: 'update' | 'delete' }>;

function idOf({ id }: Change): string {
  const read = parseUuid(id);
  if (read === undefined) throw notFoundProblem();
  return read;
}

const ifVersionOf = ({ ifMatch }: Change): readonly string[] | undefined => versionsOf(ifMatch);

/** Only the id where the caller may not read the result. */
const resultOf = (status: number, { id, json }: Written): string =>
  `{"status":${status},"data":${json ?? JSON.stringify({ id })}}`;
