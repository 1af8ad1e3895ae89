/**
 * The embedded engine in a thread of its own: statements, checkpoints and syncs do not hold up the event loop. Messages
 * and answers are transferred, not copied.
 */
import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { Duplex } from 'node:stream';
import { Worker } from 'node:worker_threads';
import { invariant } from '../../invariant.ts';
import { memoized } from '../../memoized.ts';

/** A place without both is an empty database in memory. */
interface EnginePlace {
  readonly folder?: string;
  readonly snapshot?: ArrayBuffer | undefined;
}

/** `workerData` of the thread. */
export interface EngineStart extends EnginePlace {
  /** A module of WebAssembly. */
  readonly code: object;
}

/** Requests to the thread: whole messages of PostgreSQL's protocol. */
export type EngineRequest = Uint8Array<ArrayBuffer> | 'close';

/** Replies of the thread: bytes of the protocol, none after the start or the close of the engine. */
export type EngineReply = { readonly bytes: Uint8Array<ArrayBuffer> } | { readonly error: Error };

/** Source and build have the file beside this one. */
const MAIN = new URL(`./engine-thread-main${extname(import.meta.url)}`, import.meta.url);

/**
 * MiB, allocated as used. PostgreSQL reports statements that are nested too deeply, unless the stack ends before: then
 * the engine gives no answer.
 */
const STACK_MIB = 64;
/** MiB. The engine's memory is not the thread's own, which has only the answers. */
const YOUNG_MIB = 8;

interface Compiler {
  compile(bytes: Uint8Array<ArrayBuffer>): Promise<object>;
}
/** The types of Node leave it out. */
declare const WebAssembly: Compiler;

/** Threads share the code and its optimisations. */
const compiled = memoized(async (): Promise<object> => {
  const file = new URL(import.meta.resolve('@electric-sql/pglite/pglite.wasm'));
  return WebAssembly.compile(await readFile(file));
});

export class EngineThread {
  readonly #worker: Worker;
  #asked: PromiseWithResolvers<Uint8Array<ArrayBuffer>> | undefined;
  #failure: Error | undefined;

  constructor(worker: Worker) {
    this.#worker = worker;
    worker.unref();
    worker.on('message', (reply: EngineReply) => this.#settle(reply));
    worker.on('error', (error: Error) => this.#fail(error));
    worker.on('exit', () => this.#fail(new Error('the thread of the engine has ended')));
  }

  /** Rejects with the error of the engine, or of the thread. */
  static async start(place: EnginePlace): Promise<EngineThread> {
    const start: EngineStart = { ...place, code: await compiled() };
    const worker = new Worker(MAIN, {
      name: 'embedded database',
      workerData: start,
      transferList: place.snapshot === undefined ? [] : [place.snapshot],
      resourceLimits: { stackSizeMb: STACK_MIB, maxYoungGenerationSizeMb: YOUNG_MIB },
      // Some flags of a program, such as `--input-type`, do not suit another file.
      execArgv: [],
    });
    const thread = new EngineThread(worker);
    try {
      await thread.#reply();
      return thread;
    } catch (error) {
      await worker.terminate();
      throw error;
    }
  }

  /** Resolves with the answers to whole messages. Calls must not overlap. */
  async exchange(messages: readonly Uint8Array[]): Promise<Buffer> {
    // A pooled buffer shares its memory, which could not be transferred.
    const bytes = await this.#ask(new Uint8Array(Buffer.concat(messages)));
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  /** The reason of an unrequested end. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** The engine writes nothing more. */
  async kill(): Promise<void> {
    await this.#worker.terminate();
  }

  /** Closes the engine, then the thread. A thread that has ended by itself is closed. */
  async close(): Promise<void> {
    try {
      if (this.#failure === undefined) await this.#ask('close');
    } finally {
      await this.#worker.terminate();
    }
  }

  #ask(request: EngineRequest): Promise<Uint8Array<ArrayBuffer>> {
    const reply = this.#reply();
    this.#worker.postMessage(request, typeof request === 'string' ? [] : [request.buffer]);
    return reply;
  }

  /** The thread keeps the process alive while a caller waits. */
  #reply(): Promise<Uint8Array<ArrayBuffer>> {
    invariant(this.#asked === undefined, 'the engine is asked one thing at a time');
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    this.#asked = Promise.withResolvers();
    this.#worker.ref();
    return this.#asked.promise;
  }

  #settle(reply: EngineReply): void {
    const asked = this.#asked;
    this.#asked = undefined;
    this.#worker.unref();
    if ('bytes' in reply) asked?.resolve(reply.bytes);
    else asked?.reject(reply.error);
  }

  /** The failure is final. */
  #fail(error: Error): void {
    this.#failure ??= error;
    this.#settle({ error: this.#failure });
  }
}

type Done = (error?: Error | null) => void;

/** The beginning of a ReadyForQuery; its last byte reports an open transaction. */
const READY_FOR_QUERY = Buffer.from([0x5a, 0, 0, 0, 5]);
/** AuthenticationOk, ReadyForQuery: an engine in this process negotiates nothing. */
const WELCOME = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0, ...READY_FOR_QUERY, 0x49]);
const TERMINATE = 0x58;

/**
 * The embedded engine as a socket: the driver speaks PostgreSQL's protocol with it and parses the
 * response. The engine's own adapter parses with a TextDecoder, which drops a U+FEFF at the start
 * of every value.
 */
export class EngineStream extends Duplex {
  readonly #engine: Pick<EngineThread, 'exchange'>;
  #isWelcome = false;

  constructor(engine: Pick<EngineThread, 'exchange'>) {
    super();
    this.#engine = engine;
  }

  override _write(message: Buffer, _encoding: string, done: Done): void {
    this.#exchange([message]).then(() => done(), done);
  }

  /** Messages written together, or while an answer was pending, go in one call. */
  override _writev(chunks: readonly { readonly chunk: Buffer }[], done: Done): void {
    this.#exchange(chunks.map(({ chunk }) => chunk)).then(() => done(), done);
  }

  override _read(): void {}

  override _final(done: Done): void {
    this.push(null);
    done();
  }

  /** The driver writes whole messages, and none without one that asks the engine to get ready. */
  async #exchange(messages: readonly Buffer[]): Promise<void> {
    if (!this.#isWelcome) {
      this.#isWelcome = true;
      this.push(WELCOME);
      return;
    }
    // The end of the connection is not the end of the engine.
    const served = messages.filter((message) => message[0] !== TERMINATE);
    if (served.length === 0) return;
    const answer = await this.#engine.exchange(served).catch((error: unknown) => {
      throw terminated(error);
    });
    // The engine hides the cause of its end.
    if (!isReady(answer)) throw terminated(new Error('the engine has not answered'));
    this.push(answer);
  }

  /** The driver calls these methods of a socket. */
  connect(): this {
    setImmediate(() => this.emit('connect'));
    return this;
  }
  setNoDelay(): this {
    return this;
  }
  setKeepAlive(): this {
    return this;
  }
  ref(): this {
    return this;
  }
  unref(): this {
    return this;
  }
}

const isReady = (answer: Buffer): boolean => answer.subarray(-READY_FOR_QUERY.length - 1, -1).equals(READY_FOR_QUERY);

/** The error of a lost socket, whose statements have an unknown outcome. */
const terminated = (cause: unknown): Error => new Error('the embedded database has terminated', { cause });
