/**
 * Runs a loaded command: picks it from its group, prints its help, parses its arguments, reports a
 * wrong call.
 */
import { ConfigError, configIssues, unknownName } from '../../config.ts';
import { type Arguments, type Command, type CommandGroup, DATABASE_SETTINGS, type Io } from './command.ts';
import { commandHelp, groupHelp } from './help.ts';
import { parseArguments } from './parse-arguments.ts';

/** Runs a command whose arguments are parsed; the default runs it in this process. */
export type Runner = (command: Command, args: Arguments, io: Io) => Promise<number>;

const runHere: Runner = (command, args, io) => command.run(args, io);

export interface CommandCall {
  readonly argv: readonly string[];
  readonly io: Io;
  readonly run?: Runner;
}

/** → the exit code: 2 if the call is wrong. */
export async function callCommand(loaded: Command | CommandGroup, call: CommandCall): Promise<number> {
  if ('commands' in loaded) return callGroup(loaded, call);
  const { argv, io, run = runHere } = call;
  if (asksForHelp(argv)) {
    io.stdout.write(commandHelp(loaded));
    return 0;
  }
  try {
    return await run(loaded, argumentsOf(loaded, argv, io), io);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    io.stderr.write(error.issues.map((issue) => `bylaw ${loaded.name}: ${issue}\n`).join(''));
    return 2;
  }
}

function callGroup(group: CommandGroup, call: CommandCall): Promise<number> {
  const { io } = call;
  const [verb, ...argv] = call.argv;
  const command = group.commands.find(({ name }) => name === `${group.name} ${verb}`);
  if (command !== undefined) return callCommand(command, { ...call, argv });
  if (verb === '--help' || verb === '-h') {
    io.stdout.write(groupHelp(group));
    return Promise.resolve(0);
  }
  const names = group.commands.map(({ name }) => name);
  const problem = verb === undefined ? '' : `${unknownName('command', `${group.name} ${verb}`, names)}; `;
  const list = names.map((name) => `\`${name}\``).join(', ');
  io.stderr.write(`bylaw ${group.name}: ${problem}expected ${names.length > 1 ? 'one of ' : ''}${list}\n`);
  return Promise.resolve(2);
}

/** Words after `--` are not flags. */
function asksForHelp(argv: readonly string[]): boolean {
  const end = argv.indexOf('--');
  return argv.slice(0, end === -1 ? undefined : end).some((word) => word === '--help' || word === '-h');
}

/** Errors of flags are reported together with errors of the settings, if the command needs all of these. */
function argumentsOf(command: Command, argv: readonly string[], io: Io): Arguments {
  const { args, issues } = parseArguments(argv, command);
  if (issues.length === 0) return args;
  const needsConfig = DATABASE_SETTINGS.every((name) => command.settings.includes(name));
  throw new ConfigError([...issues, ...(needsConfig ? configIssues(args.flags, io.env) : [])]);
}
