/** A database that starts after the service, as with containers and after a power failure. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../config.ts';
import type { Database } from '../database/contract.ts';
import { messageOf } from '../database/message-of.ts';
import { isNotReachable } from '../database/to-store-error.ts';
import { openConfiguredDatabase } from './configured-database.ts';

const PATIENCE_MS = 30_000;
const PAUSE_MS = 500;

interface Waiting {
  readonly cwd: string;
  /** Hears once that the start waits. */
  readonly onWait: (message: string) => void;
}

/** Waits half a minute for a server that cannot be reached; a wrong password or name fails at once. */
export async function openDatabaseWhenUp(config: Config, { cwd, onWait }: Waiting): Promise<Database> {
  const end = performance.now() + PATIENCE_MS;
  for (let attempt = 1; ; attempt++) {
    try {
      return await openConfiguredDatabase(config, cwd);
    } catch (error) {
      if (!isNotReachable(error) || performance.now() > end) throw error;
      if (attempt === 1) onWait(`${messageOf(error)}; trying for ${PATIENCE_MS / 1_000} s`);
    }
    await sleep(PAUSE_MS);
  }
}
