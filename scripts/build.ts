/**
 * `npm run build`: what is published, in `dist/`: JavaScript, declarations, and the JSON Schema of
 * bylaw.yaml. The modules are joined into few files, because a start takes a fifth longer when it
 * looks for four hundred; dependencies stay outside.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';
import { PGlite } from '@electric-sql/pglite';
import { rolldown } from 'rolldown';
import { writePacked } from '../src/routes/studio/packed-bundle.ts';
import { bundlePage } from '../src/routes/studio/studio-bundle.ts';
import { dumpEmpty } from '../test/support/embedded/empty-database.ts';
import { licencesOf } from './licences.ts';

const root = resolve(import.meta.dirname, '..');
const dist = join(root, 'dist');

rmSync(dist, { recursive: true, force: true });
execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.build.json'], {
  cwd: root,
  stdio: 'inherit',
});

const bundle = await rolldown({
  cwd: root,
  input: {
    main: 'src/main.ts',
    service: 'src/exports/service.ts',
    policy: 'src/exports/policy.ts',
    'policy-browser': 'src/exports/policy-browser.ts',
    // The thread's file lies next to the part that starts it.
    'parts/engine-thread-main': 'src/database/embedded/engine-thread-main.ts',
  },
  platform: 'node',
  external: /^[^./]/,
});
await bundle.write({ dir: dist, format: 'esm', entryFileNames: '[name].js', chunkFileNames: 'parts/[name].js' });
await bundle.close();

/** Single modules, which a page loads as they are; the events load the client beside them. */
for (const [name, file] of [
  ['client', 'src/client/client.ts'],
  ['events', 'src/events/events.ts'],
] as const) {
  const module = await rolldown({
    cwd: root,
    input: { [name]: file },
    platform: 'node',
    external: /^[^./]/,
    plugins: [
      {
        name: 'client-beside',
        resolveId: (id, importer) =>
          importer !== undefined && id.endsWith('/client/client.ts')
            ? { id: './client.js', external: true }
            : undefined,
      },
    ],
  });
  await module.write({ dir: dist, format: 'esm', entryFileNames: '[name].js' });
  await module.close();
}

mkdirSync(join(dist, 'studio'));
const joined: string[] = [];
for (const name of ['studio', 'playground'] as const) {
  const page = await bundlePage(root, name);
  joined.push(...page.modules);
  writePacked(join(dist, 'studio'), name, page);
}
writeFileSync(join(dist, 'studio/licences.txt'), licencesOf(joined));
copyFileSync(join(root, 'src/schema/bylaw.schema.json'), join(dist, 'bylaw.schema.json'));
// Each is read beside the file that its module became a part of.
for (const folder of ['src/cli/project', 'src/routes/system/docs/static']) {
  cpSync(join(root, folder), join(dist, 'parts', folder.split('/').at(-1)!), { recursive: true });
}

/** Policy tests begin with it: PostgreSQL's initdb takes a second of a processor and more. */
const engine = await PGlite.create();
const empty = Buffer.from(await (await dumpEmpty(engine)).arrayBuffer());
await engine.close();
// The greatest quality takes half a minute, for an eighth less.
const params = { [constants.BROTLI_PARAM_QUALITY]: 7 };
writeFileSync(join(dist, 'parts/empty-database.tar.br'), brotliCompressSync(empty, { params }));

// Declarations keep the `.ts` of `./x.ts`, where some resolvers do not follow it.
for (const file of globSync('**/*.d.ts', { cwd: dist })) {
  const path = join(dist, file);
  const text = readFileSync(path, 'utf8');
  writeFileSync(path, text.replaceAll(/((?:from|import\()\s*'\.{1,2}\/[^']*)\.ts'/g, "$1.js'"));
}
