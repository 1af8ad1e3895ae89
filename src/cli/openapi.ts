/** `bylaw openapi`. */
import { openapiOf } from '../describe/openapi-document.ts';
import { routes } from '../routes/index.ts';
import { packageVersion } from '../service/version.ts';
import type { Command } from './support/command.ts';
import { printSchema } from './support/schema-file.ts';

export const command: Command = {
  name: 'openapi',
  summary: 'prints the OpenAPI 3.1 document of the schema',
  settings: ['schema'],
  run: async (args, io) =>
    printSchema(args, io, (schema) => `${JSON.stringify(openapiOf(schema, routes, packageVersion()), null, 2)}\n`),
};
