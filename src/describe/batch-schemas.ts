/** JSON Schemas of a batch: its operations and its results. */
import { idSchemaOf, type Json, object, type Shape, TEXT } from './operation.ts';

const REFERENCE: Json = {
  ...object({ $ref: TEXT }),
  description: 'The id of the record that an earlier create of the batch names by `as`.',
};
const DATA: Json = { type: 'object', description: 'The fields; a relation takes `{ "$ref": … }` in place of an id.' };
const IF_MATCH: Json = { type: 'string', description: '`*`, or the ETags that the record may have.' };
const ALIAS: Json = { type: 'string', pattern: '^[A-Za-z_][A-Za-z0-9_]*$', description: 'A name for `$ref`.' };

const only = (op: string): Json => ({ type: 'string', const: op });

export const batchBody: Shape = ({ schema, define }) => {
  const collection: Json = { type: 'string', enum: [...schema.collections.keys()] };
  const id: Json = { oneOf: [idSchemaOf(schema), REFERENCE] };
  const create = object({ op: only('create'), collection, data: DATA, as: ALIAS }, ['as']);
  const update = object({ op: only('update'), collection, id, data: DATA, if_match: IF_MATCH }, ['if_match']);
  const on: Json = { type: 'string', description: 'A unique field; `data` has its value.' };
  const upsert = object({ op: only('upsert'), collection, on, data: DATA });
  const remove = object({ op: only('delete'), collection, id, if_match: IF_MATCH }, ['if_match']);
  const operation = define('BatchOperation', { oneOf: [create, update, upsert, remove] });
  return object({ operations: { type: 'array', items: operation, minItems: 1, maxItems: 100 } });
};

export const batchResults: Shape = ({ define }) => {
  const data = {
    type: 'object',
    description: 'The record, or only its id where you may not read it. None of a delete.',
  };
  const result = define('BatchResult', object({ status: { type: 'integer', enum: [200, 201, 204] }, data }, ['data']));
  return object({ data: { type: 'array', items: result } });
};
