/** `bylaw openapi`. */
import { openapiOf } from '../describe/openapi-document.ts';
import { routes } from '../routes/index.ts';
import type { Command } from './command.ts';
import { printSchema } from './print-schema.ts';
import { packageVersion } from './version.ts';

export const command: Command = {
  name: 'openapi',
  summary: 'prints the OpenAPI 3.1 document of the schema',
  settings: ['schema'],
  run: async (args, io) =>
    printSchema(args, io, (schema) => `${JSON.stringify(openapiOf(schema, routes, packageVersion()), null, 2)}\n`),
};
