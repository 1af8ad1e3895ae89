// @module-tag long
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { decide } from '../src/policy/access.ts';
import { loadSchema } from '../src/schema/file/load-file.ts';
import { describeOnOne } from './support/service.ts';
import { followTour } from './support/tour.ts';

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');

test('the README shows the SQL of the sample', () => {
  const { schema } = loadSchema({ file: fileURLToPath(new URL('../bylaw.yaml', import.meta.url)), env: {} });
  const id = '01900000-0000-7000-8000-000000000001';
  const request = { auth: { id, roles: ['member'] }, query: {}, now: '2026-01-01T00:00:00.000000Z' };
  const where = decide({ rules: schema!.collections.get('documents')!.access.list, request }).where('t');
  expect(`(${/```sql\n(.*)\n```/.exec(readme)?.[1]})`).toBe(where.text);
  expect(where.values).toEqual([id, id]);
});

describeOnOne('the tour of the README', (service) => {
  test('every line of the tour answers as promised, in order', () => followTour(service.url));
});

test('the tour is short', () => {
  expect(readme.split('\n').length).toBeLessThanOrEqual(121);
});
