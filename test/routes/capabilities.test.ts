// @module-tag long
// @module-tag partitions
/** Capabilities of a caller: for a stored record, for each record of a query, and for a write before it is made. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { Random } from '../fuzz/random.ts';
import type { Answer, Client } from '../support/client.ts';
import { NOBODY, outcomeOf } from '../support/records.ts';
import { describeOnBoth, describeRoutesOnOne, type User } from '../support/service.ts';
import { until } from '../support/until.ts';

const read = (file: string): string => readFileSync(join(import.meta.dirname, file), 'utf8');
const SCHEMA = read('field-rules.yaml') + read('capabilities.yaml');
type Json = Answer['body'];

describeRoutesOnOne(
  'capabilities',
  (service) => {
    let ann: User;
    let bob: User;
    let hr: User;
    let root: User;
    beforeAll(async () => {
      [ann, bob, hr, root] = await Promise.all([
        service.user(),
        service.user(),
        service.user('hr'),
        service.user('admin'),
      ]);
    });
    const make = async (collection: string, data: object, user = ann): Promise<Json> => {
      const { status, body, text } = await user.client.post(`/api/${collection}`, { data });
      if (status !== 201) throw new Error(text);
      return body.data;
    };
    const ticket = (data: object = {}): Promise<Json> => make('tickets', { title: 't', ...data });
    const can = async (id: string, user = ann): Promise<Json> =>
      (await user.client.get(`/api/tickets/${id}/can`)).body.data;

    describe('a record', () => {
      test('`depends` is what the record and the caller leave open', async () => {
        const open = await ticket();
        const done = await ticket({ status: 'done' });
        expect([(await can(open.id)).update, (await can(open.id)).delete]).toEqual(['depends', false]);
        // The record rejects every update.
        expect([(await can(done.id)).update, (await can(done.id)).delete]).toEqual([false, true]);
        expect([(await can(open.id, bob)).update, (await can(open.id, root)).update]).toEqual([false, true]);
      });

      test('a rule that holds for every update holds', async () => {
        const team = await make('teams', { name: 't' }, bob);
        const low = await ticket({ team: team.id });
        const high = await ticket({ team: team.id, level: 9 });
        expect([(await can(low.id, bob)).update, (await can(high.id, bob)).update]).toEqual(['depends', true]);
        // `none` of no members is true for every body.
        const empty = await ticket({ team: (await make('teams', { name: 'empty' })).id, level: 3 });
        expect((await can(empty.id, bob)).update).toBe(true);
        await make('people', { name: 'p', team: empty.team });
        expect((await can(empty.id, bob)).update).toBe('depends');
      });

      test('the fields with rules of their own, each within the update of the record', async () => {
        const { id } = await ticket({ price: 5 });
        expect((await can(id)).fields).toEqual({
          price: { read: true, write: 'depends' },
          stamp: { read: true, write: 'depends' },
          locked: { read: true, write: false },
        });
        expect((await can(id, bob)).fields.price).toEqual({ read: false, write: false });
        expect((await can(id, root)).fields).toEqual({
          price: { read: false, write: 'depends' },
          stamp: { read: true, write: 'depends' },
          locked: { read: true, write: false },
        });
        expect((await can((await ticket({ status: 'done' })).id, root)).fields.price.write).toBe(false);
      });

      test('refused as the read would be, and answered as it is now', async () => {
        const hidden = await make('people', { name: 'h', public: false }, bob);
        for (const id of [hidden.id, NOBODY, 'no-id']) {
          expect(outcomeOf(await ann.client.get(`/api/people/${id}/can`))).toEqual([404, 'not_found']);
        }
        expect((await service.anonymous.get(`/api/people/${hidden.id}/can`)).status).toBe(401);
        expect((await ann.client.get(`/api/nothing/${hidden.id}/can`)).status).toBe(404);
        const { headers, body } = await bob.client.get(`/api/people/${hidden.id.toUpperCase()}/can`);
        expect([headers.get('cache-control'), body.data.update, body.data.delete]).toEqual(['no-store', true, true]);
        expect(Object.keys(body.data.fields)).toEqual([
          'salary',
          'note',
          'level',
          'code',
          'score',
          'token',
          'team',
          'mentor',
        ]);
      });

      test('users and files follow their rules', async () => {
        const { data } = (await ann.client.get(`/api/users/${bob.id}/can`)).body;
        expect([data.update, data.delete, data.fields.clearance]).toEqual([
          false,
          false,
          { read: false, write: false },
        ]);
        expect((await hr.client.get(`/api/users/${bob.id}/can`)).body.data.fields.clearance).toEqual({
          read: true,
          write: true,
        });
      });

      test('GET /api/people/query is 405', async () => {
        const answer = await ann.client.get('/api/people/query');
        expect([...outcomeOf(answer), answer.headers.get('allow')]).toEqual([405, 'method_not_allowed', 'POST']);
      });
    });

    describe('a collection', () => {
      const allowed = async (collection: string, { client }: { readonly client: Client } = ann): Promise<Json> => {
        const { status, body, headers, text } = await client.get(`/api/${collection}/can`);
        expect([status, headers.get('cache-control')], text).toEqual([200, 'no-store']);
        return body.data;
      };

      test('answers what a list and a create would be, before there is a record', async () => {
        expect(await allowed('people')).toEqual({ list: true, create: 'depends' });
        expect(await allowed('tickets')).toEqual({ list: true, create: 'depends' });
        expect(await allowed('users')).toEqual({ list: true, create: false });
        expect(await allowed('notices')).toEqual({ list: false, create: false });
        const { list, create } = await allowed('notices', hr);
        // A distributed create depends on its tenant.
        expect([list, create === false]).toEqual([true, false]);
      });

      test('takes the bounds of a key', async () => {
        const key = { name: 'k', roles: ['hr'], limit: { notices: ['create'] } };
        const { body, text } = await root.client.post('/api/auth/keys', key);
        const client = service.anonymous.with({ Authorization: `Bearer ${body.secret ?? text}` });
        expect(await allowed('people', { client })).toEqual({ list: false, create: false });
        // The role may list them.
        expect((await allowed('notices', { client })).list).toBe(false);
      });

      test('needs a caller and a collection', async () => {
        expect((await service.anonymous.get('/api/teams/can')).status).toBe(401);
        expect((await ann.client.get('/api/nothing/can')).status).toBe(404);
      });
    });

    describe('a query', () => {
      test('each record carries what it alone would answer', async () => {
        const title = `q${Math.random()}`;
        const team = await make('teams', { name: 't' }, bob);
        await ticket({ title, price: 2 });
        await ticket({ title, status: 'done' });
        await ticket({ title, team: team.id, level: 9 });
        await make('tickets', { title, status: 'done' }, bob);
        for (const user of [ann, bob, hr, root]) {
          const body = {
            filter: 'title = $title',
            params: { title },
            capabilities: true,
            sort: ['-price'],
            count: 'exact',
          };
          const { data, page } = (await user.client.post('/api/tickets/query', body)).body;
          const alone = await Promise.all(data.map(({ id }: Json) => can(id, user)));
          expect(data.map((record: Json) => record.can)).toEqual(
            alone.map(({ update, delete: remove }) => ({ update, delete: remove })),
          );
          expect([data.length, page.total]).toEqual([4, 4]);
          const plain = (await user.client.post('/api/tickets/query', { ...body, capabilities: false })).body.data;
          expect(plain).toEqual(data.map(({ can: _, ...record }: Json) => record));
        }
      });

      test('a query shows capabilities with chosen fields and expanded records, page by page', async () => {
        const title = `p${Math.random()}`;
        for (const price of [1, 2, null]) await ticket({ title, price: price ?? undefined });
        const body = {
          filter: 'title = $title',
          params: { title },
          fields: ['title'],
          expand: { owner: true },
          sort: ['price'],
          limit: 2,
          capabilities: true,
        };
        const first = (await ann.client.post('/api/tickets/query', body)).body;
        expect(first.data.map((record: Json) => Object.keys(record))).toEqual(
          [1, 2].map(() => ['id', 'title', 'expand', 'can']),
        );
        expect(Object.hasOwn(first.data[0].expand.owner, 'can')).toBe(false);
        const rest = (await ann.client.post('/api/tickets/query', { ...body, cursor: first.page.next_cursor })).body;
        expect(rest.data.map((record: Json) => record.can)).toEqual([{ update: 'depends', delete: false }]);
      });

      test('the option `capabilities` takes a bool', async () => {
        for (const capabilities of [null, 1, 'true']) {
          expect(outcomeOf(await ann.client.post('/api/tickets/query', { capabilities }))).toEqual([
            422,
            'validation_failed',
            '/capabilities wrong_type',
          ]);
        }
      });
    });

    describe('a write that is only checked', () => {
      const ask = (collection: string, body: unknown, user = ann): Promise<Answer> =>
        user.client.post(`/api/${collection}/can`, body);
      const told = async (collection: string, body: unknown, user = ann): Promise<Json> =>
        (await ask(collection, body, user)).body.data;

      test('says what the request would answer, and changes nothing', async () => {
        const before = (await ann.client.get('/api/tickets', { Prefer: 'count=exact' })).body.page.total;
        expect(await told('tickets', { action: 'create', data: { title: 'yes' } })).toEqual({ allowed: true });
        expect(await told('tickets', { action: 'create', data: { title: 'no' } })).toEqual({
          allowed: false,
          status: 403,
          code: 'forbidden',
          errors: [],
        });
        expect(await told('tickets', { action: 'create', data: { title: 'yes', level: 'x' } })).toEqual({
          allowed: false,
          status: 422,
          code: 'validation_failed',
          errors: [{ pointer: '/data/level', code: 'wrong_type', detail: expect.any(String) }],
        });
        expect((await ann.client.get('/api/tickets', { Prefer: 'count=exact' })).body.page.total).toBe(before);
      });

      test('an update, and a delete', async () => {
        const { id } = await ticket({ level: 2 });
        expect(await told('tickets', { action: 'update', id, data: { level: 3 } })).toEqual({ allowed: true });
        expect(await told('tickets', { action: 'update', id, data: { level: 1 } })).toMatchObject({ status: 403 });
        expect(await told('tickets', { action: 'update', id, data: { price: -1 } })).toMatchObject({
          status: 403,
          errors: [{ pointer: '/data/price', code: 'forbidden' }],
        });
        expect(await told('tickets', { action: 'update', id })).toMatchObject({ status: 400, code: 'patch_empty' });
        expect(await told('tickets', { action: 'update', id: NOBODY, data: { level: 3 } })).toMatchObject({
          status: 404,
        });
        expect(await told('tickets', { action: 'delete', id })).toMatchObject({ status: 403 });
        expect(await told('tickets', { action: 'update', id, data: { status: 'done' } })).toEqual({ allowed: true });
        expect((await ann.client.get(`/api/tickets/${id}`)).body.data).toMatchObject({ level: 2, status: 'open' });
      });

      test('a hidden unique value is not told, and each try is counted', async () => {
        const secret = await make('vault', { title: 'secret', code: 'PIN-4711' }, hr);
        await make('vault', { title: 'mine', code: 'PIN-1', owner: ann.id }, hr);
        const create = { action: 'create', data: { title: 'try', code: 'PIN-4711' } };
        const conflict = { allowed: false, status: 409, code: 'unique_violation' };
        expect(await told('vault', create)).toEqual({ allowed: true });
        expect(await told('vault', { ...create, data: { title: 'try', code: 'PIN-4712' } })).toEqual({ allowed: true });
        expect(await told('vault', create, hr)).toMatchObject(conflict);
        // The caller may read the code of a record of their own.
        const own = { action: 'create', data: { title: 'try', code: 'PIN-1' } };
        expect([await told('vault', own), await told('vault', own, bob)]).toMatchObject([conflict, { allowed: true }]);
        const mine = await make('vault', { title: 'mine too', code: 'PIN-2', owner: ann.id }, hr);
        const change = { action: 'update', id: mine.id, data: { code: 'PIN-4711' } };
        expect(await told('vault', change)).toEqual({ allowed: true });
        expect(outcomeOf(await ann.client.patch(`/api/vault/${mine.id}`, { data: change.data }))[0]).toBe(409);
        expect((await hr.client.get(`/api/vault/${secret.id}`)).body.data.code).toBe('PIN-4711');
        const metrics = (await service.anonymous.get('/metrics')).text;
        expect(metrics).toMatch(/^bylaw_dry_run_conflicts_total\{collection="vault"\} 5$/m);
      });

      test('a hidden period is not told, and each try is counted', async () => {
        const period = { doctor: 'd', starts_at: '2027-01-01T10:00:00Z', ends_at: '2027-01-01T11:00:00Z' };
        await make('visits', period, hr);
        const create = { action: 'create', data: { ...period, starts_at: '2027-01-01T10:59:00Z' } };
        expect(await told('visits', create)).toEqual({ allowed: true });
        expect(await told('visits', create, hr)).toMatchObject({ allowed: true });
        expect(outcomeOf(await ann.client.post('/api/visits', { data: create.data }))[0]).toBe(409);
        await until('both tries are counted', async () =>
          (await service.anonymous.get('/metrics')).text.includes('conflicts_total{collection="visits"} 2\n'),
        );
      });

      test('users are not created, files are asked about without bytes', async () => {
        expect(await told('users', { action: 'create', data: {} })).toEqual({
          allowed: false,
          status: 405,
          code: 'method_not_allowed',
          errors: [],
        });
        expect(await told('files', { action: 'create' })).toEqual({ allowed: true });
        expect(await told('files', { action: 'create', data: { name: '' } })).toMatchObject({
          status: 422,
          errors: [{ pointer: '/data/name' }],
        });
        expect((await ann.client.get('/api/files')).body.data).toEqual([]);
      });

      test('the last admin would be kept, and a question logs no user out', async () => {
        expect(
          await told('users', { action: 'update', id: root.id, data: { roles: { remove: ['admin'] } } }, root),
        ).toMatchObject({ status: 409, code: 'last_admin' });
        const { id, client } = await service.user();
        expect(await told('users', { action: 'delete', id }, root)).toEqual({ allowed: true });
        expect((await client.get('/api/auth/me')).status).toBe(200);
      });

      test.each<[unknown, readonly string[]]>([
        [[], [' not_an_object']],
        [{}, ['/action required']],
        [{ action: 'read' }, ['/action not_in_enum']],
        [{ action: 'create', id: NOBODY, ifMatch: '*' }, ['/ifMatch unknown_key', '/id unexpected_key']],
        [{ action: 'update', data: [] }, ['/id required', '/data not_an_object']],
        [{ action: 'delete', id: 7, data: {} }, ['/id wrong_type', '/data unexpected_key']],
      ])('%j is not a question', async (body, expected) => {
        expect(outcomeOf(await ask('tickets', body))).toEqual([422, 'validation_failed', ...expected]);
      });

      test('a write rejects a value that is not a scalar, with or without its own methods', async () => {
        for (const email of [{ toString: 1 }, { valueOf: null, toString: null }, [[]]]) {
          const body = { action: 'update', id: ann.id, data: { email } };
          const { allowed, status } = (await ask('users', body)).body.data;
          expect([allowed, [403, 422].includes(status)]).toEqual([false, true]);
        }
      });

      test('every signed-in caller may ask, of a collection that exists', async () => {
        expect((await service.anonymous.post('/api/tickets/can', {})).status).toBe(401);
        expect(outcomeOf(await ask('nothing', { action: 'create' }))).toEqual([404, 'not_found']);
        const cookie = service.anonymous.with({ Cookie: ann.cookie });
        const foreign = await cookie.post('/api/tickets/can', { action: 'create' }, { 'Sec-Fetch-Site': 'cross-site' });
        expect(outcomeOf(foreign)).toEqual([403, 'cross_origin']);
      });

      test('a check agrees with the request itself', { tags: ['long'] }, async () => {
        const random = new Random(5);
        const world = new Agreement(random, [ann, bob, hr]);
        await world.begin();
        for (let i = 0; i < 100; i++) await world.next();
        expect(world.allowed).toBeGreaterThan(15);
        expect(new Set(world.refused).size).toBeGreaterThan(3);
      });
    });
  },
  { schema: SCHEMA },
);

/** Random writes, each asked about and then made. */
class Agreement {
  allowed = 0;
  /** The codes of the others. */
  readonly refused: string[] = [];
  readonly #random: Random;
  readonly #users: readonly User[];
  readonly #ids: Record<string, string[]> = { people: [], teams: [], desks: [], tickets: [] };

  constructor(random: Random, users: readonly User[]) {
    this.#random = random;
    this.#users = users;
  }

  async begin(): Promise<void> {
    for (const user of this.#users) {
      for (const [collection, data] of Object.entries({
        people: { name: 'p' },
        teams: { name: 't' },
        desks: { place: 'd' },
        tickets: { title: 't' },
      })) {
        this.#ids[collection]!.push((await user.client.post(`/api/${collection}`, { data })).body.data.id);
      }
    }
  }

  async next(): Promise<void> {
    const random = this.#random;
    const { client } = random.pick(this.#users);
    const collection = random.pick(Object.keys(this.#ids));
    const action = random.pick(['create', 'update', 'update', 'delete']);
    const id = action === 'create' ? undefined : this.#one(collection);
    const data = action === 'delete' ? undefined : this.#data(collection);
    const { status, body } = await client.post(`/api/${collection}/can`, { action, id, data });
    const real = await send(client, `/api/${collection}`, { action, id, data });
    const said =
      real.status < 300
        ? { allowed: true }
        : { allowed: false, status: real.status, code: real.body.code, errors: real.body.errors };
    expect([status, body.data, { action, collection, id, data }]).toEqual([
      200,
      said,
      { action, collection, id, data },
    ]);
    if (real.status < 300) this.allowed++;
    else this.refused.push(real.body.code);
    if (real.status === 201) this.#ids[collection]!.push(real.body.data.id);
  }

  #one(collection: string): string {
    return this.#random.chance(0.05) ? NOBODY : this.#random.pick(this.#ids[collection]!);
  }

  #data(collection: string): object {
    const random = this.#random;
    const user = (): string => random.pick(this.#users).id;
    const possible: Record<string, Record<string, () => unknown>> = {
      people: {
        name: () => random.pick(['a', 'b', 7]),
        note: () => 'n',
        salary: () => random.pick([1, null]),
        code: () => random.pick([null, 'one', 'two']),
        score: () => random.below(4),
        team: () => this.#one('teams'),
        mentor: () => this.#one('people'),
        desk: () => random.pick([null, this.#one('desks')]),
        public: () => random.chance(0.6),
      },
      teams: { name: () => 't', head: user },
      desks: { place: () => 'd', person: () => random.pick([null, this.#one('people')]) },
      tickets: {
        title: () => random.pick(['t', 'no']),
        status: () => random.pick(['open', 'done', 'lost']),
        level: () => random.below(10),
        price: () => random.below(3) - 1,
        stamp: () => 's',
        locked: () => null,
        owner: user,
        team: () => this.#one('teams'),
      },
    };
    const members = Object.entries(possible[collection]!).filter(([name]) =>
      random.chance(name === 'name' || name === 'title' || name === 'place' ? 0.9 : 0.25),
    );
    return Object.fromEntries(members.map(([name, value]) => [name, value()]));
  }
}

interface Sent {
  readonly action: string;
  readonly id: string | undefined;
  readonly data: object | undefined;
}

function send(client: Client, path: string, { action, id, data }: Sent): Promise<Answer> {
  if (action === 'create') return client.post(path, { data });
  return action === 'update' ? client.patch(`${path}/${id}`, { data }) : client.delete(`${path}/${id}`);
}

describeOnBoth(
  'capabilities without a tenant',
  (service) => {
    test('a create that every record meets is true', async () => {
      const { client } = await service.user();
      expect((await client.get('/api/teams/can')).body).toEqual({ data: { list: true, create: true } });
    });
  },
  { schema: SCHEMA },
);
