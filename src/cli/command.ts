/** What a command is, and what it may touch of the outside. */
import { ConfigError, type Environment } from '../config.ts';

export interface Io {
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown };
  readonly stdin: NodeJS.ReadableStream;
  readonly env: Environment;
  readonly cwd: string;
}
export interface Command {
  readonly name: string;
  readonly summary: string;
  /** → the exit code: 0, 1 for a result that is a fault, 2 for a wrong call. */
  run(argv: readonly string[], io: Io): Promise<number>;
}

/** The file of a command is read when the command is called: one that has no need of a database does not wait for it. */
export type LoadCommand = () => Promise<{ readonly command: Command }>;

/** With faults of the command line told on stderr. */
export function reportingConfigErrors(command: Command): Command {
  return {
    ...command,
    async run(argv, io) {
      try {
        return await command.run(argv, io);
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error;
        io.stderr.write(`${error.faults.map((fault) => `bylaw ${command.name}: ${fault}`).join('\n')}\n`);
        return 2;
      }
    },
  };
}
