/** A page that stays open while records change: its memory after collections, and the line through it. */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Browser, Page } from '../../test/support/browser/browser.ts';

/** A page of some minutes is as warm as it gets. */
const WARM_UP = 0.25;
const SAMPLE_MS = 5_000;
const MEGABYTE = 2 ** 20;

interface SoakSample {
  readonly minute: number;
  /** Megabytes of the heap after a collection. */
  readonly heap: number;
}
export interface SoakResult {
  readonly samples: number;
  /** Megabytes after an hour, by the line through the samples. */
  readonly afterHour: number;
  /** Megabytes an hour, by its slope. */
  readonly growth: number;
  /** Megabytes of the greatest process of a page, at the end: code, heap and pictures. */
  readonly process: number | undefined;
}

export async function soakPage(browser: Browser, page: Page, seconds: number): Promise<SoakResult> {
  const began = performance.now();
  const samples: SoakSample[] = [];
  while (performance.now() - began < seconds * 1_000) {
    await sleep(SAMPLE_MS);
    samples.push({ minute: (performance.now() - began) / 60_000, heap: await heapOf(page) });
  }
  const settled = samples.slice(Math.floor(samples.length * WARM_UP));
  const { start, slope } = lineThrough(settled);
  return {
    samples: settled.length,
    afterHour: start + slope * 60,
    growth: slope * 60,
    process: await processMemory(browser),
  };
}

async function heapOf(page: Page): Promise<number> {
  await page.send('HeapProfiler.collectGarbage');
  const { usedSize } = (await page.send('Runtime.getHeapUsage')) as { usedSize: number };
  return usedSize / MEGABYTE;
}

/** The line of least squares. */
function lineThrough(samples: readonly SoakSample[]): { readonly start: number; readonly slope: number } {
  const mean = (figureOf: (sample: SoakSample) => number): number =>
    samples.reduce((sum, sample) => sum + figureOf(sample), 0) / samples.length;
  const [minute, heap] = [mean((sample) => sample.minute), mean((sample) => sample.heap)];
  const slope =
    mean((sample) => (sample.minute - minute) * (sample.heap - heap)) / mean((sample) => (sample.minute - minute) ** 2);
  return { start: heap - slope * minute, slope };
}

/** Linux alone says what a process shares with others. */
async function processMemory(browser: Browser): Promise<number | undefined> {
  const { processInfo } = (await browser.send('SystemInfo.getProcessInfo')) as {
    processInfo: readonly { readonly type: string; readonly id: number }[];
  };
  const sizes = processInfo
    .filter(({ type }) => type === 'renderer')
    .map(({ id }) => {
      try {
        return Number(/^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${id}/smaps_rollup`, 'utf8'))?.[1] ?? 0) / 1_024;
      } catch {
        return 0;
      }
    });
  return sizes.some((size) => size > 0) ? Math.max(...sizes) : undefined;
}
