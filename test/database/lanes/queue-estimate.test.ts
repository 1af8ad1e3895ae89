/** A queue estimates how long it takes. */
import { describe, expect, it } from 'vitest';
import { QueueFull } from '../../../src/database/contract.ts';
import { QueueEstimate } from '../../../src/database/lanes/queue-estimate.ts';

describe('a queue estimate', () => {
  it('rejects a caller that would wait too long, and reports when to retry', () => {
    const estimate = new QueueEstimate(2);
    for (let i = 0; i < 100; i++) estimate.note(400);
    estimate.admit(20);
    expect(() => estimate.admit(40)).toThrow(QueueFull);
    const refused = new QueueFull(estimate.waitOf(40));
    expect([refused.kind, refused.retryAfter]).toEqual(['unavailable', 8]);
  });

  it('limits the length of a fast queue too', () => {
    const estimate = new QueueEstimate(10);
    expect(() => estimate.admit(1_000)).toThrow(QueueFull);
  });
});
