/** Reports changes of a file that is saved in place or by a rename over it. */
import { basename, dirname } from 'node:path';
import { watchFolder } from '../support/watch-folder.ts';

/** Milliseconds. An editor writes a file in several steps; the last one counts. */
const DEBOUNCE_MS = 10;

/**
 * Watches the folder: a watch on the file itself would follow the file that a rename replaces.
 * `onChange` gets the time of the first event (`performance.now()`). → a function that ends the watch.
 * Throws ConfigError if the folder cannot be watched.
 */
export function watchFile(
  path: string,
  onChange: (since: number) => void,
  onError: (error: Error) => void,
): () => void {
  const name = basename(path);
  let timer: NodeJS.Timeout | undefined;
  let since: number | undefined;
  const watcher = watchFolder(dirname(path), { persistent: false }, (_event, changed) => {
    // Some systems do not name the file.
    if (changed !== null && changed !== name) return;
    since ??= performance.now();
    clearTimeout(timer);
    timer = setTimeout(() => {
      const first = since!;
      since = undefined;
      onChange(first);
    }, DEBOUNCE_MS);
  });
  watcher.on('error', onError);
  return () => {
    clearTimeout(timer);
    watcher.close();
  };
}
