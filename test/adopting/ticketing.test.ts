// @module-tag long
/** A ticket desk, served by a draft: identity keys, enum types, exclusion constraints, and triggers that raise errors. */
import { beforeAll, describe, expect, inject, test } from 'vitest';
import type { User } from '../support/service.ts';
import { adopted } from './adopted-database.ts';

const AGENT = '@record.agent.email = @request.auth.email';
const AT_DESK = 'any(@record.desk.agents as a, a.email = @request.auth.email)';
const EDITS = {
  desks: { access: { view: true } },
  agents: { access: { view: true } },
  shifts: { access: { view: true, create: AGENT } },
  workload: { access: { view: [{ roles: ['admin'] }] } },
  tickets: {
    errors: 'shown',
    without: ['made_on', 'changed_on'],
    timestamps: { created_at: 'made_on', updated_at: 'changed_on' },
    access: {
      view: [{ when: AT_DESK }, { when: '@record.reported_by = @request.auth.email' }],
      create: '@record.reported_by = @request.auth.email',
      update: AT_DESK,
    },
  },
};

describe.skipIf(inject('postgresUrl') === '')('a ticket desk', () => {
  const database = adopted('ticketing.sql', ['ticketing'], EDITS);
  const { service } = database;
  let ann: User;
  let cem: User;
  beforeAll(async () => {
    [ann, cem] = await Promise.all([service.user(), service.user()]);
    await database.own('UPDATE ticketing.agents SET email = $1 WHERE agent_id = 1', [ann.email]);
    await database.own(`UPDATE ticketing.tickets SET reported_by = $1 WHERE reported_by = 'cem@example.com'`, [
      cem.email,
    ]);
  });
  const ids = async (user: User, query = '') =>
    (await user.client.get(`/api/tickets${query}`)).body.data?.map(({ id }: { id: unknown }) => id);

  test('agents see the tickets of their desk, others those that they reported', async () => {
    expect(await ids(ann)).toEqual([1, 2]);
    expect(await ids(cem)).toEqual([1, 3]);
    expect(await ids(cem, '?state=waiting')).toEqual([3]);
    expect(await ids(cem, '?desk=HR')).toEqual([3]);
    expect((await ann.client.get('/api/tickets/3')).status).toBe(404);
    expect((await service.anonymous.get('/api/tickets')).status).toBe(401);
  });

  test('an answer holds the changes of a trigger, and an error its message', async () => {
    const made = await cem.client.post('/api/tickets', {
      data: { desk: 'IT', subject: 'Mouse', reported_by: cem.email },
    });
    expect([made.status, made.body.data]).toMatchObject([201, { id: 4, state: 'open', priority: null, agent: null }]);
    const changed = await ann.client.patch('/api/tickets/4', { data: { subject: '  Trackball ', priority: 'high' } });
    expect([changed.status, changed.body.data]).toMatchObject([200, { subject: 'Trackball', priority: 'high' }]);
    expect(changed.body.data.updated_at > made.body.data.updated_at).toBe(true);
    const closed = await ann.client.patch('/api/tickets/2', { data: { state: 'open' } });
    expect([closed.status, closed.body.code]).toEqual([422, 'validation_failed']);
    expect(closed.text).toContain('ticket 2 is closed');
    expect((await cem.client.patch('/api/tickets/1', { data: { state: 'closed' } })).status).toBe(403);
    expect((await ann.client.patch('/api/tickets/1', { data: { state: 'gone' } })).status).toBe(422);
  });

  test('an exclusion constraint is a conflict', async () => {
    const shift = (on_day: string) => ann.client.post('/api/shifts', { data: { agent: 1, on_day } });
    expect((await shift('2026-03-02')).status).toBe(409);
    const made = await shift('2026-03-03');
    expect([made.status, made.body.data]).toMatchObject([201, { on_day: '2026-03-03', from_hour: '09:00:00' }]);
  });

  test('the program of the owner writes beside', async () => {
    await database.own(`INSERT INTO ticketing.tickets (desk_code, subject) VALUES ('IT', 'Beside')`);
    expect((await ann.client.get('/api/tickets?limit=1&offset=3')).body.data).toMatchObject([{ subject: 'Beside' }]);
    await database.own('DELETE FROM ticketing.tickets WHERE ticket_no = 1');
    expect((await ann.client.get('/api/tickets/1')).status).toBe(404);
  });

  test('nothing of the owner has been altered', () => database.expectUnaltered());
});
