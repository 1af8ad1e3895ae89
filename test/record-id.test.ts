import { expect, test } from 'vitest';
import { newRecordId } from '../src/record-id.ts';

test('ids are UUIDs of version 7, each greater than the one before it', () => {
  const ids = Array.from({ length: 50_000 }, () => newRecordId());
  expect(ids.filter((id) => !/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(id))).toEqual(
    [],
  );
  expect(ids.toSorted()).toEqual(ids);
  expect(new Set(ids).size).toBe(ids.length);
  const milliseconds = Number.parseInt(ids[0]!.replaceAll('-', '').slice(0, 12), 16);
  expect(Math.abs(Date.now() - milliseconds)).toBeLessThan(60_000);
  // The bits that count nothing are random.
  expect(new Set(ids.map((id) => id.slice(-12))).size).toBeGreaterThan(49_990);
});
