/**
 * The folder of the embedded database, on a disk that keeps synced data only. The engine believes
 * that every sync succeeds immediately; this class syncs tables (at checkpoints) after the
 * write-ahead log, and the log within a second of each write, because waiting for the disk at each
 * commit would hold up every statement. A power failure costs at most the writes of the last
 * second.
 */
import { closeSync, fsyncSync, openSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { PGlite } from '@electric-sql/pglite';
import { NodeFS } from '@electric-sql/pglite/nodefs';
import { codeOf, reasonOf } from '../../thrown.ts';

/** Milliseconds. */
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
  readonly #syncing = new Set<string>();
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
    files.stream_ops.write = (stream, ...more) => {
      const written = write(stream, ...more);
      const path = files.realPath(stream.node);
      if (path.startsWith(log)) this.#noteUnsynced(path);
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
    this.#timer ??= setTimeout(() => void this.#syncLogLater(), LOG_DELAY_MS).unref();
  }

  #syncLog(): void {
    const paths = new Set([...this.#unsynced, ...this.#syncing]);
    for (const path of withFolder(paths, this.rootDir)) {
      try {
        this.#disk.sync(path);
      } catch (error) {
        throwUnlessRemoved(error);
      }
    }
    this.#unsynced.clear();
  }

  async #syncLogLater(): Promise<void> {
    this.#timer = undefined;
    const paths = new Set(this.#unsynced);
    this.#unsynced.clear();
    for (const path of paths) this.#syncing.add(path);
    try {
      for (const path of withFolder(paths, this.rootDir)) await this.#disk.syncLater(path).catch(throwUnlessRemoved);
    } catch (error) {
      process.emitWarning(`the log of the embedded database cannot be synced (${reasonOf(error)})`);
      for (const path of paths) this.#noteUnsynced(path);
    } finally {
      for (const path of paths) this.#syncing.delete(path);
    }
  }
}

/** PostgreSQL removes or renames a file of the log once a checkpoint has synced all that it holds. */
function throwUnlessRemoved(error: unknown): void {
  if (codeOf(error) !== 'ENOENT') throw error;
}

/** After a failure, a new file exists only if its folder was synced. */
const withFolder = (paths: ReadonlySet<string>, root: string): readonly string[] =>
  paths.size === 0 ? [] : [...paths, join(root, LOG)];
