/**
 * The embedded engine as a socket: the driver speaks PostgreSQL's protocol with it and parses the
 * response itself. The engine's own adapter would parse it with a TextDecoder, which drops a U+FEFF
 * at the start of every value.
 */
import { Duplex } from 'node:stream';
import type { EngineThread } from './engine-thread.ts';

type Done = (error?: Error | null) => void;

/** The beginning of a ReadyForQuery; the last byte says whether a transaction is open. */
const READY = Buffer.from([0x5a, 0, 0, 0, 5]);
/**
 * AuthenticationOk, ReadyForQuery: the engine is in this process, and there is nothing to agree on.
 */
const WELCOME = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0, ...READY, 0x49]);
const TERMINATE = 0x58;

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

  /** What was written at once, or while an answer was awaited, goes in one call. */
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
    // The engine hides what ended it.
    if (!isReady(answer)) throw terminated(new Error('the engine has not answered'));
    this.push(answer);
  }

  /** What the driver asks of a socket. */
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

const isReady = (answer: Buffer): boolean => answer.subarray(-READY.length - 1, -1).equals(READY);

/** As of a socket: what was asked is done, or not. */
const terminated = (cause: unknown): Error => new Error('the embedded database has terminated', { cause });
