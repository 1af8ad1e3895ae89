/** JSON Schemas of what a caller may do: capabilities, and rehearsals of writes. */
import { collectionIn } from './collection-schemas.ts';
import { idSchemaOf, type Json, object, type Shape, TEXT } from './operation.ts';
import { ERROR_SCHEMA } from './problems.ts';

const BOOL: Json = { type: 'boolean' };
const CAPABILITY: Json = { enum: [true, false, 'depends'], description: '`depends`: on what the update writes.' };

/** The capabilities of a record in the answer to a query. */
export const RECORD_CAPABILITIES: Json = object({ update: CAPABILITY, delete: BOOL });

export const capabilities: Shape = (scope) => {
  const member = (): Json => scope.define('MemberCapabilities', object({ read: BOOL, write: CAPABILITY }));
  const members = [...collectionIn(scope).memberAccess.keys()].map((name) => [name, member()] as const);
  const fields = object(Object.fromEntries(members));
  return object({ update: CAPABILITY, delete: BOOL, fields });
};

/** The capabilities before there is a record. */
export const collectionCapabilities: Shape = ({ define }) =>
  define(
    'CollectionCapabilities',
    object({ list: BOOL, create: { ...CAPABILITY, description: '`depends`: on the record.' } }),
  );

export const rehearsalBody: Shape = ({ schema, define }) =>
  define('Rehearsal', {
    ...object(
      {
        action: { type: 'string', enum: ['create', 'update', 'delete'] },
        id: idSchemaOf(schema),
        data: { type: 'object' },
      },
      ['id', 'data'],
    ),
    description: '`id` of an update or a delete; `data` of a create or an update.',
  });

export const rehearsalAnswer: Shape = ({ define }) =>
  define('RehearsalAnswer', {
    oneOf: [
      object({ allowed: { const: true } }),
      object(
        {
          allowed: { const: false },
          status: { type: 'integer' },
          code: TEXT,
          message: { ...TEXT, description: 'Of the rule that denies it, if the rule has one.' },
          errors: { type: 'array', items: ERROR_SCHEMA },
          error_count: { type: 'integer' },
        },
        ['message', 'error_count'],
      ),
    ],
  });
