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

    it('within finds the places around another, across the line of dates and at the poles', async () => {
      const { client } = await service.user();
      const places = {
        centre: { lat: 52.0799, lng: 4.3113 },
        beach: { lat: 52.1133, lng: 4.2803 },
        tiny: { lat: 5e-324, lng: 5e-324 },
        fiji: { lat: -17.8, lng: 179.99 },
        west: { lat: -17.8, lng: -179.99 },
        pole: { lat: 90, lng: 0 },
        north: { lat: 89.999, lng: 170 },
      };
      for (const [name, at] of Object.entries(places))
        expect((await client.post('/api/shops', { data: { name, at } })).status).toBe(201);
      const found = async (filter: string) => {
        const { body, text } = await client.post('/api/shops/query', { filter, fields: ['name'], sort: ['name'] });
        expect(body.data, text).toBeDefined();
        return body.data.map(({ name }: { name: string }) => name);
      };
      expect(await found('within(at, 52.08, 4.31, 1km)')).toEqual(['centre']);
      expect(await found('within(at, 52.08, 4.31, 5km)')).toEqual(['beach', 'centre']);
      // The beach is 4,273 m away.
      expect(await found('within(at, 52.0799, 4.3113, 4273m) and name = "beach"')).toEqual([]);
      expect(await found('within(at, 52.0799, 4.3113, 4276m) and name = "beach"')).toEqual(['beach']);
      expect(await found('within(at, -17.8, 180, 2km)')).toEqual(['fiji', 'west']);
      expect(await found('within(at, 90, -30, 1km)')).toEqual(['north', 'pole']);
      expect(await found('within(at, 0, 0, 1m)')).toEqual(['tiny']);
      expect(await found('not within(at, 52.08, 4.31, 12000km)')).toEqual(['a', 'fiji', 'west']);
      const wrong = await client.post('/api/shops/query', { filter: 'within(at, 152, 4, 5km)' });
      expect(outcomeOf(wrong)).toEqual([400, 'filter_invalid', '/filter arguments_malformed']);
      expect((await client.post('/api/shops/query', { filter: 'within(name, 52, 4, 5km)' })).status).toBe(400);
    });
  },
  { schema },
);
