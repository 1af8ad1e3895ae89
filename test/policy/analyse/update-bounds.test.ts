/**
 * Bounds on update rules before the write is known, against the definition: for every stored record and every
 * result.
 */
import { describe, expect, test } from 'vitest';
import { updateBoundsOf } from '../../../src/policy/analyse/update-bounds.ts';
import { compilePolicy } from '../../../src/policy/compile.ts';
import { NO_RELATED, type PolicyRequest, type Row } from '../../../src/policy/types.ts';
import { loadCompiler } from '../../fuzz/policies/compiler.ts';
import { compileForm, Rejected } from '../../fuzz/policies/differential.ts';
import { PolicyMaker, type Setting } from '../../fuzz/policies/policies.ts';
import { randomRequest } from '../../fuzz/policies/requests.ts';
import { randomWorld } from '../../fuzz/policies/world.ts';
import { Random } from '../../fuzz/random.ts';
import { relatedOf } from '../../oracle/database.ts';
import { interpret } from '../../oracle/interpret.ts';
import { schemaFrom } from '../../support/service.ts';

const schema = schemaFrom(`
roles: [admin, member]
collections:
  notes: { fields: { level: int, text: string, open: bool } }
`);
const request: PolicyRequest = {
  auth: { id: '01900000-0000-7000-8000-000000000000', roles: ['member'] },
  query: {},
  now: '2026-01-01T00:00:00.000000Z',
};
const record: Row = { id: '01900000-0000-7000-8000-000000000001', level: 3, text: 'a', open: true };

describe('bounds before the write', () => {
  test.each([
    ['@record.level = 3', 'certain'],
    ['@record.level = 4', 'never'],
    ['@next.level > 3', 'possible'],
    ['not (@next.level > 3)', 'possible'],
    ['@record.level = 3 or @next.level > 3', 'certain'],
    ['@record.level = 4 and @next.level > 3', 'never'],
    ['not (@record.level = 3 or @next.level > 3)', 'never'],
    ['changed(@record.text)', 'possible'],
    ['changed_only(@record.text) and @record.open', 'possible'],
    ['not changed(@record.text) and not @record.open', 'never'],
    ['@request.data.text = "b"', 'possible'],
    ['@request.data.text is null', 'possible'],
    ['@request.data.text = "b" and @record.level < 3', 'never'],
    ['@next.text = @record.text', 'possible'],
    ['@request.auth.roles contains "admin" and @next.level > 3', 'never'],
    ['@request.auth.roles contains "member" or changed(@record.level)', 'certain'],
  ])('%s is %s', (text, expected) => {
    const rule = compilePolicy(text, { catalog: schema, collection: 'notes', action: 'update' });
    const { certain, possible } = updateBoundsOf(rule, schema);
    expect([certain.namesNext, possible.namesNext]).toEqual([false, false]);
    const holds = ({ specialise }: typeof rule) => specialise(request).test(record, NO_RELATED);
    expect(holds(certain) ? 'certain' : holds(possible) ? 'possible' : 'never').toBe(expected);
  });

  test('a rule of the stored record alone has itself as both bounds', () => {
    const rule = compilePolicy('@record.level > 2', { catalog: schema, collection: 'notes', action: 'update' });
    expect(updateBoundsOf(rule, schema)).toEqual({ certain: rule, possible: rule });
  });
});

test('the bounds enclose the definition: certain allows no more, possible no less', { tags: ['long'] }, async () => {
  const compiler = await loadCompiler();
  const counts = { compared: 0, certain: 0, impossible: 0, open: 0 };
  for (let seed = 1; seed <= 6; seed++) {
    const random = new Random(seed);
    const world = randomWorld(random);
    const related = relatedOf(world.catalog, world.data);
    for (const collection of world.catalog.collections.keys()) {
      const setting: Setting = { catalog: world.catalog, collection, action: 'update' };
      const ids = new Map([...world.data.rows].map(([name, rows]) => [name, rows.map((row) => row.id as string)]));
      const maker = new PolicyMaker(setting, { random, ids });
      for (let i = 0; i < 60; i++) {
        const made = compiled(maker, { setting, compiler, random });
        if (made === undefined || !made.generated.namesNext) continue;
        const { certain, possible } = updateBoundsOf(made.generated, world.catalog);
        const asked = randomRequest(world, setting, random);
        const [always, ever] = [certain.specialise(asked), possible.specialise(asked)];
        world.data.rows.get(collection)!.forEach((stored, n) => {
          const next = world.updated.get(collection)![n]!;
          const truth = interpret(made.meant, { record: stored, next, related, request: asked }) === true;
          const [isCertain, isPossible] = [always.test(stored, related), ever.test(stored, related)];
          counts.compared++;
          if (isCertain) counts.certain++;
          else if (isPossible) counts.open++;
          else counts.impossible++;
          if ((isCertain && !truth) || (truth && !isPossible))
            throw new Error(`seed ${seed}: ${made.text} of ${JSON.stringify({ stored, next, asked })}`);
        });
      }
    }
  }
  expect(counts.compared).toBeGreaterThan(10_000);
  for (const count of [counts.certain, counts.open, counts.impossible]) expect(count).toBeGreaterThan(500);
});

function compiled(maker: PolicyMaker, making: Parameters<typeof compileForm>[2]) {
  try {
    return compileForm('it', maker.make(), making);
  } catch (error) {
    if (error instanceof Rejected) return undefined;
    throw error;
  }
}
