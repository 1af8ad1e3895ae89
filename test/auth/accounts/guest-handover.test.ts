/** A guest becomes a user: the records of the guest are handed over by a rule, for an hour. */
import { describe, expect, test } from 'vitest';
import { parseSchema } from '../../../src/schema/load.ts';
import { sql } from '../../../src/sql.ts';
import { describeOnOne } from '../../support/service.ts';
import { newEmail, PASSWORD, tokensOf } from '../people.ts';

const CARTS = `
roles: { member: {} }
guests: true
register: { roles: [member] }
collections:
  carts:
    fields:
      note: string
      cart_of: { type: string, default: '@request.auth.guest' }
    relations: { owner: { kind: belongs_to, collection: users, default: '@request.auth.id' } }
    access:
      list: '@record.owner = @request.auth.id or @record.cart_of = @request.auth.guest or @record.cart_of = @request.auth.former_guest'
      read: '@record.owner = @request.auth.id or @record.cart_of = @request.auth.guest or @record.cart_of = @request.auth.former_guest'
      create: '@record.cart_of = @request.auth.guest or @record.owner = @request.auth.id'
      update: '@record.cart_of = @request.auth.former_guest and @next.owner = @request.auth.id'
  boxes:
    fields: { cart_of: { type: string, required: true, default: '@request.auth.guest' } }
    access: { create: true, list: true, read: true }
`;

describeOnOne(
  'a guest becomes a user',
  (service) => {
    const guest = async () => {
      const answer = await service.anonymous.post('/api/auth/guest');
      return tokensOf(service.anonymous, { ...answer, status: 200 });
    };
    const cartOf = async ({ client }: Awaited<ReturnType<typeof guest>>) => {
      const answer = await client.post('/api/carts', { data: { note: 'tea' } });
      expect([answer.status, answer.body.data.owner]).toEqual([201, null]);
      return answer.body.data as { readonly id: string; readonly cart_of: string };
    };
    const idsSeen = async (client: typeof service.anonymous): Promise<readonly string[]> =>
      (await client.get('/api/carts')).body.data.map(({ id }: { readonly id: string }) => id);

    test('each guest has a cart of its own, also against another one who names it', async () => {
      const [one, two] = [await guest(), await guest()];
      const [cart, other] = [await cartOf(one), await cartOf(two)];
      expect(cart.cart_of).not.toBe(other.cart_of);
      expect(await idsSeen(one.client)).toEqual([cart.id]);
      expect(await idsSeen(one.cookieClient)).toEqual([cart.id]);
      const forged = await two.client.post('/api/carts', { data: { cart_of: cart.cart_of } });
      expect(forged.status).toBe(403);
      expect((await two.client.get(`/api/carts/${cart.id}`)).status).toBe(404);
    });

    test('the login that ends the session hands the cart over, once', async () => {
      const user = await service.user();
      const visitor = await guest();
      const cart = await cartOf(visitor);
      expect(await idsSeen(user.client)).toEqual([]);
      const { body } = await visitor.client.post('/api/auth/login', { email: user.email, password: user.password });
      const client = service.anonymous.with({ Authorization: `Bearer ${body.access_token}` });
      expect(await idsSeen(client)).toEqual([cart.id]);
      // The session is over: another user cannot follow it.
      const thief = await service.user();
      const late = await visitor.client.post('/api/auth/login', { email: thief.email, password: thief.password });
      expect(await idsSeen(service.anonymous.with({ Authorization: `Bearer ${late.body.access_token}` }))).toEqual([]);
      const taken = await client.patch(`/api/carts/${cart.id}`, { data: { owner: user.id, cart_of: null } });
      expect([taken.status, taken.body.data.owner]).toEqual([200, user.id]);
      expect(await idsSeen(client)).toEqual([cart.id]);
    });

    test('two logins in a race: one user follows the guest', async () => {
      const visitor = await guest();
      const cart = await cartOf(visitor);
      const users = [await service.user(), await service.user()];
      const logins = await Promise.all(
        users.map(({ email, password }) => visitor.client.post('/api/auth/login', { email, password })),
      );
      const seen = await Promise.all(
        logins.map(({ body }) => idsSeen(service.anonymous.with({ Authorization: `Bearer ${body.access_token}` }))),
      );
      expect(seen.flat()).toEqual([cart.id]);
    });

    test('a registration hands it over to the first login, and only for an hour', async () => {
      const visitor = await guest();
      const cart = await cartOf(visitor);
      const email = newEmail('cart');
      const { body } = await visitor.client.post('/api/auth/register', { email, password: PASSWORD });
      const login = async () => {
        const answer = await service.anonymous.post('/api/auth/login', { email, password: PASSWORD });
        return service.anonymous.with({ Authorization: `Bearer ${answer.body.access_token}` });
      };
      expect(await idsSeen(await login())).toEqual([cart.id]);
      await service.app.db.run(sql`UPDATE "_auth_former_guests" SET ended_at = ended_at - interval '3600 seconds'`);
      expect(await idsSeen(await login())).toEqual([]);
      expect(body.user.id).toBeDefined();
    });

    test('a user and a publishable key have no guest session: a default is absent, and required it is 422', async () => {
      const admin = await service.user('admin');
      const own = await admin.client.post('/api/carts', { data: {} });
      expect([own.status, own.body.data.cart_of]).toEqual([201, null]);
      const key = await admin.client.post('/api/auth/keys', { name: 'page', publishable: true });
      const page = service.anonymous.with({ Authorization: `Bearer ${key.body.secret}` });
      expect((await page.post('/api/carts', { data: {} })).status).toBe(403);
      for (const client of [admin.client, page]) {
        const box = await client.post('/api/boxes', { data: {} });
        expect([box.status, box.body.errors[0].pointer]).toEqual([422, '/data/cart_of']);
      }
      expect((await (await guest()).client.post('/api/boxes', { data: {} })).status).toBe(201);
    });
  },
  { schema: CARTS },
);

describe('the checker and the guest', () => {
  const issuesOf = (text: string) => parseSchema(text, 'x.yaml', {}).issues.map(({ code }) => code);

  test('a guest may write a cart of its own, which the checker reports', () => {
    expect(issuesOf(CARTS)).toContain('guests_write');
  });

  test('the session of a guest fills strings only', () => {
    const codes = issuesOf(CARTS.replace('note: string', "note: { type: int, default: '@request.auth.guest' }"));
    expect(codes).toContain('invalid_default');
  });
});
