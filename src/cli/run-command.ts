/** A command with a database: run in this process, or, where a server has the embedded database, by that server. */
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { readArguments } from '../config.ts';
import { FolderInUse } from '../store/database/folder-lock.ts';
import { callServer } from './admin-socket.ts';
import { type Command, type Io, reportingConfigErrors } from './command.ts';
import { configFor, WORKSPACE_FLAGS } from './open.ts';

/** Standard input is read once, so that it can go where the command goes. */
export async function runHereOrThere(command: Command, argv: readonly string[], io: Io): Promise<number> {
  const stdin = lazily(() => text(io.stdin));
  try {
    return await reportingConfigErrors(command).run(argv, io);
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
