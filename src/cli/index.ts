/** The commands, in the order of the manual, and how one is called. */
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { nearest } from '../../grammar/suggest.ts';
import { readArguments } from '../config.ts';
import { StoreError } from '../store/contract.ts';
import { FolderInUse } from '../store/lock.ts';
import { callServer } from './admin-socket.ts';
import { command as check } from './check.ts';
import { type Command, commandOf, type Io } from './command.ts';
import { databaseCommands } from './database-commands.ts';
import { command as fmt } from './fmt.ts';
import { command as openapi } from './openapi.ts';
import { command as serve } from './serve.ts';
import { command as types } from './types.ts';
import { configFor, WORKSPACE_FLAGS } from './workspace.ts';

const commands: readonly Command[] = [serve, check, fmt, ...databaseCommands, openapi, types];

/** → the exit code. */
export async function runCommand(argv: readonly string[], io: Io): Promise<number> {
  const [name, ...rest] = argv;
  if (name === undefined || name === 'help' || name === '--help' || name === '-h') {
    io.stdout.write(usage());
    return name === undefined ? 2 : 0;
  }
  const command = commands.find((known) => known.name === name);
  if (command === undefined) {
    const near = nearest(
      name,
      commands.map((known) => known.name),
    );
    io.stderr.write(
      `bylaw: unknown command \`${name}\`${near === undefined ? '' : `; did you mean \`${near}\`?`}\n\n${usage()}`,
    );
    return 2;
  }
  if (rest.includes('--help')) {
    io.stdout.write(`bylaw ${command.name}: ${command.summary}\n`);
    return 0;
  }
  return databaseCommands.includes(command) ? runHereOrThere(command, rest, io) : commandOf(command).run(rest, io);
}

/** For whoever typed the command. */
export function messageOf(error: unknown): string {
  if (error instanceof StoreError && error.kind === 'unavailable') {
    const { cause } = error;
    return `the database cannot be reached${cause instanceof Error ? ` (${cause.message})` : ''}`;
  }
  return error instanceof Error ? error.message : String(error);
}

/** Standard input is read once, so that it can go where the command goes. */
async function runHereOrThere(command: Command, argv: readonly string[], io: Io): Promise<number> {
  const stdin = lazily(() => text(io.stdin));
  try {
    return await commandOf(command).run(argv, io);
  } catch (error) {
    if (!(error instanceof FolderInUse)) throw error;
    const called = {
      argv: [command.name, ...argv],
      stdin: argv.some((word) => word.endsWith('-stdin')) ? await stdin() : '',
    };
    const result = await callServer(folderOf(argv, io), called).catch(() => undefined);
    if (result === undefined) throw error;
    io.stdout.write(result.stdout);
    io.stderr.write(result.stderr);
    return result.code;
  }
}

function lazily<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** Where the embedded database is, by flags that any command may have beside others. */
function folderOf(argv: readonly string[], io: Io): string {
  const at = argv.findIndex((word) => word === '--data' || word.startsWith('--data='));
  const given = at === -1 ? [] : argv[at] === '--data' ? argv.slice(at, at + 2) : [argv[at]!];
  return resolve(io.cwd, configFor(io, readArguments(given, WORKSPACE_FLAGS)).data);
}

function usage(): string {
  const width = Math.max(...commands.map(({ name }) => name.length));
  const lines = commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`);
  return `bylaw: collections of records over HTTP, where policies decide every access\n\n${lines.join('\n')}\n`;
}
