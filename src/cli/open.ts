/**
 * The database for a command. A running server with an embedded database is its only user, so a command finds the folder in use and is run inside that
 * server, over its socket (admin-socket.ts); there, the server's own database and sessions are what a command gets.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { resolve } from 'node:path';
import { type Auth, createAuth } from '../auth/auth.ts';
import { type Arguments, type Config, ConfigError, type FlagSpec, readConfig } from '../config.ts';
import { loadSchema } from '../schema/load-file.ts';
import type { Schema } from '../schema/model.ts';
import type { Database } from '../store/database/contract.ts';
import { openDatabase } from '../store/database/open.ts';
import { readCatalogue } from '../store/migrations/catalog.ts';
import { applyMigration } from '../store/migrations/migrate.ts';
import type { Io } from './command.ts';
import { underlineIssues } from './issues.ts';
import { systemTables } from './system-tables.ts';

export interface Workspace {
  readonly config: Config;
  readonly schema: Schema;
  readonly db: Database;
  readonly auth: Auth;
  close(): Promise<void>;
}
/** What a command that needs a database takes beside its own flags. */
export const WORKSPACE_FLAGS = {
  schema: { value: 'FILE' },
  data: { value: 'DIR' },
  'database-url': { value: 'URL' },
} as const satisfies Readonly<Record<string, FlagSpec>>;

/** Set while a command runs inside a server. */
export const runningService = new AsyncLocalStorage<Omit<Workspace, 'close'>>();

/** The database as it is. Throws ConfigError, FolderInUse. */
export async function openDatabaseFor(io: Io, flags: Arguments): Promise<Omit<Workspace, 'auth'>> {
  const running = runningService.getStore();
  // The file is read anew: a server keeps the schema that it began with.
  const config = running?.config ?? configFor(io, flags);
  const schema = schemaFor(io, running === undefined ? config.schema : (flags.get('schema') ?? config.schema));
  if (running !== undefined) return { config, schema, db: running.db, close: async () => {} };
  const db = await openDatabaseOf(config, io.cwd);
  return { config, schema, db, close: () => db.close() };
}

/** With the tables of the schema, where the database has none yet. Throws ConfigError, FolderInUse. */
export async function openWorkspace(io: Io, flags: Arguments): Promise<Workspace> {
  const running = runningService.getStore();
  if (running !== undefined) return { ...running, close: async () => {} };
  const { db, ...more } = await openDatabaseFor(io, flags);
  try {
    if (!(await readCatalogue(db)).has('bylaw_schema')) await applyMigration(db, more.schema, { systemTables });
    const auth = await createAuth({ db, schema: more.schema, config: more.config });
    const close = async (): Promise<void> => {
      await auth.close();
      await db.close();
    };
    return { ...more, db, auth, close };
  } catch (error) {
    await db.close();
    throw error;
  }
}

export function configFor(io: Io, flags: Arguments): Config {
  const given = Object.keys(WORKSPACE_FLAGS).flatMap((name) => {
    const value = flags.get(name);
    return value === undefined ? [] : [`--${name}=${value}`];
  });
  return readConfig(given, io.env);
}

/** Warnings go to stderr. Throws ConfigError. */
export function schemaFor(io: Io, file: string): Schema {
  const path = resolve(io.cwd, file);
  const { schema, issues } = loadSchema({ file: path, env: io.env });
  const told = issues.map((issue) => ({ ...issue, file }));
  if (told.length > 0) io.stderr.write(underlineIssues(path, told));
  if (schema === undefined) throw new ConfigError([`${file} has errors; nothing was started`]);
  return { ...schema, file };
}

export function openDatabaseOf({ databaseUrl, replicaUrl, data }: Config, cwd: string): Promise<Database> {
  if (databaseUrl === undefined) return openDatabase({ dataDir: resolve(cwd, data) });
  return openDatabase({ url: databaseUrl, ...(replicaUrl === undefined ? {} : { replicaUrl }) });
}
