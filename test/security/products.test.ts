/**
 * Attacks on the lists, writes and rules of products. Each attempt has one permitted outcome: a hidden record is a missing
 * one at every door, and a hidden value changes no answer.
 */
import { beforeAll, expect, test } from 'vitest';
import type { Answer } from '../support/client.ts';
import { NOBODY } from '../support/records.ts';
import { describeOnOne, type User } from '../support/service.ts';

const SCHEMA = `
roles: [member, manager]
register: { roles: [member] }
collections:
  users: { access: { view: '@record.id = @request.auth.id' } }
  plans:
    soft_delete: true
    history: true
    no_overlap: { on: [place], from: first, to: last }
    fields:
      code: { type: string, unique: true, max: 40 }
      title: { type: string, required: true }
      state: { type: string, required: true, default: open, enum: [open, done], transitions: { open: [done] } }
      place: { type: int }
      first: int
      last: int
      salary: { type: int, access: { read: '@record.owner = @request.auth.id', write: [{ roles: [manager] }] } }
      shared: { type: bool, required: true, default: false }
    relations:
      owner: { kind: belongs_to, collection: users, required: true, default: '@request.auth.id' }
      notes: { kind: has_many, collection: notes, via: plan }
    access:
      view: '@record.owner = @request.auth.id or @record.shared = true'
      create: '@record.owner = @request.auth.id'
      update: { when: '@record.owner = @request.auth.id', message: a reason }
      delete: { when: '@record.owner = @request.auth.id', message: a reason }
      restore: '@record.owner = @request.auth.id'
    checks:
      cheap: { when: '@next.salary < 1000', message: a check, fields: [salary] }
  notes:
    fields: { text: string }
    relations: { plan: { kind: belongs_to, collection: plans, on_delete: set_null } }
    access: { view: true, create: true }
`;

describeOnOne(
  'lists, writes and rules of products',
  (service) => {
    let [ann, bob] = [] as unknown as [User, User];
    /** Ann's: bob reads the shared one alone, without its salary. The deleted one was shared. */
    let plans: Record<'hidden' | 'shared' | 'deleted', string>;
    let note = '';
    beforeAll(async () => {
      [ann, bob] = await Promise.all([service.user('manager', 'member'), service.user()]);
      const made = async (path: string, data: object): Promise<string> => {
        const { status, body, text } = await ann.client.post(path, { data });
        if (status !== 201) throw new Error(text);
        return body.data.id;
      };
      const plan = (data: object) => made('/api/plans', { title: 'x', salary: 500, ...data });
      plans = {
        hidden: await plan({ code: 'hidden', place: 1, first: 1, last: 9 }),
        shared: await plan({ code: 'shared', shared: true }),
        deleted: await plan({ shared: true }),
      };
      note = await made('/api/notes', { text: 'of the deleted one', plan: plans.deleted });
      await ann.client.delete(`/api/plans/${plans.deleted}`);
    });
    const unnamed = (answer: Answer, id: string): string =>
      JSON.stringify([answer.status, { ...answer.body, request_id: '' }]).replaceAll(id, 'ID');

    test.each<readonly [string, (user: User, id: string) => Promise<Answer>]>([
      ['history', ({ client }, id) => client.get(`/api/plans/${id}/history`)],
      ['restore', ({ client }, id) => client.post(`/api/plans/${id}/restore`, {})],
      ['capabilities', ({ client }, id) => client.get(`/api/plans/${id}/can`)],
      [
        'a change that breaks the check',
        ({ client }, id) => client.patch(`/api/plans/${id}`, { data: { title: 'y' } }),
      ],
      ['a change of the state', ({ client }, id) => client.patch(`/api/plans/${id}`, { data: { state: 'done' } })],
      ['a deletion', ({ client }, id) => client.delete(`/api/plans/${id}`)],
      [
        'a dry run',
        ({ client }, id) => client.post('/api/plans/can', { action: 'update', id, data: { state: 'done' } }),
      ],
      ['a reference', ({ client }, id) => client.post('/api/notes', { data: { plan: id } })],
      [
        'a write by filter',
        ({ client }, id) =>
          client.post('/api/plans/update', { filter: 'id = $i', params: { i: id }, data: { title: 'mine' } }),
      ],
      ['a link', ({ client }, id) => client.get(`/api/plans?filter=id=$i&param.i=${id}&count=exact`)],
    ])('%s gives the same for a hidden, a deleted and a missing record', async (_, ask) => {
      const missing = unnamed(await ask(bob, NOBODY), NOBODY);
      for (const id of [plans.hidden, plans.deleted]) expect(unnamed(await ask(bob, id), id)).toBe(missing);
    });

    test('a hidden value selects, sorts and measures nothing', async () => {
      const { body: matched } = await bob.client.post('/api/plans/update', {
        filter: 'salary > 1 or salary <= 1 or salary is not null',
        data: { title: 'mine' },
        skip_refused: true,
      });
      expect(matched.data).toEqual({ matched: 0, changed: 0 });
      const measures = { n: 'count', kinds: 'count(distinct salary)', sum: 'sum(salary)', most: 'max(salary)' };
      const { body } = await bob.client.post('/api/plans/aggregate', { group_by: ['salary'], measures });
      expect(body.data).toEqual([{ salary: null, n: 1, kinds: 0, sum: null, most: null }]);
      const having = { measures, having: 'most > 1' };
      expect((await bob.client.post('/api/plans/aggregate', having)).body.data).toEqual([]);
      const links = ['filter=salary>1', 'filter=salary=500', 'sort=-salary&filter=salary+is+not+null'];
      for (const link of links) expect((await bob.client.get(`/api/plans?${link}`)).body.data).toEqual([]);
    });

    test('a write by filter names no hidden record, and an upsert is a taken value', async () => {
      const all = await bob.client.post('/api/plans/delete', { filter: 'true' });
      expect([all.status, all.body.errors]).toMatchObject([403, [{ record: plans.shared }]]);
      expect(all.text).not.toContain(plans.hidden);
      const upserted = await bob.client.put('/api/plans/by/code/hidden', { data: { title: 'mine' } });
      const created = await bob.client.post('/api/plans', { data: { title: 'mine', code: 'hidden' } });
      expect([upserted.status, unnamed(upserted, '-')]).toEqual([409, unnamed(created, '-')]);
      const guarded = { filter: 'true', data: { salary: 1 } };
      expect((await bob.client.post('/api/plans/update', guarded)).status).toBe(403);
      expect((await ann.client.get(`/api/plans/${plans.shared}`)).body.data).toMatchObject({ title: 'x', salary: 500 });
    });

    test('a conflict, a history and a list of deleted records show nothing of what is hidden', async () => {
      const taken = await bob.client.post('/api/plans', { data: { title: 'y', place: 1, first: 2, last: 3 } });
      expect([taken.status, taken.body.code]).toEqual([409, 'conflict']);
      expect(taken.text).not.toContain(plans.hidden);
      const past = await bob.client.get(`/api/plans/${plans.shared}/history`);
      expect([past.status, past.text.includes('salary')]).toEqual([200, false]);
      const { body } = await bob.client.post('/api/plans/query', { deleted: true, count: 'exact' });
      expect([body.data, body.page.total]).toEqual([[], 0]);
      const { body: shown } = await bob.client.get(`/api/notes/${note}?expand=plan`);
      expect([shown.data.plan, shown.data.expand.plan]).toEqual([null, null]);
      const aggregate = await bob.client.post('/api/plans/aggregate', { deleted: true, measures: { n: 'count' } });
      expect(aggregate.status).toBe(422);
    });

    test('the key of a write by filter answers its own caller alone', async () => {
      const matching = { filter: 'shared = true', data: { place: 7 } };
      const [own, other] = [
        await ann.client.post('/api/plans/update', matching, { 'Idempotency-Key': 'one' }),
        await bob.client.post('/api/plans/update', matching, { 'Idempotency-Key': 'one' }),
      ];
      expect([own.body.data, other.status]).toEqual([{ matched: 1, changed: 1 }, 403]);
    });
  },
  { schema: SCHEMA },
);
