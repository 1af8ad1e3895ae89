/** Reads the body of a dry run, key by key. Not a route. */
import { keyOf } from '../../policy/types.ts';
import { addError, type ErrorDetail, Problem, pointerPart } from '../../problem.ts';
import { newRecordId } from '../../record-id.ts';
import { type Data, isObject } from '../../records/write/input.ts';
import { askedCreate } from '../../records/write/row-in-process.ts';
import type { Collection } from '../../schema/model/model.ts';
import type { BatchOperation } from '../batch/operations.ts';

/** A write whose outcome one rule of access decides. */
export type TriedOperation = Exclude<BatchOperation, { readonly op: 'upsert' }>;

const DRY_RUN_KEYS: readonly string[] = ['action', 'id', 'data'];
const WRITE_ACTIONS: readonly unknown[] = ['create', 'update', 'delete'];

/** Throws `validation_failed` where the question is not well formed. Without `data`, a write names no field. */
export function readDryRun(body: unknown, collection: Collection): TriedOperation {
  const errors: ErrorDetail[] = [];
  const operation = operationOf(body, collection, (pointer, code, detail) => {
    addError(errors, { pointer, code, detail });
  });
  if (operation !== undefined && errors.length === 0) return operation;
  throw new Problem('validation_failed', 'the body is not a question about a write', { errors });
}

type ReportError = (pointer: string, code: string, detail: string) => void;

function operationOf(body: unknown, collection: Collection, report: ReportError): TriedOperation | undefined {
  if (!isObject(body)) return void report('', 'not_an_object', 'expected an object with the key `action`');
  for (const key of Object.keys(body)) {
    if (!DRY_RUN_KEYS.includes(key))
      report(`/${pointerPart(key)}`, 'unknown_key', 'unknown key; expected `action`, `id`, `data`');
  }
  const { action, id, data } = body;
  if (!WRITE_ACTIONS.includes(action)) {
    const code = action === undefined ? 'required' : 'not_in_enum';
    return void report('/action', code, 'expected `create`, `update` or `delete`');
  }
  const isCreate = action === 'create';
  if (isCreate && id !== undefined) report('/id', 'unexpected_key', 'the server makes the id');
  if (!isCreate && typeof id !== (keyOf(collection).kind === 'int' ? 'number' : 'string'))
    report('/id', id === undefined ? 'required' : 'wrong_type', 'expected the id of a record');
  if (data !== undefined && action === 'delete') report('/data', 'unexpected_key', 'a delete takes no data');
  else if (data !== undefined && !isObject(data))
    report('/data', 'not_an_object', 'expected an object with the fields of the record');
  const given = isObject(data) ? data : {};
  const { name } = collection;
  if (isCreate) return dryRunCreate(collection, given);
  const target = { collection: name, id: String(id), ifMatch: undefined };
  return action === 'delete' ? { op: 'delete', ...target } : { op: 'update', ...target, data: given };
}

function dryRunCreate(of: Collection, data: Data): TriedOperation {
  const asked = { op: 'create', collection: of.name, ...askedCreate(of, data) } as const;
  return of.kind === 'files' ? { ...asked, id: newRecordId() } : asked;
}
