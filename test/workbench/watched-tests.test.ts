// @module-tag long
/** `bylaw test --watch` as an author has it beside an editor. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { MAIN } from '../support/process.ts';
import { until } from '../support/until.ts';

const folder = mkdtempSync(join(tmpdir(), 'bylaw-watch-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const save = (rule: string): void =>
  writeFileSync(join(folder, 'bylaw.yaml'), `roles: [member]\ncollections: { notes: { access: { view: ${rule} } } }\n`);
const saveTests = (verdict: string): void =>
  writeFileSync(
    join(folder, 'notes.policy.yaml'),
    `as: { ada: { roles: [member] } }\nrows: { notes: { one: {} } }\ntests: [{ notes: one, ada: { read: ${verdict} } }]\n`,
  );

test('tests run again on each save of the schema or a test file, and an error ends nothing', async () => {
  save('true');
  saveTests('yes');
  const child = spawn(process.execPath, [MAIN, 'test', '--watch'], { cwd: folder });
  const printed = { out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed.out += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (printed.err += text));
  const shows = async (stream: keyof typeof printed, text: string): Promise<void> => {
    await until(`${text} is printed`, () => printed[stream].includes(text) || child.exitCode !== null);
    expect(printed[stream]).toContain(text);
    printed.out = '';
  };
  try {
    await shows('out', '1 passed, 0 failed');
    save('false');
    await shows('out', '0 passed, 1 failed');
    saveTests('no');
    await shows('out', '1 passed, 0 failed');
    save("'@record.nothing = 1'");
    await shows('err', 'nothing');
    save('false');
    await shows('out', '1 passed, 0 failed');
  } finally {
    child.kill('SIGKILL');
  }
});
