/**
 * The embedded engine in a thread of its own: statements, checkpoints and syncs do not hold up the event loop. Messages
 * and answers are transferred, not copied.
 */
import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { invariant } from '../../invariant.ts';
import { memoized } from '../../memoized.ts';
import { ownedBytes } from './owned-bytes.ts';

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
    const bytes = await this.#ask(ownedBytes(messages));
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
