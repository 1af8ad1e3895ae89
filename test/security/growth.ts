/** Does the time of a regular expression grow in proportion to its input? */
import { createContext, runInContext } from 'node:vm';
import { type Attack, attacksOn, textOf } from './hostile-inputs.ts';

/** Characters: enough that quadratic work is visible, few enough that thousands of attacks take seconds. */
const SMALL = 1_000;
/** Milliseconds for `SMALL` characters that linear work does not need: one step a character takes a tenth of it. */
const SUSPICIOUS = 0.03;
const LARGE = 2_000;
const FACTOR = 4;
/** Linear growth is 4, quadratic 16. */
const MAX_GROWTH = 9;
/** Milliseconds below which a clock cannot measure growth. */
const NOISE = 0.25;
/** Milliseconds for `SMALL` characters that settle the matter: a million steps and more. */
const HOPELESS = 20;
/** Milliseconds for all attacks on an expression, of which there are thousands: only exponential work takes so long on any machine. */
const PATIENCE = 20_000;

export interface Verdict {
  readonly attack: Attack;
  readonly reason: string;
}

/** Returns an attack that makes it slower than linear, or undefined. */
export function slowness(expression: RegExp, patience = PATIENCE): Verdict | undefined {
  let attack: Attack | undefined;
  let verdict: Verdict | undefined;
  const tryAll = (): void => {
    for (attack of attacksOn(expression)) {
      const text = textOf(attack, SMALL);
      if (timeOf(expression, text, 1) <= SUSPICIOUS) continue;
      const time = timeOf(expression, text, 5);
      if (time <= SUSPICIOUS) continue;
      if (time > HOPELESS) {
        verdict = { attack, reason: `${SMALL} characters take ${Math.round(time)} ms` };
        return;
      }
      const growth = growthOf(expression, attack);
      if (growth <= MAX_GROWTH) continue;
      verdict = { attack, reason: `×${FACTOR} characters take ×${growth.toFixed(1)} the time` };
      return;
    }
  };
  return isInTime(tryAll, patience) ? verdict : { attack: attack!, reason: `no end within ${patience / 1_000} s` };
}

/** The least of several: another process may have taken the processor away, in one of them or in all of a bad moment. */
function growthOf(expression: RegExp, attack: Attack): number {
  let least = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < 3 && least > MAX_GROWTH; attempt++) {
    const small = timeOf(expression, textOf(attack, LARGE), 3);
    const large = timeOf(expression, textOf(attack, LARGE * FACTOR), 3);
    least = Math.min(least, large < NOISE ? 0 : large / Math.max(small, NOISE / FACTOR));
  }
  return least;
}

function timeOf(expression: RegExp, text: string, runs: number): number {
  let least = Number.POSITIVE_INFINITY;
  for (let run = 0; run < runs; run++) {
    const start = performance.now();
    if (expression.global) text.replaceAll(expression, '');
    else {
      expression.lastIndex = 0;
      expression.exec(text);
    }
    least = Math.min(least, performance.now() - start);
  }
  return least;
}

/**
 * Exponential matching never returns by itself; the engine stops it when the time of its context is over. The time is that of
 * the thread's own work: on a busy machine others have the processor meanwhile, and the work is tried again for twice as long.
 */
function isInTime(work: () => void, patience: number): boolean {
  for (let timeout = patience; ; timeout *= 2) {
    const since = process.threadCpuUsage();
    try {
      runInContext('work()', createContext({ work }), { timeout });
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
      const { user, system } = process.threadCpuUsage(since);
      if ((user + system) / 1_000 > patience / 2) return false;
    }
  }
}
