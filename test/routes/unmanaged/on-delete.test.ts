/** `on_delete` holds for the records of tables that another program owns, also where it has no foreign key. */
import { afterAll, describe, expect, it } from 'vitest';
import { describeOnBoth, type User } from '../../support/service.ts';
import { ownersWorld, ownSchema } from './owners-table.ts';

describe('on_delete of tables without foreign keys', () => {
  const shop = ownSchema();
  const world = ownersWorld(
    `
CREATE SCHEMA ${shop};;
CREATE TABLE ${shop}.parcels (id bigint PRIMARY KEY, depot_id uuid, carrier_id uuid, carriers_code text);;
CREATE TABLE ${shop}.labels (id bigint PRIMARY KEY, parcel_id bigint);;
CREATE TABLE ${shop}.stamps (id bigint PRIMARY KEY, label_id bigint);;
CREATE VIEW ${shop}.counts AS SELECT min(id) AS id, depot_id, count(*) AS parcels FROM ${shop}.parcels GROUP BY depot_id;;
`,
    `
roles: [member]
register: { roles: [member] }
collections:
  depots: { fields: { name: string }, access: { view: true, create: true, delete: true } }
  carriers:
    fields: { code: { type: string, required: true, unique: true } }
    access: { view: true, create: true, delete: true }
  parcels:
    table: ${shop}.parcels
    managed: false
    timestamps: none
    id: { type: int, made_by: caller }
    relations:
      depot: { kind: belongs_to, collection: depots, on_delete: cascade }
      carrier: { kind: belongs_to, collection: carriers, on_delete: restrict }
      payer: { kind: belongs_to, collection: carriers, column: carriers_code, references: code, on_delete: restrict }
    access: { view: true, create: true, delete: true }
  labels:
    table: ${shop}.labels
    managed: false
    timestamps: none
    id: { type: int, made_by: caller }
    relations: { parcel: { kind: belongs_to, collection: parcels, on_delete: cascade } }
    access: { view: true, create: true }
  stamps:
    table: ${shop}.stamps
    managed: false
    timestamps: none
    id: { type: int, made_by: caller }
    relations: { label: { kind: belongs_to, collection: labels } }
    access: { view: true, create: true }
  counts:
    table: ${shop}.counts
    managed: false
    timestamps: none
    id: { type: int }
    fields: { parcels: int }
    relations: { depot: { kind: belongs_to, collection: depots } }
    access: { view: true }
`,
  );

  describeOnBoth(
    'as the schema file says it',
    (service) => {
      afterAll(() => world.run(`DROP SCHEMA IF EXISTS ${shop} CASCADE`).catch(() => undefined));
      let next = 1;
      const make = async ({ client }: User, collection: string, data: object): Promise<string> => {
        const { status, body, text } = await client.post(`/api/${collection}`, { data });
        expect(status, text).toBe(201);
        return body.data.id;
      };
      const listed = async ({ client }: User, collection: string) => (await client.get(`/api/${collection}`)).body.data;

      it('a delete cascades from table to table, and clears the other references', async () => {
        const user = await service.user();
        const [depot, other] = [await make(user, 'depots', {}), await make(user, 'depots', {})];
        const stays = await make(user, 'parcels', { id: next++, depot: other });
        const parcel = await make(user, 'parcels', { id: next++, depot });
        const label = await make(user, 'labels', { id: next++, parcel });
        const kept = await make(user, 'labels', { id: next++, parcel: stays });
        const stamps = [
          await make(user, 'stamps', { id: next++, label }),
          await make(user, 'stamps', { id: next++, label: kept }),
        ];
        expect(await listed(user, 'counts')).toHaveLength(2);
        expect((await user.client.delete(`/api/depots/${depot}`)).status).toBe(204);
        expect(await listed(user, 'parcels')).toMatchObject([{ id: stays, depot: other }]);
        expect(await listed(user, 'labels')).toEqual([{ id: kept, parcel: stays }]);
        expect(await listed(user, 'stamps')).toEqual([
          { id: stamps[0], label: null },
          { id: stamps[1], label: kept },
        ]);
        expect((await user.client.delete(`/api/parcels/${stays}`)).status).toBe(204);
        expect(await listed(user, 'labels')).toEqual([]);
      });

      it.each([['carrier'], ['payer']])('a reference with restrict holds its record back: %s', async (relation) => {
        const user = await service.user();
        const carrier = await make(user, 'carriers', { code: `code ${next}` });
        const depot = await make(user, 'depots', {});
        const parcel = await make(user, 'parcels', { id: next++, [relation]: carrier, depot });
        const refused = await user.client.delete(`/api/carriers/${carrier}`);
        expect([refused.status, refused.body.code]).toEqual([409, 'still_referenced']);
        if (relation === 'carrier')
          expect(refused.body.detail).toBe('records of `parcels` still reference this one, by `carrier`');
        const operations = [{ op: 'delete', collection: 'carriers', id: carrier }];
        expect((await user.client.post('/api/batch', { operations })).status).toBe(409);
        expect((await user.client.delete(`/api/parcels/${parcel}`)).status).toBe(204);
        expect((await user.client.delete(`/api/carriers/${carrier}`)).status).toBe(204);
      });
    },
    world.options,
  );
});
