/** The files of a bundle in a folder, as the package ships them: each beside its compressed forms. Not a route. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import type { PackedForms } from '../../http/answer/static-text.ts';
import type { PageName, StudioBundle } from './studio-bundle.ts';

/** The document that names the files. */
interface BundleNames {
  readonly script: string;
  readonly style: string;
  readonly files: readonly string[];
}
export interface PackedBundle extends Pick<BundleNames, 'script' | 'style'> {
  readonly files: ReadonlyMap<string, PackedFile>;
}
interface PackedFile {
  readonly text: Buffer;
  readonly packed: PackedForms;
}

const namesFile = (folder: string, name: PageName): string => join(folder, `${name}.json`);
const GREATEST = { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } };

export function writePacked(folder: string, name: PageName, { script, style, files }: StudioBundle): void {
  for (const [file, text] of Object.entries(files)) {
    const path = join(folder, file);
    writeFileSync(path, text);
    writeFileSync(`${path}.br`, brotliCompressSync(text, GREATEST));
    writeFileSync(`${path}.gz`, gzipSync(text, { level: constants.Z_BEST_COMPRESSION }));
  }
  const names: BundleNames = { script, style, files: Object.keys(files) };
  writeFileSync(namesFile(folder, name), JSON.stringify(names));
}

/** Undefined: the folder has no such bundle. */
export function readPacked(folder: string, name: PageName): PackedBundle | undefined {
  const names = readIfThere(namesFile(folder, name));
  if (names === undefined) return undefined;
  const { script, style, files } = JSON.parse(names.toString()) as BundleNames;
  const read = (file: string): PackedFile => {
    const path = join(folder, file);
    return { text: readFileSync(path), packed: { br: readFileSync(`${path}.br`), gzip: readFileSync(`${path}.gz`) } };
  };
  return { script, style, files: new Map(files.map((file) => [file, read(file)])) };
}

function readIfThere(file: string): Buffer | undefined {
  try {
    return readFileSync(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
