/** `npm run playground`: the playground as files in `dist/playground`, for any web server, with relative addresses. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pageHtml } from '../src/routes/studio/page-html.ts';
import { bundlePage } from '../src/routes/studio/studio-bundle.ts';
import { licencesOf } from './licences.ts';

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; base-uri 'none'; require-trusted-types-for 'script'";

const root = resolve(import.meta.dirname, '..');
const folder = resolve(process.argv[2] ?? join(root, 'dist/playground'));
const { script, style, files, modules } = await bundlePage(root, 'playground');
mkdirSync(folder, { recursive: true });
for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
writeFileSync(join(folder, 'index.html'), pageHtml({ script: `./${script}`, style: `./${style}`, policy: POLICY }));
writeFileSync(join(folder, 'licences.txt'), licencesOf(modules));
console.log(`the playground is in ${folder}`);
