import {
  exclusionProblems,
  expandParameter,
  transitionProblems,
  uniqueProblems,
  upsertData,
  written,
} from '../../describe/collection-schemas.ts';
import { admitOf, callerOf, requestedCollection } from '../../http/gate.ts';
import { type ErrorDetail, Problem } from '../../problem.ts';
import type { Data } from '../../records/write/input.ts';
import {
  type Collection,
  type Schema,
  takesWrite,
  type UniqueField,
  uniqueFieldsOf,
} from '../../schema/model/model.ts';
import { route } from '../define-route.ts';
import { expandOf } from './query/query-string.ts';
import { answerCreated, answerWritten, recordBody, sendAnswer } from './request.ts';
import { expectedFields, isSameValue, uniqueFieldOf, upsertAccessOf, valueInPath } from './upsert-request.ts';

export const upsertRecord = route({
  method: 'PUT',
  path: '/api/:collection/by/:field/:value',
  door: 'caller',
  id: 'upsert',
  summary: 'Update the record of {collection} that has a unique value, or create it',
  description:
    'Repeatable. Fields that the body leaves out keep their values, or take their defaults in a new record. A record that you ' +
    'may not read is as a taken value of a create.',
  concerns: isOfUnique,
  parameters: [expandParameter],
  body: recordBody(upsertData),
  answers: {
    200: {
      description: 'The updated record, or only its id where you may not read it.',
      shape: written,
      headers: ['ETag'],
    },
    201: {
      description: 'The new record, or only its id where you may not read it.',
      shape: written,
      headers: ['Location', 'ETag'],
    },
  },
  problems: [
    'invalid_parameter',
    'unknown_expand',
    'forbidden',
    'not_found',
    uniqueProblems,
    exclusionProblems,
    transitionProblems,
  ],
  async handle(ctx, app, { data: given, errors }) {
    const collection = requestedCollection(ctx);
    const field = uniqueFieldOf(collection, ctx.params.field as string);
    if (field === undefined) throw new Problem('not_found', `not a unique field; ${expectedFields(collection)}`);
    const access = upsertAccessOf(admitOf(ctx, app), collection);
    const relations = expandOf(ctx, collection);
    if (errors.length > 0) throw new Problem('validation_failed', 'the body is not `{ "data": { … } }`', { errors });
    const data = withValueInPath(given, field, { text: ctx.params.value as string, schema: app.schema });
    const { principal } = callerOf(ctx);
    const { isCreated, written: record } = await app.records.upsert(access, { field, data, relations }, principal);
    const path = `/api/${collection.name}`;
    const answer = isCreated ? answerCreated(path, collection, record) : answerWritten(collection, record);
    await sendAnswer(ctx, answer);
  },
});

function isOfUnique(collection: Collection): boolean {
  return uniqueFieldsOf(collection).length > 0 && takesWrite(collection, 'create') && takesWrite(collection, 'update');
}

interface PathValue {
  readonly text: string;
  readonly schema: Schema;
}

/** Throws `invalid_parameter`, and `validation_failed` for another value in the body. */
function withValueInPath(data: Data, field: UniqueField, { text, schema }: PathValue): Data {
  const { name } = field;
  const value = valueInPath(field, text, schema);
  if (!Object.hasOwn(data, name) || isSameValue(field, [data[name], value], schema)) return { ...data, [name]: value };
  const detail = 'expected the value of the address, or none';
  const errors: readonly ErrorDetail[] = [{ pointer: `/data/${name}`, code: 'invalid_value', detail }];
  throw new Problem('validation_failed', 'the body has another value than the address', { errors });
}
