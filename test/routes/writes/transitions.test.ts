// @module-tag long
// @module-tag partitions
/** Transitions of enum fields: an update changes a value only as they say, decided against the stored value. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { parseSchema } from '../../../src/schema/load.ts';
import type { Answer } from '../../support/client.ts';
import { NOBODY, outcomeOf } from '../../support/records.ts';
import { describeRoutesOnOne, type User } from '../../support/service.ts';
import { insertRecord } from '../../support/system-records.ts';

const SCHEMA = readFileSync(join(import.meta.dirname, 'transitions.yaml'), 'utf8');
const AT = { created_at: '2026-01-01T00:00:00.000000Z', updated_at: '2026-01-01T00:00:00.000000Z' };
const REQUEST = { auth: { id: NOBODY, roles: [] }, query: {}, now: AT.created_at };
const NO_ROWS = { one: () => undefined, many: () => [] };

const POSSIBLE: Readonly<Record<string, readonly string[]>> = {
  applied: ['screening', 'rejected'],
  screening: ['offer', 'rejected'],
  offer: ['hired', 'rejected', 'screening'],
};
const STAGES = ['applied', 'screening', 'offer', 'hired', 'rejected', null];
const PAIRS = STAGES.flatMap((from) => STAGES.map((to) => [from, to] as const));
/** The definition. */
const follows = (from: string | null, to: string | null): boolean =>
  from === to || from === null || (to !== null && (POSSIBLE[from] ?? []).includes(to));

test.each(PAIRS)('the predicate of the transition from %s to %s is its definition', (from, to) => {
  const { checks } = parseSchema(SCHEMA).schema!.collections.get('applications')!;
  const [violated] = checks[0]!.violated.update;
  const record = { name: null, stage: from, round: null, grade: 'a', secret: false, owner: NOBODY };
  expect(violated!.specialise(REQUEST).test(record, NO_ROWS, { ...record, stage: to })).toBe(!follows(from, to));
});

describeRoutesOnOne(
  'transitions',
  (service) => {
    let ann: User;
    let bob: User;
    let boss: User;
    beforeAll(async () => {
      [ann, bob, boss] = await Promise.all([service.user(), service.user(), service.user('boss')]);
    });
    const idOf = ({ body, text }: Answer): string => {
      if (body?.data?.id === undefined) throw new Error(text);
      return body.data.id;
    };
    const apply = async (data: object = {}, user = ann): Promise<string> =>
      idOf(await user.client.post('/api/applications', { data }));
    const patch = (id: string, data: object, user = ann) => user.client.patch(`/api/applications/${id}`, { data });
    const stageOf = async (id: string) => (await ann.client.get(`/api/applications/${id}`)).body.data.stage;

    test('each pair of values is decided as the definition says, and a create gives any value', async () => {
      const found = [];
      for (const [from, to] of PAIRS) {
        const id = await apply({ stage: from });
        const { status, body } = await patch(id, { stage: to });
        found.push([from, to, status, body.code]);
        expect(await stageOf(id)).toBe(status === 200 ? to : from);
      }
      const refused = [422, 'transition_refused'];
      expect(found).toEqual(PAIRS.map(([from, to]) => [from, to, ...(follows(from, to) ? [200, undefined] : refused)]));
    });

    test('the error tells what is possible from here', async () => {
      const { status, body } = await patch(await apply({ stage: 'offer' }), { stage: 'applied' });
      const detail = '`stage` is "offer", which changes to "hired", "rejected", "screening" only';
      const possible = ['hired', 'rejected', 'screening'];
      expect([status, body.code, body.detail, body.errors]).toEqual([
        422,
        'transition_refused',
        detail,
        [{ pointer: '/data/stage', code: 'transition_refused', detail, possible }],
      ]);
      const last = await patch(await apply({ stage: 'hired' }), { stage: 'applied' });
      expect(last.body.errors[0]).toEqual({
        pointer: '/data/stage',
        code: 'transition_refused',
        detail: '`stage` is "hired", which does not change',
        possible: [],
      });
      const ints = await patch(await apply({ round: 1 }), { round: 3 });
      expect([ints.body.errors[0].detail, ints.body.errors[0].possible]).toEqual([
        '`round` is 1, which changes to 2 only',
        [2],
      ]);
    });

    test('an update of other fields takes a value that cannot change', async () => {
      const id = await apply({ stage: 'hired' });
      expect((await patch(id, { name: 'a' })).status).toBe(200);
      expect((await patch(id, { name: 'b', stage: 'hired' })).status).toBe(200);
    });

    test('transitions and checks that fail are reported together', async () => {
      const answer = await patch(await apply({ stage: 'hired' }), { stage: 'offer', round: 1, name: 'x' });
      expect(outcomeOf(answer)).toEqual([
        422,
        'transition_refused',
        '/data/stage transition_refused',
        '/data/name check_failed',
      ]);
    });

    test('updates that meet are decided one after the other, each against the value that it finds', async () => {
      for (let round = 0; round < 5; round++) {
        const id = await apply({ stage: 'screening' });
        const answers = await Promise.all(['offer', 'rejected'].map((stage) => patch(id, { stage })));
        const won = answers.filter(({ status }) => status === 200).map(({ body }) => body.data.stage);
        // From an offer, a rejection is possible; from a rejection, nothing is.
        expect([['offer'], ['rejected'], ['offer', 'rejected']]).toContainEqual(won);
        expect(await stageOf(id)).toBe(won.at(-1));
        const same = await apply({ stage: 'applied' });
        const twice = await Promise.all(['screening', 'rejected', 'screening'].map((stage) => patch(same, { stage })));
        expect(twice.every(({ status }) => status === 200 || status === 422)).toBe(true);
        expect(['screening', 'rejected']).toContain(await stageOf(same));
      }
    });

    test('a batch passes through stages, operation by operation', async () => {
      const id = await apply({ stage: 'applied' });
      const update = (stage: string) => ({ op: 'update', collection: 'applications', id, data: { stage } });
      const skips = await ann.client.post('/api/batch', { operations: [update('screening'), update('hired')] });
      expect([skips.status, skips.body.code, skips.body.operation]).toEqual([422, 'transition_refused', 1]);
      const steps = await ann.client.post('/api/batch', {
        operations: [update('screening'), update('offer'), update('hired')],
      });
      expect([steps.status, await stageOf(id)]).toEqual([200, 'hired']);
    });

    test('a dry run and an explanation give the same status', async () => {
      const id = await apply({ stage: 'hired' });
      const data = { stage: 'offer' };
      const tried = await ann.client.post('/api/applications/can', { action: 'update', id, data });
      expect([tried.body.data.allowed, tried.body.data.code]).toEqual([false, 'transition_refused']);
      const root = await service.user('admin');
      const asked = { collection: 'applications', action: 'update', as: ann.email, id, data };
      const explained = await root.client.post('/api/_explain', asked);
      expect([explained.body.data.allowed, explained.body.data.status]).toEqual([false, 422]);
    });

    describe('what a refusal reveals', () => {
      test('a value that the caller may not read is not told, nor what is possible from it', async () => {
        const id = await apply({ grade: 'a' });
        const hidden = {
          pointer: '/data/grade',
          code: 'transition_refused',
          detail: '`grade` cannot change to this value',
        };
        expect((await patch(id, { grade: 'b' })).body.errors).toEqual([hidden]);
        const own = await apply({ grade: 'a' }, boss);
        expect((await patch(own, { grade: 'b' }, boss)).body.errors[0].possible).toEqual([]);
      });

      test('the same holds for a record that the caller may update and not read', async () => {
        const record = { ...AT, stage: 'hired', grade: 'a', secret: true, owner: ann.id };
        const id = await insertRecord(service.app, 'applications', record);
        const refused = {
          pointer: '/data/stage',
          code: 'transition_refused',
          detail: '`stage` cannot change to this value',
        };
        expect((await patch(id, { stage: 'offer' }, bob)).body.errors).toEqual([refused]);
      });

      test('a caller whom the rules deny the update learns nothing about transitions', async () => {
        const id = await apply({ stage: 'hired' });
        for (const stage of ['offer', 'hired'])
          expect(outcomeOf(await patch(id, { stage }, bob))).toEqual([403, 'forbidden']);
      });
    });
  },
  { schema: SCHEMA },
);
