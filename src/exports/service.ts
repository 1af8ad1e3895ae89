/** `bylaw`: the service inside another program, for its tests or to embed it. */
import { resolve } from 'node:path';
import { type FlagValues, readConfig } from '../config.ts';
import { openLog } from '../http/observe/log.ts';
import { loadSchema } from '../schema/file/load-file.ts';
import { type Loaded, parseSchema } from '../schema/load.ts';
import type { Schema } from '../schema/model/model.ts';
import { openConfiguredDatabase, orClose } from '../service/configured-database.ts';
import { startService } from '../service/start-service.ts';
import { SchemaError } from './schema-error.ts';

export { SchemaError } from './schema-error.ts';

export interface ServiceOptions {
  /** The path of a schema file, or its content as an object. Default `bylaw.yaml`. */
  readonly schema?: string | object;
  /** Default: the embedded database in `data`. */
  readonly databaseUrl?: string;
  /** The folder of the embedded database and of local files. Default `./data`. */
  readonly data?: string;
  /** Default 0: any free port; `url` has its number. */
  readonly port?: number;
  /** Default `127.0.0.1`. */
  readonly host?: string;
  /** Default: from host and port. */
  readonly baseUrl?: string;
  /** A user with the role `admin`, who is created if necessary. */
  readonly admin?: { readonly email: string; readonly password: string };
  /** Default true. */
  readonly rateLimit?: boolean;
  /** The level of the log on stderr, in lines of JSON. Default `error`. */
  readonly logLevel?: 'error' | 'info';
}

export interface RunningService {
  /** The address on which it listens: `http://127.0.0.1:43211`. */
  readonly url: string;
  /** Accepts no new connection, finishes running requests, closes the database. */
  stop(): Promise<void>;
}

/**
 * Migrates the database to the schema and serves it. Reads no command line and no environment. Throws
 * SchemaError for a schema with errors, and the errors of `bylaw serve` for an unreachable database, a
 * folder in use, or a migration that would lose data.
 */
export async function createService(options: ServiceOptions = {}): Promise<RunningService> {
  const schema = schemaFrom(options.schema ?? 'bylaw.yaml');
  const config = readConfig(serviceFlags(options), serviceEnvironment(options));
  const db = await openConfiguredDatabase(config, process.cwd());
  const log = openLog(options.logLevel ?? 'error');
  const { url, stop } = await orClose(db, startService({ config, schema, db, log }));
  return { url, stop };
}

function schemaFrom(source: string | object): Schema {
  const { schema, issues }: Loaded =
    typeof source === 'string'
      ? loadSchema({ file: resolve(source), env: process.env })
      : parseSchema(JSON.stringify(source), 'schema', process.env);
  if (schema === undefined) throw new SchemaError(issues.filter(({ severity }) => severity === 'error'));
  return schema;
}

function serviceFlags({ port = 0, host, databaseUrl, data, baseUrl }: ServiceOptions): FlagValues {
  const flags = { port: String(port), host, 'database-url': databaseUrl, data, 'base-url': baseUrl };
  return Object.fromEntries(
    Object.entries(flags).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}

function serviceEnvironment({ admin, rateLimit = true }: ServiceOptions): Readonly<Record<string, string | undefined>> {
  return {
    BYLAW_ADMIN_EMAIL: admin?.email,
    BYLAW_ADMIN_PASSWORD: admin?.password,
    BYLAW_RATE_LIMIT: rateLimit ? 'on' : 'off',
  };
}
