/** Members that no request sets. */
import { expect, test } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import { raw } from '../../src/sql.ts';
import { describeOnBoth } from '../support/service.ts';

const SCHEMA = `
roles: [member]
register: { roles: [member] }
collections:
  teams: { fields: { name: string }, access: { read: true, create: true } }
  tasks:
    fields:
      title: string
      state: { type: string, required: true, default: new, read_only: true }
      score: { type: int, read_only: true, column: points }
    relations:
      team: { kind: belongs_to, collection: teams, read_only: true }
      owner: { kind: belongs_to, collection: users, required: true, default: '@request.auth.id', read_only: true }
    access: { view: true, create: true, update: '@record.state != "done"' }
`;
let db: Database;

describeOnBoth(
  'read-only members',
  (service) => {
    test('a create gives the defaults, and no request sets a value', async () => {
      const { client, id } = await service.user();
      const made = await client.post('/api/tasks', { data: { title: 'a' } });
      expect([made.status, made.body.data]).toEqual([
        201,
        expect.objectContaining({ title: 'a', state: 'new', score: null, team: null, owner: id }),
      ]);
      const given = { state: 'done', score: 1, team: id, owner: id };
      const pointers = Object.keys(given).map((name) => [`/data/${name}`, 'read_only']);
      const path = `/api/tasks/${made.body.data.id}`;
      for (const answer of [
        await client.post('/api/tasks', { data: given }),
        await client.patch(path, { data: given }),
      ]) {
        const errors = answer.body.errors.map((each: { pointer: string; code: string }) => [each.pointer, each.code]);
        expect([answer.status, errors]).toEqual([422, pointers]);
      }
      const batch = await client.post('/api/batch', {
        operations: [{ op: 'update', collection: 'tasks', id: made.body.data.id, data: { score: 1 } }],
      });
      expect([batch.status, batch.body.errors[0].code]).toEqual([422, 'read_only']);
    });

    test('what another program writes is shown, filtered, and decides', async () => {
      const { client } = await service.user();
      const { body } = await client.post('/api/tasks', { data: { title: 'b' } });
      await db.run(raw(`UPDATE tasks SET points = 7, state = 'done' WHERE id = '${body.data.id}'`));
      const found = await client.get('/api/tasks?score=7');
      expect(found.body.data.map(({ state }: { state: string }) => state)).toEqual(['done']);
      expect((await client.patch(`/api/tasks/${body.data.id}`, { data: { title: 'c' } })).status).toBe(403);
    });

    test('the document calls them read-only', async () => {
      const { body } = await service.anonymous.get('/openapi.json');
      const text = JSON.stringify(body.components.schemas);
      expect(text).toMatch(/"score":\{[^}]*"readOnly":true/);
    });
  },
  { schema: SCHEMA, watch: async (opened) => (db = opened) },
);
