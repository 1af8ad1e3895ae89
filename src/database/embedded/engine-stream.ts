/**
 * The embedded engine as a socket: the driver speaks PostgreSQL's protocol with it and parses the
 * response. The engine's own adapter parses with a TextDecoder, which drops a U+FEFF at the start
 * of every value.
 */
import { Duplex } from 'node:stream';
import type { EngineThread } from './engine-thread.ts';

type Done = (error?: Error | null) => void;

/** The beginning of a ReadyForQuery; its last byte reports an open transaction. */
const READY_FOR_QUERY = Buffer.from([0x5a, 0, 0, 0, 5]);
/** AuthenticationOk, ReadyForQuery: an engine in this process negotiates nothing. */
const WELCOME = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0, ...READY_FOR_QUERY, 0x49]);
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
