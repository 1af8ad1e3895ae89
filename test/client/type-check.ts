/** TypeScript's check of a program that uses the client with the types of a schema. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { typescriptOf } from '../../src/describe/typescript.ts';
import type { Schema } from '../../src/schema/model/model.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const COMPILER = join(ROOT, 'node_modules/typescript/bin/tsc');
/** The client's module, as a string of TypeScript. */
export const CLIENT = JSON.stringify(join(ROOT, 'src/client/client.ts'));

/**
 * The output of the compiler, strict as a careful user's.
 * @param use the program; the types of the schema are in `./types.ts`
 */
export async function typeCheck(schema: Schema, use: string, flags: readonly string[] = []): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'bylaw-types-'));
  try {
    writeFileSync(join(folder, 'types.ts'), typescriptOf(schema));
    writeFileSync(join(folder, 'use.ts'), use);
    const compilerOptions = {
      strict: true,
      noEmit: true,
      noUnusedLocals: true,
      allowImportingTsExtensions: true,
      target: 'es2023',
      lib: ['es2023', 'dom'],
      types: [],
      module: 'esnext',
      moduleResolution: 'bundler',
    };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['use.ts'] }));
    const run = promisify(execFile)(process.execPath, [COMPILER, '-p', folder, '--checkers', '1', ...flags]);
    const { stdout } = await run.catch((error: { stdout: string }) => error);
    return stdout;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
