/** Bundles an export of the package as an application would, for its size and for browsers. */
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { rolldown } from 'rolldown';

/** → the minified module. Throws where it needs anything that a browser has not. */
export async function bundleForBrowser(file: string): Promise<string> {
  const bundle = await rolldown({
    input: fileURLToPath(new URL(`../../../${file}`, import.meta.url)),
    platform: 'browser',
    onLog: (level, log) => {
      if (level === 'warn') throw new Error(log.message);
    },
  });
  // Other minifiers leave out the comments for coverage tools, too.
  const { output } = await bundle.generate({ format: 'esm', minify: true, comments: false });
  await bundle.close();
  const foreign = output.flatMap((chunk) => (chunk.type === 'chunk' ? chunk.imports : []));
  if (foreign.length > 0) throw new Error(`the bundle of ${file} still imports ${foreign.join(', ')}`);
  return output[0].code;
}

/** Bytes after gzip. */
export const compressedSize = (code: string): number => gzipSync(code, { level: 9 }).length;
