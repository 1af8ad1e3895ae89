// @module-tag long
/** Webhooks post the changes that the list of their key would show, in order and until they are taken. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { raw, type Sql, sql, text } from '../../src/sql.ts';
import { describeOnOne, type User } from '../support/service.ts';
import { until } from '../support/until.ts';
import { isSignedBy, type Received, Receiver } from './receiver.ts';

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const FORMER = `whsec_${Buffer.alloc(24, 9).toString('base64')}`;
const receiver = await Receiver.start();

const SCHEMA = `
roles: [member, shop]
register: { roles: [member] }
collections:
  users: { access: { view: true } }
  orders:
    changes: true
    fields:
      title: { type: string, required: true }
      state: string
      draft: { type: bool, default: false }
      note: { type: string, access: { read: '@record.owner = @request.auth.id' } }
    relations:
      owner: { kind: belongs_to, collection: users, default: '@request.auth.id' }
    access:
      list: [{ when: '@record.owner = @request.auth.id' }, { roles: [shop], when: '@record.draft = false' }]
      read: true
      create: true
      update: '@record.owner = @request.auth.id'
      delete: '@record.owner = @request.auth.id'
webhooks:
  orders: { url: '${receiver.url}/orders', as: shop, secret_env: ORDERS_SECRET }
  paid: { url: '${receiver.url}/paid', collection: orders, events: [enter], filter: 'state = "paid"', as: shop, secret_env: ORDERS_SECRET }
  revoked: { url: '${receiver.url}/revoked', collection: orders, as: short-lived, secret_env: ORDERS_SECRET }
`;
const env = { ORDERS_SECRET: `${SECRET} ${FORMER}`, BYLAW_ALLOW_PRIVATE: 'on' };

afterAll(() => receiver.stop());

describeOnOne(
  'webhooks',
  (service) => {
    let ann: User;
    let shortLived: string;
    const make = async (data: object): Promise<string> => {
      const { body, status, text: answer } = await ann.client.post('/api/orders', { data });
      if (status !== 201) throw new Error(answer);
      return body.data.id;
    };
    const about = (id: string, path = '/orders'): readonly Received[] =>
      receiver.at(path).filter(({ body }) => (body.data.record?.id ?? body.data.id) === id);
    const types = (id: string, path?: string): readonly string[] => about(id, path).map(({ body }) => body.type);
    const arrives = (id: string, count: number, path?: string): Promise<void> =>
      until(`${count} events of a record`, () => about(id, path).length >= count);
    const waiting = async (): Promise<number> => {
      const [row] = await service.app.db.rows(
        raw('SELECT count(*) FROM bylaw_webhook_events WHERE given_up_at IS NULL'),
      );
      return Number(row![0]);
    };

    beforeAll(async () => {
      ann = await service.user();
      await service.app.auth.apiKeys.create({ name: 'shop', roles: ['shop'], limit: { orders: ['list'] } });
      const { data } = await service.app.auth.apiKeys.create({ name: 'short-lived', roles: ['shop'] });
      shortLived = data.id;
      // A webhook begins with the changes that follow its first look.
      await until('the webhooks are held', async () => {
        const [row] = await service.app.db.rows(raw('SELECT count(*) FROM bylaw_webhooks WHERE position IS NOT NULL'));
        return row![0] === '3';
      });
    });
    beforeEach(() => {
      receiver.answer = () => 200;
    });

    test('a webhook receives what enters, changes and leaves the list of its key', async () => {
      const id = await make({ title: 'one', note: 'private' });
      await arrives(id, 1);
      await ann.client.patch(`/api/orders/${id}`, { data: { title: 'two' } });
      await arrives(id, 2);
      await ann.client.delete(`/api/orders/${id}`);
      await arrives(id, 3);
      expect(types(id)).toEqual(['orders.enter', 'orders.change', 'orders.leave']);
      const [enter, change, leave] = about(id);
      expect(enter!.body.data.record.title).toBe('one');
      expect(enter!.text).not.toContain('private');
      expect(change!.body.data.record.title).toBe('two');
      expect(leave!.body.data).toEqual({ id });
      expect(Math.abs(Date.parse(enter!.body.timestamp) - Date.now())).toBeLessThan(60_000);
      await until('nothing waits', async () => (await waiting()) === 0);
    });

    test('each secret signs a message, whose id is its own', async () => {
      const id = await make({ title: 'signed' });
      await arrives(id, 1);
      const [message] = about(id);
      expect(isSignedBy(SECRET, message!)).toBe(true);
      expect(isSignedBy(FORMER, message!)).toBe(true);
      expect(isSignedBy(SECRET, { ...message!, text: `${message!.text} ` })).toBe(false);
      expect(message!.headers['content-type']).toBe('application/json');
      expect(message!.headers['user-agent']).toMatch(/^bylaw\/\d/);
      await ann.client.delete(`/api/orders/${id}`);
      await arrives(id, 2);
      expect(new Set(about(id).map(({ headers }) => headers['webhook-id'])).size).toBe(2);
    });

    test('a record that the key may not list is never sent, and leaves when it is hidden', async () => {
      const hidden = await make({ title: 'hidden', draft: true });
      const shown = await make({ title: 'shown' });
      await arrives(shown, 1);
      await ann.client.patch(`/api/orders/${shown}`, { data: { draft: true, title: 'now hidden' } });
      await arrives(shown, 2);
      expect(types(shown)).toEqual(['orders.enter', 'orders.leave']);
      expect(types(hidden)).toEqual([]);
      expect(receiver.received.some(({ text: body }) => body.includes('now hidden'))).toBe(false);
    });

    test('a filter and a choice of events send nothing else', async () => {
      const id = await make({ title: 'bought' });
      await ann.client.patch(`/api/orders/${id}`, { data: { state: 'paid' } });
      await arrives(id, 1, '/paid');
      await ann.client.patch(`/api/orders/${id}`, { data: { title: 'renamed' } });
      await ann.client.patch(`/api/orders/${id}`, { data: { state: 'sent' } });
      await arrives(id, 4);
      expect(types(id, '/paid')).toEqual(['orders.enter']);
    });

    test('an event is sent again until it is taken, and holds up only those of its record', async () => {
      let refused: string | undefined;
      receiver.answer = ({ body }) => (body.data.record?.title === 'first' && refused === undefined ? 503 : 200);
      const id = await make({ title: 'first' });
      await arrives(id, 1);
      await ann.client.patch(`/api/orders/${id}`, { data: { title: 'second' } });
      const other = await make({ title: 'other' });
      await arrives(other, 1);
      await until('the failure is noted', async () => {
        const rows = await service.app.db.rows(
          sql`SELECT error FROM bylaw_webhook_events WHERE record = ${text(id)} AND attempts > 0`,
        );
        return rows.length > 0;
      });
      expect(types(id)).toEqual(['orders.enter']);
      refused = id;
      await service.app.db.run(raw('UPDATE bylaw_webhook_events SET due_at = now()'));
      await arrives(id, 3);
      expect(about(id).map(({ body }) => body.data.record.title)).toEqual(['first', 'first', 'second']);
      const [one, two] = about(id);
      expect(one!.headers['webhook-id']).toBe(two!.headers['webhook-id']);
    });

    test('an event that fails after a day is given up, and kept', async () => {
      receiver.answer = ({ body }) => (body.data.record?.title === 'lost' ? 500 : 200);
      const id = await make({ title: 'lost' });
      const eventIs = (state: Sql) => async (): Promise<boolean> => {
        const event = sql`SELECT 1 FROM bylaw_webhook_events WHERE record = ${text(id)} AND webhook = 'orders' AND error = 'the receiver answered 500'`;
        return (await service.app.db.rows(sql`${event} AND ${state}`)).length > 0;
      };
      await until('the failure is written down', eventIs(sql`given_up_at IS NULL`));
      await service.app.db.run(
        sql`UPDATE bylaw_webhook_events SET filed_at = now() - interval '25 hours', due_at = now() WHERE record = ${text(id)}`,
      );
      // A write wakes the sender.
      await make({ title: 'wakes' });
      await until('the event is given up', eventIs(sql`given_up_at IS NOT NULL`));
    });

    test('a key that is revoked ends what is sent', async () => {
      const before = await make({ title: 'before' });
      await arrives(before, 1, '/revoked');
      receiver.answer = ({ path }) => (path === '/revoked' ? 500 : 200);
      const waits = await make({ title: 'waits' });
      await arrives(waits, 1, '/revoked');
      await service.app.auth.apiKeys.revoke(shortLived);
      await until('the key is forgotten', () => new Promise((resolve) => setTimeout(() => resolve(true), 1_100)));
      receiver.answer = () => 200;
      await service.app.db.run(raw(`UPDATE bylaw_webhook_events SET due_at = now()`));
      const after = await make({ title: 'after' });
      await arrives(after, 1);
      await service.app.db.run(raw(`UPDATE bylaw_webhook_events SET due_at = now()`));
      const later = await make({ title: 'later' });
      await arrives(later, 1);
      expect(types(waits, '/revoked')).toEqual(['orders.enter']);
      expect(types(after, '/revoked')).toEqual([]);
    });
  },
  { schema: SCHEMA, env },
);
