// @module-tag partitions
// @module-tag long
/**
 * The answer to a write whose unique value is taken. Every error of the record's own write comes
 * before 409, and so does the 422 of a has_one partner that cannot let go; the partner's 403 does not,
 * as the partner is written after the record. Each write is sent alone, in a batch, and as the question whether it would be allowed.
 */
import { beforeEach, describe, expect, test } from 'vitest';
import { raw } from '../../../src/sql.ts';
import type { Answer } from '../../support/client.ts';
import { NOBODY, outcomeOf } from '../../support/records.ts';
import { describeRoutesOnOne, type TestService, type User } from '../../support/service.ts';

const SCHEMA = `
roles: { admin: { assigns: [member, lead] }, lead: {}, member: {} }
register: { roles: [member] }
collections:
  users:
    fields: { handle: { type: string, unique: true, max: 60 } }
    access: { view: true, update: '@record.id = @request.auth.id' }
  topics:
    fields: { name: string }
    access: { view: true, create: true }
  covers:
    fields: { locked: { type: bool, required: true, default: false }, hidden: { type: bool, required: true, default: false } }
    relations: { page: { kind: belongs_to, collection: pages } }
    access:
      view: '@record.hidden = false'
      create: true
      update: '@record.locked = false and (@next.page is null or @next.page.level < 4)'
  leaves:
    fields:
      slug: { type: string, required: true, unique: within_book, max: 100 }
      number: { type: int, unique: within_book }
    relations:
      book: { kind: belongs_to, collection: topics, required: true }
      tie: { kind: has_one, collection: ties, via: leaf }
    access: { view: true, create: true, update: '@next.number is null or @next.number < 100' }
  ties:
    fields: { locked: { type: bool, required: true, default: false } }
    relations: { leaf: { kind: belongs_to, collection: leaves } }
    access: { view: true, create: true, update: '@record.locked = false and (@next.leaf is null or @next.leaf.book.name != "closed")' }
  seats:
    fields: { paid: { type: bool, required: true, default: false } }
    relations:
      show: { kind: belongs_to, collection: topics, required: true }
      guest: { kind: belongs_to, collection: users, required: true, unique: within_show, default: '@request.auth.id' }
    access: { view: true, create: true, update: true }
  badges:
    relations: { page: { kind: belongs_to, collection: pages, required: true } }
    access: { view: true, create: true, update: true }
  pages:
    fields:
      slug: { type: string, required: true, unique: true, max: 100 }
      number: { type: int, unique: true }
      weight: { type: float, required: true, unique: true, default: 0 }
      at: { type: datetime, unique: true }
      hidden: { type: bool, required: true, default: false }
      locked: { type: bool, required: true, default: false }
      level: { type: int, required: true, default: 1, access: { write: '@next.level < 5' } }
    relations:
      owner: { kind: belongs_to, collection: users, required: true, default: '@request.auth.id' }
      above: { kind: belongs_to, collection: topics, unique: true }
      topics: { kind: many_to_many, collection: topics }
      cover: { kind: has_one, collection: covers, via: page }
      badge: { kind: has_one, collection: badges, via: page }
    access:
      view: '@record.hidden = false or @record.owner = @request.auth.id'
      create: '@record.locked = false and none(@record.topics as t, t.name = "closed")'
      update: '@record.owner = @request.auth.id and none(@next.topics as t, t.name = "closed") and @next.locked = false'
`;

interface Places {
  /** Ann's own; it has the cover `held` (hidden and locked), and the badge `worn`. */
  readonly own: string;
  readonly ofBob: string;
  readonly hiddenOfBob: string;
  readonly free: string;
  readonly locked: string;
  readonly badge: string;
  readonly worn: string;
  readonly closed: string;
  readonly topic: string;
}
interface Case {
  readonly name: string;
  readonly page?: keyof Places;
  readonly data: (places: Places) => object;
  readonly isStale?: boolean;
  readonly expected: readonly unknown[];
}

const TAKEN = [409, 'unique_violation', '/data/slug unique_violation'];
const FORBIDDEN = [403, 'forbidden'];
const HELD = [409, 'unique_violation', '/data/cover unique_violation'];
const STALE = [412, 'changed'];
const STUCK = [422, 'validation_failed', '/data/badge required'];

/** Each body has the taken `slug` too. */
const OF_BOTH: readonly Case[] = [
  { name: 'nothing else', data: () => ({}), expected: TAKEN },
  { name: 'a relation', data: ({ topic }) => ({ topics: { add: [topic] } }), expected: TAKEN },
  { name: 'a has_one that may move', data: ({ free }) => ({ cover: free }), expected: TAKEN },
  { name: 'a rule of the would-be record', data: () => ({ locked: true }), expected: FORBIDDEN },
  {
    name: 'a rule of its would-be members',
    data: ({ closed }) => ({ topics: { add: [closed] } }),
    expected: FORBIDDEN,
  },
  { name: 'a rule of a field', data: () => ({ level: 9 }), expected: [...FORBIDDEN, '/data/level forbidden'] },
  { name: 'a rule of the has_one', data: ({ locked }) => ({ cover: locked }), expected: TAKEN },
  {
    name: 'a rule of the has_one about the would-be record',
    data: ({ free }) => ({ cover: free, level: 4 }),
    expected: TAKEN,
  },
  {
    name: 'a wrong type',
    data: () => ({ number: 'x' }),
    expected: [422, 'validation_failed', '/data/number wrong_type'],
  },
  {
    name: 'a reference that leads nowhere',
    data: () => ({ above: NOBODY }),
    expected: [422, 'validation_failed', '/data/above not_found'],
  },
  {
    name: 'a member that is not there',
    data: () => ({ topics: { add: [NOBODY] } }),
    expected: [422, 'validation_failed', '/data/topics/add/0 not_found'],
  },
  {
    name: 'a has_one that is not there',
    data: () => ({ cover: NOBODY }),
    expected: [422, 'validation_failed', '/data/cover not_found'],
  },
];
const OF_CHANGES: readonly Case[] = [
  { name: 'a hidden record', page: 'hiddenOfBob', data: () => ({}), expected: [404, 'not_found'] },
  {
    name: 'a hidden record, and a has_one',
    page: 'hiddenOfBob',
    data: ({ free }) => ({ cover: free }),
    expected: [404, 'not_found'],
  },
  { name: "another's record", page: 'ofBob', data: () => ({}), expected: FORBIDDEN },
  {
    name: "another's record, and a has_one",
    page: 'ofBob',
    data: ({ free }) => ({ cover: free }),
    expected: FORBIDDEN,
  },
  { name: 'another version', data: () => ({}), isStale: true, expected: STALE },
  {
    name: 'another version, and members',
    data: ({ topic }) => ({ topics: { set: [topic] } }),
    isStale: true,
    expected: STALE,
  },
  { name: 'another version, and a rule', data: () => ({ locked: true }), isStale: true, expected: FORBIDDEN },
  {
    name: 'another version, and a rule of the has_one',
    data: ({ locked }) => ({ cover: locked }),
    isStale: true,
    expected: STALE,
  },
  { name: 'a has_one that must have another place first', data: ({ badge }) => ({ badge }), expected: STUCK },
  { name: 'a has_one that is cleared and must stay', data: () => ({ badge: null }), expected: STUCK },
  { name: 'a has_one that stays where it is', data: ({ worn }) => ({ badge: worn }), expected: TAKEN },
  {
    name: 'a has_one that must have another place first, and another version',
    data: ({ badge }) => ({ badge }),
    isStale: true,
    expected: STUCK,
  },
  {
    name: 'a has_one that must have another place first, and a rule',
    data: ({ badge }) => ({ badge, locked: true }),
    expected: FORBIDDEN,
  },
  {
    name: 'a hidden record, and a has_one that must have another place first',
    page: 'hiddenOfBob',
    data: ({ badge }) => ({ badge }),
    expected: [404, 'not_found'],
  },
];
/** Without the taken value: what the places of has_ones refuse by themselves. */
const OF_PLACES: readonly Case[] = [
  { name: 'a place with a hidden holder', data: ({ free }) => ({ cover: free }), expected: HELD },
  { name: 'and the rule of the record that wants it', data: ({ locked }) => ({ cover: locked }), expected: FORBIDDEN },
  { name: 'and another version', data: ({ free }) => ({ cover: free }), isStale: true, expected: STALE },
  { name: 'and a badge that must stay', data: ({ free, badge }) => ({ cover: free, badge }), expected: STUCK },
  {
    name: 'a badge that must stay, and another version',
    data: ({ badge }) => ({ badge }),
    isStale: true,
    expected: STUCK,
  },
  {
    name: 'and a cover that may not move',
    data: ({ badge, locked }) => ({ badge, cover: locked }),
    expected: FORBIDDEN,
  },
  { name: 'and a taken value', data: ({ free }) => ({ cover: free, slug: 'taken' }), expected: TAKEN },
];

describeRoutesOnOne('a taken value', (service) => suite(service), { schema: SCHEMA });

function suite(service: TestService): void {
  let ann: User;
  let places: Places;
  let taken: string;
  let count = 0;
  const post = async (user: User, collection: string, data: object): Promise<string> => {
    const { status, body, text } = await user.client.post(`/api/${collection}`, { data });
    if (status !== 201) throw new Error(text);
    return body.data.id;
  };
  const fresh = () => ({ slug: `s${++count}`, weight: count });
  beforeEach(async () => {
    ann ??= await service.user();
    const bob = await service.user();
    taken = `taken ${++count}`;
    await post(bob, 'pages', { ...fresh(), slug: taken, hidden: true });
    const own = await post(ann, 'pages', fresh());
    const [free, locked, topic] = [
      await post(ann, 'covers', {}),
      await post(ann, 'covers', { locked: true }),
      await post(ann, 'topics', { name: 'open' }),
    ];
    places = {
      own,
      ofBob: await post(bob, 'pages', fresh()),
      hiddenOfBob: await post(bob, 'pages', { ...fresh(), hidden: true }),
      free,
      locked,
      badge: await post(ann, 'badges', { page: await post(ann, 'pages', fresh()) }),
      worn: await post(ann, 'badges', { page: own }),
      closed: await post(ann, 'topics', { name: 'closed' }),
      topic,
    };
  });

  const inOperation = (answer: Answer): readonly unknown[] =>
    outcomeOf(answer).map((part) => (typeof part === 'string' ? part.replace('/operations/0', '') : part));
  const answered = ({ body }: Answer): readonly unknown[] =>
    outcomeOf({ status: body.data.status, body: body.data } as Answer);

  /** Returns the outcome of the write in each of its forms. */
  async function ways(change: { readonly id?: string; readonly data: object; readonly isStale?: boolean }) {
    const { id, data, isStale = false } = change;
    const { client } = ann;
    const ifMatch: Readonly<Record<string, string>> = isStale ? { 'If-Match': '"another"' } : {};
    const alone =
      id === undefined
        ? await client.post('/api/pages', { data })
        : await client.patch(`/api/pages/${id}`, { data }, ifMatch);
    const operation = {
      op: id === undefined ? 'create' : 'update',
      collection: 'pages',
      id,
      data,
      ...(isStale && { if_match: '"another"' }),
    };
    const outcomes = [outcomeOf(alone), inOperation(await client.post('/api/batch', { operations: [operation] }))];
    if (id === undefined) {
      const key = { 'Idempotency-Key': `key-${++count}` };
      outcomes.push(outcomeOf(await client.post('/api/pages', { data }, key)));
    }
    if (isStale) return outcomes;
    return [
      ...outcomes,
      answered(await client.post('/api/pages/can', { action: id === undefined ? 'create' : 'update', id, data })),
    ];
  }

  const all = (expected: readonly unknown[], got: readonly unknown[]) => got.map(() => expected);

  describe('on create, beside', () => {
    test.each(OF_BOTH)('$name', async ({ data, expected }) => {
      const got = await ways({ data: { ...fresh(), ...data(places), slug: taken } });
      expect(got).toEqual(all(expected, got));
      expect(got).toHaveLength(4);
    });

    test.each([
      ['number', 7],
      ['weight', -1.5],
      ['at', '2026-01-01T00:00:00.000000Z'],
    ])('a has_one: an optional or required value of any type (%s)', async (name, value) => {
      await post(ann, 'pages', { ...fresh(), [name]: value }).catch(() => undefined);
      for (const cover of [places.locked, places.free]) {
        const got = await ways({ data: { ...fresh(), [name]: value, cover } });
        expect(got).toEqual(all([409, 'unique_violation', `/data/${name} unique_violation`], got));
      }
    });
  });

  describe('on change, beside', () => {
    test.each([...OF_BOTH, ...OF_CHANGES])('$name', async ({ page = 'own', data, isStale = false, expected }) => {
      const got = await ways({ id: places[page], data: { ...data(places), slug: taken }, isStale });
      expect(got).toEqual(all(expected, got));
    });

    test.each(OF_PLACES)('$name', async ({ data, isStale = false, expected }) => {
      const { own } = places;
      const held = await post(ann, 'covers', { page: own });
      const { db } = service.app;
      await db.run(raw(`UPDATE /* every tenant */ covers SET hidden = true, locked = true WHERE id = '${held}'`));
      const { slug, ...body } = data(places) as { readonly slug?: string };
      const got = await ways({ id: own, data: { ...body, ...(slug && { slug: taken }) }, isStale });
      expect(got).toEqual(all(expected, got));
    });

    test('leaves everything as it was', async () => {
      const { own, free, topic } = places;
      const before = await ann.client.get(`/api/pages/${own}`);
      await ways({ id: own, data: { slug: taken, number: count, topics: { add: [topic] }, cover: free } });
      expect((await ann.client.get(`/api/pages/${own}`)).text).toBe(before.text);
      expect((await ann.client.get(`/api/covers/${free}`)).body.data.page).toBeNull();
    });

    test('roles, which come before it', async () => {
      const other = await service.user();
      await other.client.patch(`/api/users/${other.id}`, { data: { handle: taken } });
      const patch = (data: object) => ann.client.patch(`/api/users/${ann.id}`, { data: { handle: taken, ...data } });
      expect(outcomeOf(await patch({}))).toEqual([409, 'unique_violation', '/data/handle unique_violation']);
      expect(outcomeOf(await patch({ roles: { add: ['lead'] } }))).toEqual(FORBIDDEN);
    });
  });

  describe('a value that is unique within a relation, which is set, beside', () => {
    const IN_BOOK = [409, 'unique_violation', '/data/slug unique_violation'];
    interface Shelf {
      /** Has a leaf of the same slug, as `closed` has. */
      readonly other: string;
      readonly closed: string;
      readonly leaf: string;
      readonly free: string;
      readonly locked: string;
    }
    const shelf = async (): Promise<Shelf> => {
      const slug = `leaf ${++count}`;
      const book = (name: string): Promise<string> => post(ann, 'topics', { name });
      const [own, other, closed] = [await book('own'), await book('other'), await book('closed')];
      for (const each of [other, closed]) await post(ann, 'leaves', { slug, number: 1, book: each });
      return {
        other,
        closed,
        leaf: await post(ann, 'leaves', { slug, number: 1, book: own }),
        free: await post(ann, 'ties', {}),
        locked: await post(ann, 'ties', { locked: true }),
      };
    };
    interface Move {
      readonly name: string;
      readonly data: (shelf: Shelf) => object;
      readonly isStale?: boolean;
      readonly expected: readonly unknown[];
    }
    const MOVES: readonly Move[] = [
      { name: 'nothing else', data: () => ({}), expected: IN_BOOK },
      { name: 'a has_one that may move', data: ({ free }) => ({ tie: free }), expected: IN_BOOK },
      { name: 'a rule', data: () => ({ number: 100 }), expected: FORBIDDEN },
      { name: 'a rule of the has_one', data: ({ locked }) => ({ tie: locked }), expected: IN_BOOK },
      {
        name: 'a rule of the has_one about the would-be relation',
        data: ({ closed, free }) => ({ book: closed, tie: free }),
        expected: IN_BOOK,
      },
      { name: 'another version', data: () => ({}), isStale: true, expected: STALE },
      {
        name: 'another version, and a rule of the has_one',
        data: ({ locked }) => ({ tie: locked }),
        isStale: true,
        expected: STALE,
      },
    ];
    test.each(MOVES)('$name', async ({ data, isStale = false, expected }) => {
      const made = await shelf();
      const path = `/api/leaves/${made.leaf}`;
      const { slug } = (await ann.client.get(path)).body.data;
      const ifMatch: Readonly<Record<string, string>> = isStale ? { 'If-Match': '"another"' } : {};
      for (const more of [{}, { slug }]) {
        const body = { data: { book: made.other, ...more, ...data(made) } };
        expect(outcomeOf(await ann.client.patch(path, body, ifMatch))).toEqual(expected);
        const operation = { op: 'update', collection: 'leaves', id: made.leaf, ...body };
        const operations = [{ ...operation, ...(isStale && { if_match: '"another"' }) }];
        expect(inOperation(await ann.client.post('/api/batch', { operations }))).toEqual(expected);
      }
    });

    test('another version, where no value is free', async () => {
      const [show, other] = [await post(ann, 'topics', { name: 'one' }), await post(ann, 'topics', { name: 'two' })];
      await post(ann, 'seats', { show: other });
      const path = `/api/seats/${await post(ann, 'seats', { show })}`;
      const move = (headers: Readonly<Record<string, string>>) =>
        ann.client.patch(path, { data: { show: other, paid: true } }, headers);
      expect(outcomeOf(await move({}))).toEqual([409, 'unique_violation', '/data/guest unique_violation']);
      expect(outcomeOf(await move({ 'If-Match': '"another"' }))).toEqual(STALE);
    });

    test('on create, a rule of the has_one', async () => {
      const { leaf, other, closed, free, locked } = await shelf();
      const { slug } = (await ann.client.get(`/api/leaves/${leaf}`)).body.data;
      const create = (data: object) => ann.client.post('/api/leaves', { data: { slug, ...data } });
      expect(outcomeOf(await create({ book: other, tie: locked }))).toEqual(IN_BOOK);
      expect(outcomeOf(await create({ book: closed, tie: free }))).toEqual(IN_BOOK);
      expect(outcomeOf(await create({ book: other, tie: free }))).toEqual(IN_BOOK);
    });
  });

  test('a batch goes by the state that each operation meets', async () => {
    const { own } = places;
    const send = (...operations: readonly object[]) => ann.client.post('/api/batch', { operations });
    const update = (slug: string) => ({ op: 'update', collection: 'pages', id: own, data: { slug } });
    const create = (slug: string) => ({ op: 'create', collection: 'pages', data: { ...fresh(), slug } });
    const [first, second] = [`a ${++count}`, `b ${++count}`];
    expect((await send(update(first), update(second), create(first))).status).toBe(200);
    expect(outcomeOf(await send(create(`c ${count}`), update(first)))).toEqual([
      409,
      'unique_violation',
      '/operations/1/data/slug unique_violation',
    ]);
  });
}
