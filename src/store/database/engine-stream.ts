/**
 * The embedded engine as a socket: the driver speaks PostgreSQL's protocol with it and parses the
 * response itself. The engine's own adapter would parse it with a TextDecoder, which drops a U+FEFF
 * at the start of every value.
 */
import { Duplex } from 'node:stream';
import type { PGlite } from '@electric-sql/pglite';

type Done = (error?: Error | null) => void;

/**
 * AuthenticationOk, ReadyForQuery: the engine is in this process, and there is nothing to agree on.
 */
const WELCOME = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0, 0x5a, 0, 0, 0, 5, 0x49]);
const TERMINATE = 0x58;

export class EngineStream extends Duplex {
  readonly #engine: PGlite;
  #isWelcome = false;

  constructor(engine: PGlite) {
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

  /** The driver writes whole messages. */
  async #exchange(messages: readonly Buffer[]): Promise<void> {
    if (!this.#isWelcome) {
      this.#isWelcome = true;
      this.push(WELCOME);
      return;
    }
    // The end of the connection is not the end of the engine.
    const served = messages.filter((message) => message[0] !== TERMINATE);
    if (served.length === 0) return;
    const answers: Buffer[] = [];
    // Not `execProtocolRaw`: it parses each answer as well, and keeps the messages for as long as
    // the engine lives.
    await this.#engine.execProtocolRawStream(Buffer.concat(served), {
      // The engine writes the next part into the same memory.
      onRawData: (part) => answers.push(Buffer.from(part)),
    });
    for (const answer of answers) this.push(answer);
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
