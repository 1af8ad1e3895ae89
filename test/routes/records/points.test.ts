/** Fields of type `point`: places on the Earth. */
import { expect, it } from 'vitest';
import { idsOf, outcomeOf } from '../../support/records.ts';
import { describeOnBoth } from '../../support/service.ts';

const schema = `
roles: [member]
register: { roles: [member] }
collections:
  shops:
    fields: { name: string, at: { type: point, required: true }, old: point }
    access: { view: true, create: true, update: 'changed_only(@record.at, @record.name, @record.old)' }
`;

describeOnBoth(
  'points',
  (service) => {
    it('a point is an object of two numbers', async () => {
      const { client } = await service.user();
      const at = { lat: 52.1, lng: 4.300000000000001 };
      const made = await client.post('/api/shops', { data: { name: 'a', at } });
      expect([made.status, made.body.data], made.text).toMatchObject([201, { at, old: null }]);
      const path = `/api/shops/${made.body.data.id}`;
      const moved = { lng: -1e-7, lat: -90 };
      const patched = await client.patch(path, { data: { at: moved, old: at } });
      expect([patched.status, patched.body.data], patched.text).toMatchObject([200, { at: moved, old: at }]);
      expect((await client.patch(path, { data: { old: null } })).body.data.old).toBeNull();
      expect((await client.get(path)).body.data.at).toEqual(moved);
      const queried = async (filter: string) => idsOf((await client.post('/api/shops/query', { filter })).body.data);
      expect(await queried('old is null')).toEqual([made.body.data.id]);
      expect(await queried('at is null')).toEqual([]);
      for (const wrong of [
        { lat: 90.1, lng: 0 },
        { lat: 0, lng: -181 },
        { lat: 0 },
        { lat: '1', lng: 2 },
        { lat: 1, lng: 2, alt: 3 },
        [1, 2],
        '(1,2)',
        7,
      ])
        expect(outcomeOf(await client.patch(path, { data: { at: wrong } }))).toEqual([
          422,
          'validation_failed',
          '/data/at wrong_type',
        ]);
      expect((await client.patch(path, { data: { at: null } })).status).toBe(422);
      expect((await client.get('/api/shops?sort=at')).status).toBe(400);
    });
  },
  { schema },
);
