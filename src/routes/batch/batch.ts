import { batchBody, batchResults } from '../../describe/batch-schemas.ts';
import { problemOf } from '../../http/answer/errors.ts';
import type { App } from '../../http/app.ts';
import { bodyHashOf } from '../../http/body.ts';
import { callerOf } from '../../http/gate.ts';
import { type ErrorDetail, Problem } from '../../problem.ts';
import type { Batch } from '../../records/write/batch.ts';
import { Refusal } from '../../refusal.ts';
import { type Body, route } from '../define-route.ts';
import { idempotencyKeyOf, idempotencyParameter, onceUnderKey } from '../records/idempotent.ts';
import { type Answer, send } from '../records/request.ts';
import { OperationRunner } from './operation-runner.ts';
import { type Operation, readOperations } from './operations.ts';

const operationsBody: Body<readonly Operation[]> = {
  type: 'application/json',
  shape: batchBody,
  read: async (ctx, app) => readOperations(await app.readJson(ctx), app.schema),
};

export const batchRecords = route({
  method: 'POST',
  path: '/api/batch',
  door: 'session',
  id: 'batch',
  summary: 'Create, update and delete several records in one transaction',
  description:
    'In order, each operation under its own rules and on the state that it meets. Where one fails, nothing has changed.',
  parameters: [idempotencyParameter],
  body: operationsBody,
  answers: { 200: { description: 'What became of each operation.', shape: batchResults } },
  problems: [
    'invalid_parameter',
    'patch_empty',
    'forbidden',
    'not_found',
    'unique_violation',
    'still_referenced',
    'last_admin',
    'changed',
    'idempotency_mismatch',
  ],
  async handle(ctx, app, operations) {
    const key = idempotencyKeyOf(ctx);
    const claim =
      key === undefined ? undefined : { userId: callerOf(ctx).id, path: ctx.path, key, bodyHash: bodyHashOf(ctx) };
    const run = (batch: Batch) => answerTo(operations, new OperationRunner({ ctx, app, batch }));
    const wanted = wantedValuesOf(operations, app);
    const writing =
      claim === undefined
        ? app.records.batch(wanted, run)
        : onceUnderKey(app.db, claim, (keep) =>
            app.records.batch(wanted, async (batch) => keep(batch.tx, await run(batch))),
          );
    const answer = await writing
      // Also after an error, and for a kept answer: another node may have committed it just now.
      .finally(() => app.db.noteWrite(callerOf(ctx).id));
    send(ctx, answer);
  },
});

/** The values of operations on unknown collections are left out. */
function wantedValuesOf(operations: readonly Operation[], { schema }: App): Parameters<App['records']['batch']>[0] {
  return operations.flatMap((operation) => {
    const collection = schema.collections.get(operation.collection);
    return collection === undefined || operation.op === 'delete' ? [] : [{ collection, data: operation.data }];
  });
}

async function answerTo(operations: readonly Operation[], runner: OperationRunner): Promise<Answer> {
  const results: string[] = [];
  for (const [index, operation] of operations.entries()) {
    try {
      results.push(await runner.run(operation));
    } catch (error) {
      throw inOperation(error, index);
    }
  }
  return { status: 200, headers: {}, body: `{"data":[${results.join(',')}]}` };
}

/** Errors of the database stay as they are: a deadlock is retried, and an outage is not an operation's. */
function inOperation(error: unknown, operation: number): unknown {
  if (!(error instanceof Refusal) && !(error instanceof Problem)) return error;
  const base = `/operations/${operation}`;
  const errors = error.errors.map((entry): ErrorDetail => ({ ...entry, pointer: `${base}${entry.pointer ?? ''}` }));
  const { code, message } = error instanceof Refusal ? problemOf(error) : error;
  return new Problem(code, message, { errors, operation, cause: error });
}
