/** Views are served like tables of other owners: they take the writes that PostgreSQL lets through. */
import { afterAll, describe, expect, it } from 'vitest';
import { outcomeOf } from '../../support/records.ts';
import { describeOnBoth } from '../../support/service.ts';
import { ownersWorld, ownSchema } from './owners-table.ts';

const ACCESS = 'access: { list: true, read: true, create: true, update: true, delete: true }';
const FIELDS = 'fields: { name: string, total: int }';

describe('a view', () => {
  const shop = ownSchema();
  const world = ownersWorld(
    `
CREATE SCHEMA ${shop};;
CREATE TABLE ${shop}.people (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), name text, hidden bool NOT NULL DEFAULT false);;
CREATE TABLE ${shop}.sums (person uuid REFERENCES ${shop}.people, total bigint);;
CREATE VIEW ${shop}.shown AS SELECT id, name, 1::bigint AS total FROM ${shop}.people WHERE NOT hidden;;
CREATE VIEW ${shop}.totals AS
  SELECT p.id, p.name, sum(s.total)::bigint AS total FROM ${shop}.people p LEFT JOIN ${shop}.sums s ON s.person = p.id GROUP BY p.id;;
CREATE VIEW ${shop}.joined AS
  SELECT p.id, p.name, s.total FROM ${shop}.people p LEFT JOIN ${shop}.sums s ON s.person = p.id;;
CREATE FUNCTION ${shop}.on_joined() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO ${shop}.people (id, name) VALUES (NEW.id, NEW.name) ON CONFLICT (id) DO UPDATE SET name = excluded.name;
  DELETE FROM ${shop}.sums WHERE person = NEW.id;
  INSERT INTO ${shop}.sums VALUES (NEW.id, NEW.total);
  RETURN NEW;
END $$;;
CREATE TRIGGER on_joined INSTEAD OF INSERT OR UPDATE ON ${shop}.joined FOR EACH ROW EXECUTE FUNCTION ${shop}.on_joined();;
CREATE MATERIALIZED VIEW ${shop}.snapshot AS SELECT id, name, 0::bigint AS total FROM ${shop}.people;;
`,
    `
roles: [member]
register: { roles: [member] }
collections:
  users: { access: { read: true } }
  shown: { table: ${shop}.shown, managed: false, timestamps: none, ${FIELDS}, ${ACCESS} }
  totals: { table: ${shop}.totals, managed: false, timestamps: none, ${FIELDS}, ${ACCESS} }
  joined: { table: ${shop}.joined, managed: false, timestamps: none, ${FIELDS}, ${ACCESS} }
  snapshot: { table: ${shop}.snapshot, managed: false, timestamps: none, ${FIELDS}, ${ACCESS} }
  notes:
    fields: { text: string }
    relations: { about: { kind: belongs_to, collection: shown, required: true } }
    access:
      list: '@record.about.total != 5'
      read: true
      create: true
`,
  );

  describeOnBoth(
    'of another owner',
    (service) => {
      afterAll(() => world.run(`DROP SCHEMA IF EXISTS ${shop} CASCADE`).catch(() => undefined));

      it('that PostgreSQL can update takes every write, but for computed columns', async () => {
        const { client } = await service.user();
        const { status, body } = await client.post('/api/shown', { data: { name: 'a' } });
        expect([status, body.data.name, body.data.total]).toEqual([201, 'a', 1]);
        const path = `/api/shown/${body.data.id}`;
        expect((await client.patch(path, { data: { name: 'b' } })).body.data.name).toBe('b');
        expect(outcomeOf(await client.patch(path, { data: { total: 2 } }))).toEqual([
          422,
          'validation_failed',
          '/data/total read_only',
        ]);
        await world.run(`UPDATE ${shop}.people SET hidden = true WHERE id = '${body.data.id}'`);
        expect(outcomeOf(await client.get(path))).toEqual([404, 'not_found']);
        await world.run(`UPDATE ${shop}.people SET hidden = false WHERE id = '${body.data.id}'`);
        expect((await client.delete(path)).status).toBe(204);
      });

      it('that PostgreSQL cannot update is read only: 405, in the document and in capabilities', async () => {
        const { client } = await service.user();
        const { body: person } = await client.post('/api/shown', { data: { name: 'sum' } });
        await world.run(`INSERT INTO ${shop}.sums VALUES ('${person.data.id}', 40), ('${person.data.id}', 2)`);
        const path = `/api/totals/${person.data.id}`;
        expect((await client.get(path)).body.data).toEqual({ id: person.data.id, name: 'sum', total: 42 });
        const posted = await client.post('/api/totals', { data: { name: 'x' } });
        expect([posted.status, posted.body.code, posted.headers.get('allow')]).toEqual([
          405,
          'method_not_allowed',
          'GET, HEAD',
        ]);
        const patched = await client.patch(path, { data: { name: 'x' } });
        expect([patched.status, patched.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
        expect((await client.get(`${path}/can`)).body.data).toMatchObject({ update: false, delete: false });
        const { paths } = (await service.anonymous.get('/openapi.json')).body;
        expect(Object.keys(paths['/api/totals'])).toEqual(['get']);
        expect(Object.keys(paths['/api/shown']).toSorted()).toEqual(['get', 'post']);
        const rehearsed = await client.post('/api/totals/can', { action: 'create', data: { name: 'x' } });
        expect(rehearsed.body.data).toMatchObject({ allowed: false, status: 405 });
        expect((await client.post('/api/snapshot', { data: { name: 'x' } })).status).toBe(405);
        const batch = [{ op: 'create', collection: 'totals', data: { name: 'x' } }];
        expect(outcomeOf(await client.post('/api/batch', { operations: batch }))).toEqual([
          422,
          'validation_failed',
          '/operations/0/op not_taken',
        ]);
      });

      it('with INSTEAD OF triggers takes the writes that they make', async () => {
        const { client } = await service.user();
        const { status, body, headers } = await client.post('/api/joined', { data: { name: 'j', total: 3 } });
        expect([status, body.data.total]).toEqual([201, 3]);
        const path = `/api/joined/${body.data.id}`;
        const match = { 'If-Match': headers.get('etag')! };
        expect((await client.patch(path, { data: { total: 4 } }, match)).body.data).toEqual({ ...body.data, total: 4 });
        expect(outcomeOf(await client.patch(path, { data: { total: 5 } }, match))).toEqual([412, 'changed']);
        expect((await client.delete(path)).status).toBe(405);
      });

      it('can be referenced, without a foreign key: rules see a missing record as none', async () => {
        const { client } = await service.user();
        const { body: person } = await client.post('/api/shown', { data: { name: 'gone' } });
        const { body: note } = await client.post('/api/notes', { data: { text: 'x', about: person.data.id } });
        expect(note.data?.about, JSON.stringify(note)).toBe(person.data.id);
        const listed = async () => (await client.get('/api/notes')).body.data.length;
        expect(await listed()).toBe(1);
        await world.run(`DELETE FROM ${shop}.people WHERE id = '${person.data.id}'`);
        expect(await listed()).toBe(0);
        expect((await client.get(`/api/notes/${note.data.id}`)).status).toBe(200);
        expect(outcomeOf(await client.post('/api/notes', { data: { about: person.data.id } }))).toEqual([
          422,
          'validation_failed',
          '/data/about not_found',
        ]);
      });
    },
    world.options,
  );
});
