/** argon2id by the package and by Node: each verifies the hashes of the other. */
import { argon2 as argon2OfNode } from 'node:crypto';
import * as ofPackage from '@node-rs/argon2';
import { describe, expect, test } from 'vitest';
import { parseHash, requireArgon2 } from '../../../src/auth/accounts/argon2.ts';

const COST = { memoryCost: 64, timeCost: 1, parallelism: 1 };
const byNode = requireArgon2(undefined, argon2OfNode);

describe('argon2id', () => {
  test.each([
    ['the package', ofPackage, byNode],
    ['Node', byNode, ofPackage],
  ])('a hash by %s is verified by the other', async (_, one, other) => {
    for (const password of ['correct horse', '', 'Ångström 🦊', 'x'.repeat(256)]) {
      const stored = await one.hash(password, COST);
      expect(stored).toMatch(/^\$argon2id\$v=19\$m=64,t=1,p=1\$[\w+/]{22}\$[\w+/]{43}$/);
      expect(await other.verify(stored, password)).toBe(true);
      expect(await other.verify(stored, `${password}.`)).toBe(false);
      expect(await one.hash(password, COST)).not.toBe(stored);
    }
  });

  test('a hash of another form matches nothing', async () => {
    const stored = await byNode.hash('correct horse', COST);
    for (const bad of [
      '',
      stored.replace('argon2id', 'argon2i'),
      stored.replace('v=19', 'v=16'),
      `${stored}!`,
      stored.slice(0, 40),
    ])
      expect([parseHash(bad), await byNode.verify(bad, 'correct horse')]).toEqual([undefined, false]);
  });

  test('a machine with neither of them is told what to install', () => {
    expect(() => requireArgon2(undefined, undefined)).toThrow(
      'passwords are hashed by argon2id, but the optional package @node-rs/argon2 is not installed: run `npm install @node-rs/argon2`',
    );
  });
});
