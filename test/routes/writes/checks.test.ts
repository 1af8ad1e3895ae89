// @module-tag partitions
/** Checks of collections: every write is held to them, after the access rules, in the statement that writes. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Answer } from '../../support/client.ts';
import { NOBODY, outcomeOf } from '../../support/records.ts';
import { describeRoutesOnOne, type User } from '../../support/service.ts';
import { insertRecord } from '../../support/system-records.ts';

const SCHEMA = readFileSync(join(import.meta.dirname, 'checks.yaml'), 'utf8');
const [EARLY, LATE] = ['2026-01-01T00:00:00.000000Z', '2026-01-02T00:00:00.000000Z'];
const AT = { created_at: EARLY, updated_at: EARLY };

describeRoutesOnOne(
  'checks',
  (service) => {
    let ann: User;
    let bob: User;
    let boss: User;
    let root: User;
    let room: string;
    beforeAll(async () => {
      [ann, bob, boss, root] = await Promise.all([
        service.user(),
        service.user(),
        service.user('boss'),
        service.user('admin'),
      ]);
      room = await idOf(await boss.client.post('/api/rooms', { data: { name: 'small', seats: 4 } }));
    });
    const idOf = ({ body, text }: Answer): string => {
      if (body?.data?.id === undefined) throw new Error(text);
      return body.data.id;
    };
    const book = (data: object, user = ann) => user.client.post('/api/bookings', { data });
    const booking = async (data: object = {}, user = ann) => idOf(await book(data, user));
    const patch = (id: string, data: object, user = ann) => user.client.patch(`/api/bookings/${id}`, { data });
    const pass = async (data: object = {}) =>
      idOf(await ann.client.post('/api/passes', { data: { label: 'p', ...data } }));
    const read = async (id: string, collection = 'bookings') =>
      (await ann.client.get(`/api/${collection}/${id}`)).body.data;

    describe('a create', () => {
      test('a record that fails a check is rejected with an error for each of its fields', async () => {
        const { status, body } = await book({ starts_at: LATE, ends_at: EARLY });
        const error = { code: 'check_failed', check: 'in_order', detail: 'ends before it starts' };
        expect([status, body.code, body.errors]).toEqual([
          422,
          'validation_failed',
          [
            { pointer: '/data/starts_at', ...error },
            { pointer: '/data/ends_at', ...error },
          ],
        ]);
      });

      test('a record that passes is stored, and so is one whose value is absent', async () => {
        expect((await book({ starts_at: EARLY, ends_at: LATE })).status).toBe(201);
        expect((await book({ starts_at: LATE })).status).toBe(201);
        expect((await book({ people: 9 })).status).toBe(201);
      });

      test('all checks that fail are reported together, in the order of the schema', async () => {
        const answer = await book({ starts_at: LATE, ends_at: EARLY, people: 5, room });
        expect(outcomeOf(answer)).toEqual([
          422,
          'validation_failed',
          '/data/starts_at check_failed',
          '/data/ends_at check_failed',
          '/data/people check_failed',
        ]);
      });

      test('a check reads related records, and the members and partners that the write gives', async () => {
        expect((await book({ people: 4, room })).status).toBe(201);
        expect(outcomeOf(await book({ people: 5, room }))).toEqual([
          422,
          'validation_failed',
          '/data/people check_failed',
        ]);
        const guests = { set: [ann.id, bob.id, boss.id] };
        expect(outcomeOf(await book({ guests }))).toEqual([422, 'validation_failed', '/data/people check_failed']);
        expect((await book({ guests: { set: [ann.id, bob.id] }, people: 1, room })).status).toBe(201);
        const spare = await pass({ label: 'spare' });
        expect(outcomeOf(await book({ pass: spare }))).toEqual([422, 'validation_failed', '/data/pass check_failed']);
      });

      test('a check may depend on the caller', async () => {
        const asked = (user: User) => book({ price: 100 }, user);
        expect(outcomeOf(await asked(boss))).toEqual([422, 'validation_failed', '/data/price check_failed']);
        expect((await asked(root)).status).toBe(201);
      });
    });

    describe('an update', () => {
      test('the resulting record is judged, with the values that stay', async () => {
        const id = await booking({ starts_at: EARLY, ends_at: LATE });
        const errors = ['/data/starts_at check_failed', '/data/ends_at check_failed'];
        expect(outcomeOf(await patch(id, { starts_at: LATE }))).toEqual([422, 'validation_failed', ...errors]);
        expect((await read(id)).starts_at).toBe(EARLY);
        expect((await patch(id, { starts_at: LATE, ends_at: null })).status).toBe(200);
      });

      test('a check may compare the record with its state before', async () => {
        const id = await booking({ people: 3 });
        expect(outcomeOf(await patch(id, { people: 2 }))).toEqual([422, 'validation_failed', '/data check_failed']);
        expect((await patch(id, { people: 4 })).status).toBe(200);
      });

      test('a record that was stored before the check is changed only into one that passes', async () => {
        const stored = { ...AT, starts_at: LATE, ends_at: EARLY, owner: ann.id, secret: false };
        const id = await insertRecord(service.app, 'bookings', stored);
        expect(outcomeOf(await patch(id, { secret: true }))).toContain('/data/starts_at check_failed');
        expect((await patch(id, { ends_at: null })).status).toBe(200);
      });

      test('two updates that meet leave a record that passes', async () => {
        const id = await booking();
        const answers = await Promise.all([patch(id, { starts_at: LATE }), patch(id, { ends_at: EARLY })]);
        expect(answers.map(({ status }) => status).sort()).toEqual([200, 422]);
      });

      test('a batch is rejected as a whole, with the operation whose check failed', async () => {
        const id = await booking({ people: 1 });
        const operations = [
          { op: 'update', collection: 'bookings', id, data: { people: 2 } },
          { op: 'create', collection: 'bookings', data: { starts_at: LATE, ends_at: EARLY } },
        ];
        const answer = await ann.client.post('/api/batch', { operations });
        expect([answer.status, answer.body.code, answer.body.operation]).toEqual([422, 'validation_failed', 1]);
        expect(answer.body.errors.map(({ check }: { check: string }) => check)).toEqual(['in_order', 'in_order']);
        expect((await read(id)).people).toBe(1);
      });
    });

    describe('a partner', () => {
      test('the record that takes the place is held to the checks of its own collection', async () => {
        const [id, taken] = [await booking({ people: 10 }), await pass()];
        expect(outcomeOf(await patch(id, { pass: taken }))).toEqual([
          422,
          'validation_failed',
          '/data/pass check_failed',
        ]);
        expect((await patch(await booking({ people: 9 }), { pass: taken })).status).toBe(200);
      });

      test('the record that leaves the place is held to them too', async () => {
        const id = await booking();
        const lent = await pass({ label: 'lent', booking: id });
        expect(outcomeOf(await patch(id, { pass: null }))).toEqual([
          422,
          'validation_failed',
          '/data/pass check_failed',
        ]);
        expect((await read(lent, 'passes')).booking).toBe(id);
      });

      test('a hidden record that cannot leave does not show which check holds it', async () => {
        const id = await booking();
        await insertRecord(service.app, 'passes', { ...AT, label: 'lent', hidden: true, booking: id });
        expect(outcomeOf(await patch(id, { pass: await pass() }))).toEqual([
          409,
          'unique_violation',
          '/data/pass unique_violation',
        ]);
      });
    });

    describe('an explanation', () => {
      test('names the check that a write fails, with its parts, and the status of the write', async () => {
        const id = await booking({ starts_at: EARLY });
        const question = { collection: 'bookings', action: 'update', as: ann.email, id };
        const ask = async (data: object) => (await root.client.post('/api/_explain', { ...question, data })).body.data;
        const fails = await ask({ ends_at: EARLY });
        expect([fails.allowed, fails.status, fails.decided_by]).toEqual([false, 422, 0]);
        const { leaves, ...check } = fails.checks[0];
        expect(check).toEqual({
          name: 'in_order',
          message: 'ends before it starts',
          when: '@next.starts_at < @next.ends_at',
          passes: false,
        });
        expect([leaves[0].text, leaves[0].offset, leaves[0].value]).toEqual([
          '@next.starts_at < @next.ends_at',
          0,
          'false',
        ]);
        expect(fails.sql).toContain('IS NOT TRUE');
        const passes = await ask({ ends_at: LATE });
        expect([passes.allowed, passes.status, passes.checks.map((each: { passes: boolean }) => each.passes)]).toEqual([
          true,
          200,
          [true, true, true, true, true],
        ]);
      });

      test('a caller whom the rules deny the write gets their status', async () => {
        const id = await booking({ starts_at: EARLY });
        const data = { ends_at: EARLY };
        const asked = { collection: 'bookings', action: 'update', as: bob.email, id, data };
        const { body } = await root.client.post('/api/_explain', asked);
        expect([body.data.allowed, body.data.status]).toEqual([false, 403]);
      });
    });

    describe('what a failure reveals', () => {
      test('a hidden record is not found, whether the write would fail a check or not', async () => {
        const id = await booking({ secret: true, starts_at: EARLY });
        const missing = await patch(NOBODY, { ends_at: EARLY }, bob);
        for (const ends_at of [EARLY, LATE]) {
          const answer = await patch(id, { ends_at }, bob);
          expect([answer.status, answer.body.detail, answer.body.errors]).toEqual([
            404,
            missing.body.detail,
            missing.body.errors,
          ]);
        }
      });

      test('a caller whom the rules deny the write learns nothing of checks', async () => {
        const id = await booking({ starts_at: LATE });
        expect(outcomeOf(await patch(id, { ends_at: EARLY }, bob))).toEqual([403, 'forbidden']);
        expect(outcomeOf(await book({ owner: bob.id, starts_at: LATE, ends_at: EARLY }))).toEqual([403, 'forbidden']);
        const priced = { price: 1, starts_at: LATE, ends_at: EARLY };
        expect(outcomeOf(await book(priced))).toEqual([403, 'forbidden', '/data/price forbidden']);
      });

      test('a check never reads a record that the caller may not refer to', async () => {
        const closed = idOf(await boss.client.post('/api/rooms', { data: { name: 'c', seats: 1, closed: true } }));
        const id = await booking();
        for (const people of [1, 2]) {
          const expected = [422, 'validation_failed', '/data/room not_found'];
          expect(outcomeOf(await book({ people, room: closed }))).toEqual(expected);
          expect(outcomeOf(await patch(id, { people, room: closed }))).toEqual(expected);
        }
      });

      test('an older version is reported after the checks, and a dry run reports them', async () => {
        const id = await booking({ starts_at: EARLY, ends_at: LATE });
        const ifMatch = { 'If-Match': '"stale"' };
        const old = await ann.client.patch(`/api/bookings/${id}`, { data: { ends_at: EARLY } }, ifMatch);
        expect(outcomeOf(old).slice(0, 2)).toEqual([422, 'validation_failed']);
        const asked = await ann.client.post('/api/bookings/can', { action: 'update', id, data: { ends_at: EARLY } });
        expect([asked.body.data.allowed, asked.body.data.status, asked.body.data.errors[0].check]).toEqual([
          false,
          422,
          'in_order',
        ]);
      });
    });
  },
  { schema: SCHEMA },
);
