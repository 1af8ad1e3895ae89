/**
 * The main file of the thread of an `EngineSocket`: a server of PostgreSQL's protocol for one connection, which negotiates nothing.
 * An error at the start ends the thread. As the main file of a process, it creates the folder that its argument names, without
 * optimised code: the process ends before that would pay, which takes a second of a processor.
 */
import { setFlagsFromString } from 'node:v8';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { type Extension, PGlite } from '@electric-sql/pglite';
import type { EngineAnswer, EngineStart } from './engine-socket.ts';
import { SyncedFolder } from './synced-folder.ts';

/** PostgreSQL's default is 128 MB. The engine's memory holds all of it from the start, and the system caches the files as well. */
const PARAMS = [...PGlite.defaultStartParams, '-c', 'shared_buffers=16MB'];
/** `-F` is `fsync = off`. */
const SYNCED = PARAMS.filter((param) => param !== '-F');

/** The packet that starts a connection has no type, and begins with a byte of its length. */
const [STARTUP, TERMINATE] = [0, 0x58];
/** AuthenticationOk, ReadyForQuery. */
const WELCOME = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0, 0x5a, 0, 0, 0, 5, 0x49]);

function startPglite({ folder, snapshot, code }: EngineStart): Promise<PGlite> {
  const options = { pgliteWasmModule: code, extensions: { unoptimisedParser } };
  if (folder !== undefined) return PGlite.create({ ...options, fs: new SyncedFolder(folder), startParams: SYNCED });
  return PGlite.create({ ...options, loadDataDir: snapshot && new Blob([snapshot]), startParams: PARAMS });
}

/** The used part of the engine's code. */
interface EngineCode {
  stackSave(): number;
  stackRestore(stack: number): void;
  _scanner_init(): void;
  _raw_parser(): void;
}

const unoptimisedParser: Extension = {
  name: 'unoptimised parser',
  setup: async (_engine, options) => ({ emscriptenOpts: { ...options, postRun: [leaveParserUnoptimised] } }),
};

/**
 * V8 would optimise PostgreSQL's parser, the largest function of the engine, at each start: that takes 600 MiB and a second of
 * a processor, and statements are parsed no faster. V8 never optimises a function whose first call falls in a time when a
 * filter names another. The parser fails at its first allocation here, because the engine has not started; the functions
 * that it calls before, the scanner's, are called earlier, because they must be optimised.
 */
function leaveParserUnoptimised(code: EngineCode): void {
  failing(code, code._scanner_init);
  setFlagsFromString('--wasm-tier-up-filter=0');
  failing(code, code._raw_parser);
  setFlagsFromString('--wasm-tier-up-filter=-1');
}

function failing(code: EngineCode, call: () => void): void {
  const stack = code.stackSave();
  try {
    call();
  } catch {
    code.stackRestore(stack);
  }
}

async function execute(engine: PGlite, messages: Uint8Array): Promise<EngineAnswer> {
  const parts: Buffer[] = [];
  try {
    if (messages[0] === STARTUP) parts.push(WELCOME);
    else if (messages[0] === TERMINATE) {
      await engine.close();
      process.exit(0);
    } else {
      // `execProtocolRaw` would parse each answer as well, and keep the messages for the engine's lifetime.
      await engine.execProtocolRawStream(messages, {
        // The engine writes the next part into the same memory.
        onRawData: (part) => parts.push(Buffer.from(part)),
      });
    }
    return joinedParts(parts);
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** In memory of its own, which can be transferred: a large answer is copied once. */
function joinedParts(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function serveEngine(engine: PGlite, port: MessagePort): void {
  const send = (answer: EngineAnswer): void => port.postMessage(answer, answer instanceof Error ? [] : [answer.buffer]);
  port.on('message', (messages: Uint8Array) => void execute(engine, messages).then(send));
}

if (parentPort === null) {
  setFlagsFromString('--wasm-tier-up-filter=0');
  await (await PGlite.create({ fs: new SyncedFolder(process.argv[2]!), startParams: SYNCED })).close();
} else serveEngine(await startPglite(workerData as EngineStart), parentPort);
