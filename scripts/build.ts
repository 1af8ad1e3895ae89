/** `npm run build`: what is published, in `dist/`: compiled JavaScript, declarations, and the JSON Schema of bylaw.yaml. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '..');
const dist = join(root, 'dist');

rmSync(dist, { recursive: true, force: true });
execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.build.json'], {
  cwd: root,
  stdio: 'inherit',
});
copyFileSync(join(root, 'src/schema/bylaw.schema.json'), join(dist, 'bylaw.schema.json'));
for (const folder of ['src/cli/project', 'src/routes/system/docs/static']) {
  cpSync(join(root, folder), join(dist, folder), { recursive: true });
}

// The compiler rewrites `./x.ts` in JavaScript and leaves it in declarations, where some resolvers do not follow it.
for (const file of globSync('**/*.d.ts', { cwd: dist })) {
  const path = join(dist, file);
  const text = readFileSync(path, 'utf8');
  writeFileSync(path, text.replaceAll(/((?:from|import\()\s*'\.{1,2}\/[^']*)\.ts'/g, "$1.js'"));
}
