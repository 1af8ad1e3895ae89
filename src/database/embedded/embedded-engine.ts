/**
 * The engine of an embedded database: its thread, the one connection to it, and the lock of its
 * folder. An engine that has ended by itself is started again for the next caller, because all that
 * was committed is in the folder. An engine in memory has lost its content, and stays ended.
 */
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import type pg from 'pg';
import { ident, raw, type Sql } from '../../sql.ts';
import { codeOf, reasonOf } from '../../thrown.ts';
import { deliver, StoreError, type Subscription } from '../contract.ts';
import { CellClient } from '../pg-internals.ts';
import { damaged, requireSameVersion } from './data-folder.ts';
import { EngineStream, EngineThread } from './engine-thread.ts';
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
  readonly thread: EngineThread;
  readonly client: pg.Client;
  /** Why the connection ended. */
  end: Error | undefined;
}

/** Milliseconds until an engine that could not be started is tried again. */
const RESTART_RETRY_MS = 1_000;

export class EmbeddedEngine {
  readonly #options: EmbeddedOptions;
  readonly #lock: FolderLock | undefined;
  readonly #subscriptions = new Set<Subscription>();
  #running: Running;
  #failure: { readonly at: number; readonly error: unknown } | undefined;

  private constructor(options: EmbeddedOptions, lock: FolderLock | undefined, running: Running) {
    this.#options = options;
    this.#lock = lock;
    this.#running = running;
    this.#deliverFrom(running);
  }

  /** Throws what `lockFolder` throws, and `FolderUnusable`. */
  static async open(options: EmbeddedOptions): Promise<EmbeddedEngine> {
    const lock = options.dataDir === undefined ? undefined : await lockFolder(options.dataDir);
    try {
      return new EmbeddedEngine(options, lock, await startEngine(options));
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
    const { thread, end } = this.#running;
    const ended = thread.failure ?? end;
    if (ended !== undefined && this.folder !== undefined) await this.#restart(ended);
    return this.#running.client;
  }

  /** Delivers notifications once the channel is listened to. Returns a function that ends the subscription. */
  subscribe(subscription: Subscription): () => void {
    this.#subscriptions.add(subscription);
    return () => void this.#subscriptions.delete(subscription);
  }

  async close(): Promise<void> {
    const { client, thread } = this.#running;
    await client.end();
    await thread.close();
    await this.#lock?.release();
  }

  async #restart(end: Error): Promise<void> {
    const { at, error } = this.#failure ?? { at: Number.NEGATIVE_INFINITY, error: end };
    if (performance.now() - at < RESTART_RETRY_MS) throw engineUnavailable(error);
    for (const { onState } of this.#subscriptions) onState(false);
    await kill(this.#running);
    try {
      this.#running = await startEngine(this.#options);
      this.#deliverFrom(this.#running);
      for (const { channel } of this.#subscriptions) await this.#running.client.query(listenTo(channel).text);
    } catch (failure) {
      this.#failure = { at: performance.now(), error: failure };
      // A new engine that cannot LISTEN must not pass for the one before.
      await kill(this.#running);
      process.emitWarning(`the embedded database has ended and cannot be started again (${reasonOf(failure)})`);
      throw engineUnavailable(failure);
    }
    process.emitWarning(`the embedded database has ended (${reasonOf(end)}), and was started again`);
    for (const { onState } of this.#subscriptions) onState(true);
  }

  #deliverFrom({ client }: Running): void {
    client.on('notification', (message) => deliver(message, this.#subscriptions));
  }
}

export const listenTo = (channel: string): Sql => raw(`LISTEN ${ident(channel).text}`);

const engineFolderOf = ({ dataDir }: EmbeddedOptions): string | undefined =>
  dataDir === undefined ? undefined : join(dataDir, 'database');

const engineUnavailable = (cause: unknown): StoreError => new StoreError('unavailable', undefined, cause);

async function startEngine(options: EmbeddedOptions): Promise<Running> {
  const thread = await startThread(engineFolderOf(options), options.snapshot);
  try {
    const running: Running = { thread, client: await connect(thread, options.searchPath), end: undefined };
    running.client.on('error', (error) => {
      running.end ??= error;
    });
    running.client.on('end', () => {
      running.end ??= new Error('its connection has ended');
    });
    return running;
  } catch (error) {
    await thread.close();
    throw error;
  }
}

/** The engine writes nothing more. */
async function kill({ thread, client }: Running): Promise<void> {
  await thread.kill();
  await client.end();
}

async function startThread(folder: string | undefined, snapshot: Blob | undefined): Promise<EngineThread> {
  if (folder === undefined) return EngineThread.start({ snapshot: await snapshot?.arrayBuffer() });
  await requireSameVersion(folder);
  const thread = await EngineThread.start({ folder }).catch((error: unknown) => {
    throw isSystemError(error) ? error : damaged(folder, error);
  });
  await chmod(folder, 0o700);
  return thread;
}

/**
 * A folder that may not be read or written, a thread that cannot start, a missing package: the
 * folder is not damaged.
 */
const isSystemError = (error: unknown): boolean =>
  error instanceof Error && ('syscall' in error || String(codeOf(error)).startsWith('ERR_'));

async function connect(thread: EngineThread, searchPath: string | undefined): Promise<pg.Client> {
  // Every option that the environment could change is set here.
  const client = new CellClient({
    stream: () => new EngineStream(thread),
    ssl: false,
    user: 'postgres',
    database: 'postgres',
  });
  client.on('error', () => undefined);
  await client.connect();
  await client.query(
    `SET TimeZone = 'UTC'; SET DateStyle = 'ISO'; SET bytea_output = 'hex'; SET extra_float_digits = 1`,
  );
  if (searchPath) await client.query(`SET search_path = ${ident(searchPath).text}`);
  return client;
}
