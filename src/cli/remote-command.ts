/** A command that another process asked for, run by the server with its own database. */
import { Readable } from 'node:stream';
import type { CommandCall, CommandResult } from './admin-socket.ts';
import { type Command, type Io, reportingConfigErrors } from './command.ts';
import { runningService, type Workspace } from './open.ts';

export type RunInside = (call: CommandCall) => Promise<CommandResult>;

/** `find` tells the commands that may be run so. */
export function runInside(
  workspace: Omit<Workspace, 'close'>,
  { io, find }: { readonly io: Io; readonly find: (name: string) => Promise<Command | undefined> },
): RunInside {
  return async ({ argv, stdin }) => {
    const [name = '', ...rest] = argv;
    const command = await find(name);
    const said = { stdout: '', stderr: '' };
    const own: Io = {
      ...io,
      stdin: Readable.from([stdin]),
      stdout: { write: (text) => (said.stdout += text) },
      stderr: { write: (text) => (said.stderr += text) },
    };
    if (command === undefined) return { ...said, code: 2 };
    try {
      const code = await runningService.run(workspace, () => reportingConfigErrors(command).run(rest, own));
      return { ...said, code };
    } catch (error) {
      return { ...said, stderr: `${said.stderr}bylaw ${name}: ${(error as Error).message}\n`, code: 1 };
    }
  };
}
