/** The messages between a worker and the primary. */
import type { SetupOffer } from '../../../auth/accounts/setup-offer.ts';

export interface WorkerMessage {
  readonly type: string;
  readonly id?: number;
  readonly text?: string;
  readonly url?: string;
  /** With `READY`: no enabled user is an admin. */
  readonly needsAdmin?: boolean;
  /** With `SETUP`: when the token was made, in milliseconds since the epoch. */
  readonly startedAt?: number;
}
/** The worker receives messages from now on; earlier ones are lost. */
export const LISTENING = 'bylaw:listening';
export const READY = 'bylaw:ready';
export const METRICS = 'bylaw:metrics';
export const STOP = 'bylaw:stop';
/** Carries the token that makes the first administrator; the same for all workers. */
export const SETUP = 'bylaw:setup';

/**
 * Resolves when the primary asks this worker to stop, and opens the offer when it sends the token.
 * Signals are ignored, because the whole process group gets them.
 */
export function stopMessage(setup: SetupOffer): Promise<void> {
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, () => undefined);
  return new Promise((resolve) => {
    process.on('message', (message: WorkerMessage) => {
      if (message.type === STOP) resolve();
      if (message.type === SETUP && message.text !== undefined) setup.open(message.text, message.startedAt);
    });
    process.send?.({ type: LISTENING } satisfies WorkerMessage);
  });
}

export function notifyReady(url: string, needsAdmin: boolean): void {
  process.send?.({ type: READY, url, needsAdmin } satisfies WorkerMessage);
}

/** Requests of this process to the primary are numbered. */
let lastRequest = 0;

/** The metrics of all workers, collected by the primary. */
export function readMetricsOfAll(): Promise<string> {
  const id = ++lastRequest;
  return new Promise((resolve) => {
    const onMessage = (message: WorkerMessage): void => {
      if (message.type !== METRICS || message.id !== id) return;
      process.off('message', onMessage);
      resolve(message.text ?? '');
    };
    process.on('message', onMessage);
    process.send?.({ type: METRICS, id } satisfies WorkerMessage);
  });
}
