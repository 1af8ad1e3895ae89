// @module-tag long
/** A role that may change some columns of an owner's table: references in the others stay, and a write without a right is a 403. */
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { ownersNotes } from '../../src/migrations/migration.ts';
import type { User } from '../support/service.ts';
import { AdoptedDatabase } from './adopted-database.ts';

const OWNER = `
CREATE SCHEMA shop;
CREATE TABLE shop.customers (customer_no integer PRIMARY KEY, name text);
CREATE TABLE shop.orders (order_no integer PRIMARY KEY, customer_no integer, payer_no integer,
  seller_no integer REFERENCES shop.customers, clerk_id uuid UNIQUE, rider_id uuid UNIQUE, note text);
INSERT INTO shop.customers VALUES (1, 'Ann'), (2, 'Bob'), (3, 'Cy');
INSERT INTO shop.orders (order_no, customer_no, payer_no, seller_no) VALUES (1, 1, 1, NULL), (2, 3, 3, 2)`;
const SERVICE = `
CREATE ROLE courier LOGIN;
CREATE SCHEMA bylaw AUTHORIZATION courier;
GRANT USAGE ON SCHEMA shop TO courier;
GRANT SELECT, DELETE ON shop.customers TO courier;
GRANT SELECT, UPDATE (note, payer_no, rider_id) ON shop.orders TO courier`;
const EDITS = `
roles: { admin: { assigns: [admin, member] }, member: {} }
register: { roles: [member] }
collections:
  users:
    relations:
      order: { kind: has_one, collection: orders, via: clerk }
      ride: { kind: has_one, collection: orders, via: rider }
    access: { view: true, update: '@record.id = @request.auth.id', delete: { roles: [admin] } }
  customers: { access: { view: true, delete: true } }
  orders:
    without: [customer_no, payer_no, clerk_id, rider_id]
    relations:
      customer: { kind: belongs_to, collection: customers, column: customer_no }
      payer: { kind: belongs_to, collection: customers, column: payer_no }
      seller: { kind: belongs_to, collection: customers, column: seller_no }
      clerk: { kind: belongs_to, collection: users, column: clerk_id }
      rider: { kind: belongs_to, collection: users, column: rider_id }
    access: { view: true, update: true }
`;

describe.skipIf(inject('postgresUrl') === '')('a role with a right to some columns', () => {
  const shop = new AdoptedDatabase(['shop']);
  let ann: User;
  beforeAll(async () => {
    await shop.start({ owner: OWNER, service: SERVICE, role: 'courier', edits: EDITS });
    ann = await shop.service.user();
  });
  afterAll(() => shop.stop());
  const order = async (id: number) => (await shop.own('SELECT * FROM shop.orders WHERE order_no = $1', [id]))[0];
  const statusOf = async (path: string, user = ann) => (await user.client.delete(path)).status;

  test('each reference that stays is named at the start, unless a foreign key holds it', async () => {
    const { db, schema } = shop.service.app;
    const notes = (await ownersNotes(db, schema)).filter(({ text }) => text.includes('takes no update'));
    const places = ['"customer_no" (`orders.customer`)', '"clerk_id" (`orders.clerk`)'];
    expect(notes).toEqual(
      places.map((place) => ({
        text: `the database takes no update of "shop.orders".${place} from the service: the value stays when its record is deleted`,
      })),
    );
  });

  test('a delete clears the references that the role may change, and leaves the others', async () => {
    expect(await statusOf('/api/customers/1')).toBe(204);
    expect(await order(1)).toMatchObject({ customer_no: 1, payer_no: null });
  });

  test('the user of a reference that stays can be deleted', async () => {
    const [admin, clerk] = await Promise.all([shop.service.user('admin'), shop.service.user()]);
    await shop.own('UPDATE shop.orders SET clerk_id = $1 WHERE order_no = 1', [clerk!.id]);
    expect(await statusOf(`/api/users/${clerk!.id}`, admin)).toBe(204);
    expect(await order(1)).toMatchObject({ clerk_id: clerk!.id });
  });

  test('a foreign key holds its record back', async () => {
    const { status, body } = await ann.client.delete('/api/customers/2');
    expect([status, body.code]).toEqual([409, 'still_referenced']);
  });

  test('an update of a column without the right is a 403, and a has_one that would need it is read-only', async () => {
    expect((await ann.client.patch('/api/orders/2', { data: { note: 'new' } })).status).toBe(200);
    expect((await ann.client.patch('/api/orders/2', { data: { customer: null } })).status).toBe(403);
    expect((await ann.client.patch(`/api/users/${ann.id}`, { data: { ride: 2 } })).status).toBe(200);
    for (const order of [2, null]) {
      const { status, body } = await ann.client.patch(`/api/users/${ann.id}`, { data: { order } });
      expect([status, body.errors[0].code]).toEqual([422, 'read_only']);
    }
  });

  test('a right that is taken meanwhile makes a write a 403', async () => {
    await shop.own('REVOKE UPDATE (payer_no, rider_id) ON shop.orders FROM courier');
    expect(await statusOf('/api/customers/3')).toBe(403);
    expect((await ann.client.patch(`/api/users/${ann.id}`, { data: { ride: 1 } })).status).toBe(403);
    expect(await order(2)).toMatchObject({ note: 'new', payer_no: 3, rider_id: ann.id });
  });
});
