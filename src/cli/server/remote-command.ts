/** Runs a command of another process in this server, with the server's database. */
import { resolve } from 'node:path';
import { Readable } from 'node:stream';
import { reasonOf } from '../../thrown.ts';
import { databaseCommands } from '../database-commands.ts';
import { callCommand } from '../support/call.ts';
import type { Io } from '../support/command.ts';
import { type LentWorkspace, lentWorkspace } from '../support/workspace.ts';
import type { RunCall } from './admin-socket.ts';

/**
 * @param workspaceNow `bylaw dev` replaces the workspace
 * @param io the streams of the server
 */
export function remoteRunner(workspaceNow: () => LentWorkspace, io: Io): RunCall {
  return async ({ argv, stdin, cwd, schema }, outputs) => {
    const [name = '', ...rest] = argv;
    const loaded = await databaseCommands.get(name)?.();
    if (loaded === undefined) {
      outputs.stderr.write(`bylaw: the server does not run \`${name}\`\n`);
      return 2;
    }
    const call: Io = { ...io, ...outputs, cwd, stdin: Readable.from([stdin]) };
    const workspace = workspaceNow();
    const { config } = workspace;
    // The command runs in the folder of its caller, with the caller's schema file.
    const lent = { ...workspace, config: { ...config, data: resolve(io.cwd, config.data), schema } };
    try {
      return await lentWorkspace.run(lent, () => callCommand(loaded.command, { argv: rest, io: call }));
    } catch (error) {
      outputs.stderr.write(`bylaw ${name}: ${reasonOf(error)}\n`);
      return 1;
    }
  };
}
