/** Files that the arguments of a command name. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { ConfigError } from '../../config.ts';
import { codeOf, pathReasonOf } from '../../thrown.ts';
import type { Io } from './command.ts';

/** Throws ConfigError for a name that the system does not let this process write. */
export function writeGivenFile(file: string, text: string, { cwd }: Io): void {
  const path = resolve(cwd, file);
  try {
    writeFileSync(path, text);
  } catch (error) {
    const reason = codeOf(error) === 'ENOENT' ? `the folder ${dirname(path)} does not exist` : pathReasonOf(error);
    throw new ConfigError([`${file} cannot be written: ${reason}`]);
  }
}

/** Throws ConfigError for a name that cannot be that of a folder. */
export function makeGivenFolder(folder: string, { cwd }: Io): void {
  try {
    mkdirSync(resolve(cwd, folder), { recursive: true });
  } catch (error) {
    throw new ConfigError([`the folder ${folder} cannot be made: ${pathReasonOf(error)}`]);
  }
}
