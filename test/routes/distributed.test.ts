// @module-tag long
/** Every route of records over the multi-tenant sample: on partitions, with every statement held to what a cluster accepts. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { type Database, StoreError } from '../../src/database/contract.ts';
import { raw, type Sql, sql, text, uuid } from '../../src/sql.ts';
import type { Answer } from '../support/client.ts';
import { judged } from '../support/judge/judged-database.ts';
import { describeDistributed, type User } from '../support/service.ts';

const SCHEMA = readFileSync(join(import.meta.dirname, '../../docs/distributed.yaml'), 'utf8');
/** Statements by text: a statement reaches the same number of partitions with any values. */
const sent = new Map<string, Sql>();
let unjudged: Database;

/** The numbers of the partitions (on a cluster, the tasks) that were read or written: those of all tables go by the tenant alone. */
async function partitionsReached(statement: Sql): Promise<ReadonlySet<string>> {
  const plans: string[] = [];
  const undone = new Error('undone');
  const explained = unjudged.transaction(async (tx) => {
    const rows = await tx.rows(sql`${raw('EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ')}${statement}`);
    plans.push(...rows.map(([plan]) => plan!));
    throw undone;
  });
  await explained.catch((error: unknown) => {
    // A taken value cannot be written twice; other tests send the same statement.
    if (error !== undone && !(error instanceof StoreError)) throw error;
  });
  if (plans.length === 0) return new Set();
  const reached = new Set<string>();
  JSON.parse(plans.join(''), (_, node: Readonly<Record<string, unknown>> | null) => {
    // A cluster says how many shards it asks.
    for (let task = 1; task < Number(node?.['Task Count'] ?? 1); task++) reached.add(`task ${task}`).add('task 0');
    const number = /^_.*_(\d)$/.exec(String(node?.['Relation Name']))?.[1];
    if (number !== undefined && node?.['Actual Loops'] !== 0) reached.add(number);
    return node;
  });
  return reached;
}

describeDistributed(
  'distributed collections',
  (service) => {
    let ann: User;
    let bob: User;
    let eve: User;
    let root: User;
    let red: string;
    let blue: string;

    const ok = async (answer: Promise<Answer>, wanted = 200): Promise<Answer['body']> => {
      const { status, text, body } = await answer;
      if (status !== wanted) throw new Error(`${status}: ${text}`);
      return body?.data;
    };
    const make = (user: User, collection: string, data: object): Promise<Answer['body']> =>
      ok(user.client.post(`/api/${collection}`, { data }), 201);
    const choose = (user: User, team: string | null) =>
      ok(user.client.patch(`/api/users/${user.id}`, { data: { team } }));
    let slugs = 0;
    const write = (user: User, data: object = {}) =>
      make(user, 'documents', { slug: `s${++slugs}`, title: 'a title', ...data });
    const labels = (answer: Answer['body']): readonly string[] => answer.map(({ slug }: { slug: string }) => slug);

    beforeAll(async () => {
      [ann, bob, eve, root] = [
        await service.user(),
        await service.user(),
        await service.user(),
        await service.user('admin'),
      ];
      red = (await make(ann, 'teams', { name: 'red' })).id;
      blue = (await make(eve, 'teams', { name: 'blue' })).id;
      await make(ann, 'memberships', { team: red, user: ann.id, role: 'owner' });
      await make(ann, 'memberships', { team: red, user: bob.id, role: 'editor' });
      await make(eve, 'memberships', { team: blue, user: eve.id, role: 'owner' });
      await make(eve, 'memberships', { team: blue, user: ann.id, role: 'editor' });
      for (const [user, team] of [
        [ann, red],
        [bob, red],
        [eve, blue],
      ] as const)
        await choose(user, team);
    });
    afterEach(async () => {
      const found: string[] = [];
      for (const [text, statement] of sent) {
        if (!/^\s*(?:SELECT|UPDATE|DELETE)\b/.test(text) || text.includes('/* every tenant */')) continue;
        if ((await partitionsReached(statement)).size > 1) found.push(text);
      }
      sent.clear();
      expect(found).toEqual([]);
    });

    test('without its team, a record is looked for in every partition', async () => {
      const all = await partitionsReached(sql`SELECT 1 FROM documents AS t WHERE t.id = ${uuid(red)}`);
      const own = await partitionsReached(
        sql`SELECT 1 FROM documents AS t WHERE t.id = ${uuid(red)} AND t.team_id = ${uuid(red)}`,
      );
      expect([all.size > 1, own.size > 1]).toEqual([true, false]);
    });

    test('create takes the team of the caller, and no other', async () => {
      const document = await write(ann);
      expect(document.team).toBe(red);
      expect((await ann.client.post('/api/documents', { data: { slug: 'x', title: 'x', team: blue } })).status).toBe(
        403,
      );
      expect((await bob.client.post('/api/documents', { data: { slug: 'x', title: 'x', team: blue } })).status).toBe(
        422,
      );
    });

    test('a value is unique within a team', async () => {
      await write(ann, { slug: 'same' });
      await write(eve, { slug: 'same' });
      const { status, body } = await ann.client.post('/api/documents', { data: { slug: 'same', title: 'x' } });
      expect([status, body.errors[0].pointer]).toEqual([409, '/data/slug']);
      const other = await write(ann);
      const taken = await ann.client.patch(`/api/documents/${other.id}`, { data: { slug: 'same' } });
      expect([taken.status, taken.body.errors[0].pointer]).toEqual([409, '/data/slug']);
    });

    test('a caller sees and changes the records of the team that they work in', async () => {
      const own = await write(ann);
      const others = await write(eve);
      for (const [id, status] of [
        [own.id, 200],
        [others.id, 404],
      ] as const) {
        expect((await ann.client.get(`/api/documents/${id}`)).status).toBe(status);
        expect((await ann.client.get(`/api/documents/${id}/can`)).status).toBe(status);
        expect((await ann.client.patch(`/api/documents/${id}`, { data: { title: 'y' } })).status).toBe(status);
        expect((await ann.client.delete(`/api/documents/${id}`)).status).toBe(status === 200 ? 204 : 404);
      }
      await choose(ann, blue);
      expect((await ann.client.get(`/api/documents/${others.id}`)).status).toBe(200);
      await choose(ann, red);
      expect((await bob.client.get(`/api/documents/${others.id}`)).status).toBe(404);
    });

    test('the team of a record stays', async () => {
      const { id } = await write(ann);
      const { status, body } = await ann.client.patch(`/api/documents/${id}`, { data: { team: blue } });
      expect([status, body.errors[0]]).toMatchObject([422, { pointer: '/data/team', code: 'read_only' }]);
    });

    test('lists, filters, sorts, counts and expands', async () => {
      const tag = await make(ann, 'tags', { label: `tag ${slugs}` });
      const first = await write(ann, { due_at: '2026-01-01T00:00:00Z' });
      const second = await write(ann, { previous: first.id, related: { add: [first.id] }, tags: { add: [tag.id] } });
      await write(eve, { title: 'of blue' });
      await make(ann, 'comments', { document: second.id, body: 'hello' });
      await make(ann, 'covers', { document: second.id, caption: 'a cover' });
      const listed = await ok(
        ann.client.get('/api/documents?limit=100&expand=previous,related,tags,cover,comments,owner'),
      );
      expect(listed.every(({ team }: { team: string }) => team === red)).toBe(true);
      const found = listed.find(({ id }: { id: string }) => id === second.id);
      expect(found.expand).toMatchObject({
        previous: { id: first.id },
        related: [{ id: first.id }],
        tags: [{ id: tag.id }],
        cover: { caption: 'a cover' },
        comments: [{ body: 'hello' }],
        owner: { id: ann.id },
      });
      const by = async (filter: string) => labels(await ok(ann.client.get(`/api/documents?${filter}`)));
      expect(await by(`previous=${first.id}`)).toEqual([second.slug]);
      expect(await by(`related_any=${first.id}`)).toEqual([second.slug]);
      expect(await by(`tags_any=${tag.id}`)).toEqual([second.slug]);
      expect(await by(`cover=${found.expand.cover.id}`)).toEqual([second.slug]);
      expect(await by(`comments_any=${found.expand.comments[0].id}`)).toEqual([second.slug]);
      const query = async (asked: object) =>
        labels(
          await ok(
            ann.client.post('/api/documents/query', {
              filter: `slug in ["${first.slug}", "${second.slug}"]`,
              ...asked,
            }),
          ),
        );
      expect(await query({ sort: ['-due_at'] })).toEqual([first.slug, second.slug]);
      expect(await query({ sort: ['previous.slug', 'slug'], count: 'exact' })).toEqual([second.slug, first.slug]);
      expect(await query({ sort: ['cover.caption'], capabilities: true })).toEqual([second.slug, first.slug]);
      expect(await query({ filter: 'any(comments as c, c.body = "hello")' })).toContain(second.slug);
      expect(await query({ filter: 'previous.slug starts with "s" or count(related as r, true) > 0' })).toContain(
        second.slug,
      );
      expect(await query({ filter: `any(tags as t, t.label = "${tag.label}")`, expand: { related: {} } })).toEqual([
        second.slug,
      ]);
      const groups = await ok(
        ann.client.post('/api/documents/aggregate', { group_by: ['team'], measures: { n: 'count' } }),
      );
      expect(groups).toEqual([{ team: red, n: expect.any(Number) }]);
    });

    test('writes what is beside a record: links, partners, references', async () => {
      const [one, two] = [await write(ann), await write(ann)];
      const cover = await make(ann, 'covers', { document: one.id });
      const moved = await ok(
        ann.client.patch(`/api/documents/${two.id}`, { data: { cover: cover.id, related: { set: [one.id] } } }),
      );
      expect(moved.cover).toBe(cover.id);
      await ok(
        ann.client.patch(`/api/documents/${two.id}?expand=related`, { data: { related: { remove: [one.id] } } }),
      );
      const foreign = await write(eve);
      for (const data of [{ previous: foreign.id }, { related: { add: [foreign.id] } }])
        expect((await ann.client.patch(`/api/documents/${two.id}`, { data })).status).toBe(422);
      expect((await ann.client.post('/api/comments', { data: { document: foreign.id, body: 'x' } })).status).toBe(422);
    });

    test('If-Match holds, and an Idempotency-Key makes one record', async () => {
      const { id } = await write(ann);
      const tag = (await ann.client.get(`/api/documents/${id}`)).headers.get('etag')!;
      const patch = (title: string) =>
        ann.client.patch(`/api/documents/${id}`, { data: { title } }, { 'If-Match': tag });
      expect([(await patch('b')).status, (await patch('c')).status]).toEqual([200, 412]);
      const data = { slug: `s${++slugs}`, title: 'once' };
      const once = () => ann.client.post('/api/documents', { data }, { 'Idempotency-Key': 'k1' });
      const [a, b] = [await once(), await once()];
      expect([a.status, b.status, a.body.data.id]).toEqual([201, 201, b.body.data.id]);
    });

    test('a key gives no content of a record whose delete did not see its answer', async () => {
      const document = await write(ann);
      const data = { document: document.id, caption: 'a secret' };
      const key = { 'Idempotency-Key': 'k2' };
      const asks = [
        () => ann.client.post('/api/covers', { data }, key),
        () => ann.client.post('/api/batch', { operations: [{ op: 'create', collection: 'covers', data }] }, key),
      ];
      for (const ask of asks) {
        const { text } = await ask();
        expect([text.includes('a secret'), (await ask()).text]).toEqual([true, text]);
        await unjudged.run(sql`DELETE FROM covers WHERE document_id = ${uuid(document.id)}`);
        expect((await ask()).text).not.toContain('a secret');
      }
    });

    test('a sweep takes the kept content of a record that is gone, and of no other', async () => {
      const keep = (title: string) => {
        const data = { slug: `s${++slugs}`, title };
        return ok(ann.client.post('/api/documents', { data }, { 'Idempotency-Key': data.slug }), 201);
      };
      const kept = async (title: string) =>
        (await unjudged.rows(sql`SELECT 1 FROM bylaw_kept_answers WHERE strpos(answer, ${text(title)}) > 0`)).length;
      const { id } = await keep('a title that goes');
      await keep('a title that stays');
      await unjudged.run(sql`DELETE FROM documents WHERE id = ${uuid(id)}`);
      await service.app.kept.sweep(service.app.schema);
      expect([await kept('a title that goes'), await kept('a title that stays')]).toEqual([0, 1]);
    });

    test('deletes what goes with a record, and clears what refers to it', async () => {
      const [one, two] = [await write(ann), await write(ann)];
      await ok(
        ann.client.patch(`/api/documents/${two.id}`, { data: { previous: one.id, related: { add: [one.id] } } }),
      );
      const comment = await make(ann, 'comments', { document: one.id, body: 'goes too' });
      const answer = await make(ann, 'comments', { document: two.id, answer_to: comment.id, body: 'stays' });
      await ok(ann.client.delete(`/api/documents/${one.id}`), 204);
      expect((await ok(ann.client.get(`/api/documents/${two.id}`))).previous).toBeNull();
      expect((await ok(ann.client.get(`/api/comments/${answer.id}`))).answer_to).toBeNull();
      expect((await ann.client.get(`/api/comments/${comment.id}`)).status).toBe(404);
    });

    test('a batch and a rehearsal', async () => {
      const slug = `s${++slugs}`;
      const operations = [
        { op: 'create', collection: 'documents', data: { slug, title: 'in a batch' }, as: 'd' },
        { op: 'create', collection: 'comments', data: { document: { $ref: 'd' }, body: 'first' } },
        { op: 'update', collection: 'documents', id: { $ref: 'd' }, data: { score: 1 } },
      ];
      const done = await ok(ann.client.post('/api/batch', { operations }));
      expect(done.map(({ status }: { status: number }) => status)).toEqual([201, 201, 200]);
      const { id } = done[0].data;
      const rehearse = (operation: object) => ok(ann.client.post('/api/documents/can', operation));
      expect(await rehearse({ action: 'delete', id })).toMatchObject({ allowed: true });
      expect(await rehearse({ action: 'create', data: { slug, title: 'x' } })).toMatchObject({ allowed: false });
    });

    test('lists that are filtered, and records that are first found', async () => {
      const event = await make(ann, 'events', { team: red, what: 'something' });
      const away = await make(eve, 'events', { team: blue, what: 'elsewhere' });
      expect((await ann.client.get('/api/events')).body).toMatchObject({ code: 'filter_required' });
      expect(await ok(ann.client.get(`/api/events?team=${blue}`))).toMatchObject([{ id: away.id }]);
      expect((await ann.client.get(`/api/events/${event.id}`)).status).toBe(200);
      expect((await bob.client.get(`/api/events/${away.id}`)).status).toBe(404);
      expect((await bob.client.delete(`/api/events/${event.id}`)).status).toBe(403);
      await ok(root.client.delete(`/api/events/${event.id}`), 204);
      expect((await root.client.delete(`/api/events/${event.id}`)).status).toBe(404);
    });

    test('a record that every machine has is deleted in all teams', async () => {
      const tag = await make(ann, 'tags', { label: 'going' });
      const documents = [await write(ann, { tags: { add: [tag.id] } }), await write(eve, { tags: { add: [tag.id] } })];
      const tagOf = async (user: User, id: string) =>
        (await user.client.get(`/api/documents/${id}`)).headers.get('etag');
      const before = [await tagOf(ann, documents[0].id), await tagOf(eve, documents[1].id)];
      await ok(root.client.delete(`/api/tags/${tag.id}`), 204);
      const after = [await tagOf(ann, documents[0].id), await tagOf(eve, documents[1].id)];
      expect(after[0]).not.toBe(before[0]);
      expect(after[1]).not.toBe(before[1]);
      const file = new FormData();
      file.set('file', new Blob(['bytes']), 'a.txt');
      const green = (await make(ann, 'teams', { name: 'green' })).id;
      await make(ann, 'memberships', { team: green, user: ann.id, role: 'owner' });
      await choose(ann, green);
      const [one, two] = [await write(ann), await write(ann)];
      await ok(ann.client.patch(`/api/documents/${two.id}`, { data: { previous: one.id } }));
      await make(ann, 'comments', { document: one.id, body: 'x' });
      await ok(ann.client.delete(`/api/teams/${green}`), 204);
      await choose(ann, red);
      expect((await ann.client.get(`/api/documents/${one.id}`)).status).toBe(404);
    });
  },
  {
    schema: SCHEMA,
    watch: (db, schema) => {
      unjudged = db;
      return judged(db, schema, (statement) => void sent.set(statement.text, statement));
    },
  },
);
