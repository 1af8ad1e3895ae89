/** A cache keeps each policy's latest residual, and the recent ones of all policies that share a memory. */
import { describe, expect, it } from 'vitest';
import { TRUE } from '../../src/policy/condition.ts';
import { closures } from '../../src/policy/emit/closures.ts';
import { CachedResidual, ResidualCache, ResidualMemory } from '../../src/policy/residual.ts';

const residual = (): CachedResidual =>
  new CachedResidual({
    cond: TRUE,
    slots: 0,
    predicate: closures(TRUE),
    needsNext: false,
    written: () => residual(),
  });

describe('the residual cache', () => {
  it('each policy finds its residuals again after others had their turn', () => {
    const memory = new ResidualMemory(100);
    const caches = Array.from({ length: 50 }, () => new ResidualCache(memory));
    const first = caches.map((cache) => [1, 'two'].map((signature) => cache.add(signature, residual())));
    const again = caches.map((cache) => [1, 'two'].map((signature) => cache.get(signature)));
    for (const [i, residuals] of first.entries())
      for (const [j, each] of residuals.entries()) expect(again[i]![j]).toBe(each);
  });

  it('a full memory drops the residual that was used least recently', () => {
    const memory = new ResidualMemory(3);
    const cache = new ResidualCache(memory);
    for (const signature of [1, 2, 3]) cache.add(signature, residual());
    const kept = cache.get(1);
    cache.add(4, residual());
    expect([1, 2, 3, 4].map((signature) => cache.get(signature) !== undefined)).toEqual([true, false, true, true]);
    expect(cache.get(1)).toBe(kept);
  });

  it('each policy keeps its latest residual, for any requests to the others', () => {
    const memory = new ResidualMemory(3);
    const calm = new ResidualCache(memory);
    const latest = calm.add('x', residual());
    const busy = new ResidualCache(memory);
    for (let i = 0; i < 10; i++) busy.add(i, residual());
    expect(calm.get('x')).toBe(latest);
  });
});
