/**
 * Engines in memory that outlive their databases. A start takes half a second of a processor, and each suite of a worker begins
 * with the same content: an empty database.
 */
import { EventEmitter } from 'node:events';
import type { Worker } from 'node:worker_threads';
import { type EngineAnswer, EngineSocket, startEngine } from '../../../src/database/embedded/engine-socket.ts';

/** Rows of dropped tables stay in the catalogue, and slow later migrations. */
const MOST_USES = 32;
/** The types of messages of PostgreSQL's protocol. */
const [QUERY, TERMINATE, ERROR] = [0x51, 0x58, 0x45];

const RESET = [
  // A test that failed may have left a transaction.
  'ROLLBACK',
  'DISCARD ALL',
  `DO $$
   DECLARE name text;
   BEGIN
     FOR name IN SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' LOOP
       EXECUTE format('DROP SCHEMA %I CASCADE', name);
     END LOOP;
     CREATE SCHEMA public;
   END $$`,
];

function messageOf(query: string): Uint8Array<ArrayBuffer> {
  const text = Buffer.from(query);
  const message = new Uint8Array(text.length + 6);
  message[0] = QUERY;
  new DataView(message.buffer).setUint32(1, text.length + 5);
  message.set(text, 5);
  return message;
}

interface Engine {
  readonly thread: Worker;
  readonly uses: number;
}

const free: Engine[] = [];

/** The thread as one socket has it: its end gives the engine back. */
class Lease extends EventEmitter {
  readonly #engine: Engine;
  #isOver = false;
  readonly #pass = ['message', 'error', 'exit'].map(
    (event) => [event, (value: unknown) => void this.emit(event, value)] as const,
  );

  constructor(engine: Engine) {
    super();
    this.#engine = engine;
    for (const [event, pass] of this.#pass) engine.thread.on(event, pass);
  }

  postMessage(message: Uint8Array<ArrayBuffer>, transferred: readonly ArrayBuffer[]): void {
    if (message[0] === TERMINATE) void this.#giveBack();
    else this.#engine.thread.postMessage(message, transferred);
  }

  ref(): void {
    this.#engine.thread.ref();
  }

  unref(): void {
    this.#engine.thread.unref();
  }

  async terminate(): Promise<void> {
    if (!this.#isOver) await this.#engine.thread.terminate();
  }

  async #giveBack(): Promise<void> {
    const { thread, uses } = this.#engine;
    this.#isOver = true;
    for (const [event, pass] of this.#pass) thread.off(event, pass);
    const isEmpty = uses < MOST_USES && (await isReset(thread));
    if (isEmpty) free.push({ thread, uses: uses + 1 });
    else await thread.terminate();
    thread.unref();
    this.emit('exit', 0);
  }
}

async function isReset(thread: Worker): Promise<boolean> {
  for (const query of RESET) {
    const message = messageOf(query);
    const { promise: answered, resolve } = Promise.withResolvers<EngineAnswer>();
    const onExit = (): void => resolve(new Error('the engine has ended'));
    thread.once('message', resolve);
    thread.once('exit', onExit);
    thread.postMessage(message, [message.buffer]);
    const answer = await answered;
    thread.off('exit', onExit);
    if (answer instanceof Error || answer[0] === ERROR) return false;
  }
  return true;
}

const openNew = EngineSocket.open.bind(EngineSocket);

/** For the rest of a file that is about engines themselves. */
export function keepNoEngines(): void {
  EngineSocket.open = openNew;
}

/** From now on, sockets to databases in memory lead to engines that are kept. */
export function keepEngines(): void {
  EngineSocket.open = async (place) => {
    if (place.folder !== undefined || place.snapshot === undefined) return openNew(place);
    const engine = free.pop() ?? { thread: await startEngine(place), uses: 1 };
    return new EngineSocket(new Lease(engine) as unknown as Worker);
  };
}
