/**
 * The folder of the embedded database, on a disk that keeps synced data only. The engine believes that every sync
 * succeeds immediately; this class syncs tables (at checkpoints) after the write-ahead log, and the log within a second
 * of each write, because waiting for the disk at each commit would hold up every statement. A power failure costs at
 * most the writes of the last second.
 */
import { closeSync, fsyncSync, openSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { PGlite } from '@electric-sql/pglite';
import { NodeFS } from '@electric-sql/pglite/nodefs';
import { inRounds } from '../../in-rounds.ts';
import { codeOf, reasonOf, unlessMissing } from '../../thrown.ts';

const LOG_DELAY_MS = 1_000;
const LOG = 'pg_wal';

/** A disk keeps synced files. Paths are absolute. */
export interface Disk {
  sync(path: string): void;
  syncLater(path: string): Promise<void>;
}

const DISK: Disk = {
  sync(path) {
    const file = openSync(path, 'r');
    try {
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
  },
  async syncLater(path) {
    const file = await open(path, 'r');
    try {
      await file.datasync();
    } finally {
      await file.close();
    }
  },
};

interface FileStream {
  readonly node: unknown;
}
/** The replaced part of the engine's own file system. */
interface EngineFiles {
  realPath(node: unknown): string;
  readonly stream_ops: {
    fsync?(stream: FileStream): number;
    write(stream: FileStream, ...more: unknown[]): number;
  };
}

type EngineOptions = Parameters<NodeFS['init']>[1];

export class SyncedFolder extends NodeFS {
  readonly #disk: Disk;
  /** Files of the log that were written since their last sync, or whose sync failed. */
  readonly #unsynced = new Set<string>();
  /** Files of the log whose sync is under way. */
  #syncing: readonly string[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(folder: string, disk = DISK) {
    super(folder);
    this.#disk = disk;
  }

  override async init(engine: PGlite, options: EngineOptions): ReturnType<NodeFS['init']> {
    const preRun = (module: object): void => this.#replace((module as { readonly NODEFS: EngineFiles }).NODEFS);
    return super.init(engine, { ...options, preRun: [...(options.preRun ?? []), preRun] } as EngineOptions);
  }

  override async closeFs(): Promise<void> {
    clearTimeout(this.#timer);
    this.#syncLog();
    await super.closeFs();
  }

  #replace(files: EngineFiles): void {
    const { write } = files.stream_ops;
    const log = join(this.rootDir, LOG, '/');
    // The engine builds a path at each request, which costs a write a quarter of its time.
    const isOfLog = new WeakMap<FileStream, boolean>();
    files.stream_ops.write = (stream, ...more) => {
      const written = write(stream, ...more);
      let isLog = isOfLog.get(stream);
      if (isLog === undefined) {
        isLog = files.realPath(stream.node).startsWith(log);
        isOfLog.set(stream, isLog);
      }
      if (isLog) this.#noteUnsynced(files.realPath(stream.node));
      return written;
    };
    files.stream_ops.fsync = (stream) => {
      // A table on the disk that is ahead of the log could not be recovered.
      this.#syncLog();
      this.#disk.sync(files.realPath(stream.node));
      return 0;
    };
  }

  #noteUnsynced(path: string): void {
    this.#unsynced.add(path);
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.#syncLogLater();
    }, LOG_DELAY_MS).unref();
  }

  /** PostgreSQL removes or renames a file of the log once a checkpoint has synced all that it holds. */
  #syncLog(): void {
    for (const path of this.#withFolder(new Set([...this.#unsynced, ...this.#syncing]))) {
      try {
        this.#disk.sync(path);
      } catch (error) {
        if (codeOf(error) !== 'ENOENT') throw error;
      }
    }
    this.#unsynced.clear();
  }

  readonly #syncLogLater = inRounds(async () => {
    this.#syncing = [...this.#unsynced];
    this.#unsynced.clear();
    try {
      for (const path of this.#withFolder(this.#syncing)) await unlessMissing(this.#disk.syncLater(path));
    } catch (error) {
      process.emitWarning(`the log of the embedded database cannot be synced (${reasonOf(error)})`);
      for (const path of this.#syncing) this.#noteUnsynced(path);
    }
    this.#syncing = [];
  });

  /** After a failure, a new file exists only if its folder was synced. */
  #withFolder(paths: Iterable<string>): readonly string[] {
    const files = [...paths];
    return files.length === 0 ? [] : [...files, join(this.rootDir, LOG)];
  }
}
