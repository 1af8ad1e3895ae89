/**
 * The caller of the work at hand, for the queues that serve callers in turn. It follows the work through promises and
 * timers, so that no function between a route and a queue has to pass it on, and a new route inherits it.
 */
import { AsyncLocalStorage } from 'node:async_hooks';

export interface QueuedCaller {
  /** A principal, or an address where there is none. */
  readonly id: string;
  /** Sign-in, sessions, readiness and administration: the places that every queue keeps are for them. */
  readonly isKept: boolean;
  /** True once the client no longer waits for its answer. */
  readonly hasLeft?: () => boolean;
}

/** Work that no request has asked for: statistics, sweeps, the start. */
export const SERVICE: QueuedCaller = { id: '', isKept: true };

const storage = new AsyncLocalStorage<QueuedCaller>();

export const currentCaller = (): QueuedCaller => storage.getStore() ?? SERVICE;

export const asCaller = <T>(caller: QueuedCaller, work: () => T): T => storage.run(caller, work);
