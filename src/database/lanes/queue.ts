/** The queue of every lane: callers wait in turn for one of a few places. */
import { FairQueue, type FairQueueOptions, type Refused } from '../../fair-queue.ts';
import { QueueFull, StoreError } from '../contract.ts';

export const laneQueue = (options: Omit<FairQueueOptions, 'refuse'>): FairQueue =>
  new FairQueue({ ...options, refuse: storeRefusal });

const storeRefusal = ({ reason, waitMs }: Refused): StoreError =>
  reason === 'closed' || reason === 'left'
    ? new StoreError('unavailable', new Error(reason === 'left' ? 'the client has left' : 'the database is closed'))
    : new QueueFull(waitMs, reason === 'own');
