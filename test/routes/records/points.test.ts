/** Fields of type `point`: places on the Earth. */
import { expect, it } from 'vitest';
import { idsOf, outcomeOf } from '../../support/records.ts';
import { describeOnBoth } from '../../support/service.ts';

const schema = `
roles: [member]
register: { roles: [member] }
collections:
  shops:
    fields: { name: string, at: { type: point, required: true, index: true }, old: point }
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
      expect((await client.get('/api/shops?sort=at')).status).toBe(422);
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

    it('a list is in the order of the distance from a place, page by page', async () => {
      const { client } = await service.user();
      const made: string[] = [];
      // Degrees north of the place.
      for (const [i, north] of [0.3, 0.1, undefined, -0.2, 0.1].entries()) {
        const old = north === undefined ? null : { lat: 40 + north, lng: 7 };
        const data = { name: `distance ${i}`, at: { lat: 1, lng: 1 }, old };
        made.push((await client.post('/api/shops', { data })).body.data.id);
      }
      const ties = [made[1]!, made[4]!].sort();
      const nearest = [...ties, made[3], made[0], made[2]];
      const filter = 'name starts with "distance "';
      const walk = async (sort: string): Promise<readonly string[]> => {
        const found: string[] = [];
        for (let cursor: string | undefined; ; ) {
          const { status, body, text } = await client.post('/api/shops/query', {
            filter,
            sort: [sort],
            limit: 2,
            cursor,
          });
          expect([status, body.data?.length], text).toEqual([200, expect.any(Number)]);
          found.push(...idsOf(body.data));
          cursor = body.page.next_cursor;
          if (cursor === undefined || cursor === null) return found;
        }
      };
      expect(await walk('old:from(40 7)')).toEqual(nearest);
      expect(await walk('-old:from(40.0 7)')).toEqual([made[0], made[3], ...ties, made[2]]);
      // The plan is remembered, and the place is another.
      expect(await walk('old:from(41 7)')).toEqual([made[0], ...ties, made[3], made[2]]);
      expect(await walk('old:from(-40 -173)')).toEqual([made[0], made[3], ...ties, made[2]]);
      const link = `/api/shops?filter=${encodeURIComponent(filter)}&sort=${encodeURIComponent('old:from(40 7)')}&limit=100`;
      expect(idsOf((await client.get(link)).body.data)).toEqual(nearest);
    });

    it('a sort by distance names a point and a place on the Earth', async () => {
      const { client } = await service.user();
      const detailOf = async (sort: string): Promise<string> => {
        const { status, body } = await client.post('/api/shops/query', { sort: [sort] });
        expect([status, body.code]).toEqual([422, 'validation_failed']);
        return body.errors[0].detail;
      };
      expect(await detailOf('at')).toMatch(/expected `:from\(LAT LNG\)`/);
      expect(await detailOf('name:from(1 2)')).toMatch(/`name` has no distance/);
      expect(await detailOf('at:from(1, 2)')).toMatch(/expected `:from\(LAT LNG\)`/);
      expect(await detailOf('at:from(91 2)')).toMatch(/91 2 is not on the Earth/);
      expect(await detailOf("at:from(1 2)'")).toMatch(/expected/);
      expect(await detailOf('elsewhere:from(1 2)')).toMatch(/has no `elsewhere`/);
      expect(await detailOf('name.x')).toMatch(/`name` is a value; nothing may follow it/);
    });
  },
  { schema },
);
