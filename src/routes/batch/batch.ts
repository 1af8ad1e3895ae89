import type { Context } from 'koa';
import { batchBody, batchResults } from '../../describe/batch-schemas.ts';
import { problemOf } from '../../http/answer/errors.ts';
import type { App } from '../../http/app.ts';
import { callerOf } from '../../http/gate.ts';
import { type ErrorDetail, Problem } from '../../problem.ts';
import type { AnswerToKeep, RecordReference, StoredAnswer } from '../../records/idempotency.ts';
import { arrayOf } from '../../records/json-pieces.ts';
import type { Batch } from '../../records/write/batch.ts';
import { Refusal } from '../../refusal.ts';
import { roomForAnswer } from '../../unread-answers.ts';
import { type Body, route } from '../define-route.ts';
import {
  idempotencyKeyOf,
  idempotencyParameter,
  keyOwnerOf,
  onceUnderKey,
  rereadRecord,
} from '../records/idempotent.ts';
import { type Answer, sendAnswer } from '../records/request.ts';
import { type BatchResult, OperationRunner, resultText } from './operation-runner.ts';
import { type BatchOperation, readOperations } from './operations.ts';
import { wantedLocksOf } from './wanted-locks.ts';

const operationsBody: Body<readonly BatchOperation[]> = {
  type: 'application/json',
  shape: batchBody,
  read: async (ctx, app) => readOperations(await app.readJson(ctx), app.schema, app.records.newIds),
};

export const batchRecords = route({
  method: 'POST',
  path: '/api/batch',
  door: 'caller',
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
    'transition_refused',
    'conflict',
    'still_referenced',
    'last_admin',
    'changed',
    'idempotency_mismatch',
  ],
  async handle(ctx, app, operations) {
    const key = idempotencyKeyOf(ctx);
    const caller = callerOf(ctx);
    const claim =
      key === undefined ? undefined : { ...keyOwnerOf(ctx, caller), path: ctx.path, key, bodyHash: ctx.state.bodyHash };
    const inBatch = <T>(work: (batch: Batch) => Promise<T>): Promise<T> =>
      afterLostRaces(operations, () => app.records.batch(wanted, work));
    const run = (batch: Batch) =>
      // A transaction reads the room when it has begun: many batches of one caller wait for that.
      operationResults(
        operations,
        new OperationRunner(ctx, app, batch),
        Math.min(app.schema.limits.answer, roomForAnswer()),
      );
    const wanted = wantedLocksOf(operations, ctx, app);
    const answer =
      claim === undefined
        ? await inBatch(async (batch) => batchAnswer((await run(batch)).map(({ text }) => text))).finally(() =>
            app.db.noteWrite(caller.principal),
          )
        : await onceUnderKey(ctx, app, {
            key: claim,
            write: (keep) => inBatch(async (batch) => keep(batch.tx, answerToKeep(await run(batch), operations))),
            recordsIn: (kept) => recordsLeftBy(operations, kept),
            reread: (kept) => rereadAnswer(ctx, app, { kept, operations }),
          });
    await sendAnswer(ctx, answer);
  },
});

/** Another request can create the record of an upsert while its batch runs. A hidden record is refused again. */
async function afterLostRaces<T>(operations: readonly BatchOperation[], run: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await run();
    } catch (error) {
      const isLost = error instanceof Problem && error.code === 'unique_violation';
      const operation = isLost && error.operation !== undefined ? operations[error.operation] : undefined;
      if (operation?.op !== 'upsert' || attempt === ATTEMPTS) throw error;
    }
  }
}
const ATTEMPTS = 3;

/** A result beyond `most` bytes of all results is replaced by its outline; its write is not undone. */
async function operationResults(
  operations: readonly BatchOperation[],
  runner: OperationRunner,
  most: number,
): Promise<readonly BatchResult[]> {
  const results: BatchResult[] = [];
  let bytes = 0;
  for (const [index, operation] of operations.entries()) {
    try {
      const result = await runner.run(operation);
      bytes += Buffer.byteLength(result.text) + 1;
      results.push(bytes <= most ? result : { ...result, text: result.outline });
    } catch (error) {
      throw inOperation(error, index);
    }
  }
  return results;
}

const batchAnswer = (results: readonly string[]): Answer => ({
  status: 200,
  headers: {},
  body: arrayOf(results, '{"data":', '}'),
});

const answerToKeep = (results: readonly BatchResult[], operations: readonly BatchOperation[]): AnswerToKeep => ({
  answer: batchAnswer(results.map(({ text }) => text)),
  outline: batchAnswer(results.map(({ outline }) => outline)),
  records: mayDeleteUpdated(operations) ? undefined : results.flatMap(({ record }) => record ?? []),
});

/** A delete after an update may take the updated record, itself or by a cascade. A new one has only what the request has. */
function mayDeleteUpdated(operations: readonly BatchOperation[]): boolean {
  const updated = operations.findIndex(({ op }) => op === 'update' || op === 'upsert');
  return updated >= 0 && operations.slice(updated).some(({ op }) => op === 'delete');
}

interface KeptResult {
  readonly status: number;
  /** Undefined: of a delete. */
  readonly data?: { readonly id: string | number };
}

const keptResults = ({ body }: StoredAnswer) => (JSON.parse(body) as { readonly data: readonly KeptResult[] }).data;

/** The records of the answer that were there when the batch was committed. */
const recordsLeftBy = (operations: readonly BatchOperation[], kept: StoredAnswer): readonly RecordReference[] =>
  keptResults(kept).flatMap(({ data }, i) => {
    const operation = operations[i]!;
    const { collection } = operation;
    // A new record has another id in each reading of the body.
    const id = operation.op === 'upsert' ? data && String(data.id) : operation.id;
    const isDeleted = operations.some((other) => other.op === 'delete' && other.id === id);
    return data === undefined || isDeleted ? [] : [{ collection, id: String(data.id) }];
  });

interface RereadBatch {
  readonly kept: StoredAnswer;
  readonly operations: readonly BatchOperation[];
}

/** The operations are those of the first request, whose body was the same, with other ids of new records. */
async function rereadAnswer(ctx: Context, app: App, { kept, operations }: RereadBatch): Promise<Answer> {
  const texts: string[] = [];
  for (const [index, result] of keptResults(kept).entries()) {
    const { collection } = operations[index]!;
    const id = result.data?.id;
    const of = app.schema.collections.get(collection);
    if (id === undefined || of === undefined) texts.push(JSON.stringify(result));
    else {
      const read = await rereadRecord(ctx, app, { collection, id: String(id), relations: [] });
      texts.push(resultText(result.status, of, read));
    }
  }
  return batchAnswer(texts);
}

/** Errors of the database stay as they are: a deadlock is retried, and an outage is not an operation's. */
function inOperation(error: unknown, operation: number): unknown {
  if (!(error instanceof Refusal) && !(error instanceof Problem)) return error;
  const base = `/operations/${operation}`;
  const errors = error.errors.map((entry): ErrorDetail => ({ ...entry, pointer: `${base}${entry.pointer ?? ''}` }));
  const { code, message } = error instanceof Refusal ? problemOf(error) : error;
  return new Problem(code, message, { errors, operation, cause: error });
}
