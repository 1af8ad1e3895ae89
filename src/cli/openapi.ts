/** `bylaw openapi`: the OpenAPI 3.1 document, on stdout. */
import { openapiOf } from '../schema/openapi.ts';
import { commandOf } from './command.ts';
import { describeSchema } from './describe.ts';

export const command = commandOf({
  name: 'openapi',
  summary: 'print the OpenAPI 3.1 document [--schema FILE]',
  run: (argv, io) => describeSchema({ argv, io, print: (schema) => `${JSON.stringify(openapiOf(schema), null, 2)}\n` }),
});
