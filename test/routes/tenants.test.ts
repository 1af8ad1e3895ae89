// @module-tag long
/** The teams of docs/distributed.yaml over HTTP: what callers meet, wherever the records are. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import type { Answer, Client } from '../support/client.ts';
import { describeDistributed, type TestService, type User } from '../support/service.ts';

const schema = readFileSync(join(import.meta.dirname, '../../docs/distributed.yaml'), 'utf8');

/** The status and the first error, for comparison as a whole. */
const errorOf = ({ status, body }: Answer): readonly unknown[] => {
  const [{ code, pointer, parameter } = {} as Record<string, unknown>] = body?.errors ?? [];
  return [status, body?.code, code, pointer ?? parameter];
};

interface Teams {
  readonly ann: User;
  readonly bob: User;
  readonly root: User;
  readonly acme: string;
  readonly bolt: string;
}

async function create(client: Client, collection: string, data: object): Promise<string> {
  const { status, body, text } = await client.post(`/api/${collection}`, { data });
  expect([status, text]).toEqual([201, text]);
  return body.data.id as string;
}

const ok = async (answer: Promise<Answer>): Promise<Answer> => {
  const { status, text } = await answer;
  expect([status, text]).toEqual([200, text]);
  return answer;
};

/** Ann is in both teams and works in Acme, Bob is in Bolt. */
async function makeTeams(service: TestService): Promise<Teams> {
  const [ann, bob, root] = await Promise.all([service.user(), service.user(), service.user('admin')]);
  const [acme, bolt] = [
    await create(ann.client, 'teams', { name: 'Acme' }),
    await create(bob.client, 'teams', { name: 'Bolt' }),
  ];
  await create(ann.client, 'memberships', { team: acme, user: ann.id, role: 'owner' });
  for (const [user, role] of [
    [bob, 'owner'],
    [ann, 'editor'],
  ] as const)
    await create(bob.client, 'memberships', { team: bolt, user: user.id, role });
  await ok(ann.client.patch(`/api/users/${ann.id}`, { data: { team: acme } }));
  await ok(bob.client.patch(`/api/users/${bob.id}`, { data: { team: bolt } }));
  return { ann, bob, root, acme, bolt };
}

describeDistributed(
  'teams',
  (service) => {
    let teams: Teams;
    beforeAll(async () => {
      teams = await makeTeams(service);
    });

    test('records are of the team that the caller works in', async () => {
      const { ann, bob, acme, bolt } = teams;
      const plan = await create(ann.client, 'documents', { slug: 'plan', title: 'A plan' });
      const other = await create(bob.client, 'documents', { slug: 'plan', title: 'Another plan' });
      const mine = await ok(ann.client.get('/api/documents?slug=plan'));
      expect(mine.body.data.map(({ id, team }: Record<string, string>) => [id, team])).toEqual([[plan, acme]]);
      expect((await ann.client.get(`/api/documents/${other}`)).status).toBe(404);
      expect((await ann.client.delete(`/api/documents/${other}`)).status).toBe(404);
      await ok(ann.client.patch(`/api/users/${ann.id}`, { data: { team: bolt } }));
      expect((await ann.client.get(`/api/documents/${other}`)).body.data.team).toBe(bolt);
      expect((await ann.client.get(`/api/documents/${plan}`)).status).toBe(404);
      await ok(ann.client.patch(`/api/users/${ann.id}`, { data: { team: acme } }));
    });

    test('people work in their own teams only', async () => {
      const { bob, acme } = teams;
      const own = await create(bob.client, 'teams', { name: 'Club' });
      expect((await bob.client.patch(`/api/users/${bob.id}`, { data: { team: own } })).status).toBe(403);
      const hidden = await bob.client.patch(`/api/users/${bob.id}`, { data: { team: acme } });
      expect(errorOf(hidden)).toEqual([422, 'validation_failed', 'not_found', '/data/team']);
      const answer = await bob.client.post('/api/documents', { data: { slug: 'x', title: 'x', team: acme } });
      expect(errorOf(answer)).toEqual([422, 'validation_failed', 'not_found', '/data/team']);
    });

    test('the team of a record never changes', async () => {
      const { ann, acme, bolt } = teams;
      const id = await create(ann.client, 'documents', { slug: 'fixed', title: 'Fixed', team: acme });
      const refused = [422, 'validation_failed', 'read_only', '/data/team'];
      for (const team of [bolt, acme, null])
        expect(errorOf(await ann.client.patch(`/api/documents/${id}`, { data: { team } }))).toEqual(refused);
      const operations = [{ op: 'update', collection: 'documents', id, data: { title: 'Moved', team: bolt } }];
      const batch = await ann.client.post('/api/batch', { operations });
      expect([batch.status, batch.body.errors[0].code]).toEqual([422, 'read_only']);
      expect((await ann.client.get(`/api/documents/${id}`)).body.data).toMatchObject({ title: 'Fixed', team: acme });
      await ok(ann.client.patch(`/api/documents/${id}`, { data: { title: 'Renamed' } }));
    });

    test('records refer to those of their team', async () => {
      const { ann, bob } = teams;
      const document = await create(ann.client, 'documents', { slug: 'cited', title: 'Cited' });
      const comment = await create(ann.client, 'comments', { document, body: 'first' });
      await create(ann.client, 'comments', { document, body: 'second', answer_to: comment });
      await create(ann.client, 'covers', { document, caption: 'front' });
      const path = `/api/documents/${document}?expand=comments,cover`;
      const { expand } = (await ok(ann.client.get(path))).body.data;
      expect([expand.comments.map(({ body }: { body: string }) => body), expand.cover.caption]).toEqual([
        ['first', 'second'],
        'front',
      ]);
      const foreign = await bob.client.post('/api/comments', { data: { document, body: 'from outside' } });
      expect(errorOf(foreign)).toEqual([422, 'validation_failed', 'not_found', '/data/document']);
      expect((await ann.client.delete(`/api/documents/${document}`)).status).toBe(204);
      expect((await ann.client.get(`/api/comments/${comment}`)).status).toBe(404);
    });

    test('a list that no rule routes needs the filter', async () => {
      const { ann, bob, root, acme, bolt } = teams;
      await create(ann.client, 'events', { team: acme, what: 'opened' });
      await create(ann.client, 'events', { team: bolt, what: 'visited' });
      await create(bob.client, 'events', { team: bolt, what: 'closed' });
      const needed = [400, 'filter_required', 'filter_required'];
      for (const query of ['', '?limit=1', '?what=opened', '?document=019a0000-0000-7000-8000-000000000000'])
        expect(errorOf(await ann.client.get(`/api/events${query}`))).toEqual([...needed, 'team']);
      expect(errorOf(await ann.client.get('/api/events?teem=x'))).toEqual([
        400,
        'filter_unknown_key',
        'filter_unknown_key',
        'teem',
      ]);
      const whats = async (client: Client, query: string) =>
        (await ok(client.get(`/api/events?${query}`))).body.data.map(({ what }: { what: string }) => what);
      expect(await whats(ann.client, `team=${acme}`)).toEqual(['opened']);
      expect(await whats(ann.client, `team_id=${bolt}&what=closed`)).toEqual(['closed']);
      expect(await whats(bob.client, `team=${acme}`)).toEqual([]);
      expect(await whats(root.client, `team=${bolt}`)).toEqual(['visited', 'closed']);
    });

    test('so do its queries and aggregates', async () => {
      const { ann, acme, bolt } = teams;
      const params = { team: acme };
      const wanting: readonly object[] = [
        {},
        { filter: 'what = "opened"' },
        { filter: 'team != $team', params },
        { filter: 'team = $team or what = "opened"', params },
        { filter: 'team in $teams', params: { teams: [acme, bolt] } },
        { filter: 'team = $team', params: { team: null } },
      ];
      const enough: readonly object[] = [
        { filter: 'team = $team', params },
        { filter: `"${acme}" = team and what = "opened"` },
        { filter: 'not (team != $team or what != "opened")', params },
        { filter: '(team = $team and what = "a") or (what = "opened" and $team = team)', params },
      ];
      for (const [route, rest] of [
        ['query', {}],
        ['aggregate', { measures: { n: 'count' } }],
      ] as const) {
        const ask = (body: object): Promise<Answer> => ann.client.post(`/api/events/${route}`, { ...body, ...rest });
        for (const body of wanting)
          expect([body, ...errorOf(await ask(body))]).toEqual([
            body,
            400,
            'filter_required',
            'filter_required',
            '/filter',
          ]);
        for (const body of enough) await ok(ask(body));
        expect(errorOf(await ask({ filter: 'tem = $team', params })).slice(0, 2)).toEqual([400, 'filter_invalid']);
      }
      const { body } = await ann.client.post('/api/events/query', enough[2]);
      expect(body.data.map(({ what }: { what: string }) => what)).toEqual(['opened']);
    });

    test('a record of a filtered collection is found by its id alone', async () => {
      const { ann, bob, root, acme, bolt } = teams;
      const [here, there] = [
        await create(ann.client, 'events', { team: acme, what: 'here' }),
        await create(ann.client, 'events', { team: bolt, what: 'there' }),
      ];
      expect((await ok(ann.client.get(`/api/events/${here}`))).body.data.what).toBe('here');
      expect((await ok(ann.client.get(`/api/events/${there}`))).body.data.what).toBe('there');
      expect((await bob.client.get(`/api/events/${here}`)).status).toBe(404);
      expect((await root.client.delete(`/api/events/${here}`)).status).toBe(204);
      expect((await ann.client.get(`/api/events/${here}`)).status).toBe(404);
    });

    test('the document says where the filter is needed', () => {
      // biome-ignore lint/suspicious/noExplicitAny: a document is walked as JSON
      const { paths, components } = service.app.document() as Record<string, any>;
      const codes = (path: string, method: string): readonly string[] =>
        Object.values<{ $ref: string }>(paths[path][method].responses).flatMap(({ $ref = '' }) =>
          $ref.slice($ref.lastIndexOf('/') + 1).split('.'),
        );
      const needing = ['', '/query', '/aggregate'].map((end) => [
        codes(`/api/events${end}`, end === '' ? 'get' : 'post').includes('filter_required'),
        codes(`/api/documents${end}`, end === '' ? 'get' : 'post').includes('filter_required'),
      ]);
      expect(needing).toEqual([
        [true, false],
        [true, false],
        [true, false],
      ]);
      const { properties } = components.schemas.DocumentRecordUpdate;
      expect([
        Object.hasOwn(properties, 'team'),
        Object.hasOwn(components.schemas.DocumentRecordCreate.properties, 'team'),
      ]).toEqual([false, true]);
    });
  },
  { schema },
);

const SEEN_SCHEMA = `
roles: { admin: { assigns: [member] }, member: {} }
register: { roles: [member] }
collections:
  users:
    relations: { team: { kind: belongs_to, collection: teams } }
    access: { list: true, read: true, update: [{ roles: [admin] }] }
  teams: { distribute: reference, fields: { name: string }, access: { view: true, create: true } }
  events:
    distribute: { by: team, lists: filtered }
    fields: { what: string, hidden: { type: bool, required: true, default: false } }
    relations: { team: { kind: belongs_to, collection: teams, required: true } }
    access:
      view: '@record.hidden = false'
      create: true
      update: '@record.team = @request.auth.team'
      delete: '@record.team = @request.auth.team'
  tasks:
    distribute: { by: team, lists: filtered }
    fields: { what: string, hidden: { type: bool, required: true, default: false } }
    relations: { team: { kind: belongs_to, collection: teams, required: true } }
    access:
      view: '@record.team = @request.auth.team or @record.hidden = false'
      create: true
      update: '@record.team = @request.auth.team'
      delete: '@record.team = @request.auth.team'
  pages:
    distribute: { by: team }
    fields: { what: string, hidden: { type: bool, required: true, default: false } }
    relations:
      team: { kind: belongs_to, collection: teams, required: true }
      pages: { kind: many_to_many, collection: pages }
    access:
      view: '@record.team = @request.query.team and @record.hidden = false'
      create: '@record.team = @request.query.team'
      update: '@record.team = @request.auth.team'
      delete: '@record.team = @request.auth.team'
`;

describeDistributed(
  'records that are read in one team and written in another',
  (service) => {
    let ann: User;
    let [own, other]: readonly string[] = [];
    beforeAll(async () => {
      ann = await service.user();
      [own, other] = [
        await create(ann.client, 'teams', { name: 'own' }),
        await create(ann.client, 'teams', { name: 'other' }),
      ];
      const root = await service.user('admin');
      await ok(root.client.patch(`/api/users/${ann.id}`, { data: { team: own } }));
    });
    const write = async (path: string, query = '') => {
      const [, , collection, id] = path.split('/');
      const data = { what: 'changed' };
      const answers = [
        await ann.client.patch(`${path}${query}`, { data }),
        await ann.client.patch(`${path}${query}`, { data }, { 'If-Match': '"another"' }),
        await ann.client.patch(`${path}${query}`, { data: { what: 3 } }),
        await ann.client.delete(`${path}${query}`),
        await ann.client.post(`/api/batch${query}`, { operations: [{ op: 'update', collection, id, data }] }),
        await ann.client.post(`/api/batch${query}`, { operations: [{ op: 'delete', collection, id }] }),
      ];
      return answers.map(({ status, body }) => [status, body?.code]);
    };
    const each = (...expected: readonly unknown[]) => Array.from({ length: 6 }, () => expected);

    test.each(['events', 'pages', 'tasks'])('writes are refused if the record can be read (%s)', async (collection) => {
      const query = collection === 'pages' ? `?team=${other}` : '';
      const path = `/api/${collection}/${await create(ann.client, `${collection}${query}`, { team: other, what: 'seen' })}`;
      await ok(ann.client.get(`${path}${query}`));
      expect(await write(path, query)).toEqual(each(403, 'forbidden'));
      expect((await ok(ann.client.get(`${path}${query}`))).body.data.what).toBe('seen');
    });

    test.each(['events', 'pages', 'tasks'])(
      'writes are not found if the record cannot be read (%s)',
      async (collection) => {
        const query = collection === 'pages' ? `?team=${other}` : '';
        const hidden = await create(ann.client, `${collection}${query}`, { team: other, hidden: true });
        for (const id of [hidden, '019a0000-0000-7000-8000-000000000000'])
          expect(await write(`/api/${collection}/${id}`, query)).toEqual(each(404, 'not_found'));
        if (query === '') return;
        const unasked = await create(ann.client, `${collection}${query}`, { team: other });
        for (const elsewhere of ['', `?team=${own}`])
          expect(await write(`/api/${collection}/${unasked}`, elsewhere)).toEqual(each(404, 'not_found'));
      },
    );

    test('records are written in their own team, from every place that reads them', async () => {
      const page = await create(ann.client, `pages?team=${own}`, { team: own });
      for (const query of ['', `?team=${own}`, `?team=${other}`]) {
        await ok(ann.client.patch(`/api/pages/${page}${query}`, { data: { what: query } }));
      }
      expect((await ann.client.delete(`/api/pages/${page}?team=${other}`)).status).toBe(204);
    });
  },
  { schema: SEEN_SCHEMA },
);
