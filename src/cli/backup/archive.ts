/**
 * The file of a backup: `backup.json` with format and version, the folders `database` and `files`, and
 * last `checksums.json`, without which the backup is not complete.
 */
import { createHash } from 'node:crypto';
import { type FileHandle, mkdir, open, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { requireSameVersion } from '../../database/embedded/data-folder.ts';
import { syncFolder } from '../../files/storage/local-places.ts';
import { isLockFile, lockFolder } from '../../folder-lock.ts';
import { succeeds, unlessMissing } from '../../thrown.ts';
import { BrokenArchive, CHUNK, END_OF_ARCHIVE, paddingOf, type ReadEntry, readTar, tarHeader } from './tar.ts';

const manifestShape = z.object({ format: z.literal(1), version: z.string(), created_at: z.string() });
const checksumsShape = z.record(z.string(), z.string());

export type Manifest = z.infer<typeof manifestShape>;

const MANIFEST = 'backup.json';
const CHECKSUMS = 'checksums.json';

export interface FolderOptions {
  readonly isLeft?: (path: string) => boolean;
  /** A file that disappears after the folder was read is not in the backup. */
  readonly isChanging?: boolean;
}

/** Writes one file; entries come in any order between `begin` and `end`. */
export class BackupWriter {
  readonly #file: FileHandle;
  readonly #sums: Record<string, string> = {};
  #bytes = 0;
  #count = 0;

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  /** Rejects with EEXIST where there is a file. Only its owner may read it: signing keys are in it. */
  static async begin(path: string, manifest: Manifest): Promise<BackupWriter> {
    const writer = new BackupWriter(await open(path, 'wx', 0o600));
    await writer.#addBytes(MANIFEST, Buffer.from(JSON.stringify(manifest)));
    return writer;
  }

  /** Adds a folder, except paths for which `isLeft` is true. */
  async addFolder(folder: string, name: string, options: FolderOptions = {}): Promise<void> {
    const { isLeft, isChanging = false } = options;
    await this.#write(tarHeader({ name, isFolder: true, size: 0 }));
    const entries = await readdir(folder, { withFileTypes: true });
    for (const entry of entries) {
      const path = join(folder, entry.name);
      if (isLeft?.(path)) continue;
      if (entry.isDirectory()) await this.addFolder(path, `${name}/${entry.name}`, options);
      else if (entry.isFile()) await this.#addFile(path, `${name}/${entry.name}`, isChanging);
    }
  }

  /** → the size of the archive, and the number of files. */
  async end(): Promise<{ readonly bytes: number; readonly count: number }> {
    await this.#addBytes(CHECKSUMS, Buffer.from(JSON.stringify(this.#sums)));
    await this.#write(END_OF_ARCHIVE);
    await this.#file.sync();
    await this.close();
    return { bytes: this.#bytes, count: this.#count };
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  async #addBytes(name: string, bytes: Buffer): Promise<void> {
    await this.#write(tarHeader({ name, isFolder: false, size: bytes.length }));
    await this.#write(bytes);
    await this.#write(paddingOf(bytes.length));
  }

  async #addFile(path: string, name: string, isChanging: boolean): Promise<void> {
    const source = await (isChanging ? unlessMissing(open(path)) : open(path));
    if (source === undefined) return;
    try {
      const { size } = await source.stat();
      await this.#write(tarHeader({ name, isFolder: false, size }));
      const hash = createHash('sha256');
      for (let at = 0; at < size; ) {
        const chunk = Buffer.allocUnsafe(Math.min(CHUNK, size - at));
        const { bytesRead } = await source.read(chunk, 0, chunk.length, at);
        if (bytesRead === 0) throw new Error(`${path} became shorter while it was read`);
        const bytes = chunk.subarray(0, bytesRead);
        hash.update(bytes);
        await this.#write(bytes);
        at += bytesRead;
      }
      await this.#write(paddingOf(size));
      this.#sums[name] = hash.digest('hex');
      this.#count++;
    } finally {
      await source.close();
    }
  }

  async #write(bytes: Buffer): Promise<void> {
    for (let at = 0; at < bytes.length; ) at += (await this.#file.write(bytes, at)).bytesWritten;
    this.#bytes += bytes.length;
  }
}

/** The folder of the parts until all of them are verified. */
const UNVERIFIED = 'restoring';

/** A backup is restored into an empty folder only. */
export class FolderNotEmpty extends Error {}

/**
 * The folder is empty or does not exist, also after a failure. The lock keeps services from starting in
 * it during the restore. Throws BrokenArchive, FolderUnusable, FolderNotEmpty, FolderInUse.
 */
export async function restoreInto(folder: string, path: string): Promise<Manifest> {
  const file = await open(path);
  try {
    await mustBeEmpty(folder);
    const made = await mkdir(folder, { recursive: true, mode: 0o700 });
    const lock = await lockFolder(folder);
    try {
      // Another process could fill the folder before it was locked.
      await mustBeEmpty(folder);
      const manifest = await fill(folder, file);
      if (made !== undefined) await syncFolder(dirname(made));
      await lock.release();
      return manifest;
    } catch (error) {
      if (made === undefined) await lock.release();
      else {
        await lock.remove();
        await removeEmpty(folder, made);
      }
      throw error;
    }
  } finally {
    await file.close();
  }
}

async function mustBeEmpty(folder: string): Promise<void> {
  const found = await stat(folder).catch(() => undefined);
  if (found === undefined) return;
  const isEmpty = found.isDirectory() && (await readdir(folder)).every(isLockFile);
  if (!isEmpty) throw new FolderNotEmpty(folder);
}

/** After a failure, it removes everything that it has created, and nothing else. */
async function fill(folder: string, file: FileHandle): Promise<Manifest> {
  const waiting = join(folder, UNVERIFIED);
  const made = [waiting];
  await mkdir(waiting, { mode: 0o700 });
  try {
    const manifest = await unpack(file, waiting);
    await requireSameVersion(join(waiting, 'database'));
    for (const part of await readdir(waiting)) {
      await rename(join(waiting, part), join(folder, part));
      made.push(join(folder, part));
    }
    await rmdir(waiting);
    await syncFolder(folder);
    return manifest;
  } catch (error) {
    for (const path of made) await rm(path, { recursive: true, force: true });
    throw error;
  }
}

/** Removes the folder and its parents up to `made`, unless they have other content. */
async function removeEmpty(folder: string, made: string): Promise<void> {
  const isGone = await succeeds(rmdir(folder));
  if (isGone && folder !== made) await removeEmpty(dirname(folder), made);
}

async function unpack(file: FileHandle, folder: string): Promise<Manifest> {
  let manifest: Manifest | undefined;
  let expected: Readonly<Record<string, string>> | undefined;
  const actual: Record<string, string> = {};
  const folders = new Set<string>();
  const requireFolder = (name: string): void => {
    if (!folders.has(name)) throw new BrokenArchive(`the folder ${name} is missing`);
  };
  for await (const entry of readTar(file)) {
    if (entry.name === MANIFEST) manifest = parsed(manifestShape, await bytesOfEntry(entry));
    else if (manifest === undefined) throw new BrokenArchive('it is not a backup');
    else if (entry.name === CHECKSUMS) expected = parsed(checksumsShape, await bytesOfEntry(entry));
    else if (!isPlace(entry.name)) throw new BrokenArchive(`it has a file that no backup has: ${entry.name}`);
    else if (entry.isFolder) {
      await mkdir(join(folder, entry.name), { recursive: true, mode: 0o700 });
      folders.add(entry.name);
    } else {
      requireFolder(dirname(entry.name));
      actual[entry.name] = await unpackFile(entry, join(folder, entry.name));
    }
  }
  if (manifest === undefined || expected === undefined) throw new BrokenArchive('it is not complete');
  requireFolder('database');
  const names = new Set([...Object.keys(actual), ...Object.keys(expected)]);
  for (const name of names)
    if (actual[name] !== expected[name]) throw new BrokenArchive(`the checksum of ${name} is not that of the backup`);
  return manifest;
}

/** Rejects names that lead out of the folder. */
const isPlace = (name: string): boolean => {
  const [first, ...rest] = name.split('/');
  return (
    (first === 'database' || first === 'files') && rest.every((part) => part !== '' && part !== '.' && part !== '..')
  );
};

function parsed<T>(shape: z.ZodType<T>, bytes: Buffer): T {
  try {
    return shape.parse(JSON.parse(bytes.toString('utf8')));
  } catch (error) {
    throw new BrokenArchive('another version of bylaw made it, or it is damaged', { cause: error });
  }
}

async function bytesOfEntry({ content }: ReadEntry): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of content) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** → the checksum of the file. */
async function unpackFile({ content }: ReadEntry, path: string): Promise<string> {
  const target = await open(path, 'wx', 0o600);
  try {
    const hash = createHash('sha256');
    for await (const chunk of content) {
      hash.update(chunk);
      for (let at = 0; at < chunk.length; ) at += (await target.write(chunk, at)).bytesWritten;
    }
    await target.sync();
    return hash.digest('hex');
  } finally {
    await target.close();
  }
}
