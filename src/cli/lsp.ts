/** `bylaw lsp`: a language server for editors, on stdin and stdout. */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { packageVersion } from '../service/version.ts';
import { serveRpc, writeMessage } from '../workbench/lsp/json-rpc.ts';
import { LanguageServer } from '../workbench/lsp/language-server.ts';
import type { ResultsDocument } from '../workbench/test/results-document.ts';
import { callCommand } from './support/call.ts';
import type { Command, Io } from './support/command.ts';

export const command: Command = {
  name: 'lsp',
  summary: 'runs a language server for bylaw.yaml and *.policy.yaml on stdin and stdout, which editors start',
  settings: [],
  flags: { stdio: { about: 'what editors pass; stdin and stdout are the only connection' } },
  async run(_args, io) {
    let refreshes = 0;
    const server = new LanguageServer({
      env: io.env,
      version: packageVersion(),
      notify: (method, params) => writeMessage(io.stdout, { method, params }),
      refreshLenses: () =>
        writeMessage(io.stdout, { id: `lenses ${++refreshes}`, method: 'workspace/codeLens/refresh' }),
      runTests: (schemaFile) => testResults(schemaFile, io),
      files: {
        read: (file) => orMissing(() => readFileSync(file, 'utf8')),
        testsIn: (folder) => orMissing(() => readdirSync(folder).filter((name) => name.endsWith('.policy.yaml'))) ?? [],
      },
    });
    await serveRpc(io.stdin, io.stdout, server);
    return server.wasShutDown ? 0 : 1;
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
