/** Imported records are held to the checks of their collection, each error at its line. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/database/contract.ts';
import { ImportRejected, type ImportRequest, importRecords } from '../../../src/records/transfer/import-records.ts';
import { raw } from '../../../src/sql.ts';
import { KINDS, openKind, World } from '../../support/store-world.ts';

const SCHEMA = `
roles: { member: {}, boss: {} }
collections:
  rooms:
    fields: { code: { type: string, unique: true }, seats: int }
  bookings:
    fields:
      code: { type: string, unique: true }
      people: int
      price: int
      stage: { type: string, enum: [asked, booked, over], transitions: { asked: [booked], booked: [over] } }
    relations:
      room: { kind: belongs_to, collection: rooms }
      guests: { kind: many_to_many, collection: rooms }
      after: { kind: belongs_to, collection: bookings }
    checks:
      fits: { when: '@next.people <= @next.room.seats', message: the room is too small, fields: [people] }
      never_fewer: { when: '@next.people >= @record.people', message: a booking does not shrink }
      few_guests: { when: 'count(@next.guests) < 2', message: too many guests }
      boss_price: { when: '@next.price < 100 or @request.auth.roles contains "boss"', message: too dear }
`;
type Members = Readonly<Record<string, unknown>>;

describe.each(KINDS.slice(-1))('checks of an import (%s)', (kind) => {
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
      references: new Map(
        collection === 'rooms'
          ? []
          : [
              ['room', 'code'],
              ['guests', 'code'],
            ],
      ),
      ...more,
    });
  const bookings = async () => db.rows(raw('SELECT code, people, stage FROM bookings ORDER BY code'));

  beforeAll(async () => {
    db = await openKind(kind);
    world = await World.open(db, SCHEMA);
    await imported('rooms', [
      { code: 'small', seats: 4 },
      { code: 'large', seats: 40 },
    ]);
  });
  afterAll(() => db?.close());

  it('a record that fails a check is an error at its line, and nothing is stored', async () => {
    const file = [
      { code: 'a', people: 3, room: 'small' },
      { code: 'b', people: 5, room: 'small' },
      { code: 'c', people: 5, room: 'large', guests: ['small', 'large'] },
      { code: 'd', people: 5 },
    ];
    const rejected = await imported('bookings', file).catch((error: unknown) => error);
    expect(rejected).toBeInstanceOf(ImportRejected);
    expect((rejected as ImportRejected).lines('bookings.csv')).toEqual([
      'bookings.csv:2: the room is too small (check `fits`)',
      'bookings.csv:3: too many guests (check `few_guests`)',
    ]);
    await expect(imported('bookings', file, { dryRun: true })).rejects.toThrow('2 errors');
    expect(await bookings()).toEqual([]);
  });

  it('failed checks are reported beside the other errors of other records', async () => {
    const [b1, b2] = ['01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-000000000002'];
    const file = [
      { code: 'a', people: 'x', room: 'small' },
      { code: 'b', people: 5, room: 'small' },
      { code: 'c', people: 1, room: 'none' },
      { id: b1, code: 'd', people: 1, room: 'large', after: b2 },
      { id: b2, code: 'b', people: 1, room: 'large', price: 700 },
      { code: 'e', people: 1, price: 700, guests: ['small', 'large'] },
    ];
    const rejected = await imported('bookings', file).catch((error: unknown) => error);
    expect((rejected as ImportRejected).lines('f')).toEqual([
      'f:1: `people`: expected a whole number within ±9007199254740991, found "x"',
      'f:2: the room is too small (check `fits`)',
      'f:3: `room`: no record in `rooms` has the `code` "none"',
      'f:5: `code` must be unique; line 2 has the same value',
      'f:6: too many guests (check `few_guests`)',
    ]);
    expect(await bookings()).toEqual([]);
  });

  it('each record is judged as a new one, and no caller bounds the operator', async () => {
    await imported('bookings', [{ code: 'a', people: 4, room: 'small', price: 500, stage: 'over' }]);
    // Fewer people, and back in its stages: an import corrects what was.
    await imported('bookings', [{ code: 'a', people: 2, stage: 'asked' }], { upsert: 'code' });
    expect(await bookings()).toEqual([['a', '2', 'asked']]);
    const grown = imported('bookings', [{ code: 'a', people: 9 }], { upsert: 'code' });
    await expect(grown).rejects.toMatchObject({
      errors: [{ line: 1, message: 'the room is too small (check `fits`)' }],
    });
  });

  it('an import without checks writes what fails them', async () => {
    await imported('bookings', [{ code: 'b', people: 50, room: 'small' }], { isChecked: false });
    expect(await bookings()).toContainEqual(['b', '50', null]);
  });
});
