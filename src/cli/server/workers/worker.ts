/** The messages between a worker and the primary. */
import type { SetupOffer } from '../../../auth/accounts/setup-offer.ts';
import type { ExceededBound, StreamBounds, StreamPlaces } from '../../../changes/stream-places.ts';

export interface WorkerMessage {
  readonly type: string;
  readonly id?: number;
  readonly text?: string;
  readonly url?: string;
  /** With `READY`: no enabled user is an admin. */
  readonly needsAdmin?: boolean;
  /** With `SETUP`: when the token was made, in milliseconds since the epoch. */
  readonly startedAt?: number;
  /** With `STREAMS`: places of a caller, negative if they become free. With an `id` they are asked for. */
  readonly share?: string;
  readonly count?: number;
  readonly bounds?: StreamBounds;
  /** The answer of the primary. */
  readonly exceeded?: ExceededBound | undefined;
}
/** The worker receives messages from now on; earlier ones are lost. */
export const LISTENING = 'bylaw:listening';
export const READY = 'bylaw:ready';
export const METRICS = 'bylaw:metrics';
export const STOP = 'bylaw:stop';
export const STREAMS = 'bylaw:streams';
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
const waiting = new Map<number, (answer: WorkerMessage) => void>();

function onAnswer({ id, ...answer }: WorkerMessage): void {
  if (id === undefined) return;
  waiting.get(id)?.(answer);
  waiting.delete(id);
}

function askPrimary(message: WorkerMessage): Promise<WorkerMessage> {
  const id = ++lastRequest;
  if (id === 1) process.on('message', onAnswer);
  return new Promise((resolve) => {
    waiting.set(id, resolve);
    process.send?.({ ...message, id } satisfies WorkerMessage);
  });
}

/** The metrics of all workers, collected by the primary. */
export async function readMetricsOfAll(): Promise<string> {
  const { text } = await askPrimary({ type: METRICS });
  return text ?? '';
}

/** The places of streams in all workers, which the primary counts. */
export const sharedStreamPlaces = (bounds: StreamBounds): StreamPlaces => ({
  bounds,
  take: async (share, count) => (await askPrimary({ type: STREAMS, share, count, bounds })).exceeded,
  leave: (share, count) => void process.send?.({ type: STREAMS, share, count: -count } satisfies WorkerMessage),
});
