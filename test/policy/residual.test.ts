/** Which shapes are kept: each policy's latest, and the recent ones of all policies that share a memory. */
import { describe, expect, it } from 'vitest';
import { TRUE } from '../../src/policy/condition.ts';
import { closures } from '../../src/policy/emit/closures.ts';
import { ResidualShape, ShapeCache, ShapeMemory } from '../../src/policy/residual.ts';

const shape = (): ResidualShape =>
  new ResidualShape({
    cond: TRUE,
    plan: { tree: { kind: 'const', value: true }, slots: [], decided: [], numeric: true },
    predicate: closures(TRUE),
    needsNext: false,
    written: () => shape(),
  });

describe('the shapes that are kept', () => {
  it('are found again by every policy that takes turns with others', () => {
    const memory = new ShapeMemory(100);
    const caches = Array.from({ length: 50 }, () => new ShapeCache(memory));
    const first = caches.map((cache) => [1, 'two'].map((signature) => cache.add(signature, shape())));
    const again = caches.map((cache) => [1, 'two'].map((signature) => cache.get(signature)));
    for (const [i, shapes] of first.entries())
      for (const [j, each] of shapes.entries()) expect(again[i]![j]).toBe(each);
  });

  it('are the recent ones: what was used least recently goes first', () => {
    const memory = new ShapeMemory(3);
    const cache = new ShapeCache(memory);
    for (const signature of [1, 2, 3]) cache.add(signature, shape());
    const kept = cache.get(1);
    cache.add(4, shape());
    expect([1, 2, 3, 4].map((signature) => cache.get(signature) !== undefined)).toEqual([true, false, true, true]);
    expect(cache.get(1)).toBe(kept);
  });

  it('include at least the latest of each policy, for any requests to the others', () => {
    const memory = new ShapeMemory(3);
    const calm = new ShapeCache(memory);
    const latest = calm.add('x', shape());
    const busy = new ShapeCache(memory);
    for (let i = 0; i < 10; i++) busy.add(i, shape());
    expect(calm.get('x')).toBe(latest);
  });
});
