/** Rules that count other records of their collection hold for writes that race: the writes of one place run in turn. */
import { beforeAll, expect, test } from 'vitest';
import type { Queryable, Transaction } from '../../../src/database/contract.ts';
import { type Reading, Store } from '../../../src/records/access-context.ts';
import { type ImportRejected, importRecords } from '../../../src/records/transfer/import-records.ts';
import { importPart } from '../../../src/records/transfer/tenant-transfer.ts';
import { hasTurn, lockValues, takeTurn, turnName } from '../../../src/records/write/locks/value-locks.ts';
import { ident, param, raw, sql } from '../../../src/sql.ts';
import type { Answer } from '../../support/client.ts';
import { lockWaits } from '../../support/lock-waits.ts';
import { describeOnOne, type User } from '../../support/service.ts';
import { until } from '../../support/until.ts';

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
    access: { view: true, create: true, update: true }
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
  # A task is put away when no part of it is open, and a part of one that is put away is not open.
  tasks:
    fields: { open: { type: bool, required: true, default: true }, away: { type: bool, required: true, default: false } }
    relations:
      whole: { kind: belongs_to, collection: tasks }
      parts: { kind: has_many, collection: tasks, via: whole }
    access:
      view: true
      create: '@next.whole is null or @next.whole.away = false'
      update: '@next.away = false or none(@next.parts as p, p.open = true)'
  # Two books on a shelf, which has its name as its id.
  shelves:
    id: { type: string }
    relations: { books: { kind: has_many, collection: books, via: shelf } }
    access: { view: true, create: true }
  books:
    history: true
    fields:
      name: string
      code: { type: string, unique: true, max: 40 }
      out: { type: bool, required: true, default: false }
    relations: { shelf: { kind: belongs_to, collection: shelves, required: true } }
    checks: { few: { when: '@next.out = true or count(@next.shelf.books as b, b.out = false and b != @next.id) < 2', message: 'the shelf is full' } }
    access: { view: true, create: true, update: true, delete: 'any(@record.shelf.books as b, b != @record.id)' }
  keepers:
    fields: { name: string }
    relations: { room: { kind: belongs_to, collection: rooms, required: true } }
    access: { view: true, create: true, delete: 'any(@record.room.keepers as k, k != @record.id)' }
  # A line needs an open order, and an order closes when all of its lines are packed.
  orders:
    fields: { state: { type: string, enum: [open, closed], default: open } }
    relations:
      lines: { kind: has_many, collection: lines, via: order }
      parcels: { kind: has_many, collection: parcels, via: order }
    access:
      view: true
      create: true
      update: '@next.state = "open" or none(@next.lines as l, l.packed = false)'
      delete: none(@record.parcels as p, true)
  lines:
    fields: { packed: { type: bool, default: false } }
    relations: { order: { kind: belongs_to, collection: orders, required: true } }
    access: { view: true, create: '@next.order.state = "open"', update: '@next.packed = true or @next.order.state = "open"' }
  # An order that has a parcel stays.
  parcels:
    relations: { order: { kind: belongs_to, collection: orders, required: true, on_delete: cascade } }
    access: { view: true, create: true }
  # A reference by a code, which is not the id: two open stands in a hall, and a closed hall has no open stand.
  halls:
    fields: { code: { type: string, required: true, unique: true }, closed: { type: bool, required: true, default: false } }
    relations: { stands: { kind: has_many, collection: stands, via: hall } }
    access: { view: true, create: true, update: '@next.closed = false or none(@next.stands as s, s.open = true)' }
  stands:
    fields: { open: { type: bool, required: true, default: true } }
    relations: { hall: { kind: belongs_to, collection: halls, required: true, references: code } }
    checks:
      few: { when: '@next.open = false or count(@next.hall.stands as s, s.open = true and s != @next.id) < 2', message: 'the hall is full' }
    access: { view: true, create: '@next.hall.closed = false', update: '@next.open = false or @next.hall.closed = false' }
  # A diary is its owner's; it has three pages at most.
  diaries:
    relations:
      owner: { kind: belongs_to, collection: users, required: true, default: '@request.auth.id' }
      pages: { kind: has_many, collection: pages, via: diary }
    access: { view: '@record.owner = @request.auth.id', create: true }
  pages:
    fields: { text: string }
    relations: { diary: { kind: belongs_to, collection: diaries, required: true } }
    checks: { few: { when: 'count(@next.diary.pages as p, p != @next.id) < 3', message: 'the diary is full' } }
    access:
      view: '@record.diary.owner = @request.auth.id'
      create: '@next.diary.owner = @request.auth.id'
      update: '@record.diary.owner = @request.auth.id'
      delete: '@record.diary.owner = @request.auth.id'
`;

const ROUNDS = 4;

describeOnOne(
  'rules about other records of the collection',
  (service) => {
    /** No write waits for another one. */
    const isOfOneConnection = service.kind === 'embedded';
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

    /** Holds what the work locks, until the result is called. */
    const held = async (lock: (tx: Transaction) => Promise<unknown>): Promise<() => Promise<void>> => {
      const [begun, done] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const holding = service.app.db.transaction(async (tx) => {
        await lock(tx);
        begun.resolve();
        await done.promise;
      });
      await begun.promise;
      return () => {
        done.resolve();
        return holding;
      };
    };

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

    /** The other write of the last `duringCreate` has waited for the create. */
    let hasWaited = false;
    /** A create has its row, and ends when the other write waits, or has ended. */
    async function duringCreate<T>(
      collection: string,
      data: object,
      other: () => Promise<T>,
    ): Promise<readonly [number, T]> {
      const { db, schema } = service.app;
      const room = await make('rooms');
      const [begun, done] = [Promise.withResolvers<string>(), Promise.withResolvers<void>()];
      const holding = db.transaction(async (tx) => {
        const { table } = schema.collections.get('rooms')!;
        const [held] = await tx.rows(
          sql`SELECT pg_backend_pid()::text FROM ${ident(table)} WHERE id = ${param('uuid', room)} FOR UPDATE`,
        );
        begun.resolve(held![0]!);
        await done.promise;
      });
      const holder = raw(String(Number(await begun.promise)));
      const operations = [
        { op: 'create', collection, data },
        { op: 'update', collection: 'rooms', id: room, data: { name: 'x' } },
      ];
      const waiting = async (count: number): Promise<boolean> => (await lockWaits(db)) >= count;
      const created = ann.client.post('/api/batch', { operations });
      await until('the create waits for the room', async () => {
        const held = await db.rows(sql`SELECT 1 FROM pg_stat_activity WHERE ${holder} = ANY(pg_blocking_pids(pid))`);
        return held.length > 0;
      });
      let hasEnded = false;
      const ended = other().finally(() => {
        hasEnded = true;
      });
      await until('the other write waits, or has ended', async () => hasEnded || (await waiting(2)));
      hasWaited = !hasEnded;
      done.resolve();
      await holding;
      return [(await created).status, await ended];
    }

    test('rules of two collections that read each other hold for writes that race', async () => {
      if (isOfOneConnection) return;
      const order = await make('orders');
      const close = () => ann.client.patch(`/api/orders/${order}`, { data: { state: 'closed' } });
      const status = (answer: Promise<Answer>): Promise<number> => answer.then((each) => each.status);
      expect(await duringCreate('lines', { order }, () => status(close()))).toEqual([200, 403]);
      const [line] = (await ann.client.get(`/api/lines?order=${order}`)).body.data;
      const pack = () => ann.client.patch(`/api/lines/${line.id}`, { data: { packed: true } });
      expect((await pack()).status).toBe(200);
      // A line that moves to the order; the orders of other places do not wait.
      const other = await make('orders');
      const moved = await make('lines', { order: other });
      const move = () => ann.client.patch(`/api/lines/${moved}`, { data: { order } });
      for (let round = 0; round < ROUNDS; round++) {
        await raced(round % 2 === 0 ? [move(), close()] : [close(), move()]);
        const { state } = (await ann.client.get(`/api/orders/${order}`)).body.data;
        const open = (await ann.client.get(`/api/lines?order=${order}&packed=false`)).body.data;
        expect(state === 'open' || open.length === 0).toBe(true);
      }
    });

    test('rules about the parts and about the whole of one collection hold for writes that race', async () => {
      if (isOfOneConnection) return;
      const whole = await make('tasks');
      const away = () => ann.client.patch(`/api/tasks/${whole}`, { data: { away: true } }).then(({ status }) => status);
      expect(await duringCreate('tasks', { whole }, away)).toEqual([200, 403]);
    });

    test('places hold for references to ids that are strings', async () => {
      for (let round = 0; round < ROUNDS; round++) {
        const shelf = await make('shelves', { id: `Shelf Ä ${round}` });
        const create = () => ann.client.post('/api/books', { data: { shelf } });
        const away = await make('books', { shelf, out: true });
        const back = () => ann.client.patch(`/api/books/${away}`, { data: { out: false } });
        expect(await raced([create(), back(), create(), create()])).toEqual([
          expect.toBeOneOf([200, 201]),
          201,
          422,
          422,
        ]);
        const books: readonly { id: string }[] = (await ann.client.get('/api/books')).body.data.filter(
          (book: { shelf: string }) => book.shelf === shelf,
        );
        const removed = await raced(books.map(({ id }) => ann.client.delete(`/api/books/${id}`)));
        expect(removed).toEqual([...books.slice(1).map(() => 204), 403]);
      }
    });

    test('a count holds for upserts that race, alone and in batches', async () => {
      for (let round = 0; round < ROUNDS; round++) {
        const shelf = await make('shelves', { id: crypto.randomUUID() });
        const [one, two, three] = [1, 2, 3].map(() => crypto.randomUUID()) as [string, string, string];
        const put = (code: string, out = false) =>
          ann.client.put(`/api/books/by/code/${code}`, { data: { shelf, out } });
        const inBatch = (code: string) =>
          ann.client.post('/api/batch', {
            operations: [{ op: 'upsert', collection: 'books', on: 'code', data: { code, shelf } }],
          });
        // Two of one code are one book.
        const answers = await Promise.all([put(one), put(one), inBatch(two), put(three)]);
        expect(answers.every(({ status }) => [200, 201, 422].includes(status))).toBe(true);
        const found = await ann.client.get(`/api/books?shelf=${shelf}`);
        expect(found.body.data).toHaveLength(2);
        expect((await put(three, true)).status).toBeOneOf([200, 201]);
        // An update by its code takes its turn, too.
        const spare = crypto.randomUUID();
        await put(spare, true);
        const statuses = await raced([put(three), put(spare)]);
        expect(statuses.filter((status) => status === 422).length).toBeGreaterThanOrEqual(1);
        const standing = await ann.client.get(`/api/books?shelf=${shelf}&out=false`);
        expect(standing.body.data.length).toBeLessThanOrEqual(2);
      }
    });

    test('batches of the same places in opposite orders write once, and none waits for a deadlock', async () => {
      if (isOfOneConnection) return;
      const shelves = ['east', 'west'].map((side) => `${side} ${crypto.randomUUID()}`);
      for (const shelf of shelves) await make('shelves', { id: shelf });
      let fastest = Number.POSITIVE_INFINITY;
      for (let round = 0; round < ROUNDS; round++) {
        const asked: (() => Promise<Answer>)[] = [];
        const books: string[] = [];
        for (let i = 0; i < 6; i++) {
          const pair: string[] = [];
          // A batch that held the place of its first book alone would ask for that of its second.
          for (const shelf of i % 2 === 0 ? shelves : shelves.toReversed())
            pair.push(await make('books', { shelf, out: true }));
          books.push(...pair);
          const data = { out: true, name: 'x' };
          const operations = pair.map((id) => ({ op: 'update', collection: 'books', id, data }));
          const headers = { 'Idempotency-Key': crypto.randomUUID() };
          asked.push(() => ann.client.post('/api/batch', { operations }, headers));
        }
        const start = performance.now();
        const first = await Promise.all(asked.map((ask) => ask()));
        fastest = Math.min(fastest, performance.now() - start);
        expect(first.map(({ status }) => status)).toEqual(asked.map(() => 200));
        for (const [i, ask] of asked.entries()) expect((await ask()).body).toEqual(first[i]!.body);
        for (const id of books) {
          const { data } = (await ann.client.get(`/api/books/${id}/history`)).body;
          expect(data.map(({ action }: { action: string }) => action)).toEqual(['update', 'create']);
        }
      }
      // The server finds a deadlock after a second.
      expect(fastest).toBeLessThan(1_000);
    });

    test('an upsert in a batch waits for its record before it holds a place', async () => {
      if (isOfOneConnection) return;
      const { db } = service.app;
      const shelf = await make('shelves', { id: crypto.randomUUID() });
      const code = crypto.randomUUID();
      const id = await make('books', { shelf, code, out: true });
      const operations = [{ op: 'upsert', collection: 'books', on: 'code', data: { code, shelf, name: 'x' } }];
      const release = await held((tx) =>
        tx.rows(sql`SELECT 1 FROM books WHERE id = ${param('uuid', id)} FOR NO KEY UPDATE`),
      );
      const batch = ann.client.post('/api/batch', { operations });
      await until('the batch waits', async () => (await lockWaits(db)) === 1);
      const { status } = await ann.client.post('/api/books', { data: { shelf } });
      await release();
      expect([status, (await batch).status]).toEqual([201, 200]);
    });

    test('a write has its turn for the row that it has locked, until its transaction ends', async () => {
      if (isOfOneConnection) return;
      const { db, schema } = service.app;
      const collection = schema.collections.get('seats')!;
      const room = await make('rooms');
      const [mine, other] = [await seat(room), await seat(room)];
      const store = new Store(db, schema);
      const holds = async (q: Queryable, id: string): Promise<boolean> =>
        (await q.rows(sql`SELECT 1 WHERE ${hasTurn(turnName('seats', id))}`)).length > 0;
      await db.transaction(async (tx) => {
        const reading = { store, q: tx, access: { kind: 'guest' } } as unknown as Reading;
        const asked = (id: string, mayWrite: boolean) =>
          takeTurn(reading, { collection, id, mayWrite: mayWrite ? sql`TRUE` : sql`FALSE` });
        expect([await asked(mine, false), await holds(tx, mine)]).toEqual([false, false]);
        expect([await asked(mine, true), await holds(tx, mine), await holds(tx, other)]).toEqual([true, true, false]);
      });
      expect(await holds(db, mine)).toBe(false);
    });

    test('a place is one for records that refer to it by another unique field', async () => {
      if (isOfOneConnection) return;
      const newHall = () => make('halls', { code: `hall ${crypto.randomUUID()}` });
      const status = (answer: Promise<Answer>): Promise<number> => answer.then((each) => each.status);
      const hall = await newHall();
      await make('stands', { hall });
      const shut = await make('stands', { hall, open: false });
      const open = () => ann.client.patch(`/api/stands/${shut}`, { data: { open: true } });
      expect(await duringCreate('stands', { hall }, () => status(open()))).toEqual([200, 422]);
      const free = await newHall();
      const close = () => ann.client.patch(`/api/halls/${free}`, { data: { closed: true } });
      expect(await duringCreate('stands', { hall: free }, () => status(close()))).toEqual([200, 403]);
    });

    test('a write of a record that moves meanwhile takes its turn in the new place', async () => {
      if (isOfOneConnection) return;
      const { db, schema } = service.app;
      const collection = schema.collections.get('seats')!;
      const [old, full, last] = [await make('rooms'), await make('rooms'), await make('rooms')];
      const moved = await seat(old, false);
      await seat(full);
      const waiting = (count: number): Promise<void> =>
        until(`${count} writes wait`, async () => (await lockWaits(db)) === count);
      const leaveOld = await held((tx) => lockValues(tx, schema, [{ collection, data: { room: old } }]));
      const { table } = schema.collections.get('rooms')!;
      const leaveLast = await held((tx) =>
        tx.rows(sql`SELECT 1 FROM ${ident(table)} WHERE id = ${param('uuid', last)} FOR UPDATE`),
      );
      const move = ann.client.patch(`/api/seats/${moved}`, { data: { room: full } });
      await waiting(1);
      // It opens the seat, and then waits for the last room.
      const operations = [
        { op: 'update', collection: 'seats', id: moved, data: { open: true } },
        { op: 'create', collection: 'keepers', data: { room: last } },
      ];
      const opened = ann.client.post('/api/batch', { operations });
      await waiting(2);
      await leaveOld();
      expect((await move).status).toBe(200);
      await waiting(1);
      let hasEnded = false;
      const created = ann.client.post('/api/seats', { data: { room: full } }).finally(() => {
        hasEnded = true;
      });
      await until('the create waits, or has ended', async () => hasEnded || (await lockWaits(db)) === 2);
      await leaveLast();
      expect([(await opened).status, (await created).status]).toEqual([200, 422]);
    });

    test('a rule for deleting sees a record that refers to it, created meanwhile', async () => {
      if (isOfOneConnection) return;
      const order = await make('orders');
      const remove = () => ann.client.delete(`/api/orders/${order}`).then(({ status }) => status);
      expect(await duringCreate('parcels', { order }, remove)).toEqual([200, 403]);
    });

    test('a check of an import sees the records of its place, created meanwhile', async () => {
      if (isOfOneConnection) return;
      const { db, schema } = service.app;
      const room = await make('rooms');
      await seat(room);
      async function* records() {
        yield { line: 1, members: new Map([['room', room]]), isText: false };
      }
      const collection = schema.collections.get('seats')!;
      const now = '2026-11-01T00:00:00.000000Z';
      const imported = () =>
        importRecords(db, { schema, collection, now, records }).then(
          () => '',
          ({ errors }: ImportRejected) => errors[0]!.message,
        );
      expect(await duringCreate('seats', { room }, imported)).toEqual([
        200,
        expect.stringContaining('the room is full'),
      ]);
    });

    test('an import of a tenant waits for the writes of a place', async () => {
      if (isOfOneConnection) return;
      const { db, schema } = service.app;
      const room = await make('rooms');
      const part = { collection: schema.collections.get('seats')!, column: 'room_id' };
      async function* records() {
        const members = new Map([
          ['id', crypto.randomUUID()],
          ['room', room],
        ]);
        yield { line: 1, members, isText: false };
      }
      const tenant = { id: room, parts: [part] };
      const imported = { schema, tenant, part, records: records(), now: '2026-11-01T00:00:00.000000Z' };
      const [created, count] = await duringCreate('seats', { room }, () => importPart(db, imported));
      expect([created, count, hasWaited]).toEqual([200, 1, true]);
    });

    test('a create that its body rules out takes no turn', async () => {
      if (isOfOneConnection) return;
      const { db, schema } = service.app;
      const room = await make('rooms');
      await db.transaction(async (tx) => {
        await lockValues(tx, schema, [{ collection: schema.collections.get('seats')!, data: { room } }]);
        expect((await ann.client.post('/api/seats', { data: { room, open: 'wide' } })).status).toBe(422);
      });
    });

    test('a place of a record that the caller may not write is neither waited for nor locked', async () => {
      if (isOfOneConnection) return;
      const { app } = service;
      const diary = await make('diaries');
      const page = await make('pages', { diary });
      const eve = await service.user();
      const collection = app.schema.collections.get('pages')!;
      await app.db.transaction(async (tx) => {
        await lockValues(tx, app.schema, [{ collection, data: { diary } }]);
        // As of a record that does not exist.
        for (const id of [page, diary])
          expect(
            await Promise.all([
              eve.client.patch(`/api/pages/${id}`, { data: { text: 'x' } }).then(({ status }) => status),
              eve.client.delete(`/api/pages/${id}`).then(({ status }) => status),
            ]),
          ).toEqual([404, 404]);
      });
      // Its owner waits.
      const [begun, done] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const holding = app.db.transaction(async (tx) => {
        await lockValues(tx, app.schema, [{ collection, data: { diary } }]);
        begun.resolve();
        await done.promise;
      });
      await begun.promise;
      const own = ann.client.delete(`/api/pages/${page}`);
      await until('the delete waits', async () => (await lockWaits(app.db, 'advisory')) === 1);
      done.resolve();
      await holding;
      expect((await own).status).toBe(204);
    });

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
