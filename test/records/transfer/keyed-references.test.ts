/** Files that name records of relations by a unique field of theirs. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/database/contract.ts';
import { ImportRejected, type ImportRequest, importRecords } from '../../../src/records/transfer/import-records.ts';
import { raw } from '../../../src/sql.ts';
import { ONE_KIND, openKind, World } from '../../support/store-world.ts';

const SCHEMA = `
roles: { member: {} }
collections:
  airlines:
    fields: { carrier: { type: string, unique: true }, number: { type: int, unique: true }, name: string }
  flights:
    fields: { code: { type: string, unique: true } }
    relations:
      airline: { kind: belongs_to, collection: airlines, required: true }
      before: { kind: belongs_to, collection: flights }
      pilot: { kind: belongs_to, collection: users }
      partners: { kind: many_to_many, collection: airlines }
      follows: { kind: many_to_many, collection: flights }
  ints: { id: { type: int }, fields: { code: string } }
  strings: { id: { type: string, made_by: database }, fields: { code: string } }
  uuids: { id: { type: uuid, made_by: database }, fields: { code: string } }
`;
type Members = Readonly<Record<string, unknown>>;

describe.each(ONE_KIND)('references by a unique field (%s)', (kind) => {
  let db: Database;
  let world: World;
  const imported = (collection: string, records: readonly Members[], more: Partial<ImportRequest> = {}) =>
    importRecords(db, {
      schema: world.schema,
      collection: world.schema.collections.get(collection)!,
      now: '2026-01-02T03:04:05.000000Z',
      records: async function* () {
        for (const [i, members] of records.entries())
          yield { line: i + 1, isText: false, members: new Map(Object.entries(members)) };
      },
      ...more,
    });
  const by = (references: Readonly<Record<string, string>>) => ({ references: new Map(Object.entries(references)) });
  const flights = async (): Promise<readonly (readonly unknown[])[]> =>
    db.rows(
      raw(`
      SELECT f.code, a.carrier, b.code,
             (SELECT string_agg(p.carrier, ' ' ORDER BY p.carrier)
                FROM flights__partners AS l JOIN airlines AS p ON p.id = l.member_id WHERE l.record_id = f.id),
             (SELECT string_agg(o.code, ' ' ORDER BY o.code)
                FROM flights__follows AS l JOIN flights AS o ON o.id = l.member_id WHERE l.record_id = f.id)
        FROM flights AS f JOIN airlines AS a ON a.id = f.airline_id LEFT JOIN flights AS b ON b.id = f.before_id
       ORDER BY f.code`),
    );

  beforeAll(async () => {
    db = await openKind(kind);
    world = await World.open(db, SCHEMA);
    await world.user('ann@example.org');
    await imported('airlines', [
      { carrier: 'AA', number: 1 },
      { carrier: 'BB', number: 2 },
      { carrier: '', number: 3 },
    ]);
  });
  afterAll(() => db?.close());

  it.each([
    ['ints', 7],
    ['strings', '7'],
    ['uuids', '01900000-0000-7000-8000-000000000007'],
  ])('ids of %s that the file has are kept, and the database makes the others', async (collection, id) => {
    expect(await imported(collection, [{ id, code: 'own' }])).toMatchObject({ created: 1 });
    expect(await imported(collection, [{ code: 'made' }])).toMatchObject({ created: 1 });
    const rows = await db.rows(raw(`SELECT id::text FROM ${collection} ORDER BY code`));
    expect(rows[1]).toEqual([String(id)]);
    if (collection === 'ints') expect(rows[0]).toEqual(['8']);
  });

  it('stored records and those of the file are found by the field, lists too', async () => {
    const records = [
      {
        code: 'f1',
        airline: 'AA',
        before: 'f2',
        pilot: 'ANN@example.org',
        partners: ['BB', 'AA', 'BB'],
        follows: ['f2'],
      },
      { code: 'f2', airline: 'BB', before: 'f1', partners: [], follows: null },
      { code: 'f3', airline: '', before: null },
    ];
    const references = by({ airline: 'carrier', before: 'code', pilot: 'email', partners: 'carrier', follows: 'code' });
    expect(await imported('flights', records, references)).toMatchObject({ created: 3 });
    expect(await flights()).toEqual([
      ['f1', 'AA', 'f2', 'AA BB', 'f2'],
      ['f2', 'BB', 'f1', null, null],
      ['f3', '', null, null, null],
    ]);
  });

  it('an update finds records by the field too, and a record of the file before the stored one that it updates', async () => {
    const [row] = await db.rows(raw(`SELECT id FROM flights WHERE code = 'f3'`));
    const records = [
      { id: row![0], code: 'f4', airline: 3 },
      { id: '01900000-0000-7000-8000-000000000001', code: 'f5', airline: 2, before: 'f4', follows: ['f4', 'f1'] },
    ];
    const references = by({ airline: 'number', before: 'code', follows: 'code' });
    expect(await imported('flights', records, { ...references, upsert: 'id' })).toMatchObject({
      created: 1,
      updated: 1,
    });
    expect((await flights()).slice(2)).toEqual([
      ['f4', '', null, null, null],
      ['f5', 'BB', 'f4', null, 'f1 f4'],
    ]);
  });

  it('values that no record has, or that are not of the field, are errors of their lines', async () => {
    const records = [
      { code: 'g1', airline: 'ZZ', partners: ['AA', 'YY'] },
      { code: 'g2', airline: 7 },
      { code: 'g3', airline: null },
    ];
    const rejected = imported('flights', records, by({ airline: 'carrier', partners: 'carrier' }));
    const error = (await rejected.catch((each: unknown) => each)) as ImportRejected;
    expect(error).toBeInstanceOf(ImportRejected);
    expect(error.lines('f')).toEqual([
      'f:1: `airline`: no record in `airlines` has the `carrier` "ZZ"',
      'f:1: `partners`: no record in `airlines` has the `carrier` "YY"',
      'f:2: `airline`, `carrier`: expected a string, found 7',
      'f:3: `airline` must have a value',
    ]);
  });

  it.each([
    [{ code: 'id' }, '`code` is not a belongs_to or many_to_many of `flights`'],
    [{ airline: 'name' }, '`name` is not a unique field of `airlines`; there are: `id`, `carrier`, `number`'],
  ])('the references %j are refused', async (references, message) => {
    await expect(imported('flights', [], by(references))).rejects.toThrow(new RangeError(message));
  });
});
