/** Copies of the program, to be changed. Nothing in the program knows of them. */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ROOT, rootOf } from '../policies/compiler.ts';

const COPIED = ['grammar', 'src', 'package.json'];

interface Change {
  readonly file: string;
  readonly find: RegExp;
  readonly put: string;
}

export class ProgramCopy {
  readonly #folder = mkdtempSync(join(tmpdir(), 'bylaw-copy-'));

  constructor() {
    const root = fileURLToPath(ROOT);
    for (const each of COPIED) cpSync(join(root, each), join(this.#folder, each), { recursive: true });
    symlinkSync(join(root, 'node_modules'), join(this.#folder, 'node_modules'));
  }

  get root(): URL {
    return rootOf(this.#folder);
  }

  /** False where the text is not there. */
  change({ file, find, put }: Change): boolean {
    const path = join(this.#folder, file);
    const text = readFileSync(path, 'utf8');
    const changed = text.replace(find, put);
    writeFileSync(path, changed);
    return changed !== text;
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
