/** A server in a separate process, so that its cost is not counted as the benchmark's. */
import { type ChildProcess, spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { builtMain } from './built.ts';

export interface Server {
  readonly url: string;
  readonly process: ChildProcess;
}

/** Runs the file and resolves with the address that it prints. */
export async function startServer(file: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Server> {
  const child = spawn(process.execPath, [file, ...args], {
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { ...process.env, ...env },
  });
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.on('data', (chunk: Buffer) => {
      const match = /listening on (\S+)/.exec(chunk.toString());
      if (match) resolve(match[1]!);
    });
    child.on('exit', (code) => reject(new Error(`${file} ended with exit code ${code}`)));
  });
  return { url, process: child };
}

export interface ServeOptions {
  readonly schema: string;
  /** Default: the embedded database. */
  readonly databaseUrl?: string;
  readonly data: string;
  readonly workers?: number;
  /** The folder of another checkout, whose compiled package runs. */
  readonly checkout?: string | undefined;
  /** The file that runs. Default: the compiled package's. */
  readonly main?: string | undefined;
}

/** `bylaw serve`, without limits. */
export function startBylaw(options: ServeOptions): Promise<Server> {
  const [file, ...args] = serveArguments(options);
  return startServer(file!, args, { BYLAW_RATE_LIMIT: 'off', BYLAW_WORKERS: String(options.workers ?? 1) });
}

/** The file, and its arguments. */
export function serveArguments({ schema, databaseUrl, data, checkout, main }: ServeOptions): readonly string[] {
  // Tokens name it, and one token is for all that are compared.
  const flags = ['--schema', schema, '--data', data, '--port', '0', '--base-url', 'http://bench.localhost'];
  const database = databaseUrl === undefined ? [] : ['--database-url', databaseUrl];
  const built = (): string => (checkout === undefined ? builtMain() : resolve(checkout, 'dist/main.js'));
  return [main ?? built(), 'serve', ...flags, ...database];
}
