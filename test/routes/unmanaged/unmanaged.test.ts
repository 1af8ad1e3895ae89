/** Tables that another program owns and writes beside the service: `managed: false`. */
import { afterAll, describe, expect, it } from 'vitest';
import { outcomeOf } from '../../support/records.ts';
import { describeOnBoth } from '../../support/service.ts';
import { ownersWorld, ownSchema } from './owners-table.ts';

const ALL = 'list: true, read: true, create: true, update: true, delete: true';

describe('a table of another owner', () => {
  const shop = ownSchema();
  const world = ownersWorld(
    `
CREATE SCHEMA ${shop};;
CREATE DOMAIN ${shop}.amount AS bigint CHECK (VALUE >= 0);;
CREATE TABLE ${shop}.items (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(), "Item Name" varchar(10), _rank int DEFAULT 7, price ${shop}.amount NOT NULL DEFAULT 5,
  doubled bigint GENERATED ALWAYS AS (_rank * 2) STORED, state text DEFAULT 'new', kept text DEFAULT 'as it was',
  room int, starts bigint, ends bigint, CHECK (state <> 'broken'), UNIQUE ("Item Name"),
  CONSTRAINT one_at_a_time EXCLUDE USING gist (int8range(starts, ends) WITH &&) WHERE (starts IS NOT NULL));;
CREATE FUNCTION ${shop}.on_item() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    IF OLD.state = 'held' THEN RAISE EXCEPTION 'the item is held'; END IF;
    IF OLD.state = 'stuck' THEN RETURN NULL; END IF;
    RETURN OLD;
  END IF;
  IF NEW.state = 'raise' THEN RAISE EXCEPTION 'item % is not for sale', NEW."Item Name"; END IF;
  IF NEW.state = 'skip' THEN RETURN NULL; END IF;
  IF NEW.state = 'shout' THEN NEW."Item Name" = upper(NEW."Item Name"); END IF;
  IF NEW.state = 'promote' THEN NEW._rank = 900; END IF;
  RETURN NEW;
END $$;;
CREATE TRIGGER on_item BEFORE INSERT OR UPDATE OR DELETE ON ${shop}.items FOR EACH ROW EXECUTE FUNCTION ${shop}.on_item();;
CREATE TABLE ${shop}.quiet (id uuid PRIMARY KEY, note text);;
CREATE FUNCTION ${shop}.on_quiet() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'the secret is 4711'; END $$;;
CREATE TRIGGER on_quiet BEFORE INSERT ON ${shop}.quiet FOR EACH ROW EXECUTE FUNCTION ${shop}.on_quiet();;
`,
    `
roles: [member]
register: { roles: [member] }
collections:
  users: { access: { read: true } }
  items:
    table: ${shop}.items
    managed: false
    errors: shown
    timestamps: none
    fields:
      name: { type: string, column: Item Name, unique: true }
      rank: { type: int, column: _rank }
      price: int
      doubled: int
      state: string
      room: int
      starts: int
      ends: int
    access:
      list: true
      read: '@record.rank < 900 or @record.rank is null'
      create: '@record.doubled is null or @record.doubled < 1000'
      update: '@record.doubled is null or @record.doubled < 1000 or @record.rank = 900'
      delete: true
  quiet: { table: ${shop}.quiet, managed: false, timestamps: none, fields: { note: string }, access: { ${ALL} } }
  notes:
    fields: { text: string }
    relations: { item: { kind: belongs_to, collection: items, on_delete: cascade } }
    access: { ${ALL} }
`,
  );

  describeOnBoth(
    'served as it is',
    (service) => {
      afterAll(() => world.run(`DROP SCHEMA IF EXISTS ${shop} CASCADE`).catch(() => undefined));
      const create = async (data: object) => (await service.user()).client.post('/api/items', { data });

      it('answers with the row that the database has stored', async () => {
        const { client } = await service.user();
        const { status, body, headers } = await client.post('/api/items', { data: { name: 'a', state: 'shout' } });
        const { id, ...members } = body.data;
        expect([status, members]).toEqual([
          201,
          { name: 'A', rank: 7, price: 5, doubled: 14, state: 'shout', room: null, starts: null, ends: null },
        ]);
        const read = await client.get(`/api/items/${id}`);
        expect([read.body.data, read.headers.get('etag')]).toEqual([body.data, headers.get('etag')]);
        const patched = await client.patch(`/api/items/${id}`, { data: { rank: 8 } });
        expect(patched.body.data).toEqual({ ...body.data, rank: 8, doubled: 16 });
        expect(await world.rows(`SELECT kept FROM ${shop}.items WHERE id = '${id}'`)).toEqual([['as it was']]);
      });

      it('judges what is stored: by the rules of the write, and by those of reading', async () => {
        const { client } = await service.user();
        expect(outcomeOf(await create({ name: 'big', rank: 501 }))).toEqual([403, 'forbidden']);
        expect(await world.rows(`SELECT 1 FROM ${shop}.items WHERE "Item Name" = 'big'`)).toEqual([]);
        const { body } = await client.post('/api/items', { data: { name: 'small' } });
        const path = `/api/items/${body.data.id}`;
        expect(outcomeOf(await client.patch(path, { data: { rank: 600 } }))).toEqual([403, 'forbidden']);
        expect((await client.get(path)).body.data.rank).toBe(7);
        // The trigger makes it a record that the caller may write, and not read.
        const hidden = await client.patch(path, { data: { state: 'promote' } });
        expect([hidden.status, hidden.body]).toEqual([200, { data: { id: body.data.id } }]);
      });

      it('a write that a trigger skips, or that a constraint or a column does not take, is an error of the caller', async () => {
        expect(outcomeOf(await create({ state: 'skip' }))).toEqual([403, 'forbidden']);
        expect(outcomeOf(await create({ state: 'broken' }))).toEqual([
          422,
          'validation_failed',
          '/data/state check_violation',
        ]);
        expect(outcomeOf(await create({ price: -1 }))).toEqual([422, 'validation_failed', '/data check_violation']);
        expect(outcomeOf(await create({ price: null }))).toEqual([422, 'validation_failed', '/data/price required']);
        expect(outcomeOf(await create({ name: 'elevenchars' }))).toEqual([
          422,
          'validation_failed',
          '/data/name too_long',
        ]);
        expect(outcomeOf(await create({ room: 2_147_483_648 }))).toEqual([
          422,
          'validation_failed',
          '/data/room too_large',
        ]);
        expect(outcomeOf(await create({ doubled: 2 }))).toEqual([422, 'validation_failed', '/data/doubled read_only']);
        await create({ name: 'taken', starts: 1, ends: 5 });
        expect(outcomeOf(await create({ name: 'taken' }))).toEqual([
          409,
          'unique_violation',
          '/data/name unique_violation',
        ]);
        expect(outcomeOf(await create({ starts: 4, ends: 9 }))).toEqual([
          409,
          'conflict',
          '/data/starts conflict',
          '/data/ends conflict',
        ]);
      });

      it('an error that a trigger raises is shown where the schema says so', async () => {
        const { client } = await service.user();
        const shown = await create({ name: 'x', state: 'raise' });
        expect([...outcomeOf(shown), shown.body.errors[0].detail]).toEqual([
          422,
          'validation_failed',
          '/data rejected',
          'item x is not for sale',
        ]);
        const hidden = await client.post('/api/quiet', { data: { note: 'x' } });
        expect([outcomeOf(hidden), hidden.text.includes('4711')]).toEqual([
          [422, 'validation_failed', '/data rejected'],
          false,
        ]);
        const { body } = await create({ name: 'held', state: 'held' });
        expect(outcomeOf(await client.delete(`/api/items/${body.data.id}`))).toEqual([
          422,
          'validation_failed',
          '/data rejected',
        ]);
        const { body: stuck } = await create({ name: 'stuck', state: 'stuck' });
        expect(outcomeOf(await client.delete(`/api/items/${stuck.data.id}`))).toEqual([403, 'forbidden']);
      });

      it('If-Match fails once the owner has changed a visible cell, and no other one', async () => {
        const { client } = await service.user();
        const { body, headers } = await create({ name: 'etag' });
        const path = `/api/items/${body.data.id}`;
        const match = { 'If-Match': headers.get('etag')! };
        await world.run(`UPDATE ${shop}.items SET kept = 'changed' WHERE id = '${body.data.id}'`);
        const first = await client.patch(path, { data: { room: 1 } }, match);
        expect(first.status).toBe(200);
        await world.run(`UPDATE ${shop}.items SET room = 2 WHERE id = '${body.data.id}'`);
        const stale = { 'If-Match': first.headers.get('etag')! };
        expect(outcomeOf(await client.patch(path, { data: { room: 3 } }, stale))).toEqual([412, 'changed']);
        expect(outcomeOf(await client.delete(path, stale))).toEqual([412, 'changed']);
        const fresh = { 'If-Match': (await client.get(path)).headers.get('etag')! };
        expect((await client.get(path, { 'If-None-Match': fresh['If-Match'] })).status).toBe(304);
        const both = await Promise.all([1, 2].map((room) => client.patch(path, { data: { room: 10 + room } }, fresh)));
        expect(both.map(({ status }) => status).toSorted()).toEqual([200, 412]);
      });

      it('records of managed collections refer to them, under a foreign key', async () => {
        const { client } = await service.user();
        const { body } = await create({ name: 'noted' });
        const note = await client.post('/api/notes?expand=item', { data: { text: 'x', item: body.data.id } });
        expect(note.body.data.expand.item).toEqual(body.data);
        await world.run(`DELETE FROM ${shop}.items WHERE id = '${body.data.id}'`);
        expect(outcomeOf(await client.get(`/api/notes/${note.body.data.id}`))).toEqual([404, 'not_found']);
      });

      it('is described with what the database takes', async () => {
        const { body } = await service.anonymous.get('/openapi.json');
        const { Item, ItemCreate } = body.components.schemas;
        expect(Item.properties.price.type).toEqual(['integer', 'null']);
        expect(Item.properties.doubled.readOnly).toBe(true);
        expect(Object.keys(ItemCreate.properties)).not.toContain('doubled');
        expect(ItemCreate.properties.name.maxLength).toBe(10);
        expect(ItemCreate.properties.room.maximum).toBe(2_147_483_647);
        const { post, get } = body.paths['/api/items'];
        expect(JSON.stringify(post.responses['409'])).toContain('conflict');
        expect(JSON.stringify(get.responses)).not.toContain('conflict');
      });
    },
    world.options,
  );
});
