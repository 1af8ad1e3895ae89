/** Watches folders for commands that follow files while they are edited. */
import { type FSWatcher, type WatchListener, watch } from 'node:fs';
import { ConfigError } from '../../config.ts';
import { codeOf, reasonOf } from '../../thrown.ts';

/** The limit that the operator can raise, by the code of the error (inotify(7)). */
const LIMITS: Readonly<Record<string, string>> = {
  EMFILE:
    'this user has no inotify instance left: end programs that watch files, or raise fs.inotify.max_user_instances',
  ENOSPC: 'this user has no inotify watch left: end programs that watch files, or raise fs.inotify.max_user_watches',
};

/** Throws ConfigError if the folder cannot be watched. */
export function watchFolder(
  folder: string,
  options: { readonly persistent?: boolean },
  onEvent: WatchListener<string>,
): FSWatcher {
  try {
    return watch(folder, options, onEvent);
  } catch (error) {
    throw unwatchable(folder, error);
  }
}

export const unwatchable = (folder: string, error: unknown): ConfigError =>
  new ConfigError([`the folder ${folder} cannot be watched: ${LIMITS[String(codeOf(error))] ?? reasonOf(error)}`]);
