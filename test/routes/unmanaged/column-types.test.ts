/** Columns of other owners' tables: enum types, domains, bounded strings, partitions, and values that no field takes. */
import { afterAll, describe, expect, it } from 'vitest';
import { idsOf, outcomeOf } from '../../support/records.ts';
import { describeOnBoth } from '../../support/service.ts';
import { ownersWorld, ownSchema } from './owners-table.ts';

describe('columns of other owners', () => {
  const shop = ownSchema();
  const world = ownersWorld(
    `
CREATE SCHEMA ${shop};;
CREATE TYPE ${shop}.mood AS ENUM ('sad', 'ok', 'Happy day');;
CREATE DOMAIN ${shop}.label AS varchar(20);;
CREATE TABLE ${shop}.people (
  id uuid DEFAULT gen_random_uuid(), born date NOT NULL DEFAULT '2000-01-01', name ${shop}.label, mood ${shop}.mood DEFAULT 'ok',
  seen timestamptz, score double precision, price numeric(8,2), PRIMARY KEY (id, born)) PARTITION BY RANGE (born);;
CREATE UNIQUE INDEX ON ${shop}.people (id, born);;
CREATE TABLE ${shop}.old PARTITION OF ${shop}.people FOR VALUES FROM (MINVALUE) TO ('1990-01-01');;
CREATE TABLE ${shop}.young PARTITION OF ${shop}.people FOR VALUES FROM ('1990-01-01') TO (MAXVALUE);;
CREATE VIEW ${shop}.persons AS SELECT * FROM ${shop}.people;;
CREATE TABLE ${shop}.pets (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), mood ${shop}.mood, owner uuid);;
`,
    `
roles: [member]
register: { roles: [member] }
collections:
  users: { access: { read: true } }
  persons:
    table: ${shop}.persons
    managed: false
    timestamps: none
    fields:
      born: date
      name: string
      mood: { type: string, enum: [sad, Happy day] }
      seen: datetime
      score: float
      price: { type: decimal, precision: 8, scale: 2 }
    relations: { pets: { kind: has_many, collection: pets, via: owner } }
    access:
      list: true
      read: true
      create: '@record.mood != "sad"'
      update: '@next.mood != "sad" or @record.mood = "sad"'
      delete: true
  pets:
    table: ${shop}.pets
    managed: false
    timestamps: none
    fields: { mood: { type: string, enum: [sad, ok, Happy day] } }
    relations: { owner: { kind: belongs_to, collection: persons, column: owner } }
    access: { list: '@record.owner.mood = "Happy day" or @record.mood > "t"', read: true, create: true, update: true, delete: true }
`,
  );

  describeOnBoth(
    'served as they are',
    (service) => {
      afterAll(() => world.run(`DROP SCHEMA IF EXISTS ${shop} CASCADE`).catch(() => undefined));

      it('an enum type is a string: written, judged, filtered, sorted and grouped', async () => {
        const { client } = await service.user();
        const post = async (data: object) => client.post('/api/persons', { data: { born: '1980-05-05', ...data } });
        const happy = await post({ name: 'ann', mood: 'Happy day' });
        expect([happy.status, happy.body.data.mood]).toEqual([201, 'Happy day']);
        const usual = await post({ name: 'bob' });
        expect(usual.body).toMatchObject({ code: 'forbidden' });
        expect(outcomeOf(await post({ mood: 'sad' }))).toEqual([403, 'forbidden']);
        expect(outcomeOf(await post({ mood: 'cross' }))).toEqual([422, 'validation_failed', '/data/mood not_in_enum']);
        await world.run(`INSERT INTO ${shop}.people (name, mood) VALUES ('cid', 'ok'), ('dan', NULL)`);
        const filtered = async (query: string) =>
          (await client.get(`/api/persons?${query}`)).body.data.map(({ name }: { name: string }) => name);
        expect(await filtered('mood=Happy+day')).toEqual(['ann']);
        expect(outcomeOf(await client.get('/api/persons?mood=ok'))).toEqual([
          400,
          'filter_invalid_value',
          'mood filter_invalid_value',
        ]);
        const sorted = await client.post('/api/persons/query', {
          filter: 'mood >= "a" or mood starts with "H"',
          sort: ['mood'],
        });
        expect(sorted.body.data.map(({ mood }: { mood: string }) => mood)).toEqual(['Happy day', 'ok']);
        const path = `/api/persons/${happy.body.data.id}`;
        expect(outcomeOf(await client.patch(path, { data: { mood: 'sad' } }))).toEqual([403, 'forbidden']);
        expect((await client.patch(path, { data: { price: '3.5' } })).body.data.price).toBe('3.50');
        expect((await client.delete(path, { 'If-Match': '"stale"' })).status).toBe(412);
      });

      it('an enum type of a related record is judged', async () => {
        const { client } = await service.user();
        const { body } = await client.post('/api/persons', { data: { born: '1999-01-01', mood: 'Happy day' } });
        const pet = await client.post('/api/pets', { data: { mood: 'sad', owner: body.data.id } });
        await client.post('/api/pets', { data: { mood: 'sad' } });
        expect(idsOf((await client.get('/api/pets')).body.data)).toEqual([pet.body.data.id]);
        const read = await client.get(`/api/persons/${body.data.id}?expand=pets`);
        expect(idsOf(read.body.data.expand.pets)).toEqual([pet.body.data.id]);
      });

      it('values that no field takes are shown as the database prints them, and never as others', async () => {
        const { client } = await service.user();
        await world.run(`
          INSERT INTO ${shop}.people (born, name, seen, score, price)
          VALUES ('0044-03-15 BC', 'x', 'infinity', 'NaN', 'NaN'), ('20000-01-01', 'x', '0044-03-15 00:00:00.123Z BC', '-Infinity', 1),
                 ('1991-01-01', 'x', '20000-01-01 00:00:00.12345Z', 1.5, 2)`);
        const { status, body } = await client.get('/api/persons?name=x');
        const shown = body.data.map(({ id: _, mood: _m, name: _n, ...rest }: Record<string, unknown>) =>
          JSON.stringify(rest),
        );
        expect([status, shown.toSorted()]).toEqual([
          200,
          [
            '{"born":"0044-03-15 BC","seen":"infinity","score":"NaN","price":"NaN"}',
            '{"born":"1991-01-01","seen":"20000-01-01 00:00:00.12345+00","score":1.5,"price":"2.00"}',
            '{"born":"20000-01-01","seen":"0044-03-15 00:00:00.123+00 BC","score":"-Infinity","price":"1.00"}',
          ],
        ]);
        for (const sort of ['seen', '-born', 'score', '-price']) {
          const ids: string[] = [];
          let after: string | undefined;
          do {
            const page = await client.post('/api/persons/query', {
              sort: [sort],
              limit: 1,
              ...(after && { cursor: after }),
            });
            expect([sort, page.status]).toEqual([sort, 200]);
            ids.push(...idsOf(page.body.data));
            after = page.body.page.next_cursor;
          } while (after !== undefined && after !== null);
          expect(new Set(ids).size).toBe((await client.get('/api/persons')).body.data.length);
        }
        const grouped = async (period: string) =>
          (
            await client.post('/api/persons/aggregate', {
              filter: 'name = "x"',
              group_by: [period],
              measures: { n: 'count' },
            })
          ).body.data.map((group: Record<string, unknown>) => [group[period], group.n]);
        expect(await grouped('year(born)')).toEqual([
          ['1991', 1],
          [null, 2],
        ]);
        expect(await grouped('week(seen)')).toEqual([[null, 3]]);
      });
    },
    world.options,
  );
});
