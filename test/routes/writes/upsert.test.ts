// @module-tag long
// @module-tag partitions
/** PUT by a unique value, and upserts of batches: who creates, who updates, and what hidden records show. */
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { raw } from '../../../src/sql.ts';
import { outcomeOf } from '../../support/records.ts';
import { describeOnBoth, describeRoutes, type TestService, type User } from '../../support/service.ts';

const SCHEMA = `
roles: { admin: { assigns: [member, reader] }, member: {}, reader: {} }
register: { roles: [member] }
collections:
  shelves:
    fields: { name: { type: string, unique: true, max: 60 } }
    access: { view: true, create: true, update: false }
  pages:
    fields:
      slug: { type: string, required: true, unique: true, max: 80 }
      code: { type: string, max: 40, unique: { ignore_case: true } }
      live: { type: string, max: 40, unique: { where: '@record.hidden = false' } }
      secret: { type: string, unique: true, max: 40, access: { read: '@record.owner = @request.auth.id' } }
      title: { type: string, required: true, default: untitled }
      level: { type: int, required: true, default: 1, access: { write: '@next.level < 5' } }
      hidden: { type: bool, required: true, default: false }
    relations:
      shelf: { kind: belongs_to, collection: shelves }
      owner: { kind: belongs_to, collection: users, required: true, default: '@request.auth.id' }
      topics: { kind: many_to_many, collection: shelves }
    access:
      view: '@record.hidden = false or @record.owner = @request.auth.id'
      create: [{ roles: [member], when: '@record.title != "forbidden"' }]
      update: '@record.owner = @request.auth.id'
  profiles:
    fields: { nick: string }
    relations: { user: { kind: belongs_to, collection: users, required: true, unique: true } }
    access: { view: true, create: '@record.user = @request.auth.id', update: '@record.user = @request.auth.id' }
  amounts:
    fields:
      price: { type: decimal, precision: 6, scale: 2, unique: true }
      tag: { type: string, unique: true, lower: true, max: 4 }
      at: { type: datetime, unique: true }
    access: { view: true, create: true, update: true }
  places:
    fields: { number: { type: int, unique: within_shelf, required: true }, name: string }
    relations: { shelf: { kind: belongs_to, collection: shelves, required: true } }
    access: { view: true, create: true, update: true }
`;
const TAKEN = (name: string) => [409, 'unique_violation', `/data/${name} unique_violation`];

describeRoutes('upserts', (service) => suite(service), { schema: SCHEMA });
const CODES = `  codes:
    id: { type: string, made_by: caller }
    fields: { name: { type: string, unique: true }, note: string }
    access: { view: true, create: true, update: true }
`;
describeOnBoth('upserts that race', (service) => races(service), { schema: `${SCHEMA}${CODES}` });

const put = ({ client }: User, path: string, data: object) => client.put(`/api/${path}`, { data });

function suite(service: TestService): void {
  let [ann, bob, reader] = [] as unknown as [User, User, User];
  let count = 0;
  let slug = '';
  beforeAll(async () => {
    [ann, bob, reader] = [await service.user(), await service.user(), await service.user('reader')];
  });
  beforeEach(() => {
    slug = `s ${++count}/ü`;
  });
  const at = (value: string, field = 'slug') => `pages/by/${field}/${encodeURIComponent(value)}`;

  test('the first creates, with its address, and the next updates', async () => {
    const first = await put(ann, at(slug), { title: 'one' });
    expect([first.status, first.body.data.slug, first.body.data.title]).toEqual([201, slug, 'one']);
    const { id } = first.body.data;
    expect(first.headers.get('location')).toBe(`/api/pages/${id}`);
    const second = await put(ann, at(slug), { title: 'two', slug });
    expect([second.status, second.body.data.id, second.body.data.title]).toEqual([200, id, 'two']);
    expect(second.headers.get('etag')).toBe((await ann.client.get(`/api/pages/${id}`)).headers.get('etag'));
    const third = await put(ann, at(slug), { level: 3 });
    expect(third.body.data).toMatchObject({ id, title: 'two', level: 3 });
  });

  test('another value in the body is refused, and so is what cannot be a value', async () => {
    expect(outcomeOf(await put(ann, at(slug), { slug: 'x' }))).toEqual([
      422,
      'validation_failed',
      '/data/slug invalid_value',
    ]);
    const { id } = (await put(ann, at(slug), {})).body.data;
    expect(outcomeOf(await put(ann, at(slug), { id }))).toEqual([422, 'validation_failed', '/data/id read_only']);
    expect(outcomeOf(await put(ann, 'profiles/by/user/x', {}))).toEqual([
      400,
      'invalid_parameter',
      'value invalid_value',
    ]);
    expect(outcomeOf(await put(ann, 'places/by/number/x', {}))).toEqual([
      400,
      'invalid_parameter',
      'value invalid_value',
    ]);
  });

  test('the value in the body may have another form of the same value', async () => {
    for (const [field, path, stored, forms] of [
      ['price', '1.5', '1.50', ['1.5', '1.50', 1.5]],
      ['tag', 'Ab', 'ab', ['ab', 'AB', 'Ab']],
      ['at', '2026-01-01T01:00:00%2B01:00', '2026-01-01T00:00:00.000000Z', ['2026-01-01T00:00:00Z']],
    ] as const)
      for (const form of forms) {
        const { body, text } = await put(ann, `amounts/by/${field}/${path}`, { [field]: form });
        expect(body.data?.[field], text).toBe(stored);
      }
    for (const [path, data, code] of [
      ['price/1.5', { price: '1.51' }, 'invalid_value'],
      ['price/1.5', { price: '1.501' }, 'invalid_value'],
      ['price/1.5', { price: null }, 'invalid_value'],
      ['price/1.555', { price: '1.555' }, 'too_precise'],
      ['tag/ab', { tag: 'abcde' }, 'invalid_value'],
      ['tag/abcde', { tag: 'abcde' }, 'too_long'],
    ] as const) {
      const pointer = `/data/${path.split('/')[0]} ${code}`;
      expect(outcomeOf(await put(ann, `amounts/by/${path}`, data))).toEqual([422, 'validation_failed', pointer]);
    }
  });

  test('a value that is not UTF-8 has no address, and makes no record', async () => {
    for (const value of ['%ff', '%', '%E2%82']) {
      expect(outcomeOf(await put(ann, `pages/by/slug/${value}`, {}))).toEqual([404, 'not_found']);
      const filter = `/api/pages?slug=${encodeURIComponent(value)}`;
      expect((await ann.client.get(filter)).body.data).toEqual([]);
    }
  });

  test('a field that finds no one record has no address', async () => {
    for (const field of ['title', 'live', 'nothing', 'id', 'topics', '__proto__']) {
      const answer = await put(ann, at(slug, field), {});
      expect([answer.status, answer.body.code]).toEqual([404, 'not_found']);
      expect(answer.body.detail).toBe('not a unique field; expected `slug` or `code` or `secret`');
    }
    expect(outcomeOf(await put(ann, 'users/by/email/a@example.org', {}))).toEqual([404, 'not_found']);
    expect(outcomeOf(await put(ann, 'none/by/slug/a', {}))).toEqual([404, 'not_found']);
    expect(outcomeOf(await service.anonymous.put(`/api/${at(slug)}`, { data: {} }))).toEqual([401, 'unauthenticated']);
  });

  test('a hidden record is as a taken value, unchanged, and a visible one is forbidden', async () => {
    const { id } = (await put(bob, at(slug), { title: 'of bob', hidden: true })).body.data;
    const [upserted, created] = [
      await put(ann, at(slug), { title: 'of ann' }),
      await ann.client.post('/api/pages', { data: { slug, title: 'of ann' } }),
    ];
    expect(outcomeOf(upserted)).toEqual(TAKEN('slug'));
    expect({ ...upserted.body, request_id: '' }).toEqual({ ...created.body, request_id: '' });
    expect((await bob.client.get(`/api/pages/${id}`)).body.data.title).toBe('of bob');
    // Errors that come before the taken value do so here, too.
    expect(outcomeOf(await put(ann, at(slug), { level: 9 }))).toEqual([403, 'forbidden', '/data/level forbidden']);
    expect(outcomeOf(await put(ann, at(slug), { title: 'forbidden' }))).toEqual([403, 'forbidden']);
    await bob.client.patch(`/api/pages/${id}`, { data: { hidden: false } });
    expect(outcomeOf(await put(ann, at(slug), { title: 'of ann' }))).toEqual([403, 'forbidden']);
  });

  test('a hidden value finds no record', async () => {
    const { id } = (await put(bob, at(slug), { secret: slug })).body.data;
    const seen = (await ann.client.get(`/api/pages/${id}`)).body.data;
    expect('secret' in seen).toBe(false);
    expect(outcomeOf(await put(ann, at(slug, 'secret'), { slug: `${slug} 2` }))).toEqual(TAKEN('secret'));
    expect((await put(bob, at(slug, 'secret'), { slug: `${slug} 2` })).status).toBe(200);
  });

  test('rules of each action decide: a caller without one of them has the other', async () => {
    expect(outcomeOf(await put(reader, at(slug), {}))).toEqual([403, 'forbidden']);
    await put(ann, at(slug), {});
    expect(outcomeOf(await put(reader, at(slug), {}))).toEqual([403, 'forbidden']);
    const shelf = `shelf ${count}`;
    expect((await put(ann, `shelves/by/name/${shelf}`, {})).status).toBe(201);
    expect(outcomeOf(await put(ann, `shelves/by/name/${shelf}`, {}))).toEqual([403, 'forbidden']);
    expect(outcomeOf(await put(ann, at(slug), { level: 9 }))).toEqual([403, 'forbidden', '/data/level forbidden']);
  });

  describe('preconditions:', () => {
    const CHANGED = [412, 'changed'];
    const putIf = (user: User, headers: { readonly [name: string]: string }, data: object = {}) =>
      user.client.put(`/api/${at(slug)}`, { data }, headers);
    const titleOf = async (): Promise<string | undefined> =>
      (await ann.client.get(`/api/pages?slug=${encodeURIComponent(slug)}`)).body.data[0]?.title;

    test('If-Match updates the version that it names, and creates nothing', async () => {
      for (const tag of ['*', '"stale"'])
        expect(outcomeOf(await putIf(ann, { 'If-Match': tag }, { title: 'new' }))).toEqual(CHANGED);
      expect(await titleOf()).toBeUndefined();
      const first = (await put(ann, at(slug), { title: 'one' })).headers.get('etag')!;
      const second = await putIf(ann, { 'If-Match': first }, { title: 'two' });
      expect([second.status, second.body.data.title]).toEqual([200, 'two']);
      for (const tag of [first, '"stale"', `W/${second.headers.get('etag')}`])
        expect(outcomeOf(await putIf(ann, { 'If-Match': tag }, { title: 'late' }))).toEqual(CHANGED);
      expect(await titleOf()).toBe('two');
      expect((await putIf(ann, { 'If-Match': '*' }, { title: 'three' })).status).toBe(200);
      const { etag } = Object.fromEntries((await putIf(ann, { 'If-Match': '*' })).headers);
      expect((await putIf(ann, { 'If-Match': `${first}, ${etag}` }, { title: 'four' })).status).toBe(200);
      // The errors that precede it do so here, too.
      expect(outcomeOf(await putIf(ann, { 'If-Match': first }, { level: 'x' }))).toEqual([
        422,
        'validation_failed',
        '/data/level wrong_type',
      ]);
      expect(outcomeOf(await putIf(bob, { 'If-Match': first }))).toEqual([403, 'forbidden']);
    });

    test('If-None-Match creates, and updates nothing', async () => {
      expect((await putIf(ann, { 'If-None-Match': '*' }, { title: 'one' })).status).toBe(201);
      expect(outcomeOf(await putIf(ann, { 'If-None-Match': '*' }, { title: 'two' }))).toEqual(CHANGED);
      expect(outcomeOf(await putIf(ann, { 'If-None-Match': '*', 'If-Match': '*' }))).toEqual(CHANGED);
      expect(outcomeOf(await putIf(ann, { 'If-None-Match': '"x"' }, { title: 'two' }))).toEqual([
        400,
        'invalid_parameter',
        'If-None-Match invalid_parameter',
      ]);
      expect(await titleOf()).toBe('one');
    });

    test('a hidden record is as none with If-Match, and as a taken value with If-None-Match', async () => {
      await put(bob, at(slug), { title: 'of bob', hidden: true });
      const hidden = await putIf(ann, { 'If-Match': '*' });
      expect(outcomeOf(await putIf(ann, { 'If-None-Match': '*' }))).toEqual(TAKEN('slug'));
      slug = `${slug} none`;
      const none = await putIf(ann, { 'If-Match': '*' });
      expect(outcomeOf(none)).toEqual(CHANGED);
      expect({ ...hidden.body, request_id: '' }).toEqual({ ...none.body, request_id: '' });
    });
  });

  test('letter case is ignored where the key ignores it', async () => {
    const first = await put(ann, at(`Ä${slug}`, 'code'), { slug, title: 'one' });
    expect(first.status).toBe(201);
    const second = await put(ann, at(`ä${slug.toUpperCase()}`, 'code'), { title: 'two' });
    expect([second.status, second.body.data.code, second.body.data.title]).toEqual([200, `Ä${slug}`, 'two']);
  });

  test('a reference and a value within a relation find records', async () => {
    expect((await put(ann, `profiles/by/user/${ann.id}`, { nick: 'a' })).status).toBe(201);
    expect((await put(ann, `profiles/by/user/${ann.id}`, { nick: 'b' })).body.data).toMatchObject({
      nick: 'b',
      user: ann.id,
    });
    const user = ann.id.toUpperCase();
    expect((await put(ann, `profiles/by/user/${ann.id}`, { user })).body.data).toMatchObject({
      nick: 'b',
      user: ann.id,
    });
    expect(outcomeOf(await put(bob, `profiles/by/user/${ann.id}`, { nick: 'c' }))).toEqual([403, 'forbidden']);
    const made = await put(ann, `shelves/by/name/${encodeURIComponent(slug)}`, {});
    const shelf = made.body.data.id;
    expect((await put(ann, 'places/by/number/7', { shelf, name: 'a' })).status).toBe(201);
    const again = await put(ann, 'places/by/number/7', { shelf, name: 'b' });
    expect([again.status, again.body.data.name]).toEqual([200, 'b']);
    expect(outcomeOf(await put(ann, 'places/by/number/7', { name: 'b' }))).toEqual([
      422,
      'validation_failed',
      '/data/shelf required',
    ]);
  });

  describe('in a batch', () => {
    const upsert = (data: object, on = 'slug') => ({ op: 'upsert', collection: 'pages', on, data });
    const send = (user: User, ...operations: readonly object[]) => user.client.post('/api/batch', { operations });

    test('creates, updates, and resolves references', async () => {
      const shelf = { op: 'create', collection: 'shelves', data: { name: `x ${slug}` }, as: 'shelf' };
      const answer = await send(
        ann,
        shelf,
        upsert({ slug, title: 'one', shelf: { $ref: 'shelf' } }),
        upsert({ slug, title: 'two' }),
      );
      expect(answer.body.data.map(({ status }: { status: number }) => status)).toEqual([201, 201, 200]);
      const [made, first, second] = answer.body.data.map(({ data }: { data: object }) => data);
      expect(second).toMatchObject({ id: first.id, title: 'two', shelf: made.id });
    });

    test('a kept answer is repeated with its statuses', async () => {
      await put(ann, at(slug), {});
      const body = { operations: [upsert({ slug, title: 'one' }), upsert({ slug: `${slug} 2` })] };
      const headers = { 'Idempotency-Key': `key ${count}`.replace(' ', '-') };
      const [first, second] = [
        await ann.client.post('/api/batch', body, headers),
        await ann.client.post('/api/batch', body, headers),
      ];
      expect(first.body.data.map(({ status }: { status: number }) => status)).toEqual([200, 201]);
      expect(second.body).toEqual(first.body);
    });

    test('errors name the operation', async () => {
      await put(bob, at(slug), { hidden: true });
      expect(outcomeOf(await send(ann, upsert({ slug })))).toEqual([
        409,
        'unique_violation',
        '/operations/0/data/slug unique_violation',
      ]);
      expect(outcomeOf(await send(ann, upsert({ title: 'x' })))).toEqual([
        422,
        'validation_failed',
        '/operations/0/data/slug required',
      ]);
      expect(outcomeOf(await send(ann, upsert({ slug, title: 'x' }, 'title')))).toEqual([
        422,
        'validation_failed',
        '/operations/0/on not_unique',
      ]);
      expect(outcomeOf(await send(ann, { ...upsert({ slug }), as: 'x', id: ann.id, if_match: '*' }))).toEqual([
        422,
        'validation_failed',
        '/operations/0/as unexpected_key',
        '/operations/0/id unexpected_key',
        '/operations/0/if_match unexpected_key',
      ]);
      expect(outcomeOf(await send(ann, { op: 'create', collection: 'pages', on: 'slug', data: { slug } }))).toContain(
        '/operations/0/on unexpected_key',
      );
    });
  });
}

function races(service: TestService): void {
  let people: readonly User[] = [];
  beforeAll(async () => {
    const ann = await service.user();
    people = [ann, ann, ann, ann, ann, ann, ann, ann];
  });

  test('many requests make one record, and each of them succeeds', async () => {
    for (let round = 0; round < 5; round++) {
      const answers = await Promise.all(
        people.map((each, i) => put(each, `pages/by/slug/race${round}`, { title: `t${i}` })),
      );
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 200, 200, 200, 200, 201]);
      expect(new Set(answers.map(({ body }) => body.data.id)).size).toBe(1);
    }
  });

  test('preconditions let one of many requests create the record, and one update a version of it', async () => {
    const path = '/api/pages/by/slug/conditional';
    const titled = (headers: { readonly [name: string]: string }) =>
      Promise.all(people.map(({ client }, i) => client.put(path, { data: { title: `t${i}` } }, headers)));
    const creates = await titled({ 'If-None-Match': '*' });
    expect(creates.map(({ status }) => status).sort()).toEqual([201, 412, 412, 412, 412, 412, 412, 412]);
    const made = creates.find(({ status }) => status === 201)!;
    const updates = await titled({ 'If-Match': made.headers.get('etag')! });
    expect(updates.map(({ status }) => status).sort()).toEqual([200, 412, 412, 412, 412, 412, 412, 412]);
    expect((await titled({ 'If-Match': '*' })).map(({ status }) => status)).toEqual(people.map(() => 200));
  });

  test('batches and single requests make one record', async () => {
    for (let round = 0; round < 5; round++) {
      const slug = `mixed${round}`;
      const operations = [{ op: 'upsert', collection: 'pages', on: 'slug', data: { slug } }];
      const answers = await Promise.all(
        people.map((each, i) =>
          i % 2 === 0 ? put(each, `pages/by/slug/${slug}`, {}) : each.client.post('/api/batch', { operations }),
        ),
      );
      expect(answers.map(({ status }) => (status === 201 ? 200 : status))).toEqual(answers.map(() => 200));
      const rows = await service.app.db.rows(raw(`SELECT count(*) FROM pages WHERE slug = '${slug}'`));
      expect(rows).toEqual([['1']]);
    }
  });

  test('a new record has the id of its creator, but no word of an address', async () => {
    const [ann] = people as [User];
    for (const id of ['by', 'update', 'delete'])
      expect(outcomeOf(await put(ann, 'codes/by/name/x', { id }))).toEqual([
        422,
        'validation_failed',
        '/data/id reserved',
      ]);
    expect((await put(ann, 'codes/by/name/x', { id: 'bye' })).body.data).toMatchObject({ id: 'bye', name: 'x' });
  });

  test('a repeated request has the id of the record, and no other id', async () => {
    const [ann] = people as [User];
    const path = 'codes/by/name/again';
    expect((await put(ann, path, { id: 'A-1', note: 'one' })).status).toBe(201);
    const again = await put(ann, path, { id: 'A-1', note: 'two' });
    expect([again.status, again.body.data.id, again.body.data.note]).toEqual([200, 'A-1', 'two']);
    expect((await put(ann, path, { note: 'three' })).status).toBe(200);
    for (const id of ['A-2', '', null, 1])
      expect(outcomeOf(await put(ann, path, { id, note: 'four' }))).toEqual([
        422,
        'validation_failed',
        '/data/id read_only',
      ]);
    expect((await ann.client.get('/api/codes/A-1')).body.data.note).toBe('three');
    const ofBatch = (id: string) =>
      ann.client.post('/api/batch', {
        operations: [{ op: 'upsert', collection: 'codes', on: 'name', data: { id, name: 'again', note: 'five' } }],
      });
    expect((await ofBatch('A-1')).body.data).toMatchObject([{ status: 200, data: { id: 'A-1', note: 'five' } }]);
    expect(outcomeOf(await ofBatch('A-2'))).toEqual([422, 'validation_failed', '/operations/0/data/id read_only']);
    expect(outcomeOf(await put(ann, 'codes/by/name/new', { note: 'x' }))).toEqual([
      422,
      'validation_failed',
      '/data/id required',
    ]);
  });

  test('many requests with an id of their own make one record', async () => {
    for (let round = 0; round < 5; round++) {
      const id = `race${round}`;
      const operations = [{ op: 'upsert', collection: 'codes', on: 'name', data: { id, name: id } }];
      const answers = await Promise.all(
        people.map((each, i) =>
          i % 2 === 0 ? put(each, `codes/by/name/${id}`, { id }) : each.client.post('/api/batch', { operations }),
        ),
      );
      expect(answers.map(({ status }) => (status === 201 ? 200 : status))).toEqual(answers.map(() => 200));
    }
  });

  test('a record that is deleted again and again is made again', async () => {
    const [ann] = people as [User];
    const writes = Array.from({ length: 12 }, async (_, i) => {
      if (i % 3 !== 2) return put(ann, 'pages/by/slug/gone', { title: `t${i}` });
      const { body } = await ann.client.get('/api/pages?slug=gone');
      return ann.client.delete(`/api/pages/${body.data[0]?.id ?? ann.id}`);
    });
    const statuses = (await Promise.all(writes)).map(({ status }) => status);
    expect(statuses.filter((status) => status >= 500)).toEqual([]);
    expect((await put(ann, 'pages/by/slug/gone', {})).status).toBeLessThan(300);
  });
}
