/** What `bylaw openapi` and `bylaw types` share: they print something of a schema, or its errors. */
import { schemaFileOf } from '../../config.ts';
import type { Schema } from '../../schema/model/model.ts';
import type { Arguments } from './arguments.ts';
import type { Io } from './command.ts';
import { readSchemaFile } from './schema-file.ts';

/** → 0, or 1 where the schema has errors, which go to stderr. */
export function printSchema(args: Arguments, io: Io, print: (schema: Schema) => string): number {
  const { schema, report } = readSchemaFile(schemaFileOf(args.flags, io.env), io);
  if (schema === undefined) io.stderr.write(report);
  else io.stdout.write(print(schema));
  return schema === undefined ? 1 : 0;
}
