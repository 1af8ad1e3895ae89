/** `bylaw openapi`: the OpenAPI 3.1 document, on stdout. */
import { openapiOf } from '../describe/openapi.ts';
import { reportingConfigErrors } from './command.ts';
import { describeSchema } from './describe.ts';

export const command = reportingConfigErrors({
  name: 'openapi',
  summary: 'print the OpenAPI 3.1 document [--schema FILE]',
  run: (argv, io) => describeSchema({ argv, io, print: (schema) => `${JSON.stringify(openapiOf(schema), null, 2)}\n` }),
});
