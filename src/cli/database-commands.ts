/**
 * The commands that use the database: a server that has the embedded database open runs them for
 * other processes.
 */
import type { LoadCommand } from './support/command.ts';

export const databaseCommands: ReadonlyMap<string, LoadCommand> = new Map<string, LoadCommand>([
  ['migrate', () => import('./migrate.ts')],
  ['export', () => import('./transfer/export.ts')],
  ['import', () => import('./transfer/import.ts')],
  ['tenant', () => import('./transfer/tenant.ts')],
  ['backup', () => import('./backup/backup.ts')],
  ['user', () => import('./accounts/user.ts')],
  ['api-key', () => import('./accounts/api-key.ts')],
  ['mail', () => import('./accounts/mail.ts')],
  ['audit', () => import('./accounts/audit.ts')],
  ['events', () => import('./events.ts')],
  ['explain', () => import('./explain.ts')],
  ['files', () => import('./files.ts')],
  ['keys', () => import('./accounts/keys.ts')],
]);
