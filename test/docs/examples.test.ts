// @module-tag long
/** The code of the pages about the exports: compiled strictly, and run; what a line promises behind `//=>` it prints. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, test } from 'vitest';
import { typescriptOf } from '../../src/describe/typescript.ts';
import { parseSchema } from '../../src/schema/load.ts';
import { fillDataFolder } from '../support/embedded/embedded.ts';
import { describeOnOne } from '../support/service.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const MODULES = {
  'bylaw/client': 'src/client/client.ts',
  'bylaw/events': 'src/events/events.ts',
  'bylaw/policy': 'src/exports/policy.ts',
  'bylaw/policy/browser': 'src/exports/policy-browser.ts',
  bylaw: 'src/exports/service.ts',
};
const folder = mkdtempSync(join(tmpdir(), 'bylaw-examples-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const sourceOf = (page: string): string => {
  const blocks = [...readFileSync(join(ROOT, 'docs', page), 'utf8').matchAll(/^```ts\n([\s\S]*?)^```/gm)];
  return Object.entries(MODULES).reduce(
    (source, [name, file]) => source.replaceAll(`from '${name}'`, `from '${join(ROOT, file)}'`),
    blocks.map(([, code]) => code).join('\n'),
  );
};
const promised = (source: string): readonly string[] => [...source.matchAll(/\/\/=> (.*)$/gm)].map(([, text]) => text!);

async function compileStrictly(files: readonly string[]): Promise<string> {
  const compilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    allowImportingTsExtensions: true,
    target: 'es2024',
    lib: ['es2024', 'esnext.collection', 'esnext.iterator'],
    types: ['node'],
    typeRoots: [join(ROOT, 'node_modules/@types')],
    module: 'nodenext',
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }));
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
  const run = promisify(execFile)(process.execPath, [compiler, '-p', folder, '--checkers', '1']);
  return (await run.catch((error: { stdout: string }) => error)).stdout;
}

async function run(source: string, name: string): Promise<string> {
  const file = join(folder, name);
  writeFileSync(file, source);
  const flags = ['--disable-warning=ExperimentalWarning'];
  return (await promisify(execFile)(process.execPath, [...flags, file], { cwd: folder })).stdout;
}

/** Two turns of a loop promise their results in one line. */
const lines = (text: string): readonly string[] => text.trim().split('\n');
const inOneLine = (text: string): string => text.replaceAll(/\n\s*/g, ' ').trim();

const PAGES = ['client.md', 'policies-in-code.md', 'embedding.md'];

test('the examples compile under strict', async () => {
  const { schema } = parseSchema(readFileSync(join(ROOT, 'bylaw.yaml'), 'utf8'), 'bylaw.yaml');
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  writeFileSync(join(folder, 'collections.ts'), typescriptOf(schema!));
  const files = PAGES.map((page) => page.replace('.md', '.check.ts'));
  PAGES.forEach((page, i) => {
    writeFileSync(join(folder, files[i]!), sourceOf(page));
  });
  expect(await compileStrictly(files)).toBe('');
});

test.each(PAGES.slice(1))('the example %s prints its promised output', async (page) => {
  const source = sourceOf(page);
  // The data folder of embedding.md.
  await fillDataFolder(join(folder, 'embedded'));
  expect(promised(source).length).toBeGreaterThan(2);
  expect(inOneLine(await run(source, page.replace('.md', '.ts')))).toBe(promised(source).join(' '));
});

describeOnOne('client.md', (service) => {
  test('the client example prints its promised output against the sample schema', async () => {
    const source = sourceOf('client.md').replaceAll('http://127.0.0.1:8090', service.url);
    expect(promised(source).length).toBeGreaterThan(8);
    const expected = promised(source).join('\n').replace('ada@example.com, ben', 'ada@example.com\nben');
    expect(lines(await run(source, 'client.ts'))).toEqual(lines(expected));
  });
});
