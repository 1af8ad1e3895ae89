/** The main file of `EngineThread`: the engine executes its requests. An error at the start ends the thread. */
import { parentPort, workerData } from 'node:worker_threads';
import { PGlite } from '@electric-sql/pglite';
import { invariant } from '../../invariant.ts';
import type { EngineReply, EngineRequest, EngineStart } from './engine-thread.ts';
import { SyncedFolder } from './synced-folder.ts';

/** `-F` is `fsync = off`. */
const SYNCED = PGlite.defaultStartParams.filter((param) => param !== '-F');

function startPglite({ folder, snapshot, code }: EngineStart): Promise<PGlite> {
  const options = { pgliteWasmModule: code };
  if (folder === undefined) return PGlite.create({ ...options, loadDataDir: snapshot && new Blob([snapshot]) });
  return PGlite.create({ ...options, fs: new SyncedFolder(folder), startParams: SYNCED });
}

async function execute(engine: PGlite, request: EngineRequest): Promise<EngineReply> {
  const parts: Buffer[] = [];
  try {
    if (request === 'close') await engine.close();
    else {
      // `execProtocolRaw` would parse each answer as well, and keep the messages for the engine's lifetime.
      await engine.execProtocolRawStream(request, {
        // The engine writes the next part into the same memory.
        onRawData: (part) => parts.push(Buffer.from(part)),
      });
    }
    return { bytes: new Uint8Array(Buffer.concat(parts)) };
  } catch (error) {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }
}

invariant(parentPort !== null, 'this file is the main file of a thread');
const port = parentPort;
const send = (reply: EngineReply): void => port.postMessage(reply, 'bytes' in reply ? [reply.bytes.buffer] : []);

const engine = await startPglite(workerData as EngineStart);
port.on('message', (request: EngineRequest) => void execute(engine, request).then(send));
send({ bytes: new Uint8Array() });
