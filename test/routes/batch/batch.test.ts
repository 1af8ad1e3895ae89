// @module-tag long
// @module-tag partitions
/** `POST /api/batch`: several writes in one transaction, each under its own rules on the state that it meets. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { Random } from '../../fuzz/random.ts';
import type { Answer, Client } from '../../support/client.ts';
import { idsOf, NOBODY, outcomeOf } from '../../support/records.ts';
import { describeRoutesOnOne, makePeople, ROUTES_SCHEMA, type User } from '../../support/service.ts';

const SCHEMA = ROUTES_SCHEMA + readFileSync(join(import.meta.dirname, 'batch.yaml'), 'utf8');
type Operation = Readonly<Record<string, unknown>>;

const create = (collection: string, data: object, as?: string): Operation => ({ op: 'create', collection, data, as });
const update = (collection: string, id: unknown, data: object): Operation => ({ op: 'update', collection, id, data });
const remove = (collection: string, id: unknown): Operation => ({ op: 'delete', collection, id });
const ref = (name: string): object => ({ $ref: name });

/** `[409, 'unique_violation', 2, '/operations/2/data/code unique_violation']` */
const failure = (answer: Answer): readonly unknown[] => {
  const [status, code, ...rest] = outcomeOf(answer);
  return [status, code, answer.body.operation, ...rest];
};

describeRoutesOnOne(
  'a batch',
  (service) => {
    let ann: User;
    let bob: User;
    let root: User;
    beforeAll(async () => {
      ({ ann, bob, root } = await makePeople(service));
    });
    const send = (operations: unknown, user = ann, headers = {}): Promise<Answer> =>
      user.client.post('/api/batch', { operations }, headers);
    const done = async (operations: readonly Operation[], user = ann): Promise<Answer['body']> => {
      const { status, body, text } = await send(operations, user);
      if (status !== 200) throw new Error(text);
      return body.data;
    };
    const board = async (data: object = {}, user = ann): Promise<Answer['body']> =>
      (await user.client.post('/api/boards', { data: { name: 'b', ...data } })).body.data;
    const count = async (collection: string, user = ann): Promise<number> =>
      (await user.client.get(`/api/${collection}?limit=1`, { Prefer: 'count=exact' })).body.page.total;

    describe('the answer', () => {
      test('the status and the record of each operation, in order', async () => {
        const old = await board({ name: 'old' });
        const data = await done([
          create('boards', { name: 'new' }, 'b'),
          create('cards', { text: 'first', board: ref('b') }, 'c'),
          update('cards', ref('c'), { place: 7 }),
          update('boards', old.id.toUpperCase(), { name: 'renamed' }),
          remove('boards', old.id),
        ]);
        const [made, card] = [data[0].data, data[1].data];
        expect(data.map(({ status }: { status: number }) => status)).toEqual([201, 201, 200, 200, 204]);
        expect([card.board, data[2].data.id, data[2].data.place]).toEqual([made.id, card.id, 7]);
        expect([data[3].data.name, Object.keys(data[4])]).toEqual(['renamed', ['status']]);
        expect((await ann.client.get(`/api/boards/${made.id}`)).body.data).toEqual(made);
        expect((await ann.client.get(`/api/cards/${card.id}`)).body.data).toEqual(data[2].data);
        expect((await ann.client.get(`/api/boards/${old.id}`)).status).toBe(404);
        expect(made.created_at).toBe(card.created_at);
      });

      test('only the id of what the caller may not read', async () => {
        const [{ data }] = await done([create('boards', { name: 'x', secret: true })]);
        expect(Object.keys(data)).toEqual(['id']);
      });

      test('100 creates, in the order of their ids', async () => {
        const made = await done(Array.from({ length: 100 }, (_, i) => create('boards', { name: `n${i}` })));
        const ids = made.map(({ data }: { data: { id: string } }) => data.id);
        expect(new Set(ids).size).toBe(100);
        expect(ids).toEqual(ids.toSorted());
        expect(made.map(({ data }: Answer['body']) => data.name)).toEqual(ids.map((_: string, i: number) => `n${i}`));
      });
    });

    describe('references', () => {
      test('a reference takes the place of an id in every kind of relation', async () => {
        const data = await done([
          create('labels', { name: 'l1' }, 'l1'),
          create('labels', { name: 'l2' }, '_l2'),
          create('boards', { name: 'b', labels: { set: [ref('l1')], add: [ref('_l2')], remove: [ref('l1')] } }, 'b'),
          create('cards', { text: 'c', board: ref('b') }, 'c'),
          update('boards', ref('b'), { cover: ref('c') }),
        ]);
        const [, second, made, card, covered] = data.map((result: Answer['body']) => result.data);
        const { body } = await ann.client.get(`/api/boards/${made.id}?expand=labels,cards`);
        expect(idsOf(body.data.expand.labels)).toEqual([second.id]);
        expect([idsOf(body.data.expand.cards), covered.cover]).toEqual([[card.id], card.id]);
      });

      test('a rule that reads the body sees the ids of references', async () => {
        const [{ data }] = await done([
          create('boards', { name: 'b' }, 'b'),
          create('cards', { text: 'x', board: ref('b') }),
        ]);
        expect((await ann.client.get(`/api/cards?board=${data.id}`)).body.data).toHaveLength(1);
      });

      test('to a record that the caller may not read are refused as to one that is not there', async () => {
        const hidden = [
          create('boards', { name: 'x', secret: true }, 'b'),
          create('posts', { title: 't', author: ref('b') }),
        ];
        expect(failure(await send(hidden))).toEqual([
          422,
          'validation_failed',
          1,
          '/operations/1/data/author not_found',
        ]);
      });

      test.each([
        ['unknown', [create('cards', { text: 'x', board: ref('b') })], '/operations/0/data/board unknown_ref'],
        [
          'later',
          [create('cards', { text: 'x', board: ref('b') }), create('boards', { name: 'x' }, 'b')],
          '/operations/0/data/board unknown_ref',
        ],
        ['its own', [create('cards', { text: 'x', before: ref('c') }, 'c')], '/operations/0/data/before unknown_ref'],
        ['in an id', [update('boards', ref('b'), { name: 'x' })], '/operations/0/id unknown_ref'],
        [
          'in a list',
          [create('boards', { name: 'x', labels: { add: [NOBODY, ref('l')] } })],
          '/operations/0/data/labels/add/1 unknown_ref',
        ],
        ['not a name', [remove('boards', ref(7 as unknown as string))], '/operations/0/id wrong_type'],
        ['with more', [remove('boards', { $ref: 'b', x: 1 })], '/operations/0/id wrong_type'],
      ])('%s: 422 before anything runs', async (_, operations, error) => {
        const before = await count('boards');
        const answer = await send([create('boards', { name: 'first' }), ...operations.map((each) => each)]);
        const moved = error.replace('/operations/0', '/operations/1');
        expect(failure(answer)).toEqual([422, 'validation_failed', 1, moved]);
        expect(await count('boards')).toBe(before);
      });

      test('a reference takes the place of no other value', async () => {
        const answer = await send([create('boards', { name: 'b' }, 'b'), create('boards', { name: ref('b') })]);
        expect(failure(answer)).toEqual([422, 'validation_failed', 1, '/operations/1/data/name wrong_type']);
      });
    });

    describe('its shape', () => {
      const make = create('boards', { name: 'x' });
      test.each<[string, unknown, readonly string[]]>([
        ['no list', {}, ['/operations required']],
        ['another key', { operations: [make], atomic: true }, ['/atomic unknown_key']],
        ['not an object', [], [' not_an_object']],
        ['a list that is none', { operations: {} }, ['/operations wrong_type']],
        ['no operation', { operations: [] }, ['/operations too_few']],
        ['101 operations', { operations: Array.from({ length: 101 }, () => make) }, ['/operations too_many']],
        ['an operation that is none', { operations: [make, null] }, ['/operations/1 not_an_object']],
        ['an empty one', { operations: [{}] }, ['/operations/0/collection required', '/operations/0/op required']],
        ['another verb', { operations: [{ ...make, op: 'replace' }] }, ['/operations/0/op not_in_enum']],
        ['an unknown key', { operations: [{ ...make, 'a/b': 1 }] }, ['/operations/0/a~1b unknown_key']],
        [
          'a collection that is not a name',
          { operations: [{ ...make, collection: 1 }] },
          ['/operations/0/collection wrong_type'],
        ],
        ['a create with an id', { operations: [{ ...make, id: NOBODY }] }, ['/operations/0/id unexpected_key']],
        [
          'a create with a version',
          { operations: [{ ...make, if_match: '*' }] },
          ['/operations/0/if_match unexpected_key'],
        ],
        [
          'a create without data',
          { operations: [{ op: 'create', collection: 'boards' }] },
          ['/operations/0/data required'],
        ],
        ['data that is not an object', { operations: [{ ...make, data: [] }] }, ['/operations/0/data not_an_object']],
        ['an update without an id', { operations: [{ ...make, op: 'update' }] }, ['/operations/0/id required']],
        ['an id that is not a string', { operations: [remove('boards', 5)] }, ['/operations/0/id wrong_type']],
        [
          'a version that is not a string',
          { operations: [{ ...remove('boards', NOBODY), if_match: 1 }] },
          ['/operations/0/if_match wrong_type'],
        ],
        [
          'a delete with data',
          { operations: [{ ...remove('boards', NOBODY), data: {} }] },
          ['/operations/0/data unexpected_key'],
        ],
        [
          'a name on an update',
          { operations: [{ ...update('boards', NOBODY, { name: 'x' }), as: 'a' }] },
          ['/operations/0/as unexpected_key'],
        ],
        ['a name that is none', { operations: [{ ...make, as: '1a' }] }, ['/operations/0/as invalid_value']],
        ['a name that is not a string', { operations: [{ ...make, as: null }] }, ['/operations/0/as wrong_type']],
        [
          'a name twice',
          {
            operations: [
              { ...make, as: 'a' },
              { ...make, as: 'a' },
            ],
          },
          ['/operations/1/as duplicate'],
        ],
        ['a user', { operations: [create('users', {})] }, ['/operations/0/op not_created_here']],
        ['a file', { operations: [create('files', {})] }, ['/operations/0/op not_created_here']],
        [
          'all of it at once',
          { operations: [{ ...make, as: '' }, make, { op: 'delete', collection: 'boards', as: 'x' }] },
          ['/operations/0/as invalid_value', '/operations/2/as unexpected_key', '/operations/2/id required'],
        ],
      ])('%s', async (_, body, expected) => {
        const before = await count('boards');
        expect(outcomeOf(await ann.client.post('/api/batch', body))).toEqual([422, 'validation_failed', ...expected]);
        expect(await count('boards')).toBe(before);
      });

      test('nine thousand errors are counted, not written', async () => {
        const keys = Object.fromEntries(Array.from({ length: 9_000 }, (_, i) => [`k${i}`, 1]));
        const { body } = await send([{ ...make, ...keys }]);
        expect([body.errors.length, body.error_count, body.operation]).toEqual([100, 9_000, 0]);
      });

      test('the body of a batch is read as strictly as any body', async () => {
        const raw = (text: string, type = 'application/json') =>
          ann.client.send('POST', '/api/batch', { raw: text, headers: { 'Content-Type': type } });
        expect(outcomeOf(await raw('{"operations":[],"operations":[]}'))).toEqual([400, 'malformed_json']);
        expect(outcomeOf(await raw('{}', 'text/plain'))).toEqual([415, 'unsupported_media_type']);
        expect(outcomeOf(await raw(`{"operations":["${'x'.repeat(2 ** 20)}"]}`))).toEqual([413, 'too_large']);
      });
    });

    describe('access', () => {
      test('a batch needs a credential, and POST', async () => {
        expect((await service.anonymous.post('/api/batch', { operations: [] })).status).toBe(401);
        for (const method of ['GET', 'PATCH', 'DELETE']) {
          const answer = await ann.client.send(method, '/api/batch');
          expect([...outcomeOf(answer), answer.headers.get('allow')]).toEqual([405, 'method_not_allowed', 'POST']);
        }
        expect((await ann.client.get('/api/batch/x')).status).toBe(404);
      });

      test('no page of another site, with a cookie', async () => {
        const client = service.anonymous.with({ Cookie: ann.cookie });
        const operations = [create('boards', { name: 'x' })];
        const foreign = await client.post('/api/batch', { operations }, { 'Sec-Fetch-Site': 'cross-site' });
        expect(outcomeOf(foreign)).toEqual([403, 'cross_origin']);
        expect((await client.post('/api/batch', { operations }, { 'Sec-Fetch-Site': 'same-origin' })).status).toBe(200);
      });

      test.each<[string, () => Promise<Operation> | Operation, readonly unknown[]]>([
        ['an unknown collection', () => create('nothing', {}), [404, 'not_found']],
        ['a collection without rules', () => create('locked', { name: 'x' }), [403, 'forbidden']],
        ['by the side of the caller', () => create('vault', { secret: 'x' }), [403, 'forbidden']],
        [
          'a record that no rule allows',
          () => create('boards', { name: 'x', owner: NOBODY }),
          [422, 'validation_failed', '/data/owner not_found'],
        ],
        ['a hidden record', async () => update('boards', (await board({}, bob)).id, { name: 'x' }), [404, 'not_found']],
        ['a missing record', () => update('boards', NOBODY, { name: 'x' }), [404, 'not_found']],
        ['a string that is not an id', () => remove('boards', 'x'), [404, 'not_found']],
        ['a patch without fields', async () => update('boards', (await board()).id, {}), [400, 'patch_empty']],
        [
          'what the caller reads but may not delete',
          async () => remove('boards', (await board({ open: false })).id),
          [403, 'forbidden'],
        ],
        [
          'an invalid value',
          () => create('boards', { name: 7, code: true, nome: 1 }),
          [422, 'validation_failed', '/data/name wrong_type', '/data/code wrong_type', '/data/nome unknown_field'],
        ],
      ])('%s is refused as alone, and nothing has changed', async (_, make, expected) => {
        const operation = await make();
        const before = await count('boards');
        const [status, code, ...rest] = expected as readonly string[];
        const answer = await send([create('boards', { name: 'first' }), operation, create('boards', {})]);
        expect(failure(answer)).toEqual([status, code, 1, ...rest.map((error) => `/operations/1${error}`)]);
        expect(answer.body.errors.length).toBe(rest.length);
        expect(await count('boards')).toBe(before);
      });

      test('the rules read the query string of the address', async () => {
        const operations = [create('badges', { room: 'r' })];
        expect(failure(await send(operations))).toEqual([403, 'forbidden', 0]);
        expect((await ann.client.post('/api/batch?invited=true', { operations })).status).toBe(200);
      });

      test('roles are given as by a PATCH, and count at once', async () => {
        const { id, client } = await service.user('member');
        expect((await client.get('/api/vault')).status).toBe(403);
        await done([update('users', id, { roles: { add: ['admin'] } })], root);
        expect((await client.get('/api/vault')).status).toBe(200);
        expect(failure(await send([update('users', id, { roles: { add: ['editor'] } })], bob))[0]).toBe(403);
      });

      test('a user who is deleted is gone at once', async () => {
        const { id, client } = await service.user('member');
        expect((await client.get('/api/boards')).status).toBe(200);
        await done([create('labels', { name: 'x' }), remove('users', id)], root);
        expect((await client.get('/api/boards')).status).toBe(401);
      });
    });

    test('a file that is deleted loses its bytes, and only once the batch is done', async () => {
      const form = new FormData();
      form.set('file', new Blob(['bytes'], { type: 'text/plain' }), 'a.txt');
      const headers = { Authorization: `Bearer ${ann.token}` };
      const made = await fetch(`${service.url}/api/files`, { method: 'POST', headers, body: form });
      const { id } = ((await made.json()) as Answer['body']).data;
      const stored = async () => (await service.app.files.storage.size(id)) !== undefined;
      expect(failure(await send([remove('files', id), remove('boards', NOBODY)]))).toEqual([404, 'not_found', 1]);
      expect([(await ann.client.get(`/api/files/${id}/content`)).text, await stored()]).toEqual(['bytes', true]);
      await done([update('files', id, { name: 'b.txt' }), remove('files', id)]);
      expect([(await ann.client.get(`/api/files/${id}`)).status, await stored()]).toEqual([404, false]);
    });

    describe('the state that an operation meets', () => {
      test('holds what the operations before it wrote', async () => {
        const over = [1, 2, 3, 4].map((i) => create('cards', { text: `${i}`, board: ref('b') }));
        expect(failure(await send([create('boards', { name: 'b' }, 'b'), ...over]))).toEqual([403, 'forbidden', 4]);
        const { length } = await done([create('boards', { name: 'b' }, 'b'), ...over.slice(0, 3)]);
        expect(length).toBe(4);
      });

      test('a rule that closes is met by the operations after it, not before', async () => {
        const card = create('cards', { text: 'x', board: ref('b') });
        const close = update('boards', ref('b'), { open: false });
        expect(failure(await send([create('boards', { name: 'b' }, 'b'), close, card]))).toEqual([403, 'forbidden', 2]);
        expect((await send([create('boards', { name: 'b' }, 'b'), card, close])).status).toBe(200);
      });

      test('a unique value is free once its record is gone, and taken once it is there', async () => {
        const old = await board({ code: 'moving' });
        expect(
          failure(await send([create('boards', { name: 'x', code: 'moving' }), remove('boards', old.id)])),
        ).toEqual([409, 'unique_violation', 0, '/operations/0/data/code unique_violation']);
        expect((await send([remove('boards', old.id), create('boards', { name: 'x', code: 'moving' })])).status).toBe(
          200,
        );
        const twice = [create('boards', { name: 'x', code: 'twice' }), create('boards', { name: 'y', code: 'twice' })];
        expect(failure(await send(twice))).toEqual([
          409,
          'unique_violation',
          1,
          '/operations/1/data/code unique_violation',
        ]);
      });

      test('a unique field may have any name, under an idempotency key too', async () => {
        await board({ connection: 'c' });
        const data = { name: 'x', connection: 'c' };
        const expected = [409, 'unique_violation', '/data/connection unique_violation'];
        const alone = await ann.client.post('/api/boards', { data }, { 'Idempotency-Key': 'connection' });
        expect(outcomeOf(alone)).toEqual(expected);
        expect(outcomeOf(await send([create('boards', data)], ann, { 'Idempotency-Key': 'connection' }))).toEqual([
          409,
          'unique_violation',
          '/operations/0/data/connection unique_violation',
        ]);
      });

      test('versions: 412 where the record has changed, also by the batch itself', async () => {
        const made = await board();
        const tag = (await ann.client.get(`/api/boards/${made.id}`)).headers.get('etag')!;
        const guarded = { ...update('boards', made.id, { name: 'y' }), if_match: tag };
        expect(failure(await send([guarded, { ...guarded, data: { name: 'z' } }]))).toEqual([412, 'changed', 1]);
        expect((await send([guarded])).status).toBe(200);
        expect(failure(await send([{ ...remove('boards', made.id), if_match: tag }]))).toEqual([412, 'changed', 0]);
        expect((await send([{ ...remove('boards', made.id), if_match: '*' }])).status).toBe(200);
      });

      test('a reference that remains blocks a delete', async () => {
        const post = (await ann.client.post('/api/posts', { data: { title: 't' } })).body.data;
        const [comment] = await done([create('comments', { text: 'x', post: post.id })]);
        expect(failure(await send([remove('posts', post.id)]))).toEqual([409, 'still_referenced', 0]);
        expect((await send([remove('comments', comment.data.id), remove('posts', post.id)])).status).toBe(200);
      });
    });

    describe('Idempotency-Key', () => {
      test('holds for the whole', async () => {
        const operations = [create('boards', { name: 'once' }, 'b'), create('cards', { text: 'x', board: ref('b') })];
        const before = await count('boards');
        const answers = await Promise.all([1, 2, 3].map(() => send(operations, ann, { 'Idempotency-Key': 'batch' })));
        expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
        expect([answers[0]!.status, await count('boards')]).toEqual([200, before + 1]);
        expect(outcomeOf(await send(operations.slice(1), ann, { 'Idempotency-Key': 'batch' }))[0]).toBe(422);
        const other = await send([create('boards', { name: 'other' })], ann, { 'Idempotency-Key': 'batch' });
        expect(outcomeOf(other)).toEqual([422, 'idempotency_mismatch']);
      });

      test('goes before what the first request changed', async () => {
        const full = await board();
        for (const text of ['a', 'b']) await done([create('cards', { text, board: full.id })]);
        const last = { text: 'c', board: full.id };
        const old = await board({ code: 'was held' });
        const asked: readonly (readonly [string, object])[] = [
          // A second time, the board has three cards.
          ['cards', { data: last }],
          ['batch', { operations: [remove('cards', ref('c')), create('cards', last, 'c')].toReversed() }],
          // A second time, there is nothing to delete, and the code is taken.
          ['batch', { operations: [remove('boards', old.id), create('boards', { name: 'x', code: 'was held' })] }],
        ];
        for (const [i, [path, body]] of asked.entries()) {
          const key = { 'Idempotency-Key': `before-${i}` };
          const ask = (given = body) => ann.client.post(`/api/${path}`, given, key);
          const answers = [...(await Promise.all([ask(), ask()])), await ask()];
          expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
          expect(answers[0]!.status).toBeLessThan(300);
          const declined =
            path === 'cards' ? { data: { ...last, text: 'd' } } : { operations: [remove('boards', old.id)] };
          expect(outcomeOf(await ask(declined))).toEqual([422, 'idempotency_mismatch']);
          if (i === 0) await done([remove('cards', answers[0]!.body.data.id)]);
        }
      });

      test('a batch in which its caller deletes themselves succeeds under a key', async () => {
        const leaving = await service.user('admin');
        const answer = await send([remove('users', leaving.id)], leaving, { 'Idempotency-Key': 'farewell' });
        expect([answer.status, (await root.client.get(`/api/users/${leaving.id}`)).status]).toEqual([200, 404]);
      });

      test('keeps no error', async () => {
        const header = { 'Idempotency-Key': 'fails first' };
        const operations = [create('cards', { text: 'x', board: NOBODY })];
        expect((await send(operations, ann, header)).status).toBe(400);
        const key = { 'Idempotency-Key': 'fails-first' };
        const old = await board({ code: 'held' });
        const wanted = [create('boards', { name: 'x', code: 'held' })];
        expect((await send(wanted, ann, key)).status).toBe(409);
        await done([remove('boards', old.id)]);
        expect((await send(wanted, ann, key)).status).toBe(200);
      });
    });

    describe('at once', () => {
      test('batches that want one unique value: one has it, and none waits for a deadlock to be found', async () => {
        const wanted = (round: number, i: number) => {
          const values = [`left ${round}`, `right ${round}`];
          return (i % 2 === 0 ? values : values.toReversed()).map((code) => create('boards', { name: 'x', code }));
        };
        let fastest = Number.POSITIVE_INFINITY;
        for (const round of [1, 2, 3, 4, 5]) {
          const start = performance.now();
          const answers = await Promise.all(Array.from({ length: 8 }, (_, i) => send(wanted(round, i))));
          const statuses = answers.map(({ status }) => status).toSorted();
          expect(statuses).toEqual([200, ...Array.from({ length: 7 }, () => 409)]);
          fastest = Math.min(fastest, performance.now() - start);
        }
        // The server finds a deadlock after a second; without the order of the values, each round has several.
        expect(fastest).toBeLessThan(1_000);
      });

      test('unique values that no database takes are rejected like others', async () => {
        const answer = await send(['a\u0000', 'b\u0000'].map((code) => create('boards', { name: 'x', code })));
        expect([answer.status, answer.body.errors[0].pointer]).toEqual([422, '/operations/0/data/code']);
      });

      test('batches that change the same records in opposite orders: each is whole, and none waits for a deadlock', async () => {
        const made = await done([
          create('labels', { name: 'c' }),
          create('boards', { name: 'a' }),
          create('labels', { name: 'd' }),
          create('boards', { name: 'b' }),
        ]);
        const ids = made.map((result: Answer['body']) => result.data.id) as string[];
        const changes = (i: number) => {
          const all = ids.map((id, place) => update(place % 2 === 0 ? 'labels' : 'boards', id, { name: `by ${i}` }));
          return i % 2 === 0 ? all : all.toReversed();
        };
        let fastest = Number.POSITIVE_INFINITY;
        for (let round = 0; round < 5; round++) {
          const start = performance.now();
          const answers = await Promise.all(Array.from({ length: 8 }, (_, i) => send(changes(i))));
          fastest = Math.min(fastest, performance.now() - start);
          expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 200));
          const names = await Promise.all(
            ids.map(async (id, place) => {
              const path = `/api/${place % 2 === 0 ? 'labels' : 'boards'}/${id}`;
              return (await ann.client.get(path)).body.data.name;
            }),
          );
          expect(new Set(names).size).toBe(1);
        }
        // The server finds a deadlock after a second; without the order of the rows, each round has several.
        expect(fastest).toBeLessThan(1_000);
      });

      test('batches that change and delete the same records: one deletes them, the others find them or do not', async () => {
        const made = await done([create('labels', { name: 'a' }), create('labels', { name: 'b' })]);
        const ids = made.map((result: Answer['body']) => result.data.id) as string[];
        const answers = await Promise.all(
          Array.from({ length: 6 }, (_, i) => {
            const all = ids.map((id) => (i < 3 ? update('labels', id, { name: `by ${i}` }) : remove('labels', id)));
            return send(i % 2 === 0 ? all : all.toReversed());
          }),
        );
        const statuses = answers.map(({ status }) => status);
        expect(statuses.every((status) => status === 200 || status === 404)).toBe(true);
        expect(statuses.slice(3).toSorted()).toEqual([200, 404, 404]);
      });

      test('a batch reports its first error, whatever it has locked before', async () => {
        const [own, other, foreign] = [await board(), await board({ open: false }), await board({}, bob)];
        const change = { name: 'changed' };
        const asked: readonly (readonly [readonly Operation[], readonly unknown[]])[] = [
          [
            [update('boards', own.id, change), update('boards', foreign.id, change)],
            [404, 'not_found', 1],
          ],
          [
            [update('boards', foreign.id, change), remove('boards', other.id)],
            [404, 'not_found', 0],
          ],
          [
            [update('boards', own.id, change), remove('boards', other.id)],
            [403, 'forbidden', 1],
          ],
          [
            [update('boards', own.id, change), update('nothing', other.id, change)],
            [404, 'not_found', 1],
          ],
          [
            [update('boards', own.id, change), update('boards', "1'; --", change)],
            [404, 'not_found', 1],
          ],
        ];
        for (const [operations, expected] of asked) expect(failure(await send(operations))).toEqual(expected);
        expect((await ann.client.get(`/api/boards/${own.id}`)).body.data.name).toBe('b');
      });
    });

    test('a batch answers as the same requests one by one', { tags: ['long'] }, async () => {
      const random = new Random(11);
      const people = [await service.user(), await service.user()];
      const clients = { single: people[0]!.client, batch: people[1]!.client };
      const whole: boolean[] = [];
      for (let round = 0; round < 16; round++) whole.push(await compare(random, round, clients));
      expect([whole.includes(true), whole.includes(false)]).toEqual([true, true]);
    });
  },
  { schema: SCHEMA },
);

interface Contenders {
  readonly single: Client;
  readonly batch: Client;
}

/** Creates two boards and a card. */
async function begin(client: Client, round: number): Promise<readonly string[]> {
  const open = (await client.post('/api/boards', { data: { name: `${round}` } })).body.data.id;
  const shut = (await client.post('/api/boards', { data: { name: `${round}`, open: false } })).body.data.id;
  const card = (await client.post('/api/cards', { data: { text: `${round}`, board: open } })).body.data.id;
  return [open, shut, card];
}

/** `#n`: the n-th record that the world holds, counting those that the operations make. */
function randomOperations(random: Random, round: number): readonly Operation[] {
  const records = ['boards', 'boards', 'cards'];
  const one = (collection: string): string => {
    const places = records.flatMap((each, i) => (each === collection ? [`#${i}`] : []));
    return random.chance(0.05) ? NOBODY : random.pick(places);
  };
  const boardData = () => ({
    ...(random.chance(0.9) ? { name: `n${random.below(9)}` } : {}),
    ...(random.chance(0.3) ? { code: `${round} @ ${random.below(3)}` } : {}),
    ...(random.chance(0.3) ? { open: random.chance(0.7) } : {}),
    ...(random.chance(0.1) ? { cover: one('cards') } : {}),
  });
  const cardData = () => ({
    ...(random.chance(0.95) ? { text: 't' } : {}),
    ...(random.chance(0.9) ? { board: one('boards') } : {}),
    ...(random.chance(0.2) ? { covers: one('boards') } : {}),
  });
  return Array.from({ length: 1 + random.below(8) }, () => {
    const collection = random.pick(['boards', 'cards']);
    const data = collection === 'boards' ? boardData() : cardData();
    const kind = random.pick(['create', 'create', 'update', 'delete']);
    if (kind === 'update') return update(collection, one(collection), data);
    if (kind === 'delete') return remove(collection, one(collection));
    records.push(collection);
    return create(collection, data, `r${records.length - 1}`);
  });
}

/** Replaces `#n` everywhere. */
const filledIn = <T>(value: T, standFor: (index: number) => unknown, world: string): T =>
  JSON.parse(
    JSON.stringify(value)
      .replaceAll(/"#(\d+)"/g, (_, index) => JSON.stringify(standFor(Number(index)) ?? NOBODY))
      .replaceAll('@', world),
  ) as T;

async function alone(client: Client, operation: Operation): Promise<Answer> {
  const { op, collection, id, data } = operation;
  if (op === 'create') return client.post(`/api/${collection}`, { data });
  return op === 'update'
    ? client.patch(`/api/${collection}/${id}`, { data })
    : client.delete(`/api/${collection}/${id}`);
}

/** Returns true if no operation was rejected. */
async function compare(random: Random, round: number, { single, batch }: Contenders): Promise<boolean> {
  const operations = randomOperations(random, round);
  const ids: (string | undefined)[] = [...(await begin(single, round))];
  const said: unknown[] = [];
  let failed: Answer | undefined;
  for (const operation of operations) {
    const answer = await alone(
      single,
      filledIn(operation, (index) => ids[index], 'single'),
    );
    if (operation.op === 'create') ids.push(answer.body?.data?.id);
    said.push(answer.status);
    if (answer.status >= 400) {
      failed = answer;
      break;
    }
  }
  const started = await begin(batch, round);
  const wanted = filledIn(operations, (index) => started[index] ?? ref(`r${index}`), 'batch');
  const before = (await batch.get('/api/boards?limit=100&expand=cards')).text;
  const answer = await batch.post('/api/batch', { operations: wanted });
  const after = (await batch.get('/api/boards?limit=100&expand=cards')).text;
  if (failed === undefined) {
    expect(answer.body.data.map(({ status }: { status: number }) => status)).toEqual(said);
  } else {
    const index = said.length - 1;
    const [status, code, ...rest] = outcomeOf(failed);
    expect(failure(answer)).toEqual([status, code, index, ...rest.map((error) => `/operations/${index}${error}`)]);
    expect(after).toBe(before);
  }
  return failed === undefined;
}
