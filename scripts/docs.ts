/**
 * `npm run docs` writes the parts of the documentation that follow from the code. A part is between `<!-- generated: name -->` and
 * `<!-- end: name -->` of its page; test/docs/generated.test.ts holds every part up to date. It writes the JSON Schema of bylaw.yaml as well.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { formatSchema } from '../src/schema/file/shape.ts';
import { commandsTable, settingsTable } from './docs/commands.ts';
import { LANGUAGE_PARTS, warningsTable } from './docs/language.ts';
import { problemsTable } from './docs/problems.ts';
import { SCHEMA_PARTS } from './docs/schema.ts';

interface Part {
  readonly page: string;
  readonly name: string;
  markdown(): string | Promise<string>;
}

export const PARTS: readonly Part[] = [
  { page: 'docs/operations.md', name: 'commands', markdown: commandsTable },
  { page: 'docs/operations.md', name: 'settings', markdown: settingsTable },
  { page: 'docs/warnings.md', name: 'warnings', markdown: warningsTable },
  { page: 'docs/lists.md', name: 'problems', markdown: problemsTable },
  ...Object.entries(SCHEMA_PARTS).map(([name, markdown]) => ({ page: 'docs/schema.md', name, markdown })),
  ...Object.entries(LANGUAGE_PARTS).map(([name, markdown]) => ({ page: 'grammar/README.md', name, markdown })),
];

const ROOT = resolve(import.meta.dirname, '..');

/** The pages as they should be. */
export async function generatePages(parts: readonly Part[] = PARTS): Promise<ReadonlyMap<string, string>> {
  const pages = new Map<string, string>();
  for (const { page, name, markdown } of parts) {
    const before = pages.get(page) ?? readFileSync(join(ROOT, page), 'utf8');
    pages.set(page, replacePart(before, name, await markdown()));
  }
  return pages;
}

function replacePart(page: string, name: string, markdown: string): string {
  const [start, end] = [`<!-- generated: ${name} -->\n`, `<!-- end: ${name} -->`];
  const [from, to] = [page.indexOf(start), page.indexOf(end)];
  if (from === -1 || to < from) throw new Error(`expected ${start.trim()} and ${end} in the page`);
  return `${page.slice(0, from + start.length)}\n${markdown.trim()}\n\n${page.slice(to)}`;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  for (const [page, text] of await generatePages()) writeFileSync(join(ROOT, page), text);
  writeFileSync(join(ROOT, 'src/schema/bylaw.schema.json'), formatSchema());
}
