// @module-tag long
/** The matrix of callers and records: every cell is the decision of `_explain`, and of the routes. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { readAudit } from '../../../src/auth/audit-trail.ts';
import type { ErrorDetail } from '../../../src/problem.ts';
import { NOBODY, outcomeOf } from '../../support/records.ts';
import { describeOnBoth, type User } from '../../support/service.ts';

const SCHEMA = readFileSync(join(import.meta.dirname, '../field-rules.yaml'), 'utf8').replace(
  'collections:\n',
  "conditions:\n  'is_named(person: people, name: string)': 'person.name = name'\ncollections:\n",
);
const OUTCOMES: Readonly<Record<number, string>> = {
  200: 'allowed',
  201: 'allowed',
  204: 'allowed',
  403: 'refused',
  404: 'hidden',
};

describeOnBoth(
  'a matrix',
  (service) => {
    let [ann, bob, hr, root]: User[] = [];
    let people: string[];
    beforeAll(async () => {
      [ann, bob, hr, root] = [
        await service.user(),
        await service.user(),
        await service.user('hr'),
        await service.user('admin'),
      ];
      const make = async (user: User, data: object): Promise<string> =>
        (await user.client.post('/api/people', { data })).body.data.id;
      const team = (await bob!.client.post('/api/teams', { data: { name: 'core', head: ann!.id } })).body.data.id;
      people = [
        await make(ann!, { name: 'a', team }),
        await make(ann!, { name: 'b', public: false }),
        await make(bob!, { name: 'c' }),
        await make(bob!, { name: 'd', public: false }),
      ];
    });
    const ask = (question: object, client = root!.client) => client.post('/api/_matrix', question);
    const rowsOf = async (question: object) => {
      const { status, body, text } = await ask({ collection: 'people', ids: people, ...question });
      if (status !== 200) throw new Error(text);
      return body.data.rows as { user: object | null; outcomes: string[]; drafted?: string[] }[];
    };

    test('every cell equals the status of the explanation of its caller, action and record', async () => {
      const callers = [ann!.id, bob!.email, hr!.id, 'member', 'hr', 'guest', { roles: ['lead'], id: ann!.id }];
      const seen = new Set<string>();
      for (const action of ['list', 'read', 'update', 'delete', 'create']) {
        const rows = await rowsOf({ action, callers });
        for (const [i, caller] of callers.entries()) {
          const as = ['member', 'hr'].includes(String(caller)) ? { roles: [caller] } : caller;
          for (const [j, id] of people.entries()) {
            const question = { collection: 'people', action, as, id };
            const { allowed, status } = (await root!.client.post('/api/_explain', question)).body.data;
            const expected = action === 'list' && status === 200 && !allowed ? 'hidden' : OUTCOMES[status];
            seen.add(expected!);
            expect([question, rows[i]!.outcomes[j]]).toEqual([question, expected]);
          }
        }
      }
      expect(seen).toEqual(new Set(['allowed', 'refused', 'hidden']));
      const [first, second, , fourth] = await rowsOf({ callers });
      expect([first!.user, second!.user, fourth!.user]).toEqual([
        { id: ann!.id, email: ann!.email },
        { id: bob!.id, email: bob!.email },
        null,
      ]);
    });

    test('a draft is decided beside the served rules, and may call their conditions', async () => {
      const callers = [ann!.id, 'member'];
      const all = { callers, action: 'delete' };
      const [own, role] = await rowsOf({ ...all, rules: 'is_named(@record, "a") or is_named(@record, "d")' });
      expect([own!.outcomes, own!.drafted]).toEqual([
        ['allowed', 'allowed', 'refused', 'hidden'],
        ['allowed', 'refused', 'refused', 'allowed'],
      ]);
      expect(role!.drafted).toEqual(['allowed', 'hidden', 'refused', 'allowed']);
      const [hidden] = await rowsOf({ callers, action: 'read', rules: [{ roles: ['hr'] }] });
      expect(hidden!.drafted).toEqual(['refused', 'refused', 'refused', 'refused']);
      const [none] = await rowsOf({ callers, action: 'update', rules: [] });
      expect(none!.drafted).toEqual(['refused', 'refused', 'refused', 'refused']);
    });

    test('the rules of a create and an update read the partner and the members of the result', async () => {
      const skill = (await ann!.client.post('/api/skills', { data: { name: 'knots' } })).body.data.id;
      const link = { data: { skills: { add: [skill] } } };
      const linked = await ann!.client.patch(`/api/people/${people[0]}`, link);
      expect([linked.status, linked.text]).toEqual([200, linked.text]);
      const isDesk = (await ann!.client.post('/api/desks', { data: { place: 'window' } })).status;
      expect(isDesk).toBe(201);
      const drafted = async (action: string, rules: string) =>
        (await rowsOf({ callers: [root!.id], action, rules }))[0]!.drafted;
      for (const action of ['create', 'update'])
        expect([action, await drafted(action, `@next.skills contains "${skill}" and @next.desk is null`)]).toEqual([
          action,
          action === 'create'
            ? ['allowed', 'refused', 'refused', 'refused']
            : ['allowed', 'hidden', 'refused', 'hidden'],
        ]);
      expect(await drafted('update', 'not changed(@record.skills)')).toEqual([
        'allowed',
        'allowed',
        'allowed',
        'allowed',
      ]);
    });

    test('a member is decided by its own rules and those of its record', async () => {
      const callers = [ann!.id, bob!.id, 'hr'];
      const outcomes = async (question: object) =>
        (await rowsOf({ callers, ...question })).map(({ outcomes: own, drafted = own }) => [...own, ...drafted]);
      const note = await outcomes({ member: 'note', rules: '@record.name != "a"' });
      expect(note).toEqual([
        ['allowed', 'allowed', 'refused', 'hidden', 'refused', 'allowed', 'allowed', 'hidden'],
        ['refused', 'hidden', 'allowed', 'allowed', 'refused', 'hidden', 'allowed', 'allowed'],
        ['allowed', 'hidden', 'allowed', 'hidden', 'refused', 'hidden', 'allowed', 'hidden'],
      ]);
      // Each cell is what the record's own route shows.
      for (const [user, cells] of [
        [ann!, note[0]!],
        [bob!, note[1]!],
      ] as const) {
        for (const [i, id] of people.entries()) {
          const { status, body } = await user.client.get(`/api/people/${id}`);
          expect(status === 404 ? 'hidden' : Object.hasOwn(body.data, 'note') ? 'allowed' : 'refused').toBe(cells[i]);
        }
      }
      const team = await outcomes({ member: 'team', action: 'update' });
      expect(team.slice(0, 2)).toEqual([
        ['allowed', 'allowed', 'refused', 'hidden', 'allowed', 'allowed', 'refused', 'hidden'],
        ['refused', 'hidden', 'allowed', 'allowed', 'refused', 'hidden', 'allowed', 'allowed'],
      ]);
    });

    test('members are decided beside their record, as its list and its route show them', async () => {
      const members = ['note', 'salary', 'level', 'token', 'team', 'mentor', 'name'];
      for (const action of ['list', 'read']) {
        const rows = await rowsOf({ action, members, callers: [ann!.id, bob!.id, hr!.id] });
        for (const [i, user] of [ann!, bob!, hr!].entries()) {
          const row = rows[i] as object as { outcomes: string[]; members: Record<string, string[]> };
          const listed = (await user.client.get('/api/people?limit=100')).body.data as { id: string }[];
          for (const [j, id] of people.entries()) {
            const shown = action === 'list' ? listed.find((each) => each.id === id) : undefined;
            const { status, body } = await user.client.get(`/api/people/${id}`);
            const record = action === 'list' ? shown : status === 200 ? body.data : undefined;
            expect([action, i, j, row.outcomes[j]]).toEqual([
              action,
              i,
              j,
              record === undefined ? row.outcomes[j] : 'allowed',
            ]);
            for (const member of members)
              expect([action, i, j, member, row.members[member]![j] === 'allowed']).toEqual([
                action,
                i,
                j,
                member,
                record !== undefined && Object.hasOwn(record, member),
              ]);
          }
        }
      }
      const wrong = await ask({
        collection: 'people',
        ids: people,
        callers: ['guest'],
        action: 'delete',
        members: ['nme'],
      });
      expect([
        wrong.status,
        wrong.body.errors.map(({ pointer, code }: { pointer: string; code: string }) => [pointer, code]),
      ]).toEqual([
        422,
        [
          ['/members/0', 'unknown_member'],
          ['/action', 'unexpected_key'],
        ],
      ]);
      const many = { collection: 'people', ids: people, callers: Array.from({ length: 20 }, () => 'guest') };
      const { status, body } = await ask({ ...many, members: Array.from({ length: 25 }, () => 'note') });
      expect([status, body.errors[0].pointer]).toEqual([422, '/members']);
    });

    test('a create is decided for data that no record has, with the defaults of each caller', async () => {
      const question = { collection: 'people', action: 'create', callers: [ann!.id, 'guest'], ids: undefined };
      const data = [{ name: 'new' }, { name: 'new', owner: bob!.id }, {}];
      const rows = await rowsOf({ ...question, data, rules: '@record.owner != @request.auth.id' });
      expect(rows.map(({ outcomes, drafted }) => [outcomes, drafted])).toEqual([
        [
          ['allowed', 'refused', 'allowed'],
          ['refused', 'allowed', 'refused'],
        ],
        [
          ['refused', 'refused', 'refused'],
          ['refused', 'refused', 'refused'],
        ],
      ]);
    });

    test('data that no create takes are errors at their places, as those of an explanation are', async () => {
      const question = { collection: 'people', action: 'create' };
      const data = [{ name: 5 }, { nme: 'a', salary: 'low' }, { name: null }, { owner: 'zz' }, { skills: { put: [] } }];
      const errorsOf = async (path: string, asked: object) => {
        const { status, body } = await root!.client.post(path, { ...question, ...asked });
        const errors = body.errors as readonly { pointer: string; code: string }[];
        return [status, errors.map(({ pointer, code }) => `${pointer} ${code}`)];
      };
      const [status, errors] = await errorsOf('/api/_matrix', { callers: ['member', 'guest'], data: [{}, ...data] });
      expect([status, errors]).toEqual([
        422,
        [
          '/data/1/name wrong_type',
          '/data/2/nme unknown_field',
          '/data/2/salary wrong_type',
          '/data/3/name required',
          '/data/4/owner wrong_type',
          '/data/5/skills/put unknown_operation',
        ],
      ]);
      for (const [i, each] of data.entries()) {
        const explained = await errorsOf('/api/_explain', { as: ann!.id, data: { name: 'a', ...each } });
        const own = (errors as string[]).filter((error) => error.startsWith(`/data/${i + 1}/`));
        expect(explained).toEqual([422, own.map((error) => error.replace(`/data/${i + 1}/`, '/data/'))]);
      }
    });

    test('an explanation by rules that are not saved is for administrators', async () => {
      const question = { collection: 'people', action: 'read', id: people[3], as: ann!.id };
      const explained = async (more: object) =>
        (await root!.client.post('/api/_explain', { ...question, ...more })).body.data;
      expect((await explained({})).status).toBe(404);
      const { allowed, rules, sql } = await explained({ rules: [{ when: '@record.name = "d"' }] });
      expect([allowed, rules.length, rules[0].when]).toEqual([true, 1, '@record.name = "d"']);
      expect(sql).toContain('name');
      const { members } = await explained({ id: people[0], member: 'note', rules: '@record.name = "z"' });
      expect(members.find(({ name }: { name: string }) => name === 'note').allowed).toBe(false);
      const own = { ...question, as: undefined, id: people[0] };
      expect((await ann!.client.post('/api/_explain', own)).status).toBe(200);
      expect(outcomeOf(await ann!.client.post('/api/_explain', { ...own, rules: 'true = true' }))).toEqual([
        403,
        'forbidden',
      ]);
      for (const [change, expected] of [
        [{ rules: 7 }, '/rules wrong_type'],
        [{ rules: [{ roles: ['hr'], who: 'ann' }] }, '/rules wrong_type'],
        [{ rules: [{ roles: ['heir'] }] }, '/rules/0 unknown_role'],
        [{ member: 'note' }, '/member unexpected_key'],
        [{ rules: '@record.name = "a"', member: 'pupils' }, '/member unknown_member'],
        [{ rules: '@record.name = "a"', member: 'note', action: 'delete' }, '/action unexpected_key'],
      ] as const) {
        const answer = await root!.client.post('/api/_explain', { ...question, ...change });
        expect(outcomeOf(answer)).toEqual([422, 'validation_failed', expected]);
      }
    });

    test('every error is at its place', async () => {
      const question = { collection: 'people', callers: ['guest'], ids: people };
      for (const [change, expected] of [
        [{ callers: [] }, '/callers invalid_value'],
        [{ callers: Array(21).fill('guest') }, '/callers invalid_value'],
        [{ ids: Array(101).fill(people[0]) }, '/ids invalid_value'],
        [{ action: 'view' }, '/action invalid_value'],
        [{ ids: [] }, '/ids required'],
        [{ data: [{}] }, '/data unexpected_key'],
        [{ action: 'create', data: [{}] }, '/ids required'],
        [{ member: 'pupils' }, '/member unknown_member'],
        [{ member: 'note', action: 'delete' }, '/action unexpected_key'],
        [{ rules: { when: 'x' } }, '/rules invalid_value'],
        [{ collection: 'peple' }, '/collection unknown_collection'],
        [{ callers: ['guest', { roles: ['heir'] }] }, '/callers/1/roles/0 unknown_role'],
        [{ rules: '@record.nme = "a"' }, '/rules name_unknown'],
        [{ rules: [{ roles: ['hr'] }, { when: '@record.nme = "a"' }] }, '/rules/1/when name_unknown'],
        [{ rules: [{ roles: ['hr'] }, { roles: ['heir'] }, {}] }, '/rules/1 unknown_role'],
        [{ as: 'guest' }, '/as unknown_key'],
      ] as const) {
        const [status, code, first] = outcomeOf(await ask({ ...question, ...change }));
        expect([status, code, first]).toEqual([422, 'validation_failed', expected]);
      }
      for (const [change, expected] of [
        [{ ids: [people[0], NOBODY] }, '/ids/1 not_found'],
        [{ ids: ['no-id'] }, '/ids/0 not_found'],
        [{ callers: ['guest', 'nobody@example.org'] }, '/callers/1 not_found'],
      ] as const)
        expect(outcomeOf(await ask({ ...question, ...change }))).toEqual([404, 'not_found', expected]);
    });

    test('a value of another type or size has an error that names what is expected', async () => {
      const question = { collection: 'people', callers: ['guest'], ids: people };
      for (const [change, ...expected] of [
        [{ collection: undefined }, '/collection required: expected string'],
        [{ collection: 5 }, '/collection wrong_type: expected string'],
        [{ callers: undefined }, '/callers required: expected a list'],
        [{ callers: [] }, '/callers invalid_value: expected at least 1 element'],
        [{ callers: Array(21).fill('guest') }, '/callers invalid_value: expected at most 20 elements'],
        [{ callers: [5] }, '/callers/0 invalid_value: expected string or an object'],
        [{ callers: ['guest', {}] }, '/callers/1/roles required: expected a list'],
        [{ callers: [{ roles: 'hr' }] }, '/callers/0/roles wrong_type: expected a list'],
        [{ action: 'view' }, '/action invalid_value: expected one of list, read, create, update, delete'],
        [{ data: [5] }, '/data/0 wrong_type: expected an object'],
        [{ rules: { when: 'x' } }, '/rules invalid_value: expected string or a list'],
        [
          { rules: [{ when: 5, who: 'x' }] },
          '/rules/0/when wrong_type: expected string',
          '/rules/0/who unknown_key: unknown key',
        ],
      ] as const) {
        const { status, body } = await ask({ ...question, ...change });
        const texts = body.errors.map((error: ErrorDetail) => `${error.pointer} ${error.code}: ${error.detail}`);
        expect([status, ...texts]).toEqual([422, ...expected]);
      }
    });

    test('an error in a rule has its offset, its length and its fix', async () => {
      const question = { collection: 'people', callers: ['guest'], ids: people };
      for (const rules of ['true or @record.nme = "a"', [{ when: 'true or @record.nme = "a"' }]]) {
        const { body } = await ask({ ...question, rules });
        expect(body.errors).toEqual([
          {
            pointer: typeof rules === 'string' ? '/rules' : '/rules/0/when',
            code: 'name_unknown',
            detail: '`people` has no `nme`; did you mean `name`?',
            offset: 16,
            length: 3,
            fix: { offset: 16, length: 3, replacement: 'name' },
          },
        ]);
      }
    });

    test('only admins ask, with a session, and each question is in the audit trail', async () => {
      const question = { collection: 'people', callers: [ann!.id, 'guest'], ids: people };
      expect(outcomeOf(await ask(question, service.anonymous))).toEqual([401, 'unauthenticated']);
      expect(outcomeOf(await ask(question, hr!.client))).toEqual([403, 'forbidden']);
      const limit = { '*': ['read'], users: ['update'] };
      const made = await root!.client.post('/api/auth/keys', { name: 'k', roles: ['admin'], limit });
      const key = service.anonymous.with({ Authorization: `Bearer ${made.body.secret}` });
      expect(outcomeOf(await ask(question, key))).toEqual([403, 'forbidden']);
      await rowsOf(question);
      const [event] = await readAudit(service.app.db, { event: 'explained', limit: 1 });
      expect([event?.user_id, event?.actor_id, event?.detail]).toEqual([
        ann!.id,
        root!.id,
        { collection: 'people', action: 'read', callers: [ann!.id, 'guest'] },
      ]);
    });
  },
  { schema: SCHEMA },
);
