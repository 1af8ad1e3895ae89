/**
 * Remembers which statements are slow, by their text, so that they are not sent where fast ones
 * would wait behind them.
 */

/**
 * Milliseconds of the moving average. Above the first a statement is slow, below the second it is
 * fast again. Above the third there is no doubt: a busy machine makes fast statements look slow.
 */
const SLOW_MS = 20;
const FAST_MS = 8;
const CERTAIN_MS = 100;
/**
 * The weight of the last measurement: one of 70 ms makes a statement slow, one pause of the
 * program of 50 ms does not.
 */
const WEIGHT = 0.3;
/** Milliseconds without a measurement after which a statement is tried as a fast one again. */
const PROBE_MS = 2_000;
const MOST_SHAPES = 2_000;

type Speed = 'fast' | 'slow' | 'certainly slow';

interface Shape {
  readonly average: number;
  isSlow: boolean;
  measuredAt: number;
}

export class SlowShapes {
  /** By text, the least recently measured first. Those that were never slow are not in it. */
  readonly #shapes = new Map<string, Shape>();

  speedOf(text: string, now = performance.now()): Speed {
    const shape = this.#shapes.get(text);
    if (shape === undefined || !shape.isSlow) return 'fast';
    if (now - shape.measuredAt > PROBE_MS) {
      // One statement finds out; it is measured before the next probe.
      shape.measuredAt = now;
      return 'fast';
    }
    return shape.average > CERTAIN_MS ? 'certainly slow' : 'slow';
  }

  /** @param took the milliseconds that PostgreSQL needed for this statement alone. */
  note(text: string, took: number): void {
    const before = this.#shapes.get(text);
    if (before === undefined && took < SLOW_MS) return;
    const average = (before?.average ?? 0) * (1 - WEIGHT) + took * WEIGHT;
    this.#shapes.delete(text);
    if (average < 1) return;
    const isSlow = average > SLOW_MS || (before?.isSlow === true && average > FAST_MS);
    this.#shapes.set(text, { average, isSlow, measuredAt: performance.now() });
    if (this.#shapes.size > MOST_SHAPES) this.#shapes.delete(this.#shapes.keys().next().value!);
  }
}
