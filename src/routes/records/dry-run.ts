import type { Context } from 'koa';
import { rehearsalAnswer, rehearsalBody } from '../../describe/capability-schemas.ts';
import { inData } from '../../describe/collection-schemas.ts';
import { problemOf } from '../../http/answer/errors.ts';
import type { App } from '../../http/app.ts';
import { admitOf, requestedCollection } from '../../http/gate.ts';
import { Problem } from '../../problem.ts';
import type { WrittenAnswer } from '../../records/read.ts';
import type { Batch } from '../../records/write/batch.ts';
import { DENIED, Refusal } from '../../refusal.ts';
import { neededTenant } from '../../schema/model/filter-keys.ts';
import { type Collection, takesWrite } from '../../schema/model/model.ts';
import { OperationRunner } from '../batch/operation-runner.ts';
import { route } from '../define-route.ts';
import { readDryRun, type TriedOperation } from './dry-run-request.ts';
import { rereadRecord } from './idempotent.ts';
import { listRequestOf } from './query/query-string.ts';

export const dryRunWrite = route({
  method: 'POST',
  path: '/api/:collection/can',
  door: 'caller',
  id: 'rehearse',
  summary: 'Ask whether a write to {collection} would be allowed',
  description: 'What the request itself would answer. It is carried out in a transaction that is undone.',
  body: { type: 'application/json', shape: rehearsalBody, read: (ctx, app) => app.readJson(ctx) },
  answers: { 200: { description: 'Whether it would be allowed, and if not, why.', shape: inData(rehearsalAnswer) } },
  problems: ['not_found'],
  async handle(ctx, app, body) {
    const collection = requestedCollection(ctx);
    const operation = readDryRun(body, collection);
    const found = await refusalOfRun(app, { collection, operation }, (batch) =>
      new OperationRunner(ctx, app, batch).run(operation),
    );
    const isTaken = isOfTakenValue(found);
    if (isTaken) app.metrics.countTaken(collection.name);
    const refused = isTaken && !(await isTakenVisibly(ctx, app, { collection, operation }, found)) ? undefined : found;
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { data: refused === undefined ? { allowed: true } : refusedResult(refused) };
  },
});

interface DryRun {
  readonly collection: Collection;
  readonly operation: TriedOperation;
}

/** Undefined where the write would succeed. */
async function refusalOfRun(
  { records }: App,
  { collection, operation }: DryRun,
  run: (batch: Batch) => Promise<unknown>,
): Promise<Problem | undefined> {
  if (collection.kind === 'users' && operation.op === 'create')
    return new Problem('method_not_allowed', 'users are created by registering');
  if (!takesWrite(collection, operation.op))
    return new Problem('method_not_allowed', `the database takes no ${operation.op} of \`${collection.name}\``);
  try {
    await records.dryRun(run);
    return undefined;
  } catch (error) {
    if (error instanceof Problem) return error;
    if (error instanceof Refusal) return problemOf(error);
    throw error;
  }
}

/** Another record has a value that must be unique, or a period that overlaps. */
const isOfTakenValue = (found: Problem | undefined): found is Problem =>
  found?.code === 'unique_violation' ||
  (found?.code === 'conflict' && found.errors.some(({ pointer }) => pointer?.startsWith('/data/')));

/**
 * False if the member has rules for reading that hide the taken value from the caller: a dry run leaves
 * no trace, so it must not tell hidden values to those who try them. The write itself does.
 */
async function isTakenVisibly(
  ctx: Context,
  app: App,
  { collection, operation }: DryRun,
  { code, errors }: Problem,
): Promise<boolean> {
  if (code === 'conflict') {
    const names = errors.map(({ pointer = '' }) => pointer.replace('/data/', ''));
    return names.every((each) => collection.memberAccess.get(each)?.read === undefined);
  }
  const name = errors[0]?.pointer?.replace('/data/', '') ?? '';
  const member = collection.fields.get(name) ?? collection.relations.get(name);
  if (member === undefined || !('column' in member) || operation.op === 'delete') return true;
  const { data } = operation;
  // Another record of the same value, which the caller may read, need not be one that the key holds apart.
  if (member.uniqueKey !== undefined) return collection.memberAccess.get(name)?.read === undefined;
  // A default is not a value that the caller has tried.
  if (collection.memberAccess.get(name)?.read === undefined || !Object.hasOwn(data, name)) return true;
  const stored =
    operation.op === 'create'
      ? {}
      : await rereadRecord(ctx, app, { collection: collection.name, id: operation.id, relations: [] });
  const values: Readonly<Record<string, unknown>> = { ...parsedRecord(stored), ...data };
  const keys = [name, member.uniqueWithin, neededTenant(collection)].filter((key) => key !== undefined);
  const pairs = [...new Set(keys)].flatMap((key) =>
    values[key] === undefined || values[key] === null ? [] : [{ key, value: String(values[key]) }],
  );
  try {
    const request = listRequestOf([...pairs, { key: 'limit', value: '1' }], collection, app.schema);
    const { json } = await app.records.list(admitOf(ctx, app)(collection, 'list').access(), request);
    return String(json) !== '[]';
  } catch (error) {
    if (error instanceof Refusal || error instanceof Problem) return false;
    throw error;
  }
}

const parsedRecord = ({ json }: Pick<WrittenAnswer, 'json'>): object =>
  json === undefined ? {} : JSON.parse(String(json));

function refusedResult({ status, code, message, errors, errorCount }: Problem): object {
  const reason = code === 'forbidden' && message !== DENIED ? { message } : {};
  return {
    allowed: false,
    status,
    code,
    ...reason,
    errors,
    ...(errorCount > errors.length && { error_count: errorCount }),
  };
}
