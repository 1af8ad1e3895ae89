/**
 * The embedded engine as a socket: the driver speaks PostgreSQL's protocol with it and parses the answers. The engine's own
 * adapter parses with a TextDecoder, which drops a U+FEFF at the start of every value. The engine has a thread of its own:
 * statements, checkpoints and syncs do not hold up the event loop. Messages and answers are transferred, not copied.
 */
import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { Duplex } from 'node:stream';
import { Worker } from 'node:worker_threads';
import { memoized } from '../../memoized.ts';

/** `workerData` of the thread. Without a folder or a snapshot, the database is empty, and in memory. */
export interface EngineStart {
  readonly folder: string | undefined;
  readonly snapshot?: ArrayBuffer | undefined;
  /** A module of WebAssembly. Default: compiled by the thread. */
  readonly code?: object;
}

/** The snapshot is read when a thread starts. */
export type EnginePlace = Pick<EngineStart, 'folder'> & { readonly snapshot?: Blob | undefined };

/** Whole messages of PostgreSQL's protocol; or the error that ends the thread. */
export type EngineAnswer = Uint8Array<ArrayBuffer> | Error;

/** Source and build have the file beside this one. */
export const ENGINE_MAIN = new URL(`./engine-thread-main${extname(import.meta.url)}`, import.meta.url);

/** MiB, allocated as used. The engine gives no answer where the stack ends before PostgreSQL's limit of nesting. */
const STACK_MIB = 64;
/** MiB. The engine's memory is not the thread's own, which has only the answers. */
const YOUNG_MIB = 8;

/** The types of Node leave it out. */
declare const WebAssembly: { compile(bytes: Uint8Array<ArrayBuffer>): Promise<object> };

/** Threads share the code and its optimisations. */
export const engineCode = memoized(async (): Promise<object> => {
  const file = new URL(import.meta.resolve('@electric-sql/pglite/pglite.wasm'));
  return WebAssembly.compile(await readFile(file));
});

export async function startEngine({ folder, snapshot }: EnginePlace): Promise<Worker> {
  const [code, bytes] = await Promise.all([engineCode(), snapshot?.arrayBuffer()]);
  return new Worker(ENGINE_MAIN, {
    name: 'embedded database',
    workerData: { folder, snapshot: bytes, code } satisfies EngineStart,
    transferList: bytes === undefined ? [] : [bytes],
    resourceLimits: { stackSizeMb: STACK_MIB, maxYoungGenerationSizeMb: YOUNG_MIB },
    // Some flags of a program, such as `--input-type`, do not suit another file.
    execArgv: [],
  });
}

type Done = (error?: Error | null) => void;

/** The beginning of a ReadyForQuery; its last byte reports an open transaction. */
const READY_FOR_QUERY = Buffer.from([0x5a, 0, 0, 0, 5]);

/** Its `errored` is the reason of an unrequested end. */
export class EngineSocket extends Duplex {
  readonly #thread: Worker;
  #answered: Done = () => undefined;

  constructor(thread: Worker) {
    super({ allowHalfOpen: false });
    this.#thread = thread;
    thread.on('message', (answer: EngineAnswer) => this.#receive(answer));
    thread.on('error', (error: Error) => this.destroy(error));
    thread.on('exit', (code) => {
      if (code !== 0) return this.destroy(new Error('the thread of the engine has ended'));
      // The thread has closed the engine, as the driver's last message asked.
      this.push(null);
      return this.#answered();
    });
  }

  static async open(place: EnginePlace): Promise<EngineSocket> {
    return new EngineSocket(await startEngine(place));
  }

  /**
   * The driver writes whole messages, ends them with one that asks for an answer, and waits for it.
   * The thread keeps the process alive until then.
   */
  override _write(messages: Buffer, _encoding: string, done: Done): void {
    this.#answered = done;
    this.#thread.ref();
    // A pooled buffer shares its memory, which could not be transferred.
    const bytes = new Uint8Array(messages);
    this.#thread.postMessage(bytes, [bytes.buffer]);
  }

  override _read(): void {}

  /** The engine writes nothing more. Statements under way fail as those of a lost socket: their outcome is unknown. */
  override _destroy(cause: Error | null, done: Done): void {
    const error = cause && new Error('the embedded database has terminated', { cause });
    void this.#thread.terminate().then(() => done(error));
  }

  #receive(answer: EngineAnswer): void {
    this.#thread.unref();
    if (answer instanceof Error) return void this.destroy(answer);
    const bytes = Buffer.from(answer.buffer, answer.byteOffset, answer.length);
    const isReady = bytes.subarray(-READY_FOR_QUERY.length - 1, -1).equals(READY_FOR_QUERY);
    // The engine hides the cause of its end.
    if (!isReady) return void this.destroy(new Error('the engine has not answered'));
    this.push(bytes);
    this.#answered();
  }

  /** The driver calls these methods of a socket. */
  connect(): void {
    setImmediate(() => this.emit('connect'));
  }
  setNoDelay(): void {}
}
