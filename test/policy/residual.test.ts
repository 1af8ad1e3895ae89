/** Which residuals are kept: each policy's latest shape, and the recent ones of all policies. */
import { describe, expect, it } from 'vitest';
import { compile } from '../../src/policy/compile.ts';
import { asPolicyResidual } from '../../src/policy/residual.ts';
import { SAMPLE as catalog } from './sample-catalog.ts';

const KEYS = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k'];
const request = (query: Readonly<Record<string, string>>) => ({
  auth: { id: null, roles: [] },
  query,
  now: '2026-01-01T00:00:00.000000Z',
});
const policyOf = (text: string) => {
  const policy = compile(text, { catalog, collection: 'documents', action: 'list' });
  return (query: Readonly<Record<string, string>>) => asPolicyResidual(policy.specialise(request(query))).cond;
};
/** Two to the eleventh shapes: each key is there, or is not. */
const many = policyOf(
  `@record.pinned and (${KEYS.map((key) => `@record.title != @request.query.${key}`).join(' or ')})`,
);
const subset = (i: number) => Object.fromEntries(KEYS.filter((_, bit) => i & (1 << bit)).map((key) => [key, key]));

describe('the shapes that are kept', () => {
  it('are found again by every policy that takes turns with others', () => {
    const policies = Array.from({ length: 50 }, (_, i) =>
      policyOf(`@record.score = ${i} or @record.title = @request.query.q`),
    );
    const kinds: readonly Record<string, string>[] = [{}, { q: 'x' }];
    const first = policies.map((residual) => kinds.map((query) => residual(query)));
    const second = policies.map((residual) => kinds.map((query) => residual(query)));
    for (const [i, shapes] of first.entries())
      for (const [j, shape] of shapes.entries()) expect(second[i]![j]).toBe(shape);
  });

  it('are the recent ones: others are made anew, and mean the same', () => {
    const first = many(subset(1));
    for (let i = 2; i < 2 ** KEYS.length; i++) many(subset(i));
    const again = many(subset(1));
    expect(again).not.toBe(first);
    expect(again).toEqual(first);
  });

  it('are at least the latest of each policy, whatever the others meet', () => {
    const calm = policyOf('@record.title = @request.query.q');
    const first = calm({ q: 'x' });
    for (let i = 1; i < 2 ** KEYS.length; i++) many(subset(i));
    expect(calm({ q: 'y' })).toBe(first);
  });
});
