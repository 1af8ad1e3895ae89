/** The metrics of queues and caches of this process. */
import { Counter, Gauge, type Registry } from 'prom-client';
import { waitingTasks } from '../../fair-queue.ts';
import { madeResiduals, PROCESS_MEMORY } from '../../policy/residual.ts';

export function loadMetrics(registry: Registry): void {
  const registers = [registry];
  new Gauge({
    name: 'bylaw_waiting_tasks',
    help: 'Tasks that wait for a place, such as a connection of the database.',
    registers,
    collect() {
      this.set(waitingTasks());
    },
  });
  new Gauge({
    name: 'bylaw_policy_cache_entries',
    help: 'Rules that are kept as a kind of caller leaves them to the record.',
    registers,
    collect() {
      this.set(PROCESS_MEMORY.size);
    },
  });
  new Counter({
    name: 'bylaw_policy_cache_made_total',
    help: 'Entries of this cache that were made, because the cache had none for the caller.',
    registers,
    collect() {
      this.reset();
      this.inc(madeResiduals());
    },
  });
}
