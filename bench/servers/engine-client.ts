/**
 * PGlite by the messages of PostgreSQL's protocol. Its `query` prepares each statement anew, and each of the messages is a call of the engine.
 * Here statements are prepared once, all that are asked in a turn of the event loop go in one call and share a transaction, messages are
 * written by hand, and rows are cut from the bytes.
 */
import { type PGlite, protocol } from '@electric-sql/pglite';
import type { Answer, Ask, Cells } from './ask.ts';

const { serialize } = protocol;
const EXECUTE = serialize.execute();
const SYNC = serialize.sync();

interface Asked {
  readonly message: Uint8Array;
  readonly resolve: (answer: Answer<Cells>) => void;
  readonly reject: (error: Error) => void;
}

export class EngineClient {
  readonly #engine: PGlite;
  readonly #prepared = new Set<string>();
  #asked: Asked[] = [];

  constructor(engine: PGlite) {
    this.#engine = engine;
  }

  readonly ask: Ask<Cells> = async (name, text, values) => {
    if (!this.#prepared.has(name)) await this.#prepare(name, text);
    const { promise, resolve, reject } = Promise.withResolvers<Answer<Cells>>();
    if (this.#asked.push({ message: bindMessage(name, values), resolve, reject }) === 1) setImmediate(this.#sendAll);
    return promise;
  };

  async #prepare(name: string, text: string): Promise<void> {
    // A caller that asks for it meanwhile comes after it.
    this.#prepared.add(name);
    const { error } = await this.#exchange([serialize.parse({ name, text })]);
    if (error === undefined) return;
    this.#prepared.delete(name);
    throw new Error(error);
  }

  readonly #sendAll = (): void => {
    const asked = this.#asked;
    this.#asked = [];
    void this.#send(asked);
  };

  /** An error undoes all that share its transaction, so each is asked again alone. */
  async #send(asked: readonly Asked[]): Promise<void> {
    const { answers, error } = await this.#exchange(asked.flatMap(({ message }) => [message, EXECUTE]));
    if (error === undefined) for (const [i, { resolve }] of asked.entries()) resolve(answers[i]!);
    else if (asked.length === 1) asked[0]!.reject(new Error(error));
    else for (const each of asked) await this.#send([each]);
  }

  async #exchange(messages: readonly Uint8Array[]): Promise<Received> {
    const parts: Buffer[] = [];
    // The engine is not asynchronous, and writes the next part into the same memory.
    await this.#engine.execProtocolRawStream(Buffer.concat([...messages, SYNC]), {
      syncToFs: false,
      onRawData: (part) => parts.push(Buffer.from(part)),
    });
    return receive(parts.length === 1 ? parts[0]! : Buffer.concat(parts));
  }
}

interface Received {
  readonly answers: readonly Answer<Cells>[];
  readonly error: string | undefined;
}
/** Types of messages. */
const [ROW, COMPLETE, ERROR] = ['D', 'C', 'E'].map((type) => type.charCodeAt(0));

function receive(bytes: Buffer): Received {
  const answers: Answer<Cells>[] = [];
  let rows: Cells[] = [];
  for (let at = 0, end = 0; at < bytes.length; at = end) {
    end = at + 1 + bytes.readUInt32BE(at + 1);
    const type = bytes[at];
    if (type === ROW) rows.push(cellsOf(bytes, at + 5, end));
    else if (type === COMPLETE) {
      // `UPDATE 1`, and a zero byte.
      const tag = bytes.toString('latin1', at + 5, end - 1);
      answers.push({ rows, count: Number(tag.slice(tag.lastIndexOf(' ') + 1)) });
      rows = [];
    } else if (type === ERROR) return { answers, error: bytes.toString('utf8', at + 5, end).replaceAll('\0', ' ') };
  }
  return { answers, error: undefined };
}

/** For longer cells, one call that decodes costs less than looking at each byte. */
const SHORT_CELL = 48;

function cellsOf(bytes: Buffer, from: number, end: number): Cells {
  const cells: (string | null)[] = new Array(bytes.readUInt16BE(from));
  // For ASCII, which most cells are, latin1 gives the same characters as UTF-8.
  const row = bytes.toString('latin1', from, end);
  let at = from + 2;
  for (let i = 0; i < cells.length; i++) {
    const length = bytes.readInt32BE(at);
    const start = at + 4;
    at = start + Math.max(0, length);
    if (length < 0) cells[i] = null;
    else if (length <= SHORT_CELL && isAscii(bytes, start, at)) cells[i] = row.slice(start - from, at - from);
    else cells[i] = bytes.toString('utf8', start, at);
  }
  return cells;
}

function isAscii(bytes: Buffer, from: number, end: number): boolean {
  for (let i = from; i < end; i++) if (bytes[i]! > 0x7f) return false;
  return true;
}

/** Values as text, as the columns parse it. */
function bindMessage(statement: string, values: readonly unknown[]): Buffer {
  const texts = values.map((value) => (value === null ? null : String(value)));
  const sizes = texts.map((text) => (text === null ? 0 : Buffer.byteLength(text)));
  const size = sizes.reduce((sum, each) => sum + 4 + each, 13 + statement.length);
  const message = Buffer.allocUnsafe(size);
  // Type, length, portal (none), statement.
  message.write(`B\0\0\0\0\0${statement}\0`, 'latin1');
  message.writeInt32BE(size - 1, 1);
  // All parameters and columns have the default format, which is text.
  let at = message.writeInt32BE(texts.length, 7 + statement.length);
  for (const [i, text] of texts.entries()) {
    at = message.writeInt32BE(text === null ? -1 : sizes[i]!, at);
    if (text !== null) at += message.write(text, at);
  }
  message.writeInt16BE(0, at);
  return message;
}
