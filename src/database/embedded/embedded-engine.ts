/**
 * The engine of an embedded database: the one connection to it, and the lock of its folder. An
 * engine that has ended by itself is started again for the next caller, because all that was
 * committed is in the folder. An engine in memory has lost its content, and stays ended.
 */
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import type pg from 'pg';
import { ident, raw, type Sql } from '../../sql.ts';
import { codeOf, reasonOf } from '../../thrown.ts';
import { deliver, StoreError, type Subscription } from '../contract.ts';
import { CellClient } from '../pg-internals.ts';
import { damaged, requireSameVersion } from './data-folder.ts';
import { EngineSocket } from './engine-socket.ts';
import { type FolderLock, lockFolder } from './folder-lock.ts';

export interface EmbeddedOptions {
  /** The folder of the data; without it, they stay in memory. */
  readonly dataDir?: string;
  readonly searchPath?: string;
  /** The initial content of an engine in memory, from `dumpDataDir`: several times faster to read than to make. */
  readonly snapshot?: Blob;
  readonly preparedStatements?: number;
}

interface Running {
  readonly socket: EngineSocket;
  readonly client: pg.Client;
}

/** Milliseconds until an engine that could not be started is tried again. */
const RESTART_RETRY_MS = 1_000;

export class EmbeddedEngine {
  readonly #options: EmbeddedOptions;
  readonly #lock: FolderLock | undefined;
  readonly #subscriptions = new Set<Subscription>();
  #running!: Running;
  #failure: { readonly at: number; readonly error: unknown } | undefined;

  private constructor(options: EmbeddedOptions, lock: FolderLock | undefined) {
    this.#options = options;
    this.#lock = lock;
  }

  /** Throws what `lockFolder` throws, and `FolderUnusable`. */
  static async open(options: EmbeddedOptions): Promise<EmbeddedEngine> {
    const lock = options.dataDir === undefined ? undefined : await lockFolder(options.dataDir);
    const engine = new EmbeddedEngine(options, lock);
    try {
      engine.#running = await startEngine(options, engine.#subscriptions);
      return engine;
    } catch (error) {
      await lock?.release();
      throw error;
    }
  }

  get folder(): string | undefined {
    return engineFolderOf(this.#options);
  }

  /** Serves one caller at a time. Throws `unavailable` if the engine has ended and cannot be started again. */
  async client(): Promise<pg.Client> {
    if (this.#running.socket.destroyed && this.folder !== undefined) await this.#restart();
    return this.#running.client;
  }

  /** Delivers notifications once the channel is listened to. Returns a function that ends the subscription. */
  subscribe(subscription: Subscription): () => void {
    this.#subscriptions.add(subscription);
    return () => void this.#subscriptions.delete(subscription);
  }

  /** An engine that has ended by itself is closed. */
  async close(): Promise<void> {
    const { client, socket } = this.#running;
    const hasEnded = socket.destroyed;
    await client.end();
    await this.#lock?.release();
    if (!hasEnded && socket.errored) throw socket.errored;
  }

  async #restart(): Promise<void> {
    const { at, error } = this.#failure ?? { at: Number.NEGATIVE_INFINITY, error: undefined };
    if (performance.now() - at < RESTART_RETRY_MS) throw engineUnavailable(error);
    for (const { onState } of this.#subscriptions) onState(false);
    const { client, socket } = this.#running;
    await client.end();
    try {
      this.#running = await startEngine(this.#options, this.#subscriptions);
    } catch (failure) {
      this.#failure = { at: performance.now(), error: failure };
      process.emitWarning(`the embedded database has ended and cannot be started again (${reasonOf(failure)})`);
      throw engineUnavailable(failure);
    }
    const reason = socket.errored?.message ?? 'its connection has ended';
    process.emitWarning(`the embedded database has ended (${reason}), and was started again`);
    for (const { onState } of this.#subscriptions) onState(true);
  }
}

export const listenTo = (channel: string): Sql => raw(`LISTEN ${ident(channel).text}`);

const engineFolderOf = ({ dataDir }: EmbeddedOptions): string | undefined =>
  dataDir === undefined ? undefined : join(dataDir, 'database');

const engineUnavailable = (cause: unknown): StoreError => new StoreError('unavailable', undefined, cause);

/** An engine that fails at its start writes nothing more. */
async function startEngine(options: EmbeddedOptions, subscriptions: ReadonlySet<Subscription>): Promise<Running> {
  const folder = engineFolderOf(options);
  if (folder !== undefined) await requireSameVersion(folder);
  const socket = await EngineSocket.open({ folder, snapshot: await options.snapshot?.arrayBuffer() });
  // Every option that the environment could change is set here.
  const client = new CellClient({ stream: () => socket, ssl: false, user: 'postgres', database: 'postgres' });
  client.on('error', () => undefined);
  client.on('notification', (message) => deliver(message, subscriptions));
  try {
    await client.connect().catch((error: unknown) => {
      throw startError(socket.errored ?? error, folder);
    });
    await client.query(
      `SET TimeZone = 'UTC'; SET DateStyle = 'ISO'; SET bytea_output = 'hex'; SET extra_float_digits = 1`,
    );
    if (options.searchPath) await client.query(`SET search_path = ${ident(options.searchPath).text}`);
    for (const { channel } of subscriptions) await client.query(listenTo(channel).text);
    if (folder !== undefined) await chmod(folder, 0o700);
    return { socket, client };
  } catch (error) {
    await client.end();
    throw error;
  }
}

/**
 * A folder that may not be read or written, a thread that cannot start, a missing package: the
 * folder is not damaged.
 */
function startError(error: unknown, folder: string | undefined): unknown {
  const isSystemError = error instanceof Error && ('syscall' in error || String(codeOf(error)).startsWith('ERR_'));
  return folder === undefined || isSystemError ? error : damaged(folder, error);
}
