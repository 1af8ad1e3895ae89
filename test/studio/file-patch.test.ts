import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { filePatch } from '../../src/studio/pages/policies/file-patch.ts';

const folder = mkdtempSync(join(tmpdir(), 'bylaw-patch-'));
afterAll(() => rmSync(folder, { recursive: true }));

const ten = Array.from({ length: 10 }, (_, i) => `line ${i}\n`);

test.each([
  ['in the middle', ten.join(''), ten.with(5, 'changed\n').join('')],
  ['in two places', ten.join(''), ten.with(1, 'changed\n').with(8, 'changed\nonce more\n').join('')],
  ['of the first line', ten.join(''), ten.slice(1).join('')],
  ['of the end without a line break', ten.join(''), `${ten.join('')}one more`],
  ['of a last line without a line break', 'a\nb', 'a\nc'],
  ['of lines that repeat', 'a\na\na\n', 'a\na\na\na\n'],
  ['of an empty file', '', 'a\n'],
])('the patch of a change %s is applied by git', (_, before, after) => {
  writeFileSync(join(folder, 'bylaw.yaml'), before);
  const input = filePatch('bylaw.yaml', before, after);
  execFileSync('git', ['apply', '--unidiff-zero', '-'], { cwd: folder, input });
  expect(readFileSync(join(folder, 'bylaw.yaml'), 'utf8')).toBe(after);
});

test('the patch of no change is empty', () => {
  expect(filePatch('bylaw.yaml', 'a\n', 'a\n')).toBe('');
});
