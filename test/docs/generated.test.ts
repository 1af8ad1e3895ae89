// @module-tag long
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { generatePages } from '../../scripts/docs.ts';

test('the generated parts of the documentation are up to date (`npm run docs`)', async () => {
  const pages = await generatePages();
  expect(pages.size).toBeGreaterThan(0);
  for (const [page, text] of pages)
    expect(readFileSync(join(resolve(import.meta.dirname, '../..'), page), 'utf8')).toBe(text);
});
