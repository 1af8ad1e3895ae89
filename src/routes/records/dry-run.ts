import { rehearsalAnswer, rehearsalBody } from '../../describe/capability-schemas.ts';
import { inData } from '../../describe/collection-schemas.ts';
import { problemOf } from '../../http/answer/errors.ts';
import type { App } from '../../http/app.ts';
import { requestedCollection } from '../../http/gate.ts';
import { Problem } from '../../problem.ts';
import type { Batch } from '../../records/write/batch.ts';
import { Refusal } from '../../refusal.ts';
import type { Collection } from '../../schema/model/model.ts';
import { OperationRunner } from '../batch/operation-runner.ts';
import type { Operation } from '../batch/operations.ts';
import { route } from '../define-route.ts';
import { readDryRun } from './dry-run-request.ts';

export const dryRunWrite = route({
  method: 'POST',
  path: '/api/:collection/can',
  door: 'session',
  id: 'rehearse',
  summary: 'Ask whether a write to {collection} would be allowed',
  description: 'What the request itself would answer. It is carried out in a transaction that is undone.',
  body: { type: 'application/json', shape: rehearsalBody, read: (ctx, app) => app.readJson(ctx) },
  answers: { 200: { description: 'Whether it would be allowed, and if not, why.', shape: inData(rehearsalAnswer) } },
  problems: ['not_found'],
  async handle(ctx, app, body) {
    const collection = requestedCollection(ctx);
    const operation = readDryRun(body, collection);
    const refused = await refusalOf(app, { collection, operation }, (batch) =>
      new OperationRunner({ ctx, app, batch }).run(operation),
    );
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { data: refused === undefined ? { allowed: true } : shown(refused) };
  },
});

interface DryRun {
  readonly collection: Collection;
  readonly operation: Operation;
}

/** Undefined where the write would succeed. */
async function refusalOf(
  { records }: App,
  { collection, operation }: DryRun,
  run: (batch: Batch) => Promise<unknown>,
): Promise<Problem | undefined> {
  if (collection.kind === 'users' && operation.op === 'create')
    return new Problem('method_not_allowed', 'users are created by registering');
  try {
    await records.dryRun(run);
    return undefined;
  } catch (error) {
    if (error instanceof Problem) return error;
    if (error instanceof Refusal) return problemOf(error);
    throw error;
  }
}

function shown({ status, code, errors, errorCount }: Problem): object {
  return { allowed: false, status, code, errors, ...(errorCount > errors.length && { error_count: errorCount }) };
}
