/** What the lanes go by: which statements are slow, and how long a queue takes. */
import { describe, expect, it } from 'vitest';
import { QueueFull } from '../../src/store/database/contract.ts';
import { QueueEstimate } from '../../src/store/database/queue-estimate.ts';
import { SlowShapes } from '../../src/store/database/slow-shapes.ts';

describe('the memory of slow statements', () => {
  it('needs more than one pause, and forgets when they are fast again', () => {
    const shapes = new SlowShapes();
    const isSlowAfter = (...milliseconds: readonly number[]): boolean => {
      for (const took of milliseconds) shapes.note('a', took);
      return shapes.isSlow('a');
    };
    expect([isSlowAfter(50), isSlowAfter(1, 1, 1, 1), isSlowAfter(200), shapes.isSlow('b')]).toEqual([
      false,
      false,
      true,
      false,
    ]);
    expect([isSlowAfter(1, 1), isSlowAfter(1, 1, 1, 1, 1, 1)]).toEqual([true, false]);
  });

  it('is bounded', () => {
    const shapes = new SlowShapes();
    for (let i = 0; i < 3_000; i++) shapes.note(String(i), 500);
    expect([shapes.isSlow('0'), shapes.isSlow('2999')]).toEqual([false, true]);
  });
});

describe('the estimate of a queue', () => {
  it('refuses who would wait too long, and says when to come back', () => {
    const estimate = new QueueEstimate(2);
    for (let i = 0; i < 100; i++) estimate.note(400);
    estimate.admit(20);
    expect(() => estimate.admit(40)).toThrow(QueueFull);
    const refused = new QueueFull(estimate.waitOf(40));
    expect([refused.kind, refused.retryAfter]).toEqual(['unavailable', 8]);
  });

  it('has a limit of its own where everything is fast', () => {
    const estimate = new QueueEstimate(10);
    expect(() => estimate.admit(1_000)).toThrow(QueueFull);
  });
});
