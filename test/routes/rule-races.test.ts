/** Rules that count other records of their collection hold for writes that race: the writes of one place run in turn. */
import { beforeAll, expect, test } from 'vitest';
import type { Answer } from '../support/client.ts';
import { describeOnOne, type User } from '../support/service.ts';

const SCHEMA = `
roles: { member: {}, admin: {} }
register: { roles: [member] }
collections:
  users:
    relations: { loans: { kind: has_many, collection: loans, via: holder } }
    access: { view: true }
  rooms:
    fields: { name: string }
    relations:
      seats: { kind: has_many, collection: seats, via: room }
      stays: { kind: has_many, collection: stays, via: room }
      lamps: { kind: has_many, collection: lamps, via: room }
      keepers: { kind: has_many, collection: keepers, via: room }
    access: { view: true, create: true }
  # At most two open seats in a room.
  seats:
    soft_delete: true
    fields: { open: { type: bool, default: true } }
    relations: { room: { kind: belongs_to, collection: rooms, required: true } }
    checks:
      few: { when: '@next.open = false or count(@next.room.seats as s, s.open = true and s != @next.id) < 2', message: 'the room is full' }
    access: { view: true, create: true, update: true, delete: true, restore: true }
  stays:
    soft_delete: true
    fields:
      from: datetime
      to: datetime
      state: { type: string, enum: [asked, held, over], default: asked, transitions: { asked: [held, over], held: [over] } }
    relations: { room: { kind: belongs_to, collection: rooms } }
    no_overlap: { on: [room], from: from, to: to, where: '@record.state != "over"' }
    access: { view: true, create: true, update: true, delete: true, restore: true }
  # A person has one loan at most, and the last keeper stays.
  loans:
    fields: { kind: string }
    relations: { holder: { kind: belongs_to, collection: users, required: true, default: '@request.auth.id' } }
    access: { view: true, create: 'none(@request.auth.loans as l, true)' }
  desks:
    fields: { name: string }
    relations: { lamp: { kind: has_one, collection: lamps, via: desk } }
    access: { view: true, create: true, update: true }
  # One lamp of a room is on a desk.
  lamps:
    fields: { name: string }
    relations:
      desk: { kind: belongs_to, collection: desks, unique: true }
      room: { kind: belongs_to, collection: rooms }
    access: { view: true, create: true, update: '@next.desk is null or none(@next.room.lamps as l, l.desk is not null and l != @next.id)' }
  # No folder is below itself.
  folders:
    fields: { name: string }
    relations: { parent: { kind: belongs_to, collection: folders } }
    access: { view: true, create: true, update: '@next.parent is null or none(ancestors(@next.parent by parent) as a, a = @next.id)' }
  keepers:
    fields: { name: string }
    relations: { room: { kind: belongs_to, collection: rooms, required: true } }
    access: { view: true, create: true, delete: 'any(@record.room.keepers as k, k != @record.id)' }
`;

const ROUNDS = 4;

describeOnOne(
  'rules about other records of the collection',
  (service) => {
    let ann: User;
    beforeAll(async () => {
      ann = await service.user();
    });

    const make = async (collection: string, data: object = {}): Promise<string> => {
      const { status, body, text } = await ann.client.post(`/api/${collection}`, { data });
      expect(status, text).toBe(201);
      return body.data.id;
    };
    /** The sorted statuses of the requests of a round, which are sent at once. */
    const raced = async (requests: readonly Promise<Answer>[]): Promise<readonly number[]> =>
      (await Promise.all(requests)).map(({ status }) => status).sort();
    const each = async (work: (room: string) => Promise<void>): Promise<void> => {
      for (let round = 0; round < ROUNDS; round++) await work(await make('rooms', { name: `${round}` }));
    };
    const seat = (room: string, open = true) => make('seats', { room, open });

    test('a count holds for creates that race', () =>
      each(async (room) => {
        const creates = [1, 2, 3, 4].map(() => ann.client.post('/api/seats', { data: { room } }));
        expect(await raced(creates)).toEqual([201, 201, 422, 422]);
      }));

    test('a count holds for updates that race, alone, in batches and by filter', () =>
      each(async (room) => {
        const seats = [];
        for (let i = 0; i < 4; i++) seats.push(await seat(room, false));
        const data = { open: true };
        const [first, second, third] = seats;
        const operations = [{ op: 'update', collection: 'seats', id: second, data }];
        const body = { filter: 'id = $id', params: { id: third }, data };
        const answers = await raced([
          ann.client.patch(`/api/seats/${first}`, { data }),
          ann.client.post('/api/batch', { operations }),
          ann.client.post('/api/seats/update', body),
          ann.client.patch(`/api/seats/${seats[3]}`, { data }),
        ]);
        expect(answers).toEqual([200, 200, 422, 422]);
      }));

    test('a count holds for restores that race', () =>
      each(async (room) => {
        const seats = [];
        for (let i = 0; i < 4; i++) {
          const id = await seat(room);
          expect((await ann.client.delete(`/api/seats/${id}`)).status).toBe(204);
          seats.push(id);
        }
        expect(await raced(seats.map((id) => ann.client.post(`/api/seats/${id}/restore`)))).toEqual([
          200, 200, 422, 422,
        ]);
      }));

    test('a rule about the records of the caller holds for creates that race', async () => {
      for (let round = 0; round < ROUNDS; round++) {
        const { client } = await service.user();
        const creates = [1, 2, 3].map(() => client.post('/api/loans', { data: {} }));
        expect(await raced(creates)).toEqual([201, 403, 403]);
      }
    });

    test('a rule of a partner holds for moves of a has_one that race', () =>
      each(async (room) => {
        const desks = [await make('desks'), await make('desks'), await make('desks')];
        const lamps = [await make('lamps', { room }), await make('lamps', { room }), await make('lamps', { room })];
        const moves = desks.map((desk, i) => ann.client.patch(`/api/desks/${desk}`, { data: { lamp: lamps[i] } }));
        expect(await raced(moves)).toEqual([200, 403, 403]);
      }));

    test('two moves at once make no circle', async () => {
      for (let round = 0; round < ROUNDS; round++) {
        const [one, two] = [await make('folders'), await make('folders')];
        const moves = [
          ann.client.patch(`/api/folders/${one}`, { data: { parent: two } }),
          ann.client.patch(`/api/folders/${two}`, { data: { parent: one } }),
        ];
        expect(await raced(moves)).toEqual([200, 403]);
      }
    });

    test('the last one stays, of deletes that race', () =>
      each(async (room) => {
        const keepers = [await make('keepers', { room }), await make('keepers', { room })];
        expect(await raced(keepers.map((id) => ann.client.delete(`/api/keepers/${id}`)))).toEqual([204, 403]);
      }));

    const stay = (room: string, from: number, to: number) => ({
      room,
      from: `2026-11-01T${from}:00:00Z`,
      to: `2026-11-01T${to}:00:00Z`,
    });

    test('no_overlap and transitions hold for restores, and updates by filter, that race', () =>
      each(async (room) => {
        const stays = [];
        for (const hour of [10, 11, 12]) {
          const id = await make('stays', stay(room, hour, hour + 4));
          expect((await ann.client.delete(`/api/stays/${id}`)).status).toBe(204);
          stays.push(id);
        }
        expect(await raced(stays.map((id) => ann.client.post(`/api/stays/${id}/restore`)))).toEqual([200, 409, 409]);
        const later = [await make('stays', stay(room, 16, 17)), await make('stays', stay(room, 18, 19))];
        const moves = later.map((id) =>
          ann.client.post('/api/stays/update', { filter: 'id = $id', params: { id }, data: stay(room, 20, 22) }),
        );
        expect(await raced(moves)).toEqual([200, 409]);
        const steps = ['held', 'over', 'held'].map((state) =>
          ann.client.post('/api/stays/update', { filter: 'id = $id', params: { id: later[0] }, data: { state } }),
        );
        const states = await raced(steps);
        expect(states.filter((status) => status !== 200 && status !== 422)).toEqual([]);
        const back = { filter: 'id = $id', params: { id: later[0] }, data: { state: 'held' } };
        const refused = await ann.client.post('/api/stays/update', back);
        expect([refused.status, refused.body.code]).toEqual([422, 'transition_refused']);
      }));
  },
  { schema: SCHEMA },
);
