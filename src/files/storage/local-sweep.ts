/** Sweeps the local storage: bytes without a record go to the trash, and are deleted after a week. */
import { mkdir, rename, stat, unlink, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { unlessMissing } from '../../thrown.ts';
import { entriesOf, filePlace, INCOMING, TRASH_FOLDER } from './local-places.ts';
import { aliveOf, idOfKey, type StorageKey, type Sweep, TRASH_MS } from './storage.ts';

const SWEEP_BATCH = 500;

interface PlacedFile {
  readonly key: StorageKey;
  readonly place: string;
}

export async function sweepFolder(root: string, sweep: Sweep): Promise<number> {
  await tendTrash(root, sweep);
  let taken = 0;
  for (const name of await entriesOf(join(root, INCOMING))) {
    const place = join(root, INCOMING, name);
    if (!(await isOlder(place, sweep.grace))) continue;
    // Their upload was never acknowledged.
    await unlessMissing(unlink(place));
    taken++;
  }
  for await (const places of placedFiles(root)) {
    // INVARIANT: the records are read after the bytes were listed. Bytes of a record that is
    // created later are newer, or within the grace.
    const living = await aliveOf(places, sweep);
    for (const { key, place } of places) {
      if (living.has(idOfKey(key)) || !(await isOlder(place, sweep.grace))) continue;
      await moveToTrash(root, place, key);
      taken++;
    }
  }
  return taken;
}

/** The age of the file in the trash counts from now. */
async function moveToTrash(root: string, place: string, key: StorageKey): Promise<void> {
  const now = new Date();
  await unlessMissing(utimes(place, now, now));
  await mkdir(join(root, TRASH_FOLDER), { recursive: true });
  await unlessMissing(rename(place, join(root, TRASH_FOLDER, key)));
}

async function tendTrash(root: string, sweep: Sweep): Promise<void> {
  const keys = await entriesOf(join(root, TRASH_FOLDER));
  for (let at = 0; at < keys.length; at += SWEEP_BATCH) {
    const files = keys.slice(at, at + SWEEP_BATCH).map((key) => ({ key, place: join(root, TRASH_FOLDER, key) }));
    const living = await aliveOf(files, sweep);
    for (const { key, place } of files) {
      if (living.has(idOfKey(key))) await putBack(root, place, key);
      else if (await isOlder(place, TRASH_MS)) await unlessMissing(unlink(place));
    }
  }
}

/** Moves bytes back whose record exists in a restored database. */
async function putBack(root: string, place: string, key: StorageKey): Promise<void> {
  const home = filePlace(root, key);
  await mkdir(dirname(home), { recursive: true });
  await unlessMissing(rename(place, home));
}

async function isOlder(place: string, milliseconds: number): Promise<boolean> {
  const found = await unlessMissing(stat(place));
  return found !== undefined && Date.now() - found.mtimeMs >= milliseconds;
}

async function* placedFiles(root: string): AsyncIterable<readonly PlacedFile[]> {
  let batch: PlacedFile[] = [];
  for (const outer of await entriesOf(root)) {
    if (!/^[0-9a-f]{2}$/.test(outer)) continue;
    for (const inner of await entriesOf(join(root, outer))) {
      for (const key of await entriesOf(join(root, outer, inner)))
        batch.push({ key, place: join(root, outer, inner, key) });
      if (batch.length < SWEEP_BATCH) continue;
      yield batch;
      batch = [];
    }
  }
  if (batch.length > 0) yield batch;
}
