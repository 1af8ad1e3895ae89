// @module-tag long
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = resolve(import.meta.dirname, '../..');
const pages = globSync(['*.md', 'docs/**/*.md', '{src,grammar,test,bench}/**/README.md'], { cwd: ROOT }).sort();

/** `[text](target#part)`, but not addresses of other hosts. */
const linksOf = (page: string): readonly string[] =>
  [...readFileSync(join(ROOT, page), 'utf8').matchAll(/\]\((?!https?:|mailto:)([^)\s]*)\)/g)].map(
    ([, target]) => target!,
  );

const slug = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
const headingsOf = (file: string): readonly string[] =>
  [...readFileSync(file, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading]) => slug(heading!));

function isBroken(page: string, link: string): boolean {
  const [path, part] = link.split('#') as [string, string | undefined];
  const file = path === '' ? join(ROOT, page) : resolve(ROOT, dirname(page), path);
  return !existsSync(file) || (part !== undefined && !headingsOf(file).includes(part));
}

test('every link of every page reaches a file and heading', () => {
  expect(pages.length).toBeGreaterThan(10);
  expect(
    pages.flatMap((page) =>
      linksOf(page)
        .filter((link) => isBroken(page, link))
        .map((link) => `${page}: ${link}`),
    ),
  ).toEqual([]);
});
