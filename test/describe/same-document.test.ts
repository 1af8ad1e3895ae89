/** The command and the service give one document. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCommand } from '../../src/cli/index.ts';
import { describeOnOne, ROUTES_SCHEMA } from '../support/service.ts';

describeOnOne(
  'the OpenAPI document',
  (service) => {
    test('`bylaw openapi` prints the document of /openapi.json', async () => {
      const folder = await mkdtemp(join(tmpdir(), 'bylaw-openapi-'));
      await writeFile(join(folder, 'bylaw.yaml'), ROUTES_SCHEMA);
      let printed = '';
      const stdout = { write: (text: string) => (printed += text) };
      const io = { stdout, stderr: process.stderr, stdin: process.stdin, env: {}, cwd: folder };
      expect(await runCommand(['openapi'], io)).toBe(0);
      await rm(folder, { recursive: true });
      expect(JSON.parse(printed)).toEqual((await service.anonymous.get('/openapi.json')).body);
    });
  },
  { schema: ROUTES_SCHEMA },
);
