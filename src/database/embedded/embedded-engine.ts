/**
 * The engine of an embedded database: the one connection to it, and the lock of its folder. An
 * engine that has ended by itself is started again for the next caller, because all that was
 * committed is in the folder. An engine in memory has lost its content, and stays ended.
 */
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import type pg from 'pg';
import { type FolderLock, lockFolder } from '../../folder-lock.ts';
import { ident, raw, type Sql } from '../../sql.ts';
import { codeOf, reasonOf } from '../../thrown.ts';
import { deliver, StoreError, type Subscription } from '../contract.ts';
import { CellClient } from '../pg-internals.ts';
import { CELL_FORMAT } from '../server-url.ts';
import { damaged, ensureFolder } from './data-folder.ts';
import { EngineSocket } from './engine-socket.ts';

export interface EmbeddedOptions {
  /** The folder of the data; without it, they stay in memory. */
  readonly dataDir?: string;
  /** The initial content of an engine in memory, from `dumpDataDir`: several times faster to read than to make. */
  readonly snapshot?: Blob | undefined;
  readonly preparedStatements?: number;
}

/** Milliseconds until an engine that could not be started is tried again. */
const RESTART_RETRY_MS = 1_000;

export class EmbeddedEngine {
  /** Undefined in memory. */
  readonly folder: string | undefined;
  /** Notifications are delivered once the channel is listened to. */
  readonly subscriptions = new Set<Subscription>();
  readonly #options: EmbeddedOptions;
  readonly #lock: FolderLock | undefined;
  #socket!: EngineSocket;
  #client!: pg.Client;
  #failure: { readonly at: number; readonly error: unknown } | undefined;

  private constructor(options: EmbeddedOptions, lock: FolderLock | undefined) {
    this.folder = options.dataDir === undefined ? undefined : join(options.dataDir, 'database');
    this.#options = options;
    this.#lock = lock;
  }

  /** Throws what `lockFolder` throws, and `FolderUnusable`. */
  static async open(options: EmbeddedOptions): Promise<EmbeddedEngine> {
    const lock = options.dataDir === undefined ? undefined : await lockFolder(options.dataDir);
    const engine = new EmbeddedEngine(options, lock);
    try {
      await engine.#start();
      return engine;
    } catch (error) {
      await lock?.release();
      throw error;
    }
  }

  /** Serves one caller at a time. Throws `unavailable` if the engine has ended and cannot be started again. */
  async client(): Promise<pg.Client> {
    if (this.#socket.destroyed && this.folder !== undefined) await this.#restart();
    return this.#client;
  }

  /** An engine that has ended by itself is closed. */
  async close(): Promise<void> {
    const hasEnded = this.#socket.destroyed;
    await this.#client.end();
    await this.#lock?.release();
    if (!hasEnded && this.#socket.errored) throw this.#socket.errored;
  }

  async #restart(): Promise<void> {
    const { at, error } = this.#failure ?? { at: Number.NEGATIVE_INFINITY, error: undefined };
    if (performance.now() - at < RESTART_RETRY_MS) throw new StoreError('unavailable', error);
    const reason = this.#socket.errored?.message ?? 'its connection has ended';
    for (const { onState } of this.subscriptions) onState(false);
    try {
      // The ended engine writes nothing more.
      await this.#client.end();
      await this.#start();
    } catch (failure) {
      this.#failure = { at: performance.now(), error: failure };
      process.emitWarning(`the embedded database has ended and cannot be started again (${reasonOf(failure)})`);
      throw new StoreError('unavailable', failure);
    }
    process.emitWarning(`the embedded database has ended (${reason}), and was started again`);
    for (const { onState } of this.subscriptions) onState(true);
  }

  /** A failed start changes nothing: its engine has ended. */
  async #start(): Promise<void> {
    const { folder } = this;
    const { snapshot } = this.#options;
    if (folder !== undefined) await ensureFolder(folder);
    const socket = await EngineSocket.open({ folder, snapshot });
    // Every option that the environment could change is set here.
    const client = new CellClient({ stream: () => socket, ssl: false, user: 'postgres', database: 'postgres' });
    client.on('notification', (message) => deliver(message, this.subscriptions));
    try {
      await client.connect().catch((error: unknown) => {
        throw engineStartError(socket.errored ?? error, folder);
      });
      const format = Object.entries(CELL_FORMAT).map(([name, value]) => `SET ${name} = '${value}'`);
      await client.query(format.join('; '));
      for (const { channel } of this.subscriptions) await client.query(listenTo(channel).text);
      if (folder !== undefined) await chmod(folder, 0o700);
    } catch (error) {
      await client.end();
      throw error;
    }
    this.#socket = socket;
    this.#client = client;
  }
}

export const listenTo = (channel: string): Sql => raw(`LISTEN ${ident(channel).text}`);

/**
 * A folder that may not be read or written, a thread that cannot start, a missing package: the folder is not damaged.
 */
function engineStartError(error: unknown, folder: string | undefined): unknown {
  const isSystemError = error instanceof Error && ('syscall' in error || String(codeOf(error)).startsWith('ERR_'));
  return folder === undefined || isSystemError ? error : damaged(folder, error);
}
