/**
 * Runs a command that uses the database: in this process, or inside the server that has the
 * embedded database open.
 */
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { readConfig } from '../../config.ts';
import { FolderInUse } from '../../folder-lock.ts';
import { callCommand, type Runner } from '../support/call.ts';
import type { Arguments, Command, CommandGroup, Io } from '../support/command.ts';
import { callServer } from './admin-socket.ts';

export function runDatabaseCommand(command: Command | CommandGroup, argv: readonly string[], io: Io): Promise<number> {
  const run: Runner = async (chosen, args) => {
    try {
      return await chosen.run(args, io);
    } catch (error) {
      if (!(error instanceof FolderInUse)) throw error;
      const result = await runInServer([command.name, ...argv], args, io);
      // No server answers: another program uses the folder.
      if (result === undefined) throw error;
      return result;
    }
  };
  return callCommand(command, { argv, io, run });
}

/** INVARIANT: standard input is unread, because a command opens its database first. */
async function runInServer(argv: readonly string[], args: Arguments, io: Io): Promise<number | undefined> {
  const stdin = args.has('password-stdin') ? await text(io.stdin) : '';
  const { data, schema } = readConfig(args.flags, io.env);
  return callServer(resolve(io.cwd, data), { argv, stdin, cwd: io.cwd, schema }, io);
}
