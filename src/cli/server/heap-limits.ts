/** Settings of V8 for a process that serves: they can be changed while it runs, unlike those of a command line. */
import { PerformanceObserver } from 'node:perf_hooks';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';

/** Bytes of the young generation, twice a semi-space, at which it grows no more. */
const MOST_YOUNG = 32 * 1_048_576;

export function limitHeap(): void {
  disablePretenuring();
  collectEarly();
  boundYoungGeneration();
}

/**
 * V8 pretenures: if objects of an allocation site survive a few young collections, it allocates later ones in the old
 * generation. The objects of a request survive while many requests are in flight, but die with the request: every
 * second process would grow by 100 MiB more, and take up to 1.4 times as long for a list.
 */
const disablePretenuring = (): void => setFlagsFromString('--no-allocation-site-pretenuring');

/**
 * V8 lets the old generation grow to several times of what lives in it before it collects. The rows and the texts of large
 * answers die with their requests: growth by half keeps a process that sends many of them 120 MiB smaller.
 */
const collectEarly = (): void => setFlagsFromString('--heap-growing-percent=50');

/**
 * V8 lets the young generation grow to 64 MiB, and keeps the pages that it no longer uses until the process has been idle
 * for some 10 s: half of it keeps a process that gets large requests 100 MiB smaller. The option that bounds it works
 * only on a command line, so growth ends here.
 */
function boundYoungGeneration(): void {
  let factor = 2;
  const afterCollection = (): void => {
    const young = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.space_size ?? 0;
    const next = young >= MOST_YOUNG ? 1 : 2;
    if (next === factor) return;
    factor = next;
    setFlagsFromString(`--semi-space-growth-factor=${factor}`);
  };
  new PerformanceObserver(afterCollection).observe({ entryTypes: ['gc'] });
}
