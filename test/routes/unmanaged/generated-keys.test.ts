/** Keys and columns that PostgreSQL generates always, and defaults that no schema file says: by requests and by files. */
import { afterAll, describe, expect, it } from 'vitest';
import { exportRecords } from '../../../src/records/transfer/export-records.ts';
import { importRecords } from '../../../src/records/transfer/import-records.ts';
import { describeOnBoth } from '../../support/service.ts';
import { ownersWorld, ownSchema } from './owners-table.ts';

describe('generated keys', () => {
  const shop = ownSchema();
  const world = ownersWorld(
    `
CREATE SCHEMA ${shop};;
CREATE TYPE ${shop}.state AS ENUM ('open', 'done');;
CREATE TABLE ${shop}.orders (
  order_no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, total int NOT NULL, twice int GENERATED ALWAYS AS (total * 2) STORED,
  state ${shop}.state NOT NULL DEFAULT 'open', place text NOT NULL DEFAULT upper('home'));;
`,
    `
roles: [member]
register: { roles: [member] }
collections:
  orders:
    table: ${shop}.orders
    managed: false
    timestamps: none
    id: { type: int, column: order_no }
    fields: { total: { type: int, required: true }, twice: int, state: { type: string, enum: [open, done] }, place: string }
    access: { view: true, create: '@record.total > 0', update: true, delete: true }
`,
  );

  describeOnBoth(
    'made by the database',
    (service) => {
      afterAll(() => world.run(`DROP SCHEMA IF EXISTS ${shop} CASCADE`).catch(() => undefined));

      it('a create has the next number, and the values of the database', async () => {
        const { client } = await service.user();
        const { status, body, text } = await client.post('/api/orders', { data: { total: 4 } });
        expect([status, body.data], text).toEqual([201, { id: 1, total: 4, twice: 8, state: 'open', place: 'HOME' }]);
        expect((await client.post('/api/orders', { data: { total: 0 } })).status).toBe(403);
        const batch = await client.post('/api/batch', {
          operations: [{ op: 'create', collection: 'orders', data: { total: 5, state: 'done' } }],
        });
        expect([batch.status, batch.body.data[0].data.state]).toEqual([200, 'done']);
        expect((await client.patch('/api/orders/1', { data: { total: 6 } })).body.data.twice).toBe(12);
      });

      it('a file has the numbers or gets them, and what no line gives is the DEFAULT', async () => {
        const { schema } = service.app;
        const collection = schema.collections.get('orders')!;
        const imported = (records: readonly object[], upsert?: string) =>
          importRecords(world.db(), {
            schema,
            collection,
            upsert,
            now: '2026-01-02T03:04:05.000000Z',
            records: async function* () {
              for (const [i, members] of records.entries())
                yield { line: i + 1, isText: false, members: new Map<string, unknown>(Object.entries(members)) };
            },
          });
        expect(
          await imported([
            { total: 7, state: 'open' },
            { id: 50, total: 8, state: 'done' },
          ]),
        ).toMatchObject({ created: 2 });
        const lines: { readonly id: number }[] = [];
        for await (const line of exportRecords({ q: world.db(), schema }, collection)) lines.push(JSON.parse(line));
        expect(lines.at(-1)).toEqual({ id: 50, total: 8, twice: 16, state: 'done', place: 'HOME' });
        expect(await imported(lines, 'id')).toEqual({ created: 0, updated: lines.length, skipped: 0 });
        await world.run(`DELETE FROM ${shop}.orders`);
        expect(await imported(lines)).toMatchObject({ created: lines.length });
        const { client } = await service.user();
        expect((await client.post('/api/orders', { data: { total: 1 } })).body.data.id).toBe(51);
      });
    },
    world.options,
  );
});
