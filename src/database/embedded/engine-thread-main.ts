/**
 * The main file of the thread of an `EngineSocket`: a server of PostgreSQL's protocol for one
 * connection, which negotiates nothing. An error at the start ends the thread.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { PGlite } from '@electric-sql/pglite';
import { invariant } from '../../invariant.ts';
import type { EngineAnswer, EngineStart } from './engine-socket.ts';
import { SyncedFolder } from './synced-folder.ts';

/** `-F` is `fsync = off`. */
const SYNCED = PGlite.defaultStartParams.filter((param) => param !== '-F');

/** The packet that starts a connection has no type: its first byte is one of its length. */
const STARTUP = 0;
/** AuthenticationOk, ReadyForQuery. */
const WELCOME = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0, 0x5a, 0, 0, 0, 5, 0x49]);
const TERMINATE = 0x58;

function startPglite({ folder, snapshot, code }: EngineStart): Promise<PGlite> {
  const options = { pgliteWasmModule: code };
  if (folder === undefined) return PGlite.create({ ...options, loadDataDir: snapshot && new Blob([snapshot]) });
  return PGlite.create({ ...options, fs: new SyncedFolder(folder), startParams: SYNCED });
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

invariant(parentPort !== null, 'this file is the main file of a thread');
const port = parentPort;
const send = (answer: EngineAnswer): void => port.postMessage(answer, answer instanceof Error ? [] : [answer.buffer]);

const engine = await startPglite(workerData as EngineStart);
port.on('message', (messages: Uint8Array) => void execute(engine, messages).then(send));
