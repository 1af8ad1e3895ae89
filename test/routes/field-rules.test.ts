// @module-tag partitions
/** Rules of fields and belongs_to: who sees a value, and who sets it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { sql, uuid } from '../../src/sql.ts';
import type { Answer } from '../support/client.ts';
import { idsOf, NOBODY, outcomeOf } from '../support/records.ts';
import { describeRoutes, type User } from '../support/service.ts';

const SCHEMA = readFileSync(join(import.meta.dirname, 'field-rules.yaml'), 'utf8');
type Json = Answer['body'];

describeRoutes(
  'field rules',
  (service) => {
    let ann: User;
    let bob: User;
    let hr: User;
    beforeAll(async () => {
      [ann, bob, hr] = await Promise.all([service.user(), service.user(), service.user('hr')]);
    });
    const make = async (collection: string, data: object, user = ann): Promise<Json> => {
      const { status, body, text } = await user.client.post(`/api/${collection}`, { data });
      if (status !== 201) throw new Error(text);
      return body.data;
    };
    const person = (data: object = {}, user = ann): Promise<Json> => make('people', { name: 'p', ...data }, user);
    const patch = (id: string, data: object, user = ann) => user.client.patch(`/api/people/${id}`, { data });
    const read = async (id: string, user = ann, query = ''): Promise<Json> =>
      (await user.client.get(`/api/people/${id}${query}`)).body.data;
    const listed = async (query: string, user = ann, collection = 'people'): Promise<readonly string[]> =>
      idsOf((await user.client.get(`/api/${collection}?limit=100&${query}`)).body.data);

    describe('reading', () => {
      test('a member that the caller may not read is left out, in every answer', async () => {
        const team = await make('teams', { name: 't' });
        const { id } = await person({ team: team.id, note: null });
        await hr.client.patch(`/api/people/${id}`, { data: { salary: 10 } });
        const own = await read(id);
        expect(Object.keys(own)).toEqual([
          'id',
          'created_at',
          'updated_at',
          'name',
          'note',
          'level',
          'code',
          'score',
          'public',
          'owner',
          'team',
          'mentor',
          'desk',
        ]);
        expect([own.note, own.level, own.mentor]).toEqual([null, 1, null]);
        const others = await read(id, bob);
        expect(others).toEqual({ ...own, note: undefined, level: undefined, mentor: undefined });
        expect(Object.keys(others)).not.toContain('note');
        const full = await read(id, hr);
        expect(full).toEqual({ ...own, salary: 10, level: undefined });
        for (const [user, record] of [
          [ann, own],
          [bob, others],
          [hr, full],
        ] as const) {
          const { data } = (await user.client.get(`/api/people?id=${id}`)).body;
          expect(JSON.stringify(data)).toBe(JSON.stringify([record]));
        }
        const expanded = (await bob.client.get(`/api/teams/${team.id}?expand=members`)).body.data.expand.members;
        expect(JSON.stringify(expanded)).toBe(JSON.stringify([others]));
      });

      test('in the answers to writes too, by the state after the write', async () => {
        const made = await ann.client.post('/api/people', { data: { name: 'p', note: 'n' } });
        expect([made.body.data.note, Object.hasOwn(made.body.data, 'salary')]).toEqual(['n', false]);
        // Without a team, no caller sees the level: the create hides it, and the patch that joins a team shows it.
        expect(Object.hasOwn(made.body.data, 'level')).toBe(false);
        const team = await make('teams', { name: 't' });
        expect((await patch(made.body.data.id, { team: team.id })).body.data.level).toBe(1);
        const given = await patch(made.body.data.id, { name: 'x' }, hr);
        expect([given.body.data.salary, Object.hasOwn(given.body.data, 'level')]).toEqual([null, false]);
        const { data } = (
          await hr.client.post('/api/batch', {
            operations: [{ op: 'update', collection: 'people', id: made.body.data.id, data: { salary: 5 } }],
          })
        ).body;
        expect(data[0].data.salary).toBe(5);
        const own = await ann.client.post('/api/batch', {
          operations: [
            { op: 'create', collection: 'people', data: { name: 'b', note: 'x' } },
            { op: 'update', collection: 'people', id: made.body.data.id, data: { name: 'y' } },
          ],
        });
        expect(own.body.data.map((each: Json) => [each.data.note, Object.hasOwn(each.data, 'salary')])).toEqual([
          ['x', false],
          ['n', false],
        ]);
      });

      test('each view of a record has an ETag of its own', async () => {
        const { id } = await person({ note: 'n' });
        const tags = await Promise.all(
          [ann, bob, hr].map(async ({ client }) => (await client.get(`/api/people/${id}`)).headers.get('etag')!),
        );
        expect(new Set(tags).size).toBe(3);
        expect((await bob.client.get(`/api/people/${id}`, { 'If-None-Match': tags[1]! })).status).toBe(304);
        expect((await bob.client.get(`/api/people/${id}`, { 'If-None-Match': tags[0]! })).status).toBe(200);
      });

      test('a hidden reference is not followed, from either end', async () => {
        const mentor = await person({ name: 'mentor' });
        const pupil = await person({ mentor: mentor.id });
        const [mine, theirs] = [
          await read(pupil.id, ann, '?expand=mentor'),
          await read(pupil.id, bob, '?expand=mentor'),
        ];
        expect([mine.mentor, mine.expand.mentor.id]).toEqual([mentor.id, mentor.id]);
        expect([Object.hasOwn(theirs, 'mentor'), theirs.expand.mentor]).toEqual([false, null]);
        expect(idsOf((await read(mentor.id, ann, '?expand=pupils')).expand.pupils)).toEqual([pupil.id]);
        expect((await read(mentor.id, bob, '?expand=pupils')).expand.pupils).toEqual([]);
        expect(await listed(`pupils_any=${pupil.id}`)).toEqual([mentor.id]);
        expect(await listed(`pupils_any=${pupil.id}`, bob)).toEqual([]);
      });

      test('a has_one that is found by a hidden reference is null', async () => {
        const { id } = await person();
        const desk = await make('desks', { place: 'window', person: id }, hr);
        expect([(await read(id, hr)).desk, (await read(id)).desk]).toEqual([desk.id, null]);
        expect([
          (await read(id, ann, '?expand=desk')).expand.desk,
          (await read(id, hr, '?expand=desk')).expand.desk.id,
        ]).toEqual([null, desk.id]);
        expect([await listed(`desk=${desk.id}`, hr), await listed(`desk=${desk.id}`)]).toEqual([[id], []]);
        expect(Object.hasOwn((await ann.client.get(`/api/desks/${desk.id}`)).body.data, 'person')).toBe(false);
      });

      test('members of a many_to_many show what their own rules allow', async () => {
        const skill = await make('skills', { name: 's', secret: 'hidden' });
        const { id } = await person({ skills: { add: [skill.id] } });
        const skills = async (user: User) => (await read(id, user, '?expand=skills')).expand.skills;
        expect([(await skills(hr))[0].secret, Object.hasOwn((await skills(ann))[0], 'secret')]).toEqual([
          'hidden',
          false,
        ]);
      });
    });

    describe('filters of a list', () => {
      test('match nothing where the caller may not read the value', async () => {
        const { id } = await person({ note: 'the same note' });
        const other = await person({ note: 'the same note' }, bob);
        await patch(id, { salary: 77 }, hr);
        expect([await listed('salary=77'), await listed('salary=77', hr)]).toEqual([[], [id]]);
        expect([await listed('token=t'), await listed('token=t', hr)]).toEqual([[], []]);
        expect(await listed('note=the+same+note')).toEqual([id]);
        expect(await listed('note=the+same+note', bob)).toEqual([other.id]);
        expect(await listed('note=the+same+note', hr)).toEqual([id, other.id]);
      });

      test('so do those of a belongs_to, under either name, and their count', async () => {
        const mentor = await person();
        const pupil = await person({ mentor: mentor.id });
        for (const key of ['mentor', 'mentor_id']) {
          expect([await listed(`${key}=${mentor.id}`), await listed(`${key}=${mentor.id}`, bob)]).toEqual([
            [pupil.id],
            [],
          ]);
        }
        const counted = await bob.client.get(`/api/people?mentor=${mentor.id}`, { Prefer: 'count=exact' });
        expect(counted.body.page.total).toBe(0);
      });

      test('a rule through another table', async () => {
        const team = await make('teams', { name: 't' });
        const mine = await person({ team: team.id });
        const theirs = await person({ team: (await make('teams', { name: 'u' }, bob)).id }, bob);
        const found = await listed('level=1');
        expect([found.includes(mine.id), found.includes(theirs.id)]).toEqual([true, false]);
      });

      test('an invalid value is as invalid as ever', async () => {
        expect(outcomeOf(await ann.client.get('/api/people?salary=x'))).toEqual([
          400,
          'filter_invalid_value',
          'salary filter_invalid_value',
        ]);
      });
    });

    describe('filters, sorts and expands of a query', () => {
      const query = async (body: object, user = ann): Promise<Json> => {
        const { status, body: answer, text } = await user.client.post('/api/people/query', body);
        if (status !== 200) throw new Error(text);
        return answer;
      };

      test('a hidden value is absent', async () => {
        const name = `q${Math.random()}`;
        const mine = await person({ name, note: 'b' });
        const theirs = await person({ name, note: 'a' }, bob);
        const params = { name };
        const ids = async (filter: string, user = ann) =>
          idsOf((await query({ filter: `name = $name and ${filter}`, params }, user)).data);
        expect(await ids('note is null')).toEqual([theirs.id]);
        expect(await ids('not (note = "b")')).toEqual([]);
        expect(await ids('(note = "a" or note = "b")', hr)).toEqual([mine.id, theirs.id]);
        expect(await ids('salary is null')).toEqual([mine.id, theirs.id]);
        expect(await ids('owner.clearance is null')).toEqual([mine.id, theirs.id]);
        expect(idsOf((await query({ filter: 'name = $name', params, sort: ['note'] })).data)).toEqual([
          mine.id,
          theirs.id,
        ]);
        expect(idsOf((await query({ filter: 'name = $name', params, sort: ['note'] }, hr)).data)).toEqual([
          theirs.id,
          mine.id,
        ]);
        expect(idsOf((await query({ filter: 'name = $name', params, sort: ['-salary'] })).data)).toEqual([
          mine.id,
          theirs.id,
        ]);
        const [first] = (await query({ filter: 'name = $name', params, fields: ['note', 'salary'] }, bob)).data;
        expect(Object.keys(first)).toEqual(['id']);
      });

      test('a relation can be expanded without being shown', async () => {
        const mentor = await person();
        const pupil = await person({ mentor: mentor.id });
        const body = {
          filter: 'id = $id',
          params: { id: pupil.id },
          fields: ['name'],
          expand: { mentor: { fields: ['name', 'note'] } },
        };
        const [mine] = (await query(body)).data;
        expect([Object.keys(mine), mine.expand.mentor]).toEqual([
          ['id', 'name', 'expand'],
          { id: mentor.id, name: 'p', note: null },
        ]);
        expect((await query(body, bob)).data[0]).toEqual({ id: pupil.id, name: 'p', expand: { mentor: null } });
      });
    });

    describe('writing', () => {
      test('a rule of the caller is 403 at the member, for null and the same value too', async () => {
        const { id } = await person();
        await patch(id, { salary: 10 }, hr);
        for (const salary of [10, 11, null, 'x']) {
          expect(outcomeOf(await patch(id, { salary }))).toEqual([403, 'forbidden', '/data/salary forbidden']);
        }
        expect(
          outcomeOf(await ann.client.post('/api/people', { data: { name: 'p', salary: null, token: 'x' } })),
        ).toEqual([403, 'forbidden', '/data/salary forbidden', '/data/token forbidden']);
        expect((await read(id, hr)).salary).toBe(10);
      });

      test('a default still fills it', async () => {
        const { id } = await person();
        const stored = sql`SELECT /* every tenant */ token, score, level FROM people WHERE id = ${uuid(id)}`;
        expect(await service.app.db.rows(stored)).toEqual([['t', '0', '1']]);
      });

      test('a rule holds for the stored and for the resulting record', async () => {
        const { id } = await person();
        expect((await patch(id, { name: 'x' })).status).toBe(200);
        // `code is null` holds before, not after.
        expect(outcomeOf(await patch(id, { code: 'c' }))).toEqual([403, 'forbidden', '/data/code forbidden']);
        expect((await patch(id, { code: null })).status).toBe(200);
        expect((await patch(id, { code: `c${id}` }, hr)).body.data.code).toBe(`c${id}`);
        expect(outcomeOf(await patch(id, { code: null, name: 'y' }))).toEqual([
          403,
          'forbidden',
          '/data/code forbidden',
        ]);
        expect((await read(id)).name).toBe('x');
      });

      test('a rule that names @next is asked once, of both', async () => {
        const { id } = await person({ score: 5 });
        expect((await patch(id, { score: 6 })).body.data.score).toBe(6);
        expect((await patch(id, { score: 6 })).status).toBe(200);
        expect(outcomeOf(await patch(id, { score: 5, salary: 1 }))).toEqual([
          403,
          'forbidden',
          '/data/salary forbidden',
        ]);
        expect(outcomeOf(await patch(id, { score: 5 }))).toEqual([403, 'forbidden', '/data/score forbidden']);
        expect((await read(id)).score).toBe(6);
      });

      test('on create, `@record` and `@next` are the record as it would be stored', async () => {
        const theirs = await make('teams', { name: 'theirs' }, bob);
        const mine = await make('teams', { name: 'mine' });
        expect(outcomeOf(await ann.client.post('/api/people', { data: { name: 'p', team: theirs.id } }))).toEqual([
          403,
          'forbidden',
          '/data/team forbidden',
        ]);
        expect((await person({ team: mine.id })).team).toBe(mine.id);
        expect(outcomeOf(await ann.client.post('/api/people', { data: { name: 'p', code: 'x' } }))).toEqual([
          403,
          'forbidden',
          '/data/code forbidden',
        ]);
        expect((await person({ code: null, score: -3 })).score).toBe(-3);
      });

      test('an id under a rule that reads other records', async () => {
        const [mine, theirs] = [await make('teams', { name: 'm' }), await make('teams', { name: 't' }, bob)];
        const { id } = await person({ team: mine.id });
        expect(outcomeOf(await patch(id, { team: theirs.id }))).toEqual([403, 'forbidden', '/data/team forbidden']);
        expect((await patch(id, { team: null })).status).toBe(200);
        expect((await patch(id, { team: mine.id, name: 'n' })).status).toBe(200);
        // Not any more the caller's team, so that the stored record refuses before the value is looked at.
        await ann.client.patch(`/api/teams/${mine.id}`, { data: { head: bob.id } });
        expect(outcomeOf(await patch(id, { team: null }))).toEqual([403, 'forbidden', '/data/team forbidden']);
        expect(outcomeOf(await patch(id, { team: 'no id', name: 7 }))).toEqual([
          403,
          'forbidden',
          '/data/team forbidden',
        ]);
        expect(outcomeOf(await patch(id, { name: 7 }))).toEqual([422, 'validation_failed', '/data/name wrong_type']);
      });

      test('the rules of the record come first, and a hidden record stays hidden', async () => {
        const { id } = await person({ public: false });
        const hidden = await patch(id, { score: 9 }, bob);
        const missing = await patch(NOBODY, { score: 9 }, bob);
        expect([outcomeOf(hidden), outcomeOf(missing)]).toEqual([
          [404, 'not_found'],
          [404, 'not_found'],
        ]);
        const seen = await person();
        expect(outcomeOf(await patch(seen.id, { score: -9 }, bob))).toEqual([403, 'forbidden']);
        expect(outcomeOf(await patch(id, { score: -9 }, hr))).toEqual([404, 'not_found']);
      });

      test('a has_one is written under the rules of its reference', async () => {
        const { id } = await person();
        const desk = await make('desks', { place: 'door' });
        expect(outcomeOf(await patch(id, { desk: desk.id }))).toEqual([403, 'forbidden', '/data/desk forbidden']);
        expect(outcomeOf(await ann.client.post('/api/people', { data: { name: 'p', desk: desk.id } }))).toEqual([
          403,
          'forbidden',
          '/data/desk forbidden',
        ]);
        expect((await patch(id, { desk: desk.id }, hr)).body.data.desk).toBe(desk.id);
        // The caller does not see the desk, so that null leaves it.
        expect((await patch(id, { desk: null })).status).toBe(200);
        expect((await read(id, hr)).desk).toBe(desk.id);
        const other = await make('desks', { place: 'stairs' });
        // The member's rule rejects the write before the taken place is reported.
        expect(outcomeOf(await patch(id, { desk: other.id }))).toEqual([403, 'forbidden', '/data/desk forbidden']);
      });

      test('in a batch: at the operation and the member', async () => {
        const { id } = await person();
        const operations = [
          { op: 'create', collection: 'teams', data: { name: 't' }, as: 't' },
          { op: 'update', collection: 'people', id, data: { team: { $ref: 't' }, score: 1 } },
          { op: 'update', collection: 'people', id, data: { score: 0 } },
        ];
        const answer = await ann.client.post('/api/batch', { operations });
        expect([...outcomeOf(answer), answer.body.operation]).toEqual([
          403,
          'forbidden',
          '/operations/2/data/score forbidden',
          2,
        ]);
        expect((await ann.client.post('/api/batch', { operations: operations.slice(0, 2) })).status).toBe(200);
      });

      test('a record that is read can be sent back without its hidden members', async () => {
        const { id } = await person({ note: 'keep' });
        await patch(id, { salary: 12 }, hr);
        const { name, public: shown } = await read(id, hr);
        await patch(id, { name, public: shown }, hr);
        const full = await read(id, hr);
        expect([full.note, full.salary]).toEqual(['keep', 12]);
      });
    });

    describe('users', () => {
      test('a user sees itself by the rules, in every answer of the authentication', async () => {
        const { id, email, password, client } = await service.user();
        const boss = hr.id;
        await hr.client.patch(`/api/users/${id}`, { data: { clearance: 3, boss } });
        await client.patch(`/api/users/${id}`, { data: { badge: 'b' } });
        const me = (await client.get('/api/auth/me')).body.user;
        expect([me.badge, me.nickname]).toEqual(['b', null]);
        for (const name of ['clearance', 'boss', 'grade']) expect(Object.hasOwn(me, name)).toBe(false);
        const login = (await service.anonymous.post('/api/auth/login', { email, password })).body;
        expect(login.user).toEqual(me);
        const refreshed = await service.anonymous.post('/api/auth/token/refresh', {
          refresh_token: login.refresh_token,
        });
        expect(refreshed.body.user).toEqual(me);
        expect((await client.get(`/api/users/${id}`)).body.data).toEqual(me);
        await make('leads', { user: id });
        expect((await client.get('/api/auth/me')).body.user.boss).toBe(boss);
        const registered = await service.anonymous.post('/api/auth/register', { email: `x${email}`, password });
        expect([registered.status, Object.hasOwn(registered.body.user, 'grade')]).toEqual([201, false]);
        expect((await hr.client.get('/api/auth/me')).body.user).toHaveProperty('clearance', null);
      });

      test('policies see what is stored', async () => {
        const { id, client } = await service.user();
        expect(await service.app.db.rows(sql`SELECT grade FROM users WHERE id = ${uuid(id)}`)).toEqual([['junior']]);
        expect(outcomeOf(await client.patch(`/api/users/${id}`, { data: { clearance: 9 } }))).toEqual([
          403,
          'forbidden',
          '/data/clearance forbidden',
        ]);
      });
    });
  },
  { schema: SCHEMA },
);
