// @module-tag long
/** The attacks A01–A65 of the security review, and an inventory: every attack and every finding has a test. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { describeOnBoth } from '../support/service.ts';
import { ATTACKS } from './attack-list.ts';
import { ATTACKED_SCHEMA, type AttackWorld, makeAttackWorld } from './attack-world.ts';
import { NOT_TRIED, PROVED_ELSEWHERE, UNTESTED_FINDINGS } from './elsewhere.ts';

describeOnBoth(
  'attacks',
  (service) => {
    let world: AttackWorld;
    beforeAll(async () => {
      world = await makeAttackWorld(service);
    });
    for (const { theme, attacks } of ATTACKS) {
      describe(theme, () => {
        test.each(attacks.map((attack) => [`${attack.id} ${attack.name}`, attack] as const))(
          '%s',
          async (_, attack) => {
            expect(await attack.attempt(world)).toEqual(attack.expected);
          },
        );
      });
    }
  },
  { schema: ATTACKED_SCHEMA },
);

describe('inventory', () => {
  const ROOT = join(import.meta.dirname, '../..');
  const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
  const numbered = (letter: string, count: number) =>
    Array.from({ length: count }, (_, i) => letter + String(i + 1).padStart(letter === 'A' ? 2 : 1, '0'));

  test('every attack is tried here, proved elsewhere, or has no target; none is two of these', () => {
    const tried = ATTACKS.flatMap(({ attacks }) => attacks);
    const all = [...tried, ...PROVED_ELSEWHERE, ...NOT_TRIED].map(({ id }) => id);
    expect(all.sort()).toEqual(numbered('A', 65));
  });
  test.each(PROVED_ELSEWHERE.map((proof) => [`${proof.id} ${proof.name}`, proof] as const))(
    'the test of %s exists',
    (_, { file, title }) => {
      expect(read(file)).toContain(title);
    },
  );
  test('every test that SECURITY.md links to exists', () => {
    const links = [...read('SECURITY.md').matchAll(/\]\(([^)#]+)\)/g)].map(([, target]) => target!);
    expect(links.length).toBeGreaterThan(20);
    expect(links.filter((target) => !existsSync(join(ROOT, target)))).toEqual([]);
  });
  test('a test of security names every finding of the review, or a list gives the reason', () => {
    const texts = globSync(['test/**/security{-*,}.test.ts', 'test/**/security/*.test.ts'], { cwd: ROOT }).map(read);
    const named = texts.flatMap((text) => [...text.matchAll(/['"`]([SL]\d{1,2})\b/g)].map(([, id]) => id!));
    const known = new Set([...named, ...UNTESTED_FINDINGS.map(({ id }) => id)]);
    expect([...numbered('S', 14), ...numbered('L', 12)].filter((id) => !known.has(id))).toEqual([]);
  });
});
