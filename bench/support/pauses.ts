/**
 * Loaded into a service before its own code (`--import`): notes what stops its event loop, and writes it into the file that
 * `BENCH_PAUSES` names when the process ends. Times are milliseconds; `at` is of the epoch.
 */
import { writeFileSync } from 'node:fs';
import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks';

export interface Pause {
  readonly at: number;
  readonly ms: number;
  readonly kind: 'young' | 'old' | 'turn';
}

interface Collection extends PerformanceEntry {
  readonly detail?: { readonly kind: number };
}

const file = process.env.BENCH_PAUSES;
/** The interval of the sampler of turns. */
const EVERY_MS = 2;
/** A shorter turn is the ordinary work of a moment. */
const LONG_TURN_MS = 5;

if (file !== undefined) {
  const pauses: Pause[] = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries() as readonly Collection[]) {
      const { startTime, duration, detail } = entry;
      const isYoung = detail?.kind === constants.NODE_PERFORMANCE_GC_MINOR;
      pauses.push({ at: performance.timeOrigin + startTime, ms: duration, kind: isYoung ? 'young' : 'old' });
    }
  }).observe({ entryTypes: ['gc'] });
  let before = performance.now();
  setInterval(() => {
    const now = performance.now();
    const late = now - before - EVERY_MS;
    if (late > LONG_TURN_MS) pauses.push({ at: performance.timeOrigin + before, ms: late, kind: 'turn' });
    before = now;
  }, EVERY_MS).unref();
  process.once('exit', () => writeFileSync(file, JSON.stringify(pauses)));
}
