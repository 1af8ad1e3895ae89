/** The source of an earlier version, out of the history of this repository. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
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

/** The entry file of the version; undefined, after a loud notice, in a checkout without its commit. */
export function mainOf({ commit }: EarlierVersion): string | undefined {
  const folder = join(tmpdir(), `bylaw-version-${commit}`);
  if (!existsSync(folder)) {
    let archive: Buffer;
    try {
      archive = git('archive', commit);
    } catch {
      console.error(`\n!!! This checkout has no commit ${commit}: what runs two versions side by side DOES NOT RUN.\n`);
      return undefined;
    }
    const partial = mkdtempSync(`${folder}-`);
    mkdirSync(partial, { recursive: true });
    execFileSync('tar', ['-x', '-C', partial], { input: archive });
    symlinkSync(join(ROOT, 'node_modules'), join(partial, 'node_modules'));
    try {
      renameSync(partial, folder);
    } catch {
      // Another process was faster.
      rmSync(partial, { recursive: true, force: true });
    }
  }
  return join(folder, 'src/main.ts');
}
