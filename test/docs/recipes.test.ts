// @module-tag long
/** The schemas of docs/recipes: without errors and warnings, and they behave over HTTP as the page describes. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseSchema } from '../../src/schema/load.ts';
import { BOOK_SCHEMAS } from '../support/book.ts';
import type { Client } from '../support/client.ts';
import { describeOnOne, type TestService } from '../support/service.ts';

function schemaOf(recipe: string): string {
  const page = readFileSync(join(import.meta.dirname, `../../docs/recipes/${recipe}.md`), 'utf8');
  return /```yaml bylaw\n([\s\S]*?)```/.exec(page)![1]!;
}

test.each(['multi-tenant', 'helpdesk', 'sharing', 'hiring'])(
  'bylaw check reports nothing for the schema of %s',
  (recipe) => {
    expect(parseSchema(schemaOf(recipe), 'bylaw.yaml').issues).toEqual([]);
  },
);

const chapters = [...BOOK_SCHEMAS];

test.each(chapters)('the book of policies: %s is a schema without errors and warnings', (_, schema) => {
  expect(parseSchema(schema!, 'bylaw.yaml').issues).toEqual([]);
});
test('the book of policies has a schema in every chapter', () => {
  expect(chapters.length).toBe(11);
});

/** → the id. */
async function create(client: Client, collection: string, data: object): Promise<string> {
  const { status, body, text } = await client.post(`/api/${collection}`, { data });
  expect([status, text]).toEqual([201, text]);
  return body.data.id as string;
}
const titles = async (client: Client, path: string, field: string): Promise<readonly string[]> =>
  (await client.get(path)).body.data.map((record: Record<string, string>) => record[field]);
const statusOf = async (answer: Promise<{ readonly status: number }>): Promise<number> => (await answer).status;

describeOnOne(
  'multi-tenant',
  (service: TestService) => {
    test('organisations are kept apart', async () => {
      const [root, ann, bob, eve] = await Promise.all([
        service.user('admin'),
        service.user(),
        service.user(),
        service.user(),
      ]);
      const [acme, bolt] = [
        await create(root.client, 'organisations', { name: 'Acme' }),
        await create(root.client, 'organisations', { name: 'Bolt' }),
      ];
      for (const [user, organisation] of [
        [ann, acme],
        [bob, bolt],
      ] as const)
        expect(await statusOf(root.client.patch(`/api/users/${user.id}`, { data: { organisation } }))).toBe(200);
      const project = await create(ann.client, 'projects', { name: 'Anvil' });
      const task = await create(ann.client, 'tasks', { title: 'Forge', project });
      expect(await titles(ann.client, '/api/tasks', 'title')).toEqual(['Forge']);
      expect(await titles(ann.client, '/api/organisations', 'name')).toEqual(['Acme']);
      expect(await titles(bob.client, '/api/projects', 'name')).toEqual([]);
      expect(await statusOf(bob.client.get(`/api/projects/${project}`))).toBe(404);
      // Without an organisation no rule can be true.
      expect(await statusOf(eve.client.get('/api/projects'))).toBe(403);
      expect(await statusOf(bob.client.post('/api/tasks', { data: { title: 'Spy', project } }))).toBe(422);
      expect(await statusOf(bob.client.delete(`/api/tasks/${task}`))).toBe(404);
      expect(await statusOf(bob.client.post('/api/projects', { data: { name: 'x', organisation: acme } }))).not.toBe(
        201,
      );
      // Users cannot move to another organisation.
      expect(await statusOf(bob.client.patch(`/api/users/${bob.id}`, { data: { organisation: acme } }))).toBe(403);
    });
  },
  { schema: schemaOf('multi-tenant') },
);

describeOnOne(
  'helpdesk',
  (service: TestService) => {
    test('customers see their own tickets and no internal comment; agents see all', async () => {
      const [agent, ann, bob] = await Promise.all([
        service.user('agent'),
        service.user('customer'),
        service.user('customer'),
      ]);
      const ticket = await create(ann.client, 'tickets', { subject: 'It is broken' });
      await create(bob.client, 'tickets', { subject: 'Mine, too' });
      await create(agent.client, 'comments', { ticket, body: 'Again?', internal: true });
      await create(agent.client, 'comments', { ticket, body: 'We are on it' });
      await create(ann.client, 'comments', { ticket, body: 'Thank you' });
      expect(await titles(agent.client, '/api/tickets?status=open', 'subject')).toEqual(['It is broken', 'Mine, too']);
      expect(await titles(ann.client, '/api/tickets?status=open', 'subject')).toEqual(['It is broken']);
      const { body } = await ann.client.get(`/api/tickets/${ticket}?expand=comments`);
      expect(body.data.expand.comments.map((comment: { body: string }) => comment.body)).toEqual([
        'We are on it',
        'Thank you',
      ]);
      expect(await titles(agent.client, `/api/comments?ticket=${ticket}`, 'body')).toHaveLength(3);
      expect(await statusOf(bob.client.get(`/api/tickets/${ticket}`))).toBe(404);
      expect(await statusOf(bob.client.post('/api/comments', { data: { ticket, body: 'Hi' } }))).toBe(422);
      const change = (client: Client, data: object) => statusOf(client.patch(`/api/tickets/${ticket}`, { data }));
      expect(await statusOf(ann.client.post('/api/comments', { data: { ticket, body: 'x', internal: true } }))).toBe(
        403,
      );
      expect(await change(ann.client, { priority: 'high' })).toBe(403);
      expect(await change(agent.client, { priority: 'high', assignee: agent.id })).toBe(200);
      expect(await change(ann.client, { subject: 'It works', status: 'closed' })).toBe(200);
      expect(await change(ann.client, { assignee: null })).toBe(403);
      expect(await statusOf(ann.client.post('/api/comments', { data: { ticket, body: 'Late' } }))).toBe(403);
    });
  },
  { schema: schemaOf('helpdesk') },
);

describeOnOne(
  'sharing',
  (service: TestService) => {
    test('a share reaches the folder and the folders below it', async () => {
      const [ann, bob, eve] = await Promise.all([service.user(), service.user(), service.user()]);
      const folder = await create(ann.client, 'folders', { name: 'Work' });
      const below = await create(ann.client, 'folders', { name: 'Plans', parent: folder });
      const own = await create(ann.client, 'folders', { name: 'Private' });
      const document = await create(ann.client, 'documents', { title: 'Plan', folder: below });
      await create(ann.client, 'documents', { title: 'Diary', folder: own });
      const rename = (client: Client, data: object) => statusOf(client.patch(`/api/documents/${document}`, { data }));
      expect(await titles(bob.client, '/api/documents', 'title')).toEqual([]);
      const share = await create(ann.client, 'shares', { folder, user: bob.id });
      expect(await titles(bob.client, '/api/documents', 'title')).toEqual(['Plan']);
      expect(await titles(bob.client, '/api/folders', 'name')).toEqual(['Work', 'Plans']);
      expect(await rename(bob.client, { title: 'Mine' })).toBe(403);
      expect(await statusOf(ann.client.patch(`/api/shares/${share}`, { data: { level: 'editor' } }))).toBe(200);
      expect(await rename(bob.client, { title: 'Ours' })).toBe(200);
      // A folder that the editor cannot see, and one where he may not write.
      expect(await rename(bob.client, { folder: own })).toBe(422);
      expect(await statusOf(bob.client.post('/api/shares', { data: { folder, user: eve.id } }))).toBe(403);
      expect(await statusOf(eve.client.get(`/api/documents/${document}`))).toBe(404);
      expect(await statusOf(bob.client.delete(`/api/shares/${share}`))).toBe(204);
      expect(await titles(bob.client, '/api/documents', 'title')).toEqual([]);
    });
  },
  { schema: schemaOf('sharing') },
);

describeOnOne(
  'hiring',
  (service: TestService) => {
    test('an application takes each stage in turn, and a refusal says why', async () => {
      const [ann, rec] = await Promise.all([service.user(), service.user('recruiter')]);
      const early = await ann.client.post('/api/applications', { data: { name: 'Ann', stage: 'offer' } });
      expect([early.status, early.body.detail]).toEqual([403, 'an application begins with the stage applied']);
      const id = await create(ann.client, 'applications', { name: 'Ann' });
      const moved = async (data: object, client = rec.client) => {
        const { status, body } = await client.patch(`/api/applications/${id}`, { data });
        return [status, body.code, ...(body.errors ?? []).map(({ detail }: { detail: string }) => detail)];
      };
      expect(await moved({ stage: 'offer' })).toEqual([
        422,
        'transition_refused',
        '`stage` is "applied", which changes to "screening", "rejected" only',
        'an offer needs a salary',
        'two interviews come before an offer',
      ]);
      expect(await moved({ stage: 'rejected' })).toEqual([422, 'validation_failed', 'a rejection needs a reason']);
      expect(await moved({ stage: 'screening' })).toEqual([200, undefined]);
      const [starts_at, ends_at] = ['2026-01-01T10:00:00Z', '2026-01-01T11:00:00Z'];
      const odd = await rec.client.post('/api/interviews', {
        data: { application: id, starts_at: ends_at, ends_at: starts_at },
      });
      expect([odd.status, odd.body.errors[0].check]).toEqual([422, 'in_order']);
      for (const _ of [1, 2]) await create(rec.client, 'interviews', { application: id, starts_at, ends_at });
      expect(await moved({ stage: 'offer', salary: 10 })).toEqual([200, undefined]);
      const late = await rec.client.post('/api/interviews', { data: { application: id, starts_at, ends_at } });
      expect([late.status, late.body.errors[0].detail]).toEqual([422, 'the application is decided']);
      const gone = await ann.client.delete(`/api/applications/${id}`);
      expect([gone.status, gone.body.detail]).toEqual([
        403,
        'only an application that nobody has looked at can be withdrawn',
      ]);
    });
  },
  { schema: schemaOf('hiring') },
);
