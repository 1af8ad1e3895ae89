/** A test that `npm run test:quick` leaves out because it takes seconds. */
import { test } from 'vitest';

export const longTest = process.env.TEST_QUICK === undefined ? test : test.skip;
