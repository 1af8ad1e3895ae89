// @module-tag long
/** Questions about decisions over HTTP: who may ask, what the answer shows, and that it is what the routes do. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { readAudit } from '../../../src/auth/audit-trail.ts';
import type { Answer, Client } from '../../support/client.ts';
import { idsOf, NOBODY, outcomeOf } from '../../support/records.ts';
import { describeOnOne, type User } from '../../support/service.ts';

const SCHEMA = readFileSync(join(import.meta.dirname, '../field-rules.yaml'), 'utf8');
type Json = Answer['body'];

describeOnOne(
  'explanations',
  (service) => {
    let ann: User;
    let bob: User;
    let hr: User;
    let root: User;
    let people: readonly string[];
    beforeAll(async () => {
      [ann, bob, hr, root] = await Promise.all([
        service.user(),
        service.user(),
        service.user('hr'),
        service.user('admin'),
      ]);
      const make = async (user: User, collection: string, data: object): Promise<string> => {
        const { status, body, text } = await user.client.post(`/api/${collection}`, { data });
        if (status !== 201) throw new Error(text);
        return body.data.id;
      };
      const team = await make(bob, 'teams', { name: 'core', head: ann.id });
      people = [
        await make(ann, 'people', { name: 'a', note: 'secret', team }),
        await make(ann, 'people', { name: 'b', public: false }),
        await make(bob, 'people', { name: 'c', note: 'secret' }),
        await make(bob, 'people', { name: 'd', note: 'none', public: false }),
      ];
      await hr.client.patch(`/api/people/${people[2]}`, { data: { mentor: people[3] } });
    });
    const ask = (client: Client, question: object): Promise<Answer> => client.post('/api/_explain', question);
    const asked = async (question: object): Promise<Json> => {
      const { status, body, text } = await ask(root.client, question);
      if (status !== 200) throw new Error(text);
      return body.data;
    };

    describe('the answer', () => {
      test('the explanation equals the decision of the routes, for each caller and record', async () => {
        for (const user of [ann, bob, hr]) {
          const listed = idsOf((await user.client.get('/api/people')).body.data);
          for (const id of people) {
            const about = { collection: 'people', id, as: user.email };
            const read = await asked({ ...about, action: 'read' });
            const { status, body } = await user.client.get(`/api/people/${id}`);
            expect([read.status, read.allowed]).toEqual([status, status === 200]);
            for (const { name, allowed } of status === 200 ? read.members : [])
              expect([name, allowed]).toEqual([name, Object.hasOwn(body.data, name)]);
            const list = await asked({ ...about, action: 'list' });
            expect([list.status, list.allowed]).toEqual([200, listed.includes(id)]);
            const data = { score: -1 };
            const update = await asked({ ...about, action: 'update', data });
            const can = await user.client.post('/api/people/can', { action: 'update', id, data });
            expect([update.allowed, update.status]).toEqual([can.body.data.allowed, can.body.data.status ?? 200]);
          }
        }
      });

      test('a has_one is allowed if the rules of the other record let it move', async () => {
        const { body } = await ann.client.post('/api/desks', { data: { place: 'window' } });
        const update = { collection: 'people', action: 'update', id: people[0], data: { desk: body.data.id } };
        const byAnn = await asked({ ...update, as: ann.id });
        expect([byAnn.allowed, byAnn.status, byAnn.decided_by, byAnn.partners]).toEqual([
          false,
          403,
          1,
          [{ name: 'desk', allowed: false }],
        ]);
        expect((await ann.client.patch(`/api/people/${people[0]}`, { data: update.data })).status).toBe(403);
        const byHr = await asked({ ...update, as: hr.id });
        expect([byHr.allowed, byHr.partners]).toEqual([true, [{ name: 'desk', allowed: true }]]);
        expect((await hr.client.get(`/api/desks/${body.data.id}`)).body.data.person).toBeNull();
      });

      test('a leaf is true, false or unknown, and null without a record', async () => {
        const read = { collection: 'people', action: 'read' };
        const values = async (question: object) => {
          const [{ value, leaves }] = (await asked({ ...read, ...question })).rules;
          return [value, ...leaves.map((leaf: Json) => leaf.value)];
        };
        expect(await values({ id: people[1], as: bob.id })).toEqual(['false', 'false', 'false']);
        expect(await values({ id: people[1], as: 'guest' })).toEqual(['unknown', 'false', 'unknown']);
        expect(await values({ id: people[0], as: 'guest' })).toEqual(['true', 'true', 'unknown']);
        expect(await values({ as: bob.id })).toEqual([null]);
      });

      test('a made-up caller has the given roles and fields', async () => {
        const update = { collection: 'users', action: 'update', id: bob.id };
        expect((await asked({ ...update, as: { roles: [] } })).allowed).toBe(false);
        expect((await asked({ ...update, as: { roles: [], id: bob.id } })).decided_by).toBe(1);
        expect((await asked({ ...update, as: { roles: ['hr'] } })).decided_by).toBe(0);
        const named = await asked({ ...update, as: { key: NOBODY } }).catch((error) => JSON.parse(error.message));
        expect(named.code).toBe('not_found');
      });

      test('a filter of a list is judged on what the caller may read', async () => {
        const filters = [
          'note = "secret"',
          'note != "secret"',
          'not (note is null)',
          'mentor is null',
          'mentor.name = "d"',
          'any(team.members as m, m.name = "b")',
          'none(team.members as m, m.name = "b")',
          'team.head = @me and name in $names',
        ];
        let found = 0;
        for (const user of [ann, hr]) {
          for (const filter of filters) {
            const given = { filter, ...(filter.includes('$') && { params: { names: ['a', 'c'] } }) };
            const { status, text, body } = await user.client.post('/api/people/query', given);
            if (status !== 200) throw new Error(text);
            const matching = idsOf(body.data);
            for (const id of people) {
              const about = { collection: 'people', action: 'list', id, as: user.id };
              const { allowed, filter: judged } = await asked({ ...about, ...given });
              expect([filter, allowed && judged.value === 'true']).toEqual([filter, matching.includes(id)]);
              found += matching.includes(id) ? 1 : 0;
            }
          }
        }
        expect(found).toBeGreaterThan(10);
        const hidden = { collection: 'people', action: 'list', id: people[2], as: ann.id, filter: 'note = "secret"' };
        const { filter } = await asked(hidden);
        expect([filter.value, filter.leaves[0].left, filter.leaves[0].absent]).toEqual([
          'unknown',
          null,
          '`note` is null',
        ]);
      });
    });

    describe('the asker', () => {
      test('only admins ask about others, about no record, and about hidden records', async () => {
        const read = { collection: 'people', action: 'read' };
        expect(outcomeOf(await ask(service.anonymous, read))).toEqual([401, 'unauthenticated']);
        for (const question of [
          read,
          { ...read, as: bob.email, id: people[0] },
          { ...read, as: 'guest', id: people[0] },
          { ...read, as: { roles: ['admin'] }, id: people[0] },
          { collection: 'people', action: 'create', data: { name: 'x' } },
        ])
          expect(outcomeOf(await ask(ann.client, question))).toEqual([403, 'forbidden']);
        for (const id of [people[3], NOBODY, 'no-id'])
          expect(outcomeOf(await ask(ann.client, { ...read, id }))).toEqual([404, 'not_found']);
      });

      test('a key asks nothing, whatever its roles', async () => {
        const { status, body, text } = await root.client.post('/api/auth/keys', { name: 'k', roles: ['admin'] });
        if (status !== 201) throw new Error(text);
        const key = service.anonymous.with({ Authorization: `Bearer ${body.secret}` });
        expect((await key.get(`/api/people/${people[0]}`)).status).toBe(200);
        for (const question of [{ id: people[0] }, { as: bob.id, id: people[0] }])
          expect(outcomeOf(await ask(key, { collection: 'people', action: 'read', ...question }))).toEqual([
            403,
            'forbidden',
          ]);
      });

      test('others ask about themselves and a record that they may read', async () => {
        const update = { collection: 'people', action: 'update', id: people[2] };
        for (const as of [undefined, ann.id, ann.email.toUpperCase()]) {
          const { status, body } = await ask(ann.client, { ...update, ...(as && { as }) });
          expect([status, body.data.allowed, body.data.plan]).toEqual([200, false, []]);
        }
      });

      test('a rule that may read what the asker may not see is withheld', async () => {
        const { status, body } = await ask(ann.client, { collection: 'people', action: 'read', id: people[0] });
        const { data } = body;
        expect([status, data.allowed, data.rules[0].withheld]).toEqual([200, true, false]);
        const level = (members: Json) => members.find(({ name }: Json) => name === 'level').reasons;
        // The rule of `level` reads members of the team, of which some are hidden.
        expect(level(data.members)).toEqual([]);
        const all = await asked({ collection: 'people', action: 'read', id: people[0], as: ann.id });
        expect(level(all.members)).toHaveLength(1);
        const own = await ask(ann.client, { collection: 'users', action: 'update', id: ann.id });
        expect(own.body.data.rules.map((rule: Json) => [rule.withheld, rule.value])).toEqual([
          [false, 'false'],
          [false, 'true'],
        ]);
      });

      test('every question is in the audit trail', async () => {
        await asked({ collection: 'people', action: 'update', id: people[0], as: bob.id });
        const [event] = await readAudit(service.app.db, { event: 'explained', limit: 1 });
        expect([event?.user_id, event?.actor_id, event?.detail]).toEqual([
          bob.id,
          root.id,
          { collection: 'people', action: 'update', record: people[0] },
        ]);
      });
    });

    test('wrong questions name the place of each error', async () => {
      const wrong = async (question: object) => outcomeOf(await ask(root.client, question));
      expect(await wrong({ collection: 'peopel', action: 'view', what: 1 })).toEqual([
        422,
        'validation_failed',
        '/what unknown_key',
        '/collection unknown_collection',
        '/action unknown_action',
      ]);
      const read = { collection: 'people', action: 'read' };
      expect(await wrong({ ...read, as: { roles: ['boss'], nickname: 5, x: 1 } })).toEqual([
        422,
        'validation_failed',
        '/as/roles/0 unknown_role',
        '/as/nickname wrong_type',
        '/as/x unknown_key',
      ]);
      expect(await wrong({ ...read, data: {}, filter: 'x', params: 1, query: { a: 1 } })).toEqual([
        422,
        'validation_failed',
        '/query/a wrong_type',
        '/data unexpected_key',
        '/params not_an_object',
        '/filter unexpected_key',
      ]);
      const list = { collection: 'people', action: 'list', id: people[0] };
      expect(await wrong({ ...list, filter: 'nam = 1' })).toEqual([422, 'validation_failed', '/filter name_unknown']);
      expect(await wrong({ collection: 'people', action: 'update', id: people[0], data: { score: 'x' } })).toEqual([
        422,
        'validation_failed',
        '/data/score wrong_type',
      ]);
      expect(await wrong({ ...read, as: 'who@example.org' })).toEqual([404, 'not_found', '/as not_found']);
      expect(await wrong({ ...read, id: NOBODY })).toEqual([404, 'not_found', '/id not_found']);
    });
  },
  { schema: SCHEMA },
);

describeOnOne(
  'the limit of questions',
  (service) => {
    test('an asker has ten questions a second, and another one has their own', async () => {
      const [ann, root] = await Promise.all([service.user('admin'), service.user('admin')]);
      const ask = (user: User) => user.client.post('/api/_explain', { collection: 'people', action: 'read' });
      const answers = await Promise.all(Array.from({ length: 25 }, () => ask(ann)));
      const statuses = answers.map(({ status }) => status);
      expect(statuses).toContain(429);
      // At most three windows began meanwhile.
      expect(statuses.filter((status) => status === 200).length).toBeLessThanOrEqual(30);
      expect((await ask(root)).status).toBe(200);
    });
  },
  { schema: SCHEMA, env: { BYLAW_RATE_LIMIT: 'on' } },
);

const HIDING = `
roles: [admin, hr, member]
register: { roles: [member] }
collections:
  rooms:
    fields: { secret: { type: int, required: true } }
    relations: { owner: { kind: belongs_to, collection: users, default: '@request.auth.id' } }
    access: { view: '@record.owner = @request.auth.id', create: true }
  bookings:
    relations:
      owner: { kind: belongs_to, collection: users, default: '@request.auth.id' }
      room: { kind: belongs_to, collection: rooms }
    access:
      view: '@record.owner = @request.auth.id'
      create: '@record.owner = @request.auth.id'
      update: '@record.owner = @request.auth.id and (@next.room is null or @next.room.secret < 5)'
  boxes:
    fields: { level: { type: int, access: { read: [{ roles: [hr] }] } } }
    access: { view: true, create: '@record.level is null or @record.level < 5', update: true }
`;

describeOnOne(
  'an explanation for the asker alone',
  (service) => {
    test('a hidden record that the data refer to is refused as in the write, whatever it holds', async () => {
      const [ann, eve] = [await service.user(), await service.user()];
      const post = async (user: User, path: string, data: object) =>
        (await user.client.post(path, { data })).body.data.id;
      const id = await post(eve, '/api/bookings', {});
      const own = await post(eve, '/api/rooms', { secret: 2 });
      const rooms = [
        await post(ann, '/api/rooms', { secret: 7 }),
        await post(ann, '/api/rooms', { secret: 2 }),
        NOBODY,
      ];
      const question = (room: string) => ({ collection: 'bookings', action: 'update', id, data: { room } });
      const asked = await Promise.all(rooms.map((room) => eve.client.post('/api/_explain', question(room))));
      const written = await Promise.all(
        rooms.map((room) => eve.client.patch(`/api/bookings/${id}`, { data: { room } })),
      );
      expect(asked.map(({ status, body }) => [status, body.errors])).toEqual(
        written.map(({ body }) => [422, body.errors]),
      );
      expect((await eve.client.post('/api/_explain', question(own))).body.data).toMatchObject({
        allowed: true,
        status: 200,
      });
    });

    test('a copy whose rule reads a hidden field has no decision', async () => {
      const [eve, hr] = [await service.user(), await service.user('hr')];
      for (const level of [3, 9]) {
        const { id } = (await hr.client.post('/api/boxes', { data: {} })).body.data;
        await hr.client.patch(`/api/boxes/${id}`, { data: { level } });
        const question = { collection: 'boxes', action: 'create', id };
        const { data } = (await eve.client.post('/api/_explain', question)).body;
        expect([data.rules[0].withheld, data.allowed, data.status]).toEqual([true, null, null]);
        expect((await hr.client.post('/api/_explain', question)).body.data.allowed).toBe(level < 5);
      }
    });
  },
  { schema: HIDING },
);
