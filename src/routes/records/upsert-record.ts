import type { Context } from 'koa';
import {
  exclusionProblems,
  expandParameter,
  transitionProblems,
  uniqueProblems,
  upsertData,
  written,
} from '../../describe/collection-schemas.ts';
import type { OperationParameter } from '../../describe/operation.ts';
import { versionsOf } from '../../http/answer/send.ts';
import { admitOf, callerOf, requestedCollection } from '../../http/gate.ts';
import { type ErrorDetail, Problem, problemOfError } from '../../problem.ts';
import type { Data } from '../../records/write/input.ts';
import type { UpsertRequest } from '../../records/write/upsert.ts';
import {
  type Collection,
  type Schema,
  takesWrite,
  type UniqueField,
  uniqueFieldsOf,
} from '../../schema/model/model.ts';
import { route } from '../define-route.ts';
import { expandOf } from './query/query-string.ts';
import { answerCreated, answerWritten, headerOf, ifMatchParameter, recordBody, sendAnswer } from './request.ts';
import { expectedFields, isSameValue, uniqueFieldOf, upsertAccessOf, valueInPath } from './upsert-request.ts';

const onlyNewParameter: OperationParameter = {
  name: 'If-None-Match',
  in: 'header',
  description: '`*`: a record is created, and `changed` where one is found.',
  schema: { type: 'string', enum: ['*'] },
};

export const upsertRecord = route({
  method: 'PUT',
  path: '/api/:collection/by/:field/:value',
  door: 'caller',
  id: 'upsert',
  summary: 'Update the record of {collection} that has a unique value, or create it',
  description:
    'Repeatable. Fields that the body leaves out keep their values, or take their defaults in a new record. A record that you ' +
    'may not read is as a taken value of a create. With `If-Match` no record is created: it is `changed` where none is found.',
  concerns: isOfUnique,
  parameters: [expandParameter, ifMatchParameter, onlyNewParameter],
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
    'changed',
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
    const preconditions = preconditionsOf(ctx);
    if (errors.length > 0) throw new Problem('validation_failed', 'the body is not `{ "data": { … } }`', { errors });
    const data = withValueInPath(given, field, { text: ctx.params.value as string, schema: app.schema });
    const { principal } = callerOf(ctx);
    const request = { field, data, relations, ...preconditions };
    const { isCreated, written: record } = await app.records.upsert(access, request, principal);
    const path = `/api/${collection.name}`;
    const answer = isCreated ? answerCreated(path, collection, record) : answerWritten(collection, record);
    await sendAnswer(ctx, answer);
  },
});

function isOfUnique(collection: Collection): boolean {
  return uniqueFieldsOf(collection).length > 0 && takesWrite(collection, 'create') && takesWrite(collection, 'update');
}

/** Throws `invalid_parameter`. */
function preconditionsOf(ctx: Context): Pick<UpsertRequest, 'mayCreate' | 'mayUpdate' | 'ifVersion'> {
  const [ifMatch, ifNoneMatch] = [headerOf(ctx, 'If-Match'), headerOf(ctx, 'If-None-Match')];
  if (ifNoneMatch !== undefined && ifNoneMatch.trim() !== '*') {
    const detail = 'an upsert takes no `If-None-Match` but `*`; send the versions that it may update as `If-Match`';
    throw problemOfError('invalid_parameter', { parameter: 'If-None-Match', code: 'invalid_parameter', detail });
  }
  return { mayCreate: ifMatch === undefined, mayUpdate: ifNoneMatch === undefined, ifVersion: versionsOf(ifMatch) };
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
