/** `no_overlap`: bookings of one room, alone, in batches, and in a race. */
import { beforeAll, expect, test } from 'vitest';
import { lockValues } from '../../../src/records/write/locks/value-locks.ts';
import { lockWaits } from '../../support/lock-waits.ts';
import { outcomeOf } from '../../support/records.ts';
import { describeRoutes, type TestService, type User } from '../../support/service.ts';
import { until } from '../../support/until.ts';

const SCHEMA = `
roles: { admin: { assigns: [member] }, member: {} }
register: { roles: [member] }
collections:
  rooms:
    fields: { name: string }
    access: { view: true, create: true }
  bookings:
    no_overlap: { on: [room, desk], from: starts_at, to: ends_at, where: '@record.cancelled = false' }
    fields:
      desk: { type: string, default: whole }
      starts_at: datetime
      ends_at: datetime
      cancelled: { type: bool, required: true, default: false }
    relations:
      room: { kind: belongs_to, collection: rooms }
      owner: { kind: belongs_to, collection: users, default: '@request.auth.id' }
    access: { view: '@record.owner = @request.auth.id', create: true, update: '@record.owner = @request.auth.id', delete: '@record.owner = @request.auth.id' }
  shifts:
    no_overlap:
      - { on: [nurse], from: first, to: after }
      - { on: [chair], from: first, to: after }
    fields: { nurse: int, chair: string, first: date, after: date }
    access: { view: true, create: true }
`;
const POINTERS = ['room', 'desk', 'starts_at', 'ends_at'].map((name) => `/data/${name} conflict`);
const TAKEN = [409, 'conflict', ...POINTERS];
const CREATED = [201, undefined];

describeRoutes('records that do not overlap', (service) => suite(service), { schema: SCHEMA });

function suite(service: TestService): void {
  let [ann, bob] = [] as unknown as [User, User];
  let room = '';
  beforeAll(async () => {
    [ann, bob] = [await service.user(), await service.user()];
  });
  const newRoom = async (): Promise<void> => {
    room = (await ann.client.post('/api/rooms', { data: { name: 'a room' } })).body.data.id;
  };
  const at = (hour: number | null): string | null =>
    hour === null ? null : `2026-11-28T${String(hour).padStart(2, '0')}:00:00Z`;
  const booking = (from: number | null, to: number | null, more = {}) => ({
    room,
    starts_at: at(from),
    ends_at: at(to),
    ...more,
  });
  const book = (user: User, from: number | null, to: number | null, more = {}) =>
    user.client.post('/api/bookings', { data: booking(from, to, more) });

  test('periods touch, but do not overlap', async () => {
    await newRoom();
    expect(outcomeOf(await book(ann, 10, 12))).toEqual(CREATED);
    expect(outcomeOf(await book(bob, 12, 14))).toEqual(CREATED);
    for (const [from, to] of [
      [9, 11],
      [11, 13],
      [10, 12],
      [8, 20],
      [13, 14],
    ] as const)
      expect(outcomeOf(await book(bob, from, to))).toEqual(TAKEN);
    expect(outcomeOf(await book(bob, 10, 10))).toEqual(CREATED);
  });

  test('a hidden record is not revealed beyond the conflict', async () => {
    await newRoom();
    const { body } = await book(ann, 10, 12);
    const answer = await book(bob, 11, 12);
    expect(answer.text).not.toContain(body.data.id);
    expect(answer.text).not.toContain('T10:00');
    expect(answer.body.errors[0].detail).toBe(
      'another record of the same `room` and `desk` overlaps with `starts_at` to `ends_at`',
    );
  });

  test('other places, no place, no times and the condition are free', async () => {
    await newRoom();
    await book(ann, 10, 12);
    expect(outcomeOf(await book(bob, 10, 12, { desk: 'left' }))).toEqual(CREATED);
    expect(outcomeOf(await book(bob, 10, 12, { room: null }))).toEqual(CREATED);
    expect(outcomeOf(await book(bob, null, null))).toEqual(CREATED);
    expect(outcomeOf(await book(bob, 10, 12, { cancelled: true }))).toEqual(CREATED);
  });

  test('a period without an end or a start goes on for ever, and a reversed one counts as the time between', async () => {
    await newRoom();
    expect(outcomeOf(await book(ann, 10, null))).toEqual(CREATED);
    expect(outcomeOf(await book(ann, 23, null))).toEqual(TAKEN);
    expect(outcomeOf(await book(ann, null, 10))).toEqual(CREATED);
    expect(outcomeOf(await book(ann, 1, 2))).toEqual(TAKEN);
    await newRoom();
    expect(outcomeOf(await book(ann, 12, 10))).toEqual(CREATED);
    expect(outcomeOf(await book(ann, 11, 13))).toEqual(TAKEN);
  });

  test('places of any length are compared whole', async () => {
    await newRoom();
    const desk = Array.from({ length: 9_000 }, (_, i) => String.fromCodePoint(0x4e00 + ((i * 7_919) % 20_000))).join(
      '',
    );
    expect(outcomeOf(await book(ann, 10, 12, { desk }))).toEqual(CREATED);
    expect(outcomeOf(await book(ann, 10, 12, { desk: `${desk}!` }))).toEqual(CREATED);
    expect(outcomeOf(await book(ann, 11, 13, { desk }))).toEqual(TAKEN);
  });

  test('a change that moves a record into another one conflicts, and a cancelled one makes way', async () => {
    await newRoom();
    const first = (await book(ann, 10, 12)).body.data.id;
    const second = (await book(ann, 14, 16)).body.data.id;
    const change = (id: string, data: object) => ann.client.patch(`/api/bookings/${id}`, { data });
    expect(outcomeOf(await change(second, { starts_at: at(11) }))).toEqual(TAKEN);
    expect(outcomeOf(await change(second, { ends_at: at(18) }))).toEqual([200, undefined]);
    expect(outcomeOf(await change(first, { cancelled: true }))).toEqual([200, undefined]);
    expect(outcomeOf(await change(second, { starts_at: at(11) }))).toEqual([200, undefined]);
    expect(outcomeOf(await change(first, { cancelled: false }))).toEqual(TAKEN);
  });

  test('a batch names the operation, and nothing of it stays', async () => {
    await newRoom();
    const operations = [
      [8, 10],
      [9, 11],
    ].map(([from, to]) => ({ op: 'create', collection: 'bookings', data: booking(from!, to!) }));
    const answer = await ann.client.post('/api/batch', { operations });
    expect(outcomeOf(answer)).toEqual([409, 'conflict', ...POINTERS.map((each) => `/operations/1${each}`)]);
    expect(outcomeOf(await book(bob, 8, 11))).toEqual(CREATED);
  });

  test('a dry run answers what the write would', async () => {
    await newRoom();
    await book(ann, 10, 12);
    const { body } = await ann.client.post('/api/bookings/can', { action: 'create', data: booking(11, 12) });
    expect(body.data).toMatchObject({ allowed: false, status: 409, code: 'conflict' });
  });

  test('bookings that race give one record', async () => {
    for (let round = 0; round < 5; round++) {
      await newRoom();
      const answers = await Promise.all(
        [10, 11, 12, 10, 11, 12].map((hour, i) => book(i % 2 === 0 ? ann : bob, hour, hour + 3)),
      );
      expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409, 409]);
    }
  });

  test('changes of the times that race give one change, and creates under a key one record', async () => {
    await newRoom();
    const ids = [];
    for (let i = 0; i < 6; i++) ids.push((await book(ann, 2 * i, 2 * i + 1)).body.data.id);
    const times = { starts_at: at(20), ends_at: at(22) };
    const moved = await Promise.all(ids.map((id) => ann.client.patch(`/api/bookings/${id}`, { data: times })));
    expect(moved.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409, 409, 409]);
    const keyed = [1, 2, 3, 4].map((i) => {
      const data = booking(22, 23);
      return ann.client.with({ 'Idempotency-Key': `${room}-${i}` }).post('/api/bookings', { data });
    });
    expect((await Promise.all(keyed)).map(({ status }) => status).sort()).toEqual([201, 409, 409, 409]);
  });

  test('a change of the times, and a create under a key, wait for the write that holds the place', async () => {
    // The embedded database has one connection.
    if (service.kind === 'embedded') return;
    await newRoom();
    const id = (await book(ann, 1, 2)).body.data.id;
    const [begun, done] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const collection = service.app.schema.collections.get('bookings')!;
    const holding = service.app.db.transaction(async (tx) => {
      await lockValues(tx, service.app.schema, [{ collection, data: { room } }]);
      begun.resolve();
      await done.promise;
    });
    await begun.promise;
    const ended: number[] = [];
    const keyed = ann.client.with({ 'Idempotency-Key': room });
    const writes = [
      ann.client.patch(`/api/bookings/${id}`, { data: { ends_at: at(3) } }),
      keyed.post('/api/bookings', { data: booking(4, 5) }),
    ].map(async (write) => ended.push((await write).status));
    const { db } = service.app;
    await until(
      'both writes wait, or one does not',
      async () => ended.length > 0 || (await lockWaits(db, 'advisory')) === 2,
    );
    const early = [...ended];
    done.resolve();
    await Promise.all([holding, ...writes]);
    expect([early, ended.sort()]).toEqual([[], [200, 201]]);
  });

  test('batches that race in other orders end, and at most one of each pair stays', async () => {
    await newRoom();
    const operation = (from: number) => ({ op: 'create', collection: 'bookings', data: booking(from, from + 2) });
    const answers = await Promise.all(
      [
        [8, 14],
        [14, 8],
        [9, 15],
        [15, 9],
      ].map((hours) => ann.client.post('/api/batch', { operations: hours.map(operation) })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409]);
  });

  test('days and numbers make a place and a period, too', async () => {
    const shift = (nurse: number, first: string, after: string) =>
      ann.client.post('/api/shifts', { data: { nurse, first, after } });
    expect(outcomeOf(await shift(1, '2026-11-01', '2026-11-03'))).toEqual(CREATED);
    expect(outcomeOf(await shift(1, '2026-11-03', '2026-11-05'))).toEqual(CREATED);
    expect(outcomeOf(await shift(2, '2026-11-01', '2026-11-03'))).toEqual(CREATED);
    expect(outcomeOf(await shift(1, '2026-11-02', '2026-11-04'))).toEqual([
      409,
      'conflict',
      '/data/nurse conflict',
      '/data/first conflict',
      '/data/after conflict',
    ]);
  });

  test('each of several places is held apart, and the answer names the one that is taken', async () => {
    const shift = (data: object) => ann.client.post('/api/shifts', { data });
    const days = { first: '2026-10-01', after: '2026-10-03' };
    expect(outcomeOf(await shift({ nurse: 7, chair: 'a', ...days }))).toEqual(CREATED);
    expect(outcomeOf(await shift({ nurse: 8, chair: 'b', ...days }))).toEqual(CREATED);
    const { status, body } = await shift({ nurse: 9, chair: 'b', ...days });
    expect([status, ...body.errors.map(({ pointer }: { pointer: string }) => pointer)]).toEqual([
      409,
      '/data/chair',
      '/data/first',
      '/data/after',
    ]);
    const { detail } = (await shift({ nurse: 7, chair: 'c', ...days })).body;
    expect(detail).toBe('another record of the same `nurse` overlaps with `first` to `after`');
  });
}
