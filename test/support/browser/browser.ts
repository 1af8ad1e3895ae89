/** Headless Chromium over its debugging protocol: a page is opened, asked what it holds, and closed. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The first has no windows, and takes half of the processor time of the others. */
const NAMES = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'];
/** The browser finds this machine under the name. */
export const OTHER_HOST = 'studio.example';
const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  // A page lives for seconds, in which its code does not earn its optimisation.
  '--js-flags=--no-opt,--no-maglev',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--remote-debugging-port=0',
  // A name that is not of the own machine.
  `--host-resolver-rules=MAP ${OTHER_HOST} 127.0.0.1`,
];

const executable = NAMES.map(pathOf).find((path) => path !== undefined);

function pathOf(name: string): string | undefined {
  try {
    return execFileSync('/bin/sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim();
  } catch {
    return undefined;
  }
}

/** True if this machine has a browser. */
export const hasBrowser = executable !== undefined;

type Json = Readonly<Record<string, unknown>>;
interface Reply extends Json {
  readonly id?: number;
  readonly error?: { readonly message: string };
  readonly result?: Json;
}

/** Milliseconds for a command: a page that hangs fails with the name of the command. */
const PATIENCE_MS = 60_000;

function endGroup({ pid }: ChildProcess): void {
  try {
    process.kill(-pid!, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

export class Browser {
  readonly #process: ChildProcess;
  readonly #folder: string;
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, (reply: Reply) => void>();
  #sent = 0;

  private constructor(process: ChildProcess, folder: string, socket: WebSocket) {
    this.#process = process;
    this.#folder = folder;
    this.#socket = socket;
    socket.onmessage = ({ data }) => {
      const reply = JSON.parse(String(data)) as Reply;
      if (reply.id !== undefined) this.#waiting.get(reply.id)?.(reply);
    };
  }

  static async open(): Promise<Browser> {
    const folder = mkdtempSync(join(tmpdir(), 'bylaw-browser-'));
    const child = spawn(executable!, [...FLAGS, `--user-data-dir=${folder}`, 'about:blank'], {
      stdio: ['ignore', 'ignore', 'pipe'],
      // A group of its own: the program may be a script that starts the browser.
      detached: true,
    });
    const end = (): void => endGroup(child);
    process.once('exit', end);
    child.once('exit', () => process.off('exit', end));
    const address = await new Promise<string>((done, fail) => {
      let output = '';
      child.stderr.on('data', (chunk: Buffer) => {
        output += chunk;
        const found = /DevTools listening on (ws:\S+)/.exec(output)?.[1];
        if (found !== undefined) done(found);
      });
      child.once('exit', () => fail(new Error(`Chromium did not start: ${output}`)));
    });
    const socket = new WebSocket(address);
    await new Promise((done, fail) => {
      socket.onopen = done;
      socket.onerror = fail;
    });
    return new Browser(child, folder, socket);
  }

  async send(method: string, params: Json = {}, sessionId?: string): Promise<Json> {
    const id = ++this.#sent;
    const reply = new Promise<Reply>((done) => this.#waiting.set(id, done));
    this.#socket.send(JSON.stringify({ id, method, params, ...(sessionId === undefined ? {} : { sessionId }) }));
    const late = setTimeout(() => {
      this.#waiting.get(id)?.({ error: { message: `no answer within ${PATIENCE_MS / 1_000} s` } });
    }, PATIENCE_MS);
    const { error, result = {} } = await reply;
    clearTimeout(late);
    this.#waiting.delete(id);
    if (error !== undefined) throw new Error(`${method}: ${error.message}`);
    return result;
  }

  async page(url: string): Promise<Page> {
    const { targetId } = await this.send('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true });
    const page = new Page(this, sessionId as string);
    await page.send('Page.navigate', { url });
    await page.until('document.readyState === "complete" && location.href !== "about:blank"');
    return page;
  }

  async close(): Promise<void> {
    const ended = new Promise((done) => this.#process.once('exit', done));
    endGroup(this.#process);
    await ended;
    this.#socket.close();
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

export class Page {
  readonly #browser: Browser;
  readonly #session: string;

  constructor(browser: Browser, session: string) {
    this.#browser = browser;
    this.#session = session;
  }

  send(method: string, params: Json = {}): Promise<Json> {
    return this.#browser.send(method, params, this.#session);
  }

  /** The value of an expression, which may be a promise. Throws what it throws. */
  async evaluate<T>(expression: string): Promise<T> {
    const { result, exceptionDetails } = (await this.send('Runtime.evaluate', {
      expression,
      awaitPromise: true,
      returnByValue: true,
    })) as { result: { value: T }; exceptionDetails?: { text: string; exception?: { description?: string } } };
    if (exceptionDetails !== undefined) {
      throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    }
    return result.value;
  }

  /** Waits until the expression is truthy, and returns its value. */
  async until<T>(expression: string): Promise<T> {
    const end = Date.now() + 40_000;
    for (;;) {
      const value = await this.evaluate<T>(expression).catch(() => undefined);
      if (value) return value;
      if (Date.now() > end) throw new Error(`never true: ${expression}`);
      await new Promise((done) => setTimeout(done, 50));
    }
  }
}
