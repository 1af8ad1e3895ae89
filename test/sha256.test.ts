/** The digest of names equals that of Node, at every length around the blocks of 64 bytes. */
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { sha256 } from '../src/sha256.ts';

test('every text has the digest that Node computes', () => {
  const texts = ['', 'abc', 'ä'.repeat(100), ...Array.from({ length: 200 }, (_, i) => `${i}`.padEnd(i, 'x€'))];
  for (const text of texts) expect(sha256(text)).toBe(createHash('sha256').update(text).digest('hex'));
});
