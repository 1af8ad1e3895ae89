// @module-tag long
/** The client with the types that `bylaw types` makes, as strict TypeScript reads them. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { parseSchema } from '../../src/schema/load.ts';
import { CLIENT, typeCheck } from './type-check.ts';

const ROOT = resolve(import.meta.dirname, '../..');

const USE = `
import { createClient, isBylawError } from ${CLIENT};
import type { Collections, DocumentRecord, ErrorCode, Team } from './types.ts';

const client = createClient<Collections>('https://api.example.com');
const documents = client.collection('documents');

export async function use(): Promise<string | undefined> {
  const { data } = await documents.list({ status: 'draft', limit: 10, expand: ['owner', 'team'] });
  const first: DocumentRecord | undefined = data[0];
  const team: Team | null | undefined = first?.expand?.team;
  const written = await documents.create({ title: 'x' }, { expand: ['team'] });
  await documents.update(written.id, { status: 'published' });
  for await (const membership of client.collection('memberships').list().records()) void membership.role;
  const { email } = await client.me();
  // @ts-expect-error: no such relation
  await documents.read(written.id, { expand: ['ownr'] });
  const listed = await documents.list({ filter: 'title contains $q', params: { q: 'x' }, sort: ['-due_at'], fields: ['title'] });
  const listedTitle: string | undefined = listed.data[0]?.title;
  // @ts-expect-error: not among the fields of the list
  listed.data[0]?.status;
  // @ts-expect-error: no such order
  documents.list({ sort: ['-titel'] });
  void listedTitle;
  // @ts-expect-error: no such filter
  documents.list({ statsu: 'draft' });
  // @ts-expect-error: not one of the field's values
  documents.list({ status: 'lost' });
  // @ts-expect-error: users are made by registering
  await client.collection('users').create({ email: 'ada@example.com' });
  // @ts-expect-error: no such collection
  client.collection('document');
  // @ts-expect-error: the result may be hidden, so it may be an id only
  written.title;
  const found = await documents.query({ sort: ['-due_at', 'owner.email'], fields: ['title'], expand: { owner: true } });
  const title: string | undefined = found.data[0]?.title;
  // @ts-expect-error: not among the fields of the query
  found.data[0]?.status;
  const lost = await documents.deleted({ sort: ['-deleted_at', 'due_at'] });
  const deletedAt: string | undefined = lost.data[0]?.deleted_at;
  const named = await documents.deleted({ fields: ['deleted_at'] });
  void [deletedAt, named.data[0]?.deleted_at];
  // @ts-expect-error: not among the fields of the query
  named.data[0]?.title;
  // @ts-expect-error: no such order
  documents.deleted({ sort: ['-titel'] });
  // @ts-expect-error: of deleted records alone
  found.data[0]?.deleted_at;
  const cursor: string | null | undefined = listed.page.next_cursor;
  void cursor;
  // @ts-expect-error: no such field
  documents.query({ fields: ['titel'] });
  // @ts-expect-error: no such order
  documents.query({ sort: ['-titel'] });
  documents.query({ sort: ['-team.name', 'owner.created_at'] });
  // @ts-expect-error: no such field of the team
  documents.query({ sort: ['team.nmae'] });
  // @ts-expect-error: no such relation of the team
  documents.query({ sort: ['team.ownr.email'] });
  // @ts-expect-error: titles have no folded copy
  documents.query({ sort: ['title:text'] });
  await client.collection('teams').upsert('name', 'x', { about: 'y' });
  // @ts-expect-error: not a unique field
  client.collection('teams').upsert('about', 'x', {});
  // @ts-expect-error: not a unique field
  client.batch([{ op: 'upsert', collection: 'teams', on: 'about', data: { name: 'x' } }]);
  // @ts-expect-error: no such relation
  documents.query({ expand: { ownr: true } });
  await documents.aggregate({ group_by: ['owner.email', 'week(due_at)'], measures: { n: { of: 'count', where: 'true' } }, having: 'n > 1' });
  // @ts-expect-error: titles have no months
  documents.aggregate({ group_by: ['month(title)'] });
  await documents.aggregate({ measures: { most: 'max(score)', owners: 'count(distinct owner)' } });
  // @ts-expect-error: no such field
  documents.aggregate({ measures: { most: 'max(scroe)' } });
  const nested = await documents.query({ expand: { team: { fields: ['name'], expand: { memberships: { fields: ['role'], count: true } } }, comments: true } });
  void nested.data[0]?.expand?.team?.expand?.memberships_count;
  // @ts-expect-error: no such field of the team
  documents.query({ expand: { team: { fields: ['nmae'] } } });
  // @ts-expect-error: no such relation of the team
  documents.query({ expand: { team: { expand: { membershps: true } } } });
  // @ts-expect-error: no such field of the memberships
  documents.query({ expand: { team: { expand: { memberships: { fields: ['rol'] } } } } });
  // @ts-expect-error: expand names relations alone
  documents.query({ expand: { comments_count: true } });
  const { update } = await documents.capabilities(written.id);
  const tried = await documents.can({ action: 'update', id: written.id, data: { status: 'published' } });
  if (!tried.allowed) console.log(tried.code, update);
  // @ts-expect-error: no such field of an update
  documents.can({ action: 'update', id: written.id, data: { titel: 'x' } });
  const [made, gone] = await client.batch([
    { op: 'create', collection: 'documents', data: { title: 'One', team: { $ref: 'x' } } },
    { op: 'delete', collection: 'teams', id: 'x' },
  ]);
  const record: { id: string } = made.data;
  // @ts-expect-error: a delete has no record
  gone.data.id;
  const failed: unknown = record;
  if (isBylawError<ErrorCode>(failed)) {
    // @ts-expect-error: no such code
    if (failed.code === 'not_fund') return undefined;
  }
  return team?.name ?? title ?? email;
}
`;

test('correct calls compile, and mistakes do not', async () => {
  const { schema } = parseSchema(readFileSync(join(ROOT, 'bylaw.yaml'), 'utf8'), 'bylaw.yaml');
  expect(await typeCheck(schema!, USE)).toBe('');
});
