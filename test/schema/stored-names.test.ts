/** Names that end in a digest are those of databases that exist: the digest is SHA-256, as Node computes it. */
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { constraintName, deletedTableOf, shortDigest } from '../../src/schema/model/stored-names.ts';

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');

test('a short digest has the first digits that Node computes', () => {
  for (const text of ['', 'abc', 'ä'.repeat(100), '😀'.repeat(33)])
    expect(shortDigest(text)).toBe(digestOf(text).slice(0, 16));
});

test('a name that PostgreSQL would cut ends in a digest', () => {
  const table = 'ä'.repeat(40);
  const name = constraintName(table, ['title'], 'key');
  expect(name).toBe(`${'ä'.repeat(22)}_${digestOf(`${table}_title_key`).slice(0, 10)}_key`);
  expect(Buffer.byteLength(name)).toBeLessThanOrEqual(63);
  expect(deletedTableOf(table)).toBe(`bylaw_deleted_${digestOf(table).slice(0, 16)}`);
  expect(deletedTableOf('notes')).toBe('bylaw_deleted_notes');
});
