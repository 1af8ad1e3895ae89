/** Waits for an event that has no promise. */
import { setTimeout as sleep } from 'node:timers/promises';

/** The bound only ends a test that would hang: no test is about how long an event takes. */
const MOST_TRIES = 3_000;

export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await holds()); tries++) {
    if (tries === MOST_TRIES) throw new Error(`never happened: ${what}`);
    await sleep(10);
  }
}
