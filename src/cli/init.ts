/** `bylaw init`: creates the files of a new project in a folder that may have other files. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ConfigError } from '../config.ts';
import { codeOf } from '../thrown.ts';
import type { Arguments, Command, Io } from './support/command.ts';

/** The name in the project → the name here: npm leaves a file named .gitignore out of a package. */
const FILES: Readonly<Record<string, string>> = {
  'bylaw.yaml': 'bylaw.yaml',
  'bylaw.policy.yaml': 'bylaw.policy.yaml',
  'README.md': 'README.md',
  '.gitignore': 'gitignore',
};

export const command: Command = {
  name: 'init',
  summary: 'makes a project in DIR (default: the current folder): a schema to start from, and what goes with it',
  positionals: ['[DIR]'],
  settings: [],
  run,
};

/** Keeps existing files. */
async function run({ positionals: [dir = '.'] }: Arguments, io: Io): Promise<number> {
  const folder = resolve(io.cwd, dir);
  makeFolder(folder, dir);
  for (const [name, source] of Object.entries(FILES)) {
    const path = join(dir, name);
    if (existsSync(join(folder, name))) {
      io.stdout.write(`kept     ${path} (it exists)\n`);
    } else {
      writeFileSync(join(folder, name), readFileSync(new URL(`./project/${source}`, import.meta.url)));
      io.stdout.write(`created  ${path}\n`);
    }
  }
  const enter = folder === resolve(io.cwd) ? '' : `cd ${dir} && `;
  io.stdout.write(`\nNext: ${enter}npx bylaw dev\n`);
  io.stdout.write(`${join(dir, 'README.md')} says how to make an administrator and a front end\n`);
  return 0;
}

function makeFolder(folder: string, dir: string): void {
  try {
    mkdirSync(folder, { recursive: true });
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
    throw new ConfigError([`${dir} is a file; expected the name of a folder`]);
  }
}
