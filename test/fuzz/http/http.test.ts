// @module-tag long
/** A few hundred hostile requests in every test run; `npm run fuzz -- http` is the long form. */
import { expect, test } from 'vitest';
import { describeOnOne, ROUTES_SCHEMA } from '../../support/service.ts';
import { attack } from './attack.ts';
import { makePeople, makeWorld, shapesOf, signIn } from './service.ts';

describeOnOne(
  'hostile requests',
  (service) => {
    test('hostile requests cause no 5xx, hang or leak', async () => {
      await makePeople(service.app);
      const world = await makeWorld(service.url, shapesOf(service.app.schema));
      const renew = () => signIn(service.url, world.credentials as unknown as Record<string, Record<string, string>>);
      const settings = { url: service.url, world, seed: 20260101, from: 0, requests: 600, lanes: 4, renew };
      const { counts, failures } = await attack(settings);
      expect(failures).toEqual([]);
      // Requests that all end at the first check try nothing.
      const statuses = [...counts.statuses].filter(([, count]) => count > 5).map(([status]) => status);
      expect(statuses).toEqual(expect.arrayContaining([200, 400, 401, 403, 404, 405, 422]));
    });
  },
  { schema: ROUTES_SCHEMA },
);
