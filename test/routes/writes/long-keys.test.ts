/** Values and ids that do not fit into the entry of an index: 422 at their member, in place of a defect. */
import { beforeAll, expect, test } from 'vitest';
import { outcomeOf } from '../../support/records.ts';
import { describeOnBoth, type TestService, type User } from '../../support/service.ts';
import { insertRecord } from '../../support/system-records.ts';

const OPEN = 'access: { view: true, create: true, update: true }';
const SCHEMA = `
roles: { admin: { assigns: [member] }, member: {} }
register: { roles: [member] }
collections:
  taken: { fields: { code: { type: string, unique: true } }, ${OPEN} }
  indexed: { fields: { code: { type: string, index: true } }, ${OPEN} }
  searched: { fields: { code: { type: string, index: true, search: true } }, ${OPEN} }
  folded: { fields: { code: { type: string, unique: { ignore_case: true } } }, ${OPEN} }
  within:
    fields: { place: { type: string, required: true }, code: { type: string, unique: { within: [place] } } }
    ${OPEN}
  named:
    id: { type: string }
    relations:
      other: { kind: belongs_to, collection: named }
      others: { kind: many_to_many, collection: named }
      holder: { kind: has_one, collection: holders, via: held }
    ${OPEN}
  holders:
    id: { type: string, column: code }
    fields: { place: { type: string, unique: { within: [held] } } }
    relations: { held: { kind: belongs_to, collection: named, required: true, unique: true } }
    ${OPEN}
`;
const tooLong = (pointer: string) => [422, 'validation_failed', `${pointer} too_long`];
const CREATED = [201, undefined];

/** Characters that PostgreSQL cannot compress, of four bytes each. */
let seed = 1;
const next = (): number => {
  seed = (seed * 48_271) % 2_147_483_647;
  return seed;
};
const wide = (length: number): string =>
  Array.from({ length }, () => String.fromCodePoint(0x20000 + (next() % 40_000))).join('');
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
/** The same, of one byte each. */
const narrow = (length: number): string => Array.from({ length }, () => LETTERS[next() % LETTERS.length]).join('');

describeOnBoth('long keys', (service) => suite(service), { schema: SCHEMA });

function suite(service: TestService): void {
  let ann: User;
  const create = async (collection: string, data: object) =>
    outcomeOf(await ann.client.post(`/api/${collection}`, { data }));
  const countOf = async (collection: string): Promise<number> =>
    (await ann.client.get(`/api/${collection}`)).body.data.length;
  beforeAll(async () => {
    ann = await service.user();
  });

  test('a value that does not fit into an index is an error of its field', async () => {
    for (const collection of ['taken', 'indexed', 'searched', 'folded']) {
      expect(await create(collection, { code: wide(660) }), collection).toEqual(CREATED);
      expect(await create(collection, { code: wide(675) }), collection).toEqual(tooLong('/data/code'));
      expect(await create(collection, { code: '\u{20000}'.repeat(675) }), collection).toEqual(CREATED);
      expect(await countOf(collection), collection).toBe(2);
    }
  });

  test('values that fit into an index alone and not together are an error of the unique field', async () => {
    expect(await create('within', { place: wide(400), code: wide(200) })).toEqual(CREATED);
    expect(await create('within', { place: wide(400), code: wide(300) })).toEqual(tooLong('/data/code'));
    // PostgreSQL names no index that a row of a page cannot be in.
    expect(await create('within', { place: wide(4000), code: 'x' })).toEqual(tooLong('/data'));
    expect(await countOf('within')).toBe(1);
  });

  test('every write reports it, and changes nothing', async () => {
    const { body } = await ann.client.post('/api/taken', { data: { code: 'short' } });
    const path = `/api/taken/${body.data.id}`;
    const code = wide(675);
    expect(outcomeOf(await ann.client.patch(path, { data: { code } }))).toEqual(tooLong('/data/code'));
    const put = await ann.client.put(`/api/taken/by/code/${encodeURIComponent(code)}`, { data: {} });
    expect(outcomeOf(put)).toEqual(tooLong('/data/code'));
    const operations = [
      { op: 'update', collection: 'taken', id: body.data.id, data: { code: 'other' } },
      { op: 'create', collection: 'taken', data: { code } },
    ];
    const batch = await ann.client.post('/api/batch', { operations });
    expect(outcomeOf(batch)).toEqual(tooLong('/operations/1/data/code'));
    const can = await ann.client.post('/api/taken/can', { action: 'create', data: { code } });
    expect([can.status, can.body.data.allowed]).toEqual([200, false]);
    expect((await ann.client.get(path)).body.data.code).toBe('short');
  });

  test('the id of a new record has at most 1024 bytes', async () => {
    expect(await create('named', { id: narrow(1024) })).toEqual(CREATED);
    expect(await create('named', { id: wide(256) })).toEqual(CREATED);
    expect(await create('named', { id: narrow(1025) })).toEqual(tooLong('/data/id'));
    expect(await create('named', { id: wide(257) })).toEqual(tooLong('/data/id'));
    const [id, other] = [narrow(1024), narrow(1024)];
    expect(await create('named', { id: other })).toEqual(CREATED);
    expect(await create('named', { id, other, others: { set: [other] } })).toEqual(CREATED);
    const got = await ann.client.get(`/api/named/${encodeURIComponent(id)}?expand=other,others`);
    expect([got.body.data.other, got.body.data.expand.others[0].id]).toEqual([other, other]);
  });

  test('a reference between two longer ids of earlier records is an error of the relation', async () => {
    const [first = '', second = ''] = [narrow(1400), narrow(1400)];
    const at = '2026-01-01T00:00:00.000000Z';
    for (const id of [first, second]) await insertRecord(service.app, 'named', { id, created_at: at, updated_at: at });
    const change = async (data: object) =>
      outcomeOf(await ann.client.patch(`/api/named/${encodeURIComponent(first)}`, { data }));
    expect(await change({ other: second })).toEqual(tooLong('/data/other'));
    expect(await change({ others: { add: [second] } })).toEqual(tooLong('/data/others'));
    expect(await create('named', { id: 'short', other: second, others: { add: [second] } })).toEqual(CREATED);
    expect(await create('holders', { id: 'holder', held: 'short', place: wide(400) })).toEqual(CREATED);
    expect(await change({ holder: 'holder' })).toEqual(tooLong('/data/holder'));
  });
}
