// @module-tag long
import { expect, it } from 'vitest';
import { fuzzFrontEnd } from './frontend.ts';

it('the front end answers every text without a throw, in time, with valid spans and fixes', () => {
  const report = fuzzFrontEnd({ seed: 20260101, count: 1000 });
  expect(report.failures).toEqual([]);
  // Mutations that never compile would test the error paths only.
  expect(report.accepted).toBeGreaterThan(30);
});
