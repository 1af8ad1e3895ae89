// @module-tag long
/**
 * Two worlds that differ only in values which a caller may not read: every answer to that caller is the same, byte by byte. The other world is made behind
 * the service's back, so that times and versions do not differ.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Sql, sql, uuid } from '../../src/sql.ts';
import { NOBODY, saidBy } from '../support/records.ts';
import { describeOnBoth, type User } from '../support/service.ts';

const SCHEMA = readFileSync(join(import.meta.dirname, '../routes/field-rules.yaml'), 'utf8');
type Request = readonly [method: string, path: string, body?: object];

describeOnBoth(
  'a hidden value',
  (service) => {
    let ann: User;
    let bob: User;
    let hr: User;
    let ids: Readonly<Record<'mentor' | 'other' | 'pupil' | 'desk' | 'team' | 'skill', string>>;
    const make = async (collection: string, data: object, user = ann): Promise<string> =>
      (await user.client.post(`/api/${collection}`, { data })).body.data.id;
    beforeAll(async () => {
      [ann, bob, hr] = await Promise.all([service.user(), service.user(), service.user('hr')]);
      const team = await make('teams', { name: 't' });
      const skill = await make('skills', { name: 's' });
      const [mentor, other] = [await make('people', { name: 'm' }), await make('people', { name: 'o' })];
      const pupil = await make('people', { name: 'p', team, skills: { add: [skill] } });
      ids = { mentor, other, pupil, team, skill, desk: await make('desks', { place: 'd' }) };
    });

    /** The values that bob may not see of ann's record, and of records that reference it. */
    const world = async (own: Sql, reference: string): Promise<void> => {
      const { db } = service.app;
      await db.run(sql`UPDATE people SET ${own}, mentor_id = ${uuid(reference)} WHERE id = ${uuid(ids.pupil)}`);
      await db.run(sql`UPDATE desks SET person_id = ${uuid(reference)} WHERE id = ${uuid(ids.desk)}`);
      const row = sql`people WHERE id = ${uuid(ids.pupil)}`;
      await db.run(sql`UPDATE skills SET secret = (SELECT note FROM ${row})`);
      await db.run(sql`UPDATE users SET (clearance, grade) = (SELECT level + 1, note FROM ${row})`);
    };

    const requests = (): readonly Request[] => {
      const { mentor, other, pupil, desk, team } = ids;
      const query = (body: object): Request => ['POST', '/api/people/query', body];
      return [
        ['GET', `/api/people/${pupil}`],
        ['GET', `/api/people/${pupil}?expand=mentor,desk,team,owner,skills`],
        ['GET', `/api/people/${mentor}?expand=pupils,desk`],
        ['GET', `/api/people/${other}?expand=pupils,desk`],
        ['GET', '/api/people?expand=pupils,desk,mentor&limit=100'],
        ['GET', `/api/teams/${team}?expand=members`],
        ['GET', `/api/desks/${desk}?expand=person`],
        ['GET', '/api/users?limit=100&expand=boss'],
        ['GET', '/api/auth/me'],
        ...[
          'salary=1',
          'salary=2',
          'note=x',
          'note=y',
          'level=1',
          'level=5',
          'token=t',
          `mentor=${mentor}`,
          `mentor_id=${other}`,
          `pupils_any=${pupil}`,
          `desk=${desk}`,
        ].map((filter): Request => ['GET', `/api/people?${filter}`]),
        ...['clearance=2', 'grade=x'].map((filter): Request => ['GET', `/api/users?${filter}`]),
        ...[
          'salary = 1',
          'not (salary = 1)',
          'salary is null',
          'note contains "x"',
          'level > 3',
          'mentor.name = "m"',
          'mentor is null',
          'desk.place = "d"',
          'any(pupils as q, q.name = "p")',
          'count(pupils) = 1',
          'owner.clearance > 3',
          'any(skills as s, s.secret = "x")',
        ].map((filter) => query({ filter })),
        ...['salary', '-salary', 'note', '-level', 'mentor.name', 'desk.place', 'owner.clearance'].map((sort) =>
          query({ sort: [sort], limit: 2, count: 'exact' }),
        ),
        query({
          fields: ['note', 'salary', 'mentor'],
          expand: { mentor: true, pupils: { filter: 'salary = 1', sort: ['-note'] } },
          count: 'estimated',
        }),
        ...[
          { measures: { n: 'count', s: 'sum(salary)', l: 'max(level)', a: 'avg(level)' } },
          { group_by: ['mentor'], measures: { n: 'count' } },
          { group_by: ['note', 'salary'], measures: { n: 'count' } },
          { filter: 'salary > 1', measures: { n: 'count' } },
          { group_by: ['name'], measures: { top: 'max(salary)' }, sort: ['-top'] },
        ].map((body): Request => ['POST', '/api/people/aggregate', body]),
        ['GET', `/api/people/${pupil}/can`],
        ['POST', '/api/people/query', { capabilities: true, limit: 100 }],
        ...[{ salary: 1 }, { note: 'x' }, { mentor: other }].map(
          (data): Request => ['POST', '/api/people/can', { action: 'update', id: pupil, data }],
        ),
        ['PATCH', `/api/people/${pupil}`, { data: { salary: 1 } }],
        ['PATCH', `/api/people/${pupil}`, { data: { note: 'x' } }],
        ['PATCH', `/api/people/${pupil}`, { data: { level: 5, name: 7 } }],
        ['POST', '/api/people', { data: { name: 'n', salary: 1 } }],
        ['POST', '/api/people', { data: { name: 'n', code: 'x' } }],
        [
          'POST',
          '/api/batch',
          { operations: [{ op: 'update', collection: 'people', id: pupil, data: { mentor: other } }] },
        ],
        ['POST', '/api/batch', { operations: [{ op: 'delete', collection: 'people', id: pupil }] }],
        ['DELETE', `/api/people/${pupil}`],
        ['GET', '/openapi.json'],
      ];
    };
    const isRead = ([method, path]: Request): boolean => method === 'GET' || /\/(?:query|aggregate)$/.test(path);
    const answers = async (
      user: User,
      wanted: (request: Request) => boolean = () => true,
    ): Promise<readonly object[]> => {
      const said: object[] = [];
      for (const [method, path, json] of requests().filter(wanted)) {
        const answer = await user.client.send(method, path, json === undefined ? {} : { json });
        said.push({ asked: `${method} ${path} ${JSON.stringify(json)}`, ...saidBy(answer) });
      }
      return said;
    };

    test('a hidden value changes no answer to a caller who may not read it', async () => {
      await world(sql`salary = 1, note = 'x', level = 1`, ids.mentor);
      const [before, seen] = [await answers(bob), await answers(hr, isRead)];
      await world(sql`salary = 2, note = 'y', level = 5`, ids.other);
      const [after, seenAfter] = [await answers(bob), await answers(hr, isRead)];
      // Cursors are sealed with a nonce each.
      const plain = (said: readonly object[]) =>
        JSON.parse(JSON.stringify(said), (key, value) =>
          key === 'next_cursor' && value !== null ? 'a cursor' : value,
        );
      expect(plain(after)).toEqual(plain(before));
      // The worlds do differ, for a caller who may see it.
      const differing = plain(seenAfter).filter(
        (each: object, i: number) => JSON.stringify(each) !== JSON.stringify(plain(seen)[i]),
      );
      expect(differing.length).toBeGreaterThan(30);
    });

    test('the operations of a batch do not distinguish hidden records from missing ones', async () => {
      const hidden = await make('people', { name: 'hidden', public: false });
      const told = async (id: string, operation: object) => {
        const body = { operations: [{ collection: 'people', id, ...operation }] };
        return saidBy(await bob.client.post('/api/batch', body));
      };
      for (const operation of [
        { op: 'update', data: { name: 'x' } },
        { op: 'update', data: { name: 7, score: 1 } },
        { op: 'update', data: { note: 'x' }, if_match: '"x.y"' },
        { op: 'delete' },
      ]) {
        expect(await told(hidden, operation)).toEqual(await told(NOBODY, operation));
      }
      const teamed = async (mentor: string) =>
        saidBy(
          await bob.client.post('/api/batch', {
            operations: [{ op: 'create', collection: 'people', data: { name: 'n', mentor } }],
          }),
        );
      expect(await teamed(hidden)).toEqual(await teamed(NOBODY));
    });

    test('a hidden value of a file is absent from the answers to upload, list and patch', async () => {
      const form = new FormData();
      form.set('file', new Blob(['x'], { type: 'text/plain' }), 'a.txt');
      form.set('data', new Blob([JSON.stringify({ label: 'seen' })], { type: 'application/json' }));
      const upload = async (user: User) => {
        const headers = { Authorization: `Bearer ${user.token}` };
        const answer = await fetch(`${service.url}/api/files`, { method: 'POST', headers, body: form });
        return (await answer.json()) as { data: { id: string } };
      };
      const { data } = await upload(ann);
      expect([Object.hasOwn(data, 'verdict'), Object.hasOwn(data, 'label')]).toEqual([false, true]);
      const path = `/api/files/${data.id}`;
      const patched = await ann.client.patch(path, { data: { label: 'x', verdict: 'clean' } });
      expect([patched.status, patched.body.errors[0].pointer]).toEqual([403, '/data/verdict']);
      expect(Object.hasOwn((await ann.client.patch(path, { data: { label: 'x' } })).body.data, 'verdict')).toBe(false);
      expect((await ann.client.get('/api/files?verdict=unknown')).body.data).toEqual([]);
      expect((await ann.client.get(`${path}/content`)).text).toBe('x');
      expect((await upload(hr)).data).toHaveProperty('verdict', 'unknown');
    });

    test('null is hidden like other values', async () => {
      await world(sql`salary = NULL, note = NULL, level = 1`, ids.mentor);
      const before = (await bob.client.get(`/api/people/${ids.pupil}`)).text;
      await world(sql`salary = 0, note = '', level = 1`, ids.mentor);
      expect((await bob.client.get(`/api/people/${ids.pupil}`)).text).toBe(before);
    });

    describe('a hidden unique value', () => {
      test('a hidden unique value is reported as taken, and no more', async () => {
        const id = await make('people', { name: 'holder', public: false });
        await hr.client.patch(`/api/people/${id}`, { data: { code: 'taken' } });
        await service.app.db.run(sql`UPDATE people SET code = 'taken' WHERE id = ${uuid(id)}`);
        const own = await make('people', { name: 'own' }, hr);
        const { status, body } = await hr.client.patch(`/api/people/${own}`, { data: { code: 'taken' } });
        expect([status, body.errors]).toEqual([
          409,
          [{ pointer: '/data/code', code: 'unique_violation', detail: 'another record has this `code`' }],
        ]);
        // A caller who may not set it learns nothing of it.
        const refused = await Promise.all(
          ['taken', 'free'].map((code) => bob.client.post('/api/people', { data: { name: 'n', code } })),
        );
        expect(saidBy(refused[0]!)).toEqual(saidBy(refused[1]!));
        expect(refused[0]!.status).toBe(403);
      });
    });
  },
  { schema: SCHEMA },
);
