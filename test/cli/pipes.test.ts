// @module-tag long
/** `bylaw … | head`: real pipes, whose readers go away. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { MAIN } from '../support/process.ts';

const SCHEMA = join(import.meta.dirname, '../support/bylaw.yaml');

/** → the output of the shell, with the exit code of `bylaw` at its end. */
async function shell(script: string): Promise<{ readonly stdout: string; readonly stderr: string }> {
  const bylaw = `bylaw() { "${process.execPath}" "${MAIN}" "$@"; }\n`;
  return promisify(execFile)('bash', ['-c', `${bylaw}${script}\necho "\${PIPESTATUS[0]}"`]);
}

test.each([
  ['that never read', `bylaw openapi --schema ${SCHEMA} | true`, '141\n'],
  ['that never read types', `bylaw types --schema ${SCHEMA} | true`, '141\n'],
  ['that never read the usage', 'bylaw --help | true', '141\n'],
  ['that read one line', `bylaw openapi --schema ${SCHEMA} | head -n 1`, '{\n141\n'],
  ['that read everything', `bylaw openapi --schema ${SCHEMA} | tail -n 1`, '}\n0\n'],
  ['of both streams', 'bylaw sevre 2>&1 | true', '2\n'],
])('a reader %s', async (_, script, stdout) => {
  expect(await shell(script)).toEqual({ stdout, stderr: '' });
});

test.skipIf(!existsSync('/dev/full'))('a full disk is reported in one line', async () => {
  const { stdout, stderr } = await shell(`bylaw openapi --schema ${SCHEMA} > /dev/full`);
  expect([stdout, stderr]).toEqual(['1\n', 'bylaw: the output cannot be written (ENOSPC)\n']);
});
