/** The files of the studio in the package: each is sent as it was compressed by the build. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterAll, expect, test } from 'vitest';
import { readPacked, writePacked } from '../../src/routes/studio/packed-bundle.ts';

const folder = mkdtempSync(join(tmpdir(), 'bylaw-packed-'));
afterAll(() => rmSync(folder, { recursive: true }));

test('a bundle is read as it was written, with its brotli and gzip files beside each text', () => {
  const files = { 'studio-1.js': 'let a = 1;\n'.repeat(500), 'studio-2.css': '.ü { color: red }\n' };
  writePacked(folder, 'studio', { script: 'studio-1.js', style: 'studio-2.css', files, modules: ['src/a.ts'] });
  expect(readdirSync(folder).toSorted()).toEqual([
    'studio-1.js',
    'studio-1.js.br',
    'studio-1.js.gz',
    'studio-2.css',
    'studio-2.css.br',
    'studio-2.css.gz',
    'studio.json',
  ]);
  const { script, style, files: read } = readPacked(folder, 'studio')!;
  expect([script, style, read.size]).toEqual(['studio-1.js', 'studio-2.css', 2]);
  for (const [name, { text, packed }] of read) {
    const whole = files[name as keyof typeof files];
    const texts = [text, brotliDecompressSync(packed.br), gunzipSync(packed.gzip)];
    expect(texts.map(String)).toEqual([whole, whole, whole]);
  }
  expect(readPacked(folder, 'playground')).toBeUndefined();
});
