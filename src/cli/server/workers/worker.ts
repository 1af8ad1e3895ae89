/** The messages between a worker and the primary. */

export interface WorkerMessage {
  readonly type: string;
  readonly id?: number;
  readonly text?: string;
  readonly url?: string;
}
/** The worker receives messages from now on; earlier ones are lost. */
export const LISTENING = 'bylaw:listening';
export const READY = 'bylaw:ready';
export const METRICS = 'bylaw:metrics';
export const STOP = 'bylaw:stop';

/**
 * Resolves when the primary asks this worker to stop. Signals are ignored, because the whole process
 * group gets them.
 */
export function stopMessage(): Promise<void> {
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, () => undefined);
  return new Promise((resolve) => {
    process.on('message', (message: WorkerMessage) => {
      if (message.type === STOP) resolve();
    });
    process.send?.({ type: LISTENING } satisfies WorkerMessage);
  });
}

export function notifyReady(url: string): void {
  process.send?.({ type: READY, url } satisfies WorkerMessage);
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
