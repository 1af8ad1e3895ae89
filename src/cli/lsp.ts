/** `bylaw lsp`: a language server for editors, on stdin and stdout. */
import { readdirSync, readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { packageVersion } from '../service/version.ts';
import { serveRpc, writeMessage } from '../workbench/lsp/json-rpc.ts';
import { LanguageServer } from '../workbench/lsp/language-server.ts';
import type { Command } from './support/command.ts';

export const command: Command = {
  name: 'lsp',
  summary: 'runs a language server for bylaw.yaml and *.policy.yaml on stdin and stdout, which editors start',
  settings: [],
  flags: { stdio: { about: 'what editors pass; stdin and stdout are the only connection' } },
  async run(_args, io) {
    const server = new LanguageServer({
      env: io.env,
      version: packageVersion(),
      notify: (method, params) => writeMessage(io.stdout, { method, params }),
      files: {
        read: (file) => orMissing(() => readFileSync(file, 'utf8')),
        testsIn: (folder) => orMissing(() => readdirSync(folder).filter((name) => name.endsWith('.policy.yaml'))) ?? [],
      },
    });
    await serveRpc(Readable.from(io.stdin), io.stdout, server);
    return server.wasShutDown ? 0 : 1;
  },
};

function orMissing<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
