/** Runs a command that another process sent to this server, with the server's own database. */
import { Readable } from 'node:stream';
import type { CommandCall, CommandResult } from './admin-socket.ts';
import { callCommand } from './call.ts';
import type { Io } from './command.ts';
import { databaseCommands } from './database-commands.ts';
import { type LentWorkspace, lentWorkspace } from './workspace.ts';

export type RunRemote = (call: CommandCall) => Promise<CommandResult>;

export function remoteRunner(workspace: LentWorkspace, io: Io): RunRemote {
  return async ({ argv, stdin }) => {
    const [name = '', ...rest] = argv;
    const loaded = await databaseCommands.get(name)?.();
    if (loaded === undefined) return { stdout: '', stderr: `bylaw: the server does not run \`${name}\`\n`, code: 2 };
    const output = { stdout: '', stderr: '' };
    const captured: Io = {
      ...io,
      stdin: Readable.from([stdin]),
      stdout: { write: (text) => (output.stdout += text) },
      stderr: { write: (text) => (output.stderr += text) },
    };
    try {
      const code = await lentWorkspace.run(workspace, () => callCommand(loaded.command, rest, captured));
      return { ...output, code };
    } catch (error) {
      return { ...output, stderr: `${output.stderr}bylaw ${name}: ${(error as Error).message}\n`, code: 1 };
    }
  };
}
