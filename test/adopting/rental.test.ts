// @module-tag long
/** A film rental, served by a draft: its triggers, defaults and indexes go on working, and its tables stay as they are. */
import { beforeAll, describe, expect, inject, test } from 'vitest';
import type { User } from '../support/service.ts';
import { adopted } from './adopted-database.ts';

const ADMIN = [{ roles: ['admin'] }];
const OWN = '@record.customer.email = @request.auth.email';
const EDITS = {
  film: { access: { view: true, create: ADMIN, update: ADMIN, delete: ADMIN } },
  language: { access: { view: true } },
  film_list: { access: { view: true } },
  active_customer: { access: { view: ADMIN, update: ADMIN } },
  customer: { access: { view: [{ when: '@record.email = @request.auth.email' }, ...ADMIN] } },
  inventory: { access: { view: true } },
  rental: { access: { view: [{ when: OWN }, ...ADMIN], create: ADMIN, update: ADMIN } },
};

describe.skipIf(inject('postgresUrl') === '')('a film rental', () => {
  const database = adopted('rental.sql', ['rental'], EDITS);
  const { service } = database;
  let ann: User;
  let root: User;
  beforeAll(async () => {
    [ann, root] = await Promise.all([service.user(), service.user('admin')]);
    await database.own(`UPDATE rental.customer SET email = $1 WHERE customer_id = 1`, [ann.email]);
  });
  const titles = async (query: string) =>
    (await ann.client.get(`/api/film${query}`)).body.data?.map(({ title }: { title: string }) => title);

  test('the draft names what it leaves out', () => {
    expect(database.counts).toBe('10 collections; left out: 2 tables, 1 column');
    const named = [
      'table rental.payment_2026: it is a part of rental.payment, whose collection has its records',
      'column rental.film.words: no field type holds tsvector; it must have a value, which a create can only get from a trigger',
      'PostgreSQL knows no key of it; make sure that `film_id` differs in all rows and is never null',
    ];
    expect(named.filter((text) => !database.draft.includes(text))).toEqual([]);
  });

  test('lists page, filter, sort and expand by keys that are numbers', async () => {
    const first = await ann.client.get('/api/film?limit=2');
    expect([first.status, first.body.data.map(({ id }: { id: unknown }) => id)]).toEqual([200, [1, 2]]);
    expect(await titles('?limit=2&offset=2')).toEqual(['Silent Hours']);
    expect(await titles('?rating=12')).toEqual(['Academy Dinosaur']);
    expect(await titles('?language=1')).toEqual(['Academy Dinosaur', 'Silent Hours']);
    const asked = { filter: 'made_in >= 2006 and rental_rate < 5', sort: ['-made_in'] };
    const queried = await ann.client.post('/api/film/query', asked);
    expect(queried.body.data.map(({ id }: { id: unknown }) => id)).toEqual([2, 1]);
    const { body } = await ann.client.get('/api/film/1?expand=language');
    expect(body.data).toMatchObject({ id: 1, rating: '12', made_in: 2006, rental_rate: '4.99', language: 1 });
    expect(body.data.expand.language).toMatchObject({ id: 1 });
    expect((await ann.client.get('/api/film/x')).status).toBe(404);
    expect((await ann.client.get('/api/film/99')).status).toBe(404);
  });

  test('the database makes keys, fills in defaults, and answers with what its triggers changed', async () => {
    const made = await root.client.post('/api/film', { data: { title: 'New Film', language: 2 } });
    expect([made.status, made.body.data]).toMatchObject([
      201,
      { id: 4, title: 'New Film', rental_days: 3, rental_rate: '4.99', rating: 'all', made_in: null },
    ]);
    const old = await ann.client.get('/api/film/1');
    const changed = await root.client.patch('/api/film/1', { data: { description: 'A storm' } });
    expect([changed.status, changed.body.data.description]).toEqual([200, 'A storm']);
    expect(changed.body.data.last_update > old.body.data.last_update).toBe(true);
    expect(await database.own(`SELECT words @@ 'storm' AS found FROM rental.film WHERE film_id = 1`)).toEqual([
      { found: true },
    ]);
    expect((await ann.client.patch('/api/film/1', { data: { description: 'x' } })).status).toBe(403);
    const faults = { title: 'x'.repeat(121), rating: '99', language: 77 };
    const wrong = await root.client.post('/api/film', { data: faults });
    expect([wrong.status, wrong.body.errors.map(({ pointer }: { pointer: string }) => pointer).sort()]).toEqual([
      422,
      ['/data/language', '/data/rating', '/data/title'],
    ]);
    const outside = await root.client.patch('/api/film/1', { data: { made_in: 1500 } });
    expect([outside.status, outside.body.code]).toEqual([422, 'validation_failed']);
    expect((await root.client.delete(`/api/film/${made.body.data.id}`)).status).toBe(204);
    expect((await root.client.delete('/api/film/1')).status).toBe(409);
  });

  test('customers see their own rentals; a copy is lent once', async () => {
    const rented = async () => (await ann.client.get('/api/rental')).body.data.map(({ id }: { id: number }) => id);
    expect(await rented()).toEqual([1]);
    const lend = (inventory: number) => root.client.post('/api/rental', { data: { inventory, customer: 1 } });
    const lent = await lend(3);
    expect([lent.status, lent.body.data]).toMatchObject([201, { inventory: 3, customer: 1, returned_at: null }]);
    expect((await lend(3)).status).toBe(409);
    const early = { returned_at: '2020-01-01T00:00:00Z' };
    expect((await root.client.patch(`/api/rental/${lent.body.data.id}`, { data: early })).status).toBe(422);
    await database.own('UPDATE rental.rental SET customer_id = 2 WHERE rental_id = 1');
    expect(await rented()).toEqual([lent.body.data.id]);
  });

  test('views are read, and written where PostgreSQL lets them', async () => {
    const { body } = await ann.client.get('/api/film_list?rating=12');
    expect(body.data).toMatchObject([{ id: 1, title: 'Academy Dinosaur', copies: 2 }]);
    const renamed = await root.client.patch('/api/active_customer/2', { data: { name: 'Robert' } });
    expect([renamed.status, renamed.body.data?.name]).toEqual([200, 'Robert']);
    expect(await database.own('SELECT name FROM rental.customer WHERE customer_id = 2')).toEqual([{ name: 'Robert' }]);
    expect((await root.client.get('/api/active_customer/3')).status).toBe(404);
  });

  test('nothing of the owner has been altered', () => database.expectUnaltered());
});
