/** `bylaw restore FILE`: restores a backup into an empty data folder, if every checksum is right. */
import { resolve } from 'node:path';
import { readConfig } from '../../config.ts';
import { FolderUnusable } from '../../database/embedded/data-folder.ts';
import { FolderInUse } from '../../folder-lock.ts';
import { codeOf } from '../../thrown.ts';
import type { Arguments, Command, Io } from '../support/command.ts';
import { printable } from '../support/printable.ts';
import { FolderNotEmpty, restoreInto } from './archive.ts';
import { BrokenArchive } from './tar.ts';

export const command: Command = {
  name: 'restore',
  summary: 'restores a backup into an empty data folder, after checking all of it',
  positionals: ['FILE'],
  settings: ['data'],
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
  const [file = ''] = args.positionals;
  const { data } = readConfig(args.flags, io.env);
  const folder = resolve(io.cwd, data);
  try {
    const { created_at, version } = await restoreInto(folder, resolve(io.cwd, file));
    io.stdout.write(`${printable(`restored into ${data}: written ${created_at} by bylaw ${version}`)}\n`);
    return 0;
  } catch (error) {
    if (error instanceof FolderNotEmpty)
      return refuse(`${data} is not empty; name an empty folder with --data, and move it to its place afterwards`, io);
    const reason = reasonOfFailure(error, file);
    if (reason === undefined) throw error;
    return refuse(`${reason}; nothing was restored`, io);
  }
}

function reasonOfFailure(error: unknown, file: string): string | undefined {
  if (codeOf(error) === 'ENOENT') return `the file ${file} does not exist`;
  if (codeOf(error) === 'EISDIR') return `${file} is a folder; expected the file of a backup`;
  if (error instanceof FolderUnusable || error instanceof FolderInUse) return error.message;
  return error instanceof BrokenArchive ? `${file} cannot be used: ${error.message}` : undefined;
}

function refuse(reason: string, { stderr }: Io): number {
  stderr.write(`bylaw restore: ${printable(reason)}\n`);
  return 1;
}
