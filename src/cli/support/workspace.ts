/**
 * The database for a command. A running server is the only user of its embedded database, so a command
 * that finds the folder in use runs inside that server, over its socket (admin-socket.ts), with the
 * database and the sessions of the server.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Auth } from '../../auth/auth.ts';
import { type Config, ConfigError, readConfig } from '../../config.ts';
import type { Database } from '../../database/contract.ts';
import type { Files } from '../../files/files.ts';
import { applyMigration } from '../../migrations/apply-migration.ts';
import { readCatalog } from '../../migrations/catalog.ts';
import { hasAllOf } from '../../migrations/readiness.ts';
import { schemaServedBy } from '../../migrations/unmanaged/served-schema.ts';
import type { Schema } from '../../schema/model/model.ts';
import { openConfiguredDatabase } from '../../service/configured-database.ts';
import { migrateOptions } from '../../service/system-tables.ts';
import { openMemoryDatabase } from '../../workbench/memory-database.ts';
import type { Arguments, Io } from './command.ts';
import { type IssueFilter, readSchemaFile } from './schema-file.ts';

export interface OpenDatabase {
  readonly config: Config;
  readonly schema: Schema;
  readonly db: Database;
  close(): Promise<void>;
}
export interface Workspace extends OpenDatabase {
  readonly auth: Auth;
}
/** The workspace that a server lends to the commands that run inside it. */
export interface LentWorkspace extends Omit<Workspace, 'close'> {
  readonly files?: Files;
}

/** Set while a command runs inside a server. */
export const lentWorkspace = new AsyncLocalStorage<LentWorkspace>();

/** Effects of a command on the database. */
export interface DatabaseUse {
  /** false: the command changes nothing, so a missing embedded database is not created, and no migration runs. */
  readonly writes: boolean;
  /** The warnings of the schema file to print. Default: all. */
  readonly isShown?: IssueFilter;
}

class DatabaseNotAtSchema extends Error {
  constructor(file: string) {
    super(
      `the database is not at the schema ${file}, and this command changes nothing: ` +
        '`bylaw migrate plan` prints the SQL that is missing, and `bylaw migrate apply` runs it',
    );
    this.name = 'DatabaseNotAtSchema';
  }
}

/** Opens the database without a migration: a missing embedded one, for a reader, as an empty one in memory. Throws ConfigError, FolderInUse. */
export async function openDatabaseFor(args: Arguments, io: Io, use: DatabaseUse): Promise<OpenDatabase> {
  const lent = lentWorkspace.getStore();
  const config = lent?.config ?? readConfig(args.flags, io.env);
  // The schema file is read again even inside a server, which keeps the schema of its start.
  const schema = requireSchema(config.schema, io, use.isShown);
  if (lent !== undefined) return { config, schema, db: lent.db, close: async () => {} };
  const isMissing = config.databaseUrl === undefined && !hasEmbeddedDatabase(config, io);
  const db = isMissing && !use.writes ? await openMemoryDatabase() : await openConfiguredDatabase(config, io.cwd);
  return { config, schema, db, close: () => db.close() };
}

export const hasEmbeddedDatabase = ({ data }: Config, { cwd }: Io): boolean =>
  existsSync(join(resolve(cwd, data), 'database'));

/**
 * Opens a database that has the tables of the schema. A command that writes creates them if the database has none of
 * this program yet; one that reads throws DatabaseNotAtSchema. Throws ConfigError and FolderInUse too.
 */
export async function openMigratedDatabase(args: Arguments, io: Io, use: DatabaseUse): Promise<OpenDatabase> {
  const opened = await openDatabaseFor(args, io, use);
  const { db, schema, close } = opened;
  try {
    if (!use.writes) await requireTables(db, schema);
    else if (!(await readCatalog(db)).has('bylaw_schema')) await applyMigration(db, schema, migrateOptions());
    return { ...opened, schema: await schemaServedBy(db, schema) };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Runs a reader that may need no table; if it fails at a database without those of the schema, throws DatabaseNotAtSchema. */
export async function readingTables<T>({ db, schema }: OpenDatabase, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof ConfigError)) await requireTables(db, schema);
    throw error;
  }
}

async function requireTables(db: Database, schema: Schema): Promise<void> {
  if (!(await hasAllOf(db, schema))) throw new DatabaseNotAtSchema(schema.file);
}

/** Does the same as `openMigratedDatabase`, and opens sessions and keys. Throws KeySecretError too. */
export async function openWorkspace(args: Arguments, io: Io, use: DatabaseUse): Promise<Workspace> {
  const lent = lentWorkspace.getStore();
  if (lent !== undefined) return { ...lent, close: async () => {} };
  const opened = await openMigratedDatabase(args, io, use);
  const { db, schema, config } = opened;
  try {
    const auth = await Auth.open({ db, schema, config });
    const close = async (): Promise<void> => {
      await auth.close();
      await db.close();
    };
    return { ...opened, auth, close };
  } catch (error) {
    await db.close();
    throw error;
  }
}

/** Prints warnings and errors to stderr. Throws ConfigError. */
export function requireSchema(file: string, io: Io, isShown?: IssueFilter): Schema {
  const { schema, report, issues } = readSchemaFile(file, io, isShown);
  if (issues.some(({ code }) => code === 'no_file') && !existsSync(resolve(io.cwd, file))) {
    throw new ConfigError([
      `found no ${file} here; \`bylaw init\` makes a project with one, and --schema FILE names another`,
    ]);
  }
  if (report !== '') io.stderr.write(`${report}\n`);
  if (schema === undefined) throw new ConfigError([`${file} has errors; nothing was started`]);
  return schema;
}
