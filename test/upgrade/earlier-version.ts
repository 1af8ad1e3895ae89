/** The source of an earlier version, out of the history of this repository. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
const git = (...args: readonly string[]): Buffer =>
  execFileSync('git', ['-C', ROOT, ...args], { maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'ignore'] });

export interface EarlierVersion {
  /** The folder of its fixture, under `fixtures`. */
  readonly name: string;
  readonly commit: string;
}

/** The versions that were landed before this one; `npm run fixture` adds one for each tag. */
export const LAST_LANDED: EarlierVersion = { name: 'a87863c', commit: 'a87863c' };
/** The last version with the table `bylaw_idempotency`. */
export const WITH_EARLIER_KEYS: EarlierVersion = { name: '8adce3d', commit: '8adce3d' };

/** False, after a loud notice, in a checkout without its commit. */
export function isKnown({ commit }: EarlierVersion): boolean {
  try {
    git('cat-file', '-e', commit);
    return true;
  } catch {
    console.error(`\n!!! This checkout has no commit ${commit}: what runs two versions side by side DOES NOT RUN.\n`);
    return false;
  }
}

/** Writes the source of the version into the folder, and returns its entry file. */
export function unpack({ commit }: EarlierVersion, folder: string): string {
  mkdirSync(folder);
  execFileSync('tar', ['-x', '-C', folder], { input: git('archive', commit) });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  return join(folder, 'src/main.ts');
}
