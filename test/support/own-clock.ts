/** A clock of the test's own: timers and `performance.now()` advance only when the test advances them, on a busy machine too. */
import { afterEach, beforeEach, vi } from 'vitest';

/** Gives each test of the suite a stopped clock. */
export function useOwnClock(): void {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });
}

/** Advances the clock until no timer is left, and returns what the work returned. */
export async function answered<T>(work: Promise<T>): Promise<T> {
  work.catch(() => undefined);
  await vi.runAllTimersAsync();
  return work;
}

/** Stops `performance.now()` for each test of the suite, while timers run on. The returned function advances it by milliseconds. */
export function useStoppedNow(): (milliseconds: number) => void {
  let now = 0;
  beforeEach(() => {
    now = performance.now();
    vi.spyOn(performance, 'now').mockImplementation(() => now);
  });
  afterEach(() => {
    vi.mocked(performance.now).mockRestore();
  });
  return (milliseconds) => {
    now += milliseconds;
  };
}
