// @module-tag long
/** Collections without `created_at` or `updated_at`: their records have no such member, and nothing else changes. */
import { expect, it } from 'vitest';
import { typescriptOf } from '../../../src/describe/typescript.ts';
import { outcomeOf } from '../../support/records.ts';
import { describeOnBoth, schemaFrom } from '../../support/service.ts';

const ACCESS = 'access: { list: true, read: true, create: true, update: true, delete: true }';
const NARROW = ACCESS.replace('update: true', 'update: "changed_only(@record.name, @record.tags, @record.to)"');
const SCHEMA = `
roles: [member]
register: { roles: [member] }
collections:
  users: { access: { read: true } }
  tags: { timestamps: none, fields: { name: string }, ${ACCESS} }
  bare:
    timestamps: none
    fields: { name: { type: string, search: true }, size: int }
    relations:
      tags: { kind: many_to_many, collection: tags }
      to: { kind: belongs_to, collection: tags, on_delete: set_null }
    ${NARROW}
  made: { timestamps: { created_at: made_on }, index: [created_at], fields: { name: string }, ${ACCESS} }
`;

describeOnBoth(
  'records without timestamps',
  (service) => {
    const membersOf = (record: object): readonly string[] => Object.keys(record).toSorted();

    it('have no such member in any answer', async () => {
      const { client } = await service.user();
      const { body: tag } = await client.post('/api/tags', { data: { name: 'a' } });
      const { body: bare } = await client.post('/api/bare', {
        data: { name: 'x', tags: { add: [tag.data.id] }, to: tag.data.id },
      });
      const { body: made } = await client.post('/api/made', { data: { name: 'y' } });
      expect([tag, bare, made].map(({ data }) => membersOf(data))).toEqual([
        ['id', 'name'],
        ['id', 'name', 'size', 'to'],
        ['created_at', 'id', 'name'],
      ]);
      const patched = await client.patch(`/api/bare/${bare.data.id}`, { data: { name: 'z' } });
      expect(patched.body.data).toEqual({ ...bare.data, name: 'z' });
      expect((await client.patch(`/api/made/${made.data.id}`, { data: { name: 'z' } })).body.data).toEqual({
        ...made.data,
        name: 'z',
      });
      expect(outcomeOf(await client.patch(`/api/bare/${bare.data.id}`, { data: { size: 1 } }))).toEqual([
        403,
        'forbidden',
      ]);
    });

    it('have ETags that change with the record, its members and its references', async () => {
      const { client } = await service.user();
      const { body: tag } = await client.post('/api/tags', { data: { name: 'a' } });
      const made = await client.post('/api/bare', { data: { name: 'x', to: tag.data.id } });
      const path = `/api/bare/${made.body.data.id}`;
      const tagged = await client.patch(path, { data: { tags: { add: [tag.data.id] } } });
      const stale = await client.patch(path, { data: { name: 'y' } }, { 'If-Match': made.headers.get('etag')! });
      expect(outcomeOf(stale)).toEqual([412, 'changed']);
      await client.delete(`/api/tags/${tag.data.id}`);
      const { body, headers } = await client.get(path);
      expect(body.data.to).toBeNull();
      expect(headers.get('etag')).not.toBe(tagged.headers.get('etag'));
    });

    it('filters, sorts and rules do not know the member', async () => {
      const { client } = await service.user();
      expect(outcomeOf(await client.get('/api/bare?updated_at=2026-01-01T00:00:00Z'))).toEqual([
        400,
        'filter_unknown_key',
        'updated_at filter_unknown_key',
      ]);
      const sorted = await client.post('/api/made/query', { sort: ['-created_at'] });
      expect([sorted.status, sorted.body.data.length]).toEqual([200, 1]);
      expect((await client.post('/api/made/query', { sort: ['updated_at'] })).status).toBe(422);
      const rule = SCHEMA.replace('list: true', "list: '@record.updated_at < @now'");
      expect(() => schemaFrom(rule)).toThrow('`tags` has no `updated_at`');
      expect(() => schemaFrom(SCHEMA.replace('index: [created_at]', 'index: [updated_at]'))).toThrow(
        'expected one of `created_at`, found `updated_at`',
      );
    });

    it('the document describes records without the member', async () => {
      const { body } = await service.anonymous.get('/openapi.json');
      const { Bare, Made } = body.components.schemas;
      expect([Object.keys(Bare.properties), Object.keys(Made.properties)].map((names) => names.toSorted())).toEqual([
        ['expand', 'expand_more', 'id', 'name', 'size', 'to'],
        ['created_at', 'id', 'name'],
      ]);
      expect(/interface Bare \{[^}]*\}/.exec(typescriptOf(schemaFrom(SCHEMA)))?.[0]).not.toContain('_at');
    });
  },
  { schema: SCHEMA },
);
