/**
 * The engine of an embedded database, the connection to it, and the lock of its folder. An engine that has ended by itself is
 * started again for who asks next: what was committed is in the folder. One in memory has lost its content, and stays ended.
 */
import { join } from 'node:path';
import type pg from 'pg';
import { ident, raw, type Sql } from '../../sql.ts';
import { reasonOf } from '../../thrown.ts';
import { StoreError } from '../contract.ts';
import { type FolderLock, lockFolder } from './folder-lock.ts';
import { RunningEngine } from './running-engine.ts';

export interface EmbeddedOptions {
  /** In memory without it. */
  readonly dataDir?: string;
  readonly searchPath?: string;
  /**
   * The initial content of one in memory, from `dumpDataDir`: several times faster to read than to
   * make.
   */
  readonly snapshot?: Blob;
  readonly preparedStatements?: number;
}

/** Who listens to a channel. */
interface Hearer {
  readonly channel: string;
  readonly onMessage: (payload: string) => void;
  readonly onState: (up: boolean) => void;
}

/** Milliseconds until an engine that could not be started is tried again. */
const RETRY_MS = 1_000;

export class EmbeddedEngine {
  readonly folder: string | undefined;
  readonly #options: EmbeddedOptions;
  readonly #lock: FolderLock | undefined;
  readonly #hearers = new Set<Hearer>();
  #running: RunningEngine;
  #failure: { readonly at: number; readonly error: unknown } | undefined;

  private constructor(options: EmbeddedOptions, lock: FolderLock | undefined, running: RunningEngine) {
    this.folder = folderOf(options);
    this.#options = options;
    this.#lock = lock;
    this.#running = running;
    this.#hear(running);
  }

  /** Throws what `lockFolder` throws, and what is wrong with the folder. */
  static async open(options: EmbeddedOptions): Promise<EmbeddedEngine> {
    const lock = options.dataDir === undefined ? undefined : await lockFolder(options.dataDir);
    try {
      return new EmbeddedEngine(options, lock, await start(options));
    } catch (error) {
      await lock?.release();
      throw error;
    }
  }

  /** For one at a time. Throws `unavailable` where the engine has ended and cannot be started again. */
  async client(): Promise<pg.Client> {
    if (this.#running.end !== undefined && this.folder !== undefined) await this.#restart(this.#running.end);
    return this.#running.client;
  }

  /** What comes from now on, once the channel is listened to. Returns what ends it. */
  hear(hearer: Hearer): () => void {
    this.#hearers.add(hearer);
    return () => void this.#hearers.delete(hearer);
  }

  async close(): Promise<void> {
    await this.#running.close();
    await this.#lock?.release();
  }

  async #restart(end: Error): Promise<void> {
    const { at, error } = this.#failure ?? { at: Number.NEGATIVE_INFINITY, error: end };
    if (performance.now() - at < RETRY_MS) throw unavailable(error);
    for (const { onState } of this.#hearers) onState(false);
    await this.#running.kill();
    try {
      this.#running = await start(this.#options);
      this.#hear(this.#running);
      for (const { channel } of this.#hearers) await this.#running.client.query(listenTo(channel).text);
    } catch (failure) {
      this.#failure = { at: performance.now(), error: failure };
      // One that has started, and does not listen, is not taken for the one before.
      await this.#running.kill();
      process.emitWarning(`the embedded database has ended and cannot be started again (${reasonOf(failure)})`);
      throw unavailable(failure);
    }
    process.emitWarning(`the embedded database has ended (${reasonOf(end)}), and was started again`);
    for (const { onState } of this.#hearers) onState(true);
  }

  #hear({ client }: RunningEngine): void {
    client.on('notification', ({ channel, payload = '' }) => {
      for (const hearer of this.#hearers) if (hearer.channel === channel) hearer.onMessage(payload);
    });
  }
}

const folderOf = ({ dataDir }: EmbeddedOptions): string | undefined =>
  dataDir === undefined ? undefined : join(dataDir, 'database');

const start = (options: EmbeddedOptions): Promise<RunningEngine> =>
  RunningEngine.start({ ...options, folder: folderOf(options) });

const unavailable = (cause: unknown): StoreError => new StoreError('unavailable', undefined, cause);

export const listenTo = (channel: string): Sql => raw(`LISTEN ${ident(channel).text}`);
