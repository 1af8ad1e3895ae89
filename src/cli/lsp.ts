/** `bylaw lsp`: a language server for editors, on stdin and stdout. */
import { readFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { loadOptional } from '../optional-package.ts';
import { packageVersion } from '../service/version.ts';
import type { ResultsDocument } from '../workbench/test/results-document.ts';
import { callCommand } from './support/call.ts';
import type { Command, Io } from './support/command.ts';
import { policyTestsIn } from './support/policy-test-files.ts';

export const command: Command = {
  name: 'lsp',
  summary: 'runs a language server for bylaw.yaml and *.policy.yaml on stdin and stdout, which editors start',
  settings: [],
  flags: { stdio: { about: 'what editors pass; stdin and stdout are the only connection' } },
  async run(_args, io) {
    const { serveEditor } = await loadOptional({
      packages: ['vscode-jsonrpc'],
      reason: 'the language server speaks JSON-RPC',
      load: () => import('../workbench/lsp/serve-editor.ts'),
    });
    const wasShutDown = await serveEditor(io, {
      env: io.env,
      version: packageVersion(),
      runTests: (schemaFile) => testResults(schemaFile, io),
      files: {
        read: (file) => orMissing(() => readFileSync(file, 'utf8')),
        testsIn: (folder) => orMissing(() => policyTestsIn(folder)) ?? [],
      },
    });
    return wasShutDown ? 0 : 1;
  },
};

/** The document of `bylaw test --mutate --json`. */
async function testResults(schemaFile: string, io: Io): Promise<ResultsDocument> {
  const { command: test } = await import('./test.ts');
  const printed = { out: '', err: '' };
  const own: Io = {
    ...io,
    cwd: dirname(schemaFile),
    stdout: { write: (text: string) => (printed.out += text) },
    stderr: { write: (text: string) => (printed.err += text) },
  };
  await callCommand(test, { argv: ['--schema', basename(schemaFile), '--mutate', '--json'], io: own });
  if (printed.out === '') throw new Error(printed.err.trim());
  return JSON.parse(printed.out) as ResultsDocument;
}

function orMissing<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
