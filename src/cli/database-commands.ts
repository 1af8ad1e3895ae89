/** The commands that use the database: those that a server with the embedded database runs for others. */
import type { LoadCommand } from './command.ts';

export const databaseCommands: ReadonlyMap<string, LoadCommand> = new Map<string, LoadCommand>([
  ['migrate', () => import('./migrate.ts')],
  ['user', () => import('./user.ts')],
  ['audit', () => import('./audit.ts')],
  ['explain', () => import('./explain.ts')],
  ['keys', () => import('./keys.ts')],
]);
