// @module-tag long
/** Tables of other programs whose keys have several columns: their records are read, filtered and related. */
import { afterAll, describe, expect, it } from 'vitest';
import { keysetOf } from '../../../src/records/page/keyset.ts';
import { everyTenant } from '../../../src/records/scope.ts';
import { exportRecords } from '../../../src/records/transfer/export-records.ts';
import { type ImportRejected, importRecords } from '../../../src/records/transfer/import-records.ts';
import { lockValues } from '../../../src/records/write/locks/value-locks.ts';
import { lockWaits } from '../../support/lock-waits.ts';
import { idsOf, outcomeOf } from '../../support/records.ts';
import { describeOnBoth } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { ownersWorld, ownSchema } from './owners-table.ts';

interface Shown {
  readonly id: unknown;
  readonly label?: unknown;
  readonly slip?: unknown;
  readonly expand: Readonly<Record<string, { readonly text?: string; readonly note?: string } | null>>;
}

describe('keys of several columns', () => {
  const shop = ownSchema();
  const world = ownersWorld(
    `
CREATE SCHEMA ${shop};;
CREATE TABLE ${shop}.orders (order_no int PRIMARY KEY, buyer text);;
CREATE TABLE ${shop}.lines (
  order_no int NOT NULL REFERENCES ${shop}.orders, line_no int NOT NULL, product text, pieces int, hidden boolean NOT NULL DEFAULT false,
  PRIMARY KEY (order_no, line_no));;
CREATE TABLE ${shop}.parcels (
  parcel_no int PRIMARY KEY, line_no int, order_no int, weight int,
  FOREIGN KEY (order_no, line_no) REFERENCES ${shop}.lines);;
CREATE INDEX ON ${shop}.parcels (order_no, line_no);;
CREATE TABLE ${shop}.labels (
  label_no int PRIMARY KEY, order_no int, line_no int, text text, UNIQUE (line_no, order_no),
  FOREIGN KEY (order_no, line_no) REFERENCES ${shop}.lines);;
CREATE TABLE ${shop}.slips (order_no int UNIQUE REFERENCES ${shop}.orders, copy int, note text, PRIMARY KEY (order_no, copy));;
CREATE TYPE ${shop}.kind AS ENUM ('big', 'small');;
CREATE TABLE ${shop}.marks (
  id text NOT NULL, kind ${shop}.kind NOT NULL, at timestamptz NOT NULL, day date NOT NULL, tag uuid NOT NULL, text text,
  PRIMARY KEY (id, kind, at, day, tag));;
INSERT INTO ${shop}.orders VALUES (9, 'ann'), (88, 'bob'), (100, 'cy');;
INSERT INTO ${shop}.lines (order_no, line_no, product, pieces, hidden) VALUES
  (9, 2, 'tea', 4, false), (9, 10, 'oil', 1, false), (88, 3, 'tea', 7, false), (100, 1, 'tea', 2, true), (100, 2, 'rye', 5, false);;
INSERT INTO ${shop}.parcels (parcel_no, order_no, line_no, weight) VALUES
  (1, 9, 2, 10), (2, 9, 2, 20), (3, 100, 1, 30), (4, 88, 3, 40), (5, NULL, NULL, 50), (6, 9, NULL, 60);;
INSERT INTO ${shop}.labels VALUES (1, 9, 2, 'fragile'), (2, 88, 3, 'secret'), (3, 9, NULL, 'none');;
INSERT INTO ${shop}.slips VALUES (9, 1, 'paid'), (88, 2, 'hidden');;
INSERT INTO ${shop}.marks VALUES
  ('a~b!c', 'big', '2026-01-31T09:30:00.5Z', '2026-02-01', '0190b0a0-0000-7000-8000-00000000000a', 'x'),
  ('a', 'small', '2026-01-31T09:30:00Z', '2026-02-01', '0190b0a0-0000-7000-8000-00000000000a', 'y'),
  ('', 'small', '2026-01-31T09:30:00Z', '2026-02-01', '0190b0a0-0000-7000-8000-00000000000a', 'z');;
`,
    `
roles: [member]
register: { roles: [member] }
collections:
  orders:
    table: ${shop}.orders
    managed: false
    timestamps: none
    id: { type: int, column: order_no, made_by: caller }
    fields: { buyer: string }
    relations:
      lines: { kind: has_many, collection: order_lines, via: order }
      slip: { kind: has_one, collection: slips, via: order }
    access: { view: true, delete: true, create: true, update: true }
  order_lines:
    table: ${shop}.lines
    managed: false
    timestamps: none
    id: [order, line_no]
    fields: { line_no: int, product: string, pieces: int, hidden: bool }
    relations:
      order: { kind: belongs_to, collection: orders, column: order_no }
      parcels: { kind: has_many, collection: parcels, via: line }
      label: { kind: has_one, collection: labels, via: line }
    access: { view: '@record.hidden = false and @record.id != "88~3" or @record.order.buyer = "bob"' }
  parcels:
    table: ${shop}.parcels
    managed: false
    timestamps: none
    id: { type: int, column: parcel_no, made_by: caller }
    fields: { line_no: int, weight: int }
    relations:
      order: { kind: belongs_to, collection: orders, column: order_no }
      line: { kind: belongs_to, collection: order_lines, fields: [order, line_no] }
    access:
      view: '@record.line.product != "rye" or @record.line is null'
      create: '@record.line.pieces > 3'
      update: '@next.line.pieces > 3'
      delete: true
    checks: { few: { when: 'count(@next.line.parcels as p, p.id != @next.id) < 9', message: the line has too many parcels } }
  labels:
    table: ${shop}.labels
    managed: false
    timestamps: none
    id: { type: int, column: label_no, made_by: caller }
    fields: { line_no: int, text: string }
    relations:
      order: { kind: belongs_to, collection: orders, column: order_no }
      line: { kind: belongs_to, collection: order_lines, fields: [order, line_no] }
    access: { view: '@record.text != "secret"' }
  slips:
    table: ${shop}.slips
    managed: false
    timestamps: none
    id: [order, copy]
    fields: { copy: int, note: string }
    relations: { order: { kind: belongs_to, collection: orders, column: order_no } }
    access: { view: '@record.note != "hidden"' }
  offers:
    fields: { name: string }
    relations:
      lines: { kind: many_to_many, collection: order_lines }
      marks: { kind: many_to_many, collection: marks }
    access: { view: true, create: '@next.lines contains "9~2" or none(@next.lines as l, l.pieces > 6)', update: true, delete: true }
  marks:
    table: ${shop}.marks
    managed: false
    timestamps: none
    id: [name, kind, at, day, tag]
    fields:
      name: { type: string, column: id }
      kind: { type: string, enum: [big, small] }
      at: datetime
      day: date
      tag: uuid
      text: string
    access: { view: true }
`,
  );

  describeOnBoth(
    'served under one id',
    (service) => {
      afterAll(() => world.run(`DROP SCHEMA IF EXISTS ${shop} CASCADE`).catch(() => undefined));
      const user = () => service.user();

      it('records are listed in the order of the key, and read by their ids', async () => {
        const { client } = await user();
        const { body } = await client.get('/api/order_lines');
        expect(body.data[0]).toEqual({
          id: '9~2',
          line_no: 2,
          product: 'tea',
          pieces: 4,
          hidden: false,
          order: 9,
          label: 1,
        });
        expect(idsOf(body.data)).toEqual(['9~2', '9~10', '88~3', '100~2']);
        const read = await client.get('/api/order_lines/88~3');
        expect([read.status, read.body.data.pieces]).toEqual([200, 7]);
        const tag = read.headers.get('etag')!;
        expect((await client.get('/api/order_lines/88~3', { 'If-None-Match': tag })).status).toBe(304);
        await world.run(`UPDATE ${shop}.lines SET pieces = 8 WHERE order_no = 88`);
        expect((await client.get('/api/order_lines/88~3', { 'If-None-Match': tag })).status).toBe(200);
      });

      it.each([
        '100~1',
        '77~7',
        '088~3',
        '88~3~',
        '88',
        '88~',
        '~',
        '88~x',
        '88~3!',
        "88~3'",
        '99999999999999999999~3',
      ])('the id %s finds nothing', async (id) => {
        const { client } = await user();
        expect((await client.get(`/api/order_lines/${encodeURIComponent(id)}`)).status).toBe(404);
        expect((await client.get(`/api/order_lines?id=${encodeURIComponent(id)}`)).body.data).toEqual([]);
      });

      it('each value has one id, and it finds the record', async () => {
        const { client } = await user();
        const { body } = await client.get('/api/marks?sort=text');
        expect(idsOf(body.data)).toEqual([
          'a!~b!!c~big~2026-01-31T09:30:00.500000Z~2026-02-01~0190b0a0-0000-7000-8000-00000000000a',
          'a~small~2026-01-31T09:30:00.000000Z~2026-02-01~0190b0a0-0000-7000-8000-00000000000a',
          '~small~2026-01-31T09:30:00.000000Z~2026-02-01~0190b0a0-0000-7000-8000-00000000000a',
        ]);
        for (const record of body.data) {
          const read = await client.get(`/api/marks/${encodeURIComponent(record.id)}`);
          expect(read.body.data, read.text).toEqual(record);
        }
      });

      it('pages follow each other in every order', async () => {
        const { client } = await user();
        const walked = async (query: string) => {
          const found: unknown[] = [];
          let cursor = '&cursor=';
          for (let i = 0; i < 6; i++) {
            const { body } = await client.get(`/api/order_lines?limit=1&${query}${cursor}`);
            found.push(...idsOf(body.data));
            if (body.page.next_cursor == null) break;
            cursor = `&cursor=${encodeURIComponent(body.page.next_cursor)}`;
          }
          return found;
        };
        expect(await walked('')).toEqual(['9~2', '9~10', '88~3', '100~2']);
        expect(await walked('sort=-id')).toEqual(['100~2', '88~3', '9~10', '9~2']);
        expect(await walked('sort=-product')).toEqual(['9~2', '88~3', '100~2', '9~10']);
        expect(await walked('order=9')).toEqual(['9~2', '9~10']);
      });

      it('filters, expansions and aggregates know them', async () => {
        const { client } = await user();
        const asked = async (path: string) => idsOf((await client.get(path)).body.data);
        expect(await asked('/api/order_lines?id=9~10')).toEqual(['9~10']);
        expect(await asked('/api/orders?lines_any=9~2')).toEqual([9]);
        expect(await asked('/api/orders?lines_any=100~1')).toEqual([]);
        expect(await asked('/api/orders?lines_any=x')).toEqual([]);
        const queried = await client.post('/api/order_lines/query', {
          filter: 'id in ["9~2", "100~2"] or order.buyer = $b',
          params: { b: 'bob' },
          sort: ['-pieces'],
          expand: { order: {} },
        });
        expect(idsOf(queried.body.data), queried.text).toEqual(['88~3', '100~2', '9~2']);
        expect(queried.body.data[0].expand.order).toEqual({ id: 88, buyer: 'bob', slip: null });
        const order = await client.get('/api/orders/9?expand=lines');
        expect(idsOf(order.body.data.expand.lines)).toEqual(['9~2', '9~10']);
        const groups = await client.post('/api/order_lines/aggregate', {
          group_by: ['order'],
          measures: { n: 'count' },
        });
        expect(groups.body.data).toEqual([
          { order: 9, n: 2 },
          { order: 88, n: 1 },
          { order: 100, n: 1 },
        ]);
      });

      it('references of several columns are shown, expanded, filtered and sorted by', async () => {
        const { client } = await user();
        const { body } = await client.get('/api/parcels?expand=line');
        expect(
          body.data.map(({ id, line, order, line_no }: Record<string, unknown>) => [id, line, order, line_no]),
        ).toEqual([
          [1, '9~2', 9, 2],
          [2, '9~2', 9, 2],
          [3, '100~1', 100, 1],
          [4, '88~3', 88, 3],
          [5, null, null, null],
          [6, null, 9, null],
        ]);
        expect(
          body.data.map(({ expand }: { expand: { line: { product: string } | null } }) => expand.line?.product),
        ).toEqual(
          // The line of 3 is hidden.
          ['tea', 'tea', undefined, 'tea', undefined, undefined],
        );
        const asked = async (path: string) => idsOf((await client.get(path)).body.data);
        expect(await asked('/api/parcels?line=9~2')).toEqual([1, 2]);
        expect(await asked('/api/parcels?line=9~3')).toEqual([]);
        const without = await client.post('/api/parcels/query', { filter: 'line is null' });
        expect(idsOf(without.body.data)).toEqual([5, 6]);
        expect(await asked('/api/order_lines?parcels_any=2')).toEqual(['9~2']);
        const queried = await client.post('/api/order_lines/query', {
          filter: 'count(parcels as p, p.weight > 5) > 0 and any(parcels as p, p.weight < $w)',
          params: { w: 15 },
          expand: { parcels: { sort: ['-weight'], count: true } },
        });
        expect(idsOf(queried.body.data), queried.text).toEqual(['9~2']);
        expect(idsOf(queried.body.data[0].expand.parcels)).toEqual([2, 1]);
        const through = await client.post('/api/parcels/query', {
          filter: 'line.order.buyer in ["ann", "bob"] and line in ["9~2", "88~3"]',
          sort: ['-line.pieces', 'id'],
        });
        expect(idsOf(through.body.data), through.text).toEqual([4, 1, 2]);
        const byLine = async (sort: readonly string[], cursor?: string) =>
          (await client.post('/api/parcels/query', { sort, limit: 2, cursor })).body;
        // The ids are in the order of their numbers. Nobody may read the line of the third parcel.
        const first = await byLine(['-line.id', '-id']);
        const then = await byLine(['-line.id', '-id'], first.page.next_cursor);
        expect([idsOf(first.data), idsOf(then.data)]).toEqual([
          [4, 2],
          [1, 6],
        ]);
        const groups = await client.post('/api/parcels/aggregate', { group_by: ['line'], measures: { n: 'count' } });
        expect(groups.body.data).toContainEqual({ line: '9~2', n: 2 });
      });

      it('a has_one leads to records with such a key, and from them', async () => {
        const { client } = await user();
        const lines = await client.get('/api/order_lines?expand=label');
        expect(lines.body.data.map(({ id, label, expand }: Shown) => [id, label, expand.label?.text])).toEqual([
          ['9~2', 1, 'fragile'],
          ['9~10', null, undefined],
          // Its label is hidden.
          ['88~3', null, undefined],
          ['100~2', null, undefined],
        ]);
        expect(idsOf((await client.get('/api/order_lines?label=1')).body.data)).toEqual(['9~2']);
        expect(idsOf((await client.get('/api/order_lines?label=2')).body.data)).toEqual([]);
        const through = await client.post('/api/order_lines/query', {
          filter: 'label.text = "fragile" or label is null',
          sort: ['-label.text', 'id'],
        });
        expect(idsOf(through.body.data), through.text).toEqual(['9~2', '9~10', '88~3', '100~2']);
        const orders = await client.get('/api/orders?expand=slip&sort=id');
        expect(orders.body.data.map(({ id, slip, expand }: Shown) => [id, slip, expand.slip?.note])).toEqual([
          [9, '9~1', 'paid'],
          [88, null, undefined],
          [100, null, undefined],
        ]);
        expect(idsOf((await client.get('/api/orders?slip=9~1')).body.data)).toEqual([9]);
        const set = await client.patch('/api/orders/9', { data: { slip: null } });
        expect([set.status, set.body.errors[0]]).toEqual([
          422,
          {
            pointer: '/data/slip',
            code: 'read_only',
            detail: '`slip` is a record of `slips`, whose `order` no request sets',
          },
        ]);
        expect((await client.patch('/api/orders/9', { data: { buyer: 'ann' } })).body.data.slip).toBe('9~1');
      });

      it('a many_to_many links records with such a key', async () => {
        const { client } = await user();
        const marks = idsOf((await client.get('/api/marks?sort=text')).body.data);
        const made = await client.post('/api/offers', {
          data: { name: 'tea', lines: { set: ['9~2', '88~3'] }, marks: { set: marks.slice(0, 2) } },
        });
        expect(made.status, made.text).toBe(201);
        const { id } = made.body.data;
        const shown = await client.get(`/api/offers/${id}?expand=lines,marks`);
        expect([idsOf(shown.body.data.expand.lines), idsOf(shown.body.data.expand.marks).toSorted()]).toEqual([
          ['9~2', '88~3'],
          marks.slice(0, 2).toSorted(),
        ]);
        const other = await client.post('/api/offers', { data: { name: 'rye', lines: { set: ['100~2'] } } });
        expect(other.status, other.text).toBe(201);
        expect((await client.post('/api/offers', { data: { lines: { set: ['88~3'] } } })).status).toBe(403);
        const [hidden, missing] = [['100~1'], ['100~7']].map((set) =>
          client.post('/api/offers', { data: { lines: { set } } }),
        );
        expect((await hidden!).status).toBe(422);
        expect((await hidden!).body.errors).toEqual((await missing!).body.errors);
        const asked = async (query: string) => idsOf((await client.get(`/api/offers?${query}`)).body.data);
        expect(await asked('lines_any=88~3')).toEqual([id]);
        expect(await asked('lines_any=100~1')).toEqual([]);
        expect(await asked(`marks_any=${encodeURIComponent(marks[0] as string)}`)).toEqual([id]);
        const queried = await client.post('/api/offers/query', {
          filter: 'any(lines as l, l.pieces > 3 and l.order.buyer = "ann") and count(marks as m, m.kind = "big") = 1',
          expand: { lines: { sort: ['-pieces'], count: true, filter: 'product = "tea"' } },
        });
        expect(idsOf(queried.body.data), queried.text).toEqual([id]);
        const changed = await client.patch(`/api/offers/${id}`, {
          data: { lines: { add: ['9~10'], remove: ['88~3'] }, marks: { set: [] } },
        });
        expect(changed.status, changed.text).toBe(200);
        const after = await client.get(`/api/offers/${id}?expand=lines,marks`);
        expect([idsOf(after.body.data.expand.lines), after.body.data.expand.marks]).toEqual([['9~2', '9~10'], []]);
        // The owner deletes a record that is linked.
        await world.run(`INSERT INTO ${shop}.lines VALUES (9, 30, 'ham', 1, false)`);
        expect((await client.patch(`/api/offers/${id}`, { data: { lines: { set: ['9~30'] } } })).status).toBe(200);
        await world.run(`DELETE FROM ${shop}.lines WHERE line_no = 30`);
        expect((await client.get(`/api/offers/${id}?expand=lines`)).body.data.expand.lines).toEqual([]);
        expect((await client.delete(`/api/offers/${id}`)).status).toBe(204);
        const kept = service.app.schema.collections.get('offers')!;
        for await (const line of exportRecords({ q: world.db(), schema: service.app.schema }, kept))
          expect(JSON.parse(line)).toMatchObject({ name: 'rye', lines: ['100~2'], marks: [] });
        expect((await client.delete(`/api/offers/${other.body.data.id}`)).status).toBe(204);
      });

      it('a write of the members is judged by the record that they refer to', async () => {
        const { client } = await user();
        const create = (data: object) => client.post('/api/parcels', { data });
        const made = await create({ id: 20, order: 9, line_no: 2, weight: 1 });
        expect([made.status, made.body.data?.line], made.text).toEqual([201, '9~2']);
        expect((await create({ id: 21, order: 9, line_no: 10 })).status).toBe(403);
        const [hidden, missing] = [
          await create({ id: 22, order: 100, line_no: 1 }),
          await create({ id: 22, order: 100, line_no: 7 }),
        ];
        expect(hidden.status).toBe(422);
        expect(hidden.body.errors).toEqual(missing.body.errors);
        expect((await create({ id: 22, order: 9 })).body.errors).toEqual([
          {
            pointer: '/data/line_no',
            code: 'required',
            detail: '`order` and `line_no` refer to one record of `order_lines`; give all of them',
          },
        ]);
        expect((await create({ id: 22, line: '9~2' })).body.errors[0].code).toBe('read_only');
        const change = (data: object) => client.patch('/api/parcels/20', { data });
        expect((await change({ order: 88, line_no: 3 })).body.data.line).toBe('88~3');
        expect((await change({ order: 9, line_no: 10 })).status).toBe(403);
        expect((await change({ line_no: 10 })).status).toBe(422);
        expect((await change({ order: null, line_no: null })).status).toBe(403);
        expect((await change({ weight: 2 })).body.data).toMatchObject({ line: '88~3', weight: 2 });
        expect((await client.delete('/api/parcels/20')).status).toBe(204);
      });

      it('a write takes its turn in the place that the members name', async () => {
        if (service.kind === 'embedded') return;
        const { client } = await service.user();
        const { db, schema } = service.app;
        const [begun, done] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
        const holding = db.transaction(async (tx) => {
          await lockValues(tx, schema, [{ collection: schema.collections.get('parcels')!, data: { line: '9~2' } }]);
          begun.resolve();
          await done.promise;
        });
        await begun.promise;
        const ended: string[] = [];
        const writes = [
          client.post('/api/parcels', { data: { id: 30, order: 9, line_no: 2 } }),
          client.patch('/api/parcels/4', { data: { order: 9, line_no: 2 } }),
          client.delete('/api/parcels/1'),
        ].map((write, i) => write.finally(() => ended.push(`${i}`)));
        await until(
          'the writes wait',
          async () => ended.length > 0 || (await lockWaits(db, 'advisory')) === writes.length,
        );
        expect(ended).toEqual([]);
        done.resolve();
        await holding;
        expect((await Promise.all(writes)).map(({ status }) => status).join()).toBe('201,200,204');
      });

      it('statements compare the columns of the key, whose index serves them', () => {
        const { schema } = service.app;
        const scope = everyTenant(schema);
        const { text, values } = scope.key('order_lines').is('t', '9~2');
        expect([text, values]).toEqual(['("t"."order_no" = $1::int8 AND "t"."line_no" = $2::int8)', [9, 2]]);
        const row = { scope, visibility: { verdict: 'allow' } as never, collection: 'order_lines', alias: 't' };
        const keyset = keysetOf([], row);
        expect(keyset.after(['9', '2']).text).toBe('("t"."order_no", "t"."line_no") > ($1::int8, $2::int8)');
      });

      it('records are not written, and rows of the owner go with their order', async () => {
        const { client } = await user();
        const data = { order: 9, line_no: 3 };
        expect((await client.post('/api/order_lines', { data })).status).toBe(405);
        expect((await client.patch('/api/order_lines/9~2', { data })).status).toBe(405);
        expect((await client.delete('/api/order_lines/9~2')).status).toBe(405);
        expect(outcomeOf(await client.delete('/api/orders/9'))[0]).toBe(409);
      });

      it('an export has them, and an import is an error', async () => {
        const { schema } = service.app;
        const collection = schema.collections.get('order_lines')!;
        const ids: unknown[] = [];
        for await (const line of exportRecords({ q: world.db(), schema }, collection)) ids.push(JSON.parse(line).id);
        expect(ids.toSorted()).toEqual(['100~1', '100~2', '88~3', '9~10', '9~2']);
        const importing = importRecords(world.db(), {
          schema,
          collection,
          now: '2026-01-02T03:04:05.000000Z',
          records: async function* () {},
        });
        await expect(importing).rejects.toThrow('key of several columns');
        const offers = (lines: readonly string[]) =>
          importRecords(world.db(), {
            schema,
            collection: schema.collections.get('offers')!,
            now: '2026-01-02T03:04:05.000000Z',
            records: async function* () {
              yield {
                line: 1,
                isText: false,
                members: new Map<string, unknown>(Object.entries({ name: 'oil', lines })),
              };
            },
          });
        const rejected: ImportRejected = await offers(['9~10', '7~7']).catch((error) => error);
        expect(rejected.errors.map(({ message }) => message)).toEqual([
          '`lines`: there is no record 7~7 in `order_lines`',
        ]);
        await offers(['9~10']);
        const { client } = await user();
        expect((await client.get('/api/offers?lines_any=9~10')).body.data).toMatchObject([{ name: 'oil' }]);
      });
    },
    world.options,
  );
});
