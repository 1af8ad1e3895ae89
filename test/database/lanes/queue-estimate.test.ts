/** What the lanes go by: which statements are slow, and how long a queue takes. */
import { describe, expect, it } from 'vitest';
import { QueueFull } from '../../../src/database/contract.ts';
import { QueueEstimate } from '../../../src/database/lanes/queue-estimate.ts';
import { SlowShapes } from '../../../src/database/lanes/slow-shapes.ts';

describe('the memory of slow statements', () => {
  it('needs more than one pause, and forgets when they are fast again', () => {
    const shapes = new SlowShapes();
    const speedAfter = (...milliseconds: readonly number[]): string => {
      for (const took of milliseconds) shapes.note('a', took);
      return shapes.speedOf('a');
    };
    expect([speedAfter(50), speedAfter(1, 1, 1, 1), speedAfter(200)]).toEqual(['fast', 'fast', 'slow']);
    expect([speedAfter(400), shapes.speedOf('b')]).toEqual(['certainly slow', 'fast']);
    expect([speedAfter(1, 1, 1), speedAfter(...Array<number>(9).fill(1))]).toEqual(['slow', 'fast']);
  });

  it('tries one as fast after two seconds in which it was not measured', () => {
    const shapes = new SlowShapes();
    shapes.note('a', 500);
    const later = performance.now() + 2_100;
    const speeds = [later, later + 1, later + 2_200].map((now) => shapes.speedOf('a', now));
    expect(speeds).toEqual(['fast', 'certainly slow', 'fast']);
  });

  it('is bounded', () => {
    const shapes = new SlowShapes();
    for (let i = 0; i < 3_000; i++) shapes.note(String(i), 500);
    expect([shapes.speedOf('0'), shapes.speedOf('2999')]).toEqual(['fast', 'certainly slow']);
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
