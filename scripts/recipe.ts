/** `npm run recipe -- clinic`: a product of docs/recipes with its front end, under `bylaw dev`. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { rolldown } from 'rolldown';

const [name = '', ...flags] = process.argv.slice(2);
const root = resolve(import.meta.dirname, '..');
const folder = join(root, 'docs/recipes', name);
if (name === '' || !existsSync(join(folder, 'bylaw.yaml'))) {
  process.stderr.write('usage: npm run recipe -- clinic|recruiting [flags of `bylaw dev`]\n');
  process.exit(2);
}
const bundle = await rolldown({ cwd: root, input: 'src/client/client.ts' });
await bundle.write({ file: join(folder, 'public/bylaw-client.js'), format: 'esm' });
await bundle.close();
const data = join(root, 'data', name);
const child = spawn(
  process.execPath,
  [join(root, 'bin/bylaw.js'), 'dev', '--public', 'public', '--data', data, ...flags],
  { cwd: folder, stdio: 'inherit' },
);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal));
child.once('exit', (code) => {
  process.exitCode = code ?? 1;
});
