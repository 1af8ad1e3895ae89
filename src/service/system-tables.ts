/** The options of every migration of this program: tables that are not collections, and its version. */
import { authTables } from '../auth/auth-tables.ts';
import { fileTables } from '../files/file-tables.ts';
import type { MigrateOptions } from '../migrations/migration.ts';
import { historyTables } from '../records/history.ts';
import type { Sql } from '../sql.ts';
import { webhookTables } from '../webhooks/webhook-rows.ts';
import { packageVersion } from './version.ts';

export const systemTables: readonly Sql[] = [...authTables, ...fileTables, ...historyTables, ...webhookTables];

export const migrateOptions = (): Pick<MigrateOptions, 'systemTables' | 'version'> => ({
  systemTables,
  version: packageVersion(),
});

/** Only safe migrations at startup. */
export const startOptions = (): Omit<MigrateOptions, 'onNote'> => ({
  ...migrateOptions(),
  keepsExtra: true,
  mayRewrite: false,
});
