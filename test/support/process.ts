/** `bylaw` as an operator runs it: servers as child processes, other commands in this process or in a child. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { reasonOf, runCommand } from '../../src/cli/index.ts';
import { closeKeptConnections } from './kept-connections.ts';
import { compileCache } from './vitest/compile-cache.ts';

export const SOURCE_MAIN = join(import.meta.dirname, '../../src/main.ts');
/** The bundle that a run of the tests has made. */
export const MAIN = process.env.TEST_MAIN ?? SOURCE_MAIN;

export interface Run {
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  /** Default: that of the tests. */
  readonly cwd?: string;
  /** The entry file. Default: `MAIN`. */
  readonly main?: string;
}
export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The environment of this process without settings of the service and of Node.js. */
function environmentWith(env: Run['env'] = {}): Record<string, string | undefined> {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(?:BYLAW_|DATABASE_|SMTP_|MAIL_|PORT$|HOST$|BASE_URL$|NODE_|VITEST)/.test(name),
  );
  return { ...Object.fromEntries(inherited), ...env };
}

/**
 * The embedded engine of a child lives for seconds: V8 optimises its code after ten times as much work as by default, which is
 * a fifth of the processor's time of a start.
 */
const ENGINE_OPTIONS = ['--wasm-tiering-budget=130000000'];

function start({ args, env = {}, cwd, main = MAIN }: Run): ChildProcess {
  const child = spawn(process.execPath, [...ENGINE_OPTIONS, main, ...args], {
    env: environmentWith({ NODE_COMPILE_CACHE: compileCache(), ...env }),
    stdio: ['pipe', 'pipe', 'pipe'],
    cwd,
  });
  // A test that fails leaves nothing running.
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);
  child.once('exit', () => process.off('exit', kill));
  return child;
}

/** Runs a command that ends by itself in this process, which has loaded the modules: a child takes a second of a processor. */
export async function run({ args, env, stdin = '', cwd = process.cwd() }: Run): Promise<Ended> {
  let [stdout, stderr] = ['', ''];
  const io = {
    stdout: { write: (said: string) => (stdout += said) },
    stderr: { write: (said: string) => (stderr += said) },
    stdin: Readable.from(stdin === '' ? [] : [Buffer.from(stdin)]),
    env: environmentWith(env),
    cwd,
  };
  // As src/main.ts does.
  const code = await runCommand(args, io).catch((error: unknown) => {
    stderr += `bylaw: ${reasonOf(error)}\n`;
    return 1;
  });
  return { code, stdout, stderr };
}

export async function runInChild(call: Run): Promise<Ended> {
  const child = start(call);
  child.stdin!.end(call.stdin ?? '');
  const [stdout, stderr, code] = await Promise.all([text(child.stdout!), text(child.stderr!), exitOf(child)]);
  return { code, stdout, stderr };
}

export interface Server {
  readonly url: string;
  readonly line: string;
  /** The stdout so far. */
  readonly output: () => string;
  /** The stderr so far. */
  readonly log: () => string;
  readonly pid: number;
  /** Sends the signal, and waits for the end. */
  end(signal: NodeJS.Signals): Promise<number | null>;
  /** Asks it to stop, without a connection that it would wait for, and waits for the end. */
  stop(): Promise<number | null>;
}

/** `bylaw serve --port 0 …`, ready. */
export const serve = (
  args: readonly string[],
  env?: Readonly<Record<string, string>>,
  cwd?: string,
  main?: string,
): Promise<Server> => launch('serve', args, env, cwd, main);

/** `bylaw dev --port 0 …`, ready. */
export const dev = (args: readonly string[], env?: Readonly<Record<string, string>>): Promise<Server> =>
  launch('dev', args, env);

async function launch(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  cwd?: string,
  main?: string,
): Promise<Server> {
  const child = start({
    args: [command, ...(args.includes('--port') ? [] : ['--port', '0']), ...args],
    env: { BYLAW_RATE_LIMIT: 'off', ...env },
    cwd,
    main,
  });
  const exit = exitOf(child);
  let stderr = '';
  child.stderr!.setEncoding('utf8').on('data', (said: string) => {
    stderr += said;
  });
  let stdout = '';
  const line = await new Promise<string>((resolve, reject) => {
    child.stdout!.setEncoding('utf8').on('data', (said: string) => {
      stdout += said;
      if (stdout.includes('\n')) resolve(stdout.split('\n')[0]!);
    });
    void exit.then((code) => reject(new Error(`${command} ended with ${code}:\n${stdout}${stderr}`)));
  });
  const end = (signal: NodeJS.Signals): Promise<number | null> => {
    child.kill(signal);
    return exit;
  };
  return {
    url: /http:\/\/\S+/.exec(line)![0],
    line,
    output: () => stdout,
    log: () => stderr,
    pid: child.pid!,
    end,
    stop: () => {
      closeKeptConnections();
      return end('SIGTERM');
    },
  };
}

const exitOf = (child: ChildProcess): Promise<number | null> =>
  new Promise((resolve) => child.once('exit', (code) => resolve(code)));

export const childrenOf = (pid: number): readonly number[] =>
  execFileSync('ps', ['-o', 'pid=', '--ppid', String(pid)], { encoding: 'utf8' })
    .split('\n')
    .flatMap((line) => (line.trim() === '' ? [] : Number(line)));
