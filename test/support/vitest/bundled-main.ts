/**
 * The program as a few files, for the child processes of the tests: a start that looks for the thousand modules of a checkout takes
 * half a second of a processor more. The first run with a source makes it.
 */
import { createHash } from 'node:crypto';
import { cpSync, existsSync, globSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';
import { rolldown } from 'rolldown';

const ROOT = join(import.meta.dirname, '../../..');
/** As deep as a route, which looks for the sources of the studio; V8's cache of compiled code knows the files by their path. */
const PLACE = join(ROOT, 'node_modules/.bylaw-test');
const STAMP = join(PLACE, 'stamp');

/** → the file that Node.js runs. */
export async function bundleMain(): Promise<string> {
  const origin = originHash();
  if (lastOrigin() !== origin) await bundleFrom(origin);
  return join(PLACE, 'main.js');
}

/** The empty database that the package has: a child that runs policy tests would make one for each run of them. */
export function bundleEmptyDatabase(tar: string): void {
  const file = join(PLACE, 'parts/empty-database.tar.br');
  if (existsSync(file)) return;
  const params = { [constants.BROTLI_PARAM_QUALITY]: 1 };
  writeFileSync(`${file}.new`, brotliCompressSync(readFileSync(tar), { params }));
  renameSync(`${file}.new`, file);
}

async function bundleFrom(origin: string): Promise<void> {
  rmSync(PLACE, { recursive: true, force: true });
  const bundle = await rolldown({
    cwd: ROOT,
    input: { main: 'src/main.ts', 'parts/engine-thread-main': 'src/database/embedded/engine-thread-main.ts' },
    platform: 'node',
    external: [/^(?:@node-rs|@electric-sql|@aws-sdk|@simplewebauthn)\//, /^(?:sharp|vscode-jsonrpc|rolldown)(?:\/|$)/],
    // Knex imports drivers of other databases, and each missing package would be a warning.
    logLevel: 'silent',
  });
  await bundle.write({ dir: PLACE, format: 'esm', entryFileNames: '[name].js', chunkFileNames: 'parts/[name].js' });
  await bundle.close();
  // Each is read beside the file that its module became a part of.
  for (const folder of ['project', '../routes/system/docs/static'])
    cpSync(join(ROOT, 'src/cli', folder), join(PLACE, 'parts', folder.split('/').at(-1)!), { recursive: true });
  cpSync(join(ROOT, 'package.json'), join(PLACE, 'package.json'));
  writeFileSync(STAMP, origin);
}

/** The sources and the versions of the packages decide the content. */
function originHash(): string {
  const hash = createHash('sha256');
  const files = globSync('{src,grammar}/**/*.{ts,json}', { cwd: ROOT }).sort();
  for (const file of [...files, 'package.json', 'package-lock.json', 'test/support/vitest/bundled-main.ts'])
    hash.update(`${file}\n`).update(readFileSync(join(ROOT, file)));
  return hash.digest('hex');
}

/** Undefined: there is none, or it is not whole. */
function lastOrigin(): string | undefined {
  try {
    return readFileSync(STAMP, 'utf8');
  } catch {
    return undefined;
  }
}
