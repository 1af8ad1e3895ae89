/** The commands that use the database: those that a server with the embedded database runs for others. */

import { command as audit } from './audit.ts';
import type { Command } from './command.ts';
import { command as explain } from './explain.ts';
import { command as keys } from './keys.ts';
import { command as migrate } from './migrate.ts';
import { command as user } from './user.ts';

export const databaseCommands: readonly Command[] = [migrate, user, audit, explain, keys];
