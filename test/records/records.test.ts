// @module-tag long
// @module-tag partitions
/** Records on both databases: relations, what is hidden, what is refused. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import { param, raw, sql } from '../../src/sql.ts';
import { type Caller, KINDS, openKind, refusal, World } from '../support/store-world.ts';
import { findRecords, insertRecord } from '../support/system-records.ts';

const SCHEMA = `
roles: { admin: {}, member: {}, lead: { assigns: [member] } }
register: { roles: [member] }
collections:
  users:
    fields: { nickname: { type: string, max: 20 } }
    access:
      list: true
      read: [{ roles: [admin] }, { roles: [lead] }, { when: '@record.id = @request.auth.id' }]
      update: '@record.id = @request.auth.id'
  teams:
    fields: { name: { type: string, required: true, unique: true } }
    relations:
      memberships: { kind: has_many, collection: memberships, via: team }
      documents: { kind: has_many, collection: documents, via: team }
    access: { list: true, read: true, create: true, update: true, delete: true }
  memberships:
    fields: { role: { type: string, required: true, enum: [owner, editor, reader] } }
    relations:
      team: { kind: belongs_to, collection: teams, required: true, on_delete: cascade }
      user: { kind: belongs_to, collection: users, required: true, on_delete: cascade }
    access: { list: true, read: true, create: true, update: true, delete: true }
  tags:
    fields: { name: { type: string, required: true }, secret: { type: bool, required: true, default: false } }
    access: { list: '@record.secret = false', read: '@record.secret = false', create: true, update: true, delete: true }
  covers:
    fields:
      url: { type: string, required: true }
      locked: { type: bool, required: true, default: false }
      hidden: { type: bool, required: true, default: false }
    relations:
      document: { kind: belongs_to, collection: documents, on_delete: set_null }
    access: { list: true, read: '@record.hidden = false', create: true, update: '@record.locked = false', delete: true }
  documents:
    fields:
      title:  { type: string, required: true, max: 200 }
      status: { type: string, required: true, enum: [draft, published], default: draft }
      slug:   { type: string, unique: true }
      score:  int
      rating: float
      pinned: { type: bool, required: true, default: false }
      due_at: datetime
    relations:
      owner: { kind: belongs_to, collection: users, required: true, default: '@request.auth.id' }
      team:  { kind: belongs_to, collection: teams }
      tags:  { kind: many_to_many, collection: tags }
      cover: { kind: has_one, collection: covers, via: document }
    access:
      list:   '@record.status = "published" or @record.owner = @request.auth.id'
      read:   '@record.status = "published" or @record.owner = @request.auth.id'
      create: '@record.owner = @request.auth.id'
      update:
        - when: '@record.owner = @request.auth.id'
        - when: 'any(@record.team.memberships as m, m.user = @request.auth.id and m.role in ["owner", "editor"])'
      delete: [{ roles: [admin] }, { when: '@record.owner = @request.auth.id and @record.status = "draft"' }]
  reviews:
    fields: { text: string }
    relations: { document: { kind: belongs_to, collection: documents, required: true, on_delete: cascade } }
    access:
      read: true
      create: 'any(@next.document.tags as t, t.name = "reviewable") and @record.document.owner = @request.auth.id'
      update: 'any(@record.document.tags as t, t.name = "reviewable") and @next.document.owner = @request.auth.id and @next.document.cover.url = "shown"'
  counters:
    fields: { n: { type: int, required: true, default: 0 } }
    access: { read: true, create: true, update: '@record.n < 13' }
  orders:
    fields: { state: { type: string, required: true, default: open, enum: [open, paid, sent] }, note: string }
    access:
      list: true
      read: true
      create: true
      update: '@record.state = "open" and @next.state = "paid" or @record.state = "paid" and @next.state = "sent"'
`;

/** A context of before any transaction. */
const outside = { run: AsyncLocalStorage.snapshot() };

describe.each(KINDS)('%s', (kind) => {
  let db: Database;
  let world: World;
  let ann: Caller;
  let bob: Caller;
  let admin: Caller;
  const changedUsers: string[] = [];
  const removedFiles: string[] = [];

  beforeAll(async () => {
    db = await openKind(kind);
    world = await World.open(db, SCHEMA, {
      onUserChanged: async ({ id }) => void changedUsers.push(id),
      onFilesRemoved: async (ids) => void removedFiles.push(...ids),
    });
    ann = await world.user('ann@example.org');
    bob = await world.user('bob@example.org');
    admin = await world.user('root@example.org', ['admin']);
  });
  afterAll(() => db?.close());

  const draft = (data: object = {}) => ann.create('documents', { title: 'a draft', ...data });

  describe('create and read', () => {
    it('answers with every field, defaults filled in, values exact', async () => {
      const made = await ann.create('documents', {
        title: 'Zürich "😀" \\ \u2028',
        score: 9007199254740991,
        rating: -0,
        due_at: '2026-03-01T01:00:00.5+01:00',
      });
      expect(made).toEqual({
        id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-/),
        created_at: '2026-11-21T09:00:00.000000Z',
        updated_at: '2026-11-21T09:00:00.000000Z',
        title: 'Zürich "😀" \\ \u2028',
        status: 'draft',
        slug: null,
        score: 9007199254740991,
        rating: 0,
        pinned: false,
        due_at: '2026-03-01T00:00:00.500000Z',
        owner: ann.id,
        team: null,
        cover: null,
      });
      expect(await ann.read('documents', made.id)).toEqual(made);
    });

    it('validation reports all errors at once', async () => {
      const data = {
        titel: 'x',
        status: 'gone',
        score: 1.5,
        rating: '1',
        pinned: null,
        due_at: '2026-02-30T00:00:00Z',
        team_id: null,
        id: 'x',
        created_at: 'x',
      };
      expect(await refusal(ann.create('documents', data))).toEqual({
        validation_failed: [
          '/data/titel unknown_field',
          '/data/status not_in_enum',
          '/data/score wrong_type',
          '/data/rating wrong_type',
          '/data/pinned required',
          '/data/due_at wrong_type',
          '/data/team_id unknown_field',
          '/data/id read_only',
          '/data/created_at read_only',
          '/data/title required',
        ],
      });
    });

    it('hides as if it were not there', async () => {
      const { id } = await draft();
      expect(await refusal(bob.read('documents', id))).toBe('not_found');
      expect(await refusal(bob.update('documents', id, { title: 'mine' }))).toBe('not_found');
      expect(await refusal(bob.update('documents', id, { title: 5 }))).toBe('not_found');
      expect(await refusal(bob.remove('documents', id))).toBe('not_found');
      await ann.update('documents', id, { status: 'published' });
      expect(await refusal(bob.update('documents', id, { title: 'mine' }))).toBe('forbidden');
      expect(await refusal(bob.update('documents', id, { title: 5 }))).toBe('forbidden');
      expect(await refusal(bob.remove('documents', id))).toBe('forbidden');
    });

    it('refuses a record that the rule does not allow, and one that names a hidden record', async () => {
      expect(await refusal(ann.create('documents', { title: 'x', owner: bob.id }))).toEqual({
        validation_failed: ['/data/owner not_found'],
      });
      const lead = await world.user(`lead-${Math.random()}@example.org`, ['lead']);
      expect(await refusal(lead.create('documents', { title: 'x', owner: bob.id }))).toBe('forbidden');
    });

    it('a taken unique value is reported with its field, after the policy', async () => {
      await draft({ slug: 'one' });
      expect(await refusal(draft({ slug: 'one' }))).toEqual({ unique_violation: ['/data/slug unique_violation'] });
      const { id } = await draft({ slug: 'two' });
      expect(await refusal(ann.update('documents', id, { slug: 'one' }))).toEqual({
        unique_violation: ['/data/slug unique_violation'],
      });
      const lead = await world.user(`lead-${Math.random()}@example.org`, ['lead']);
      expect(await refusal(lead.create('documents', { title: 'x', owner: ann.id, slug: 'one' }))).toBe('forbidden');
      await Promise.all([draft(), draft()]);
    });

    it('reads an identifier in any letter case', async () => {
      const { id } = await draft();
      expect((await ann.read('documents', id.toUpperCase())).id).toBe(id);
    });
  });

  describe('update', () => {
    it('changes what it names, and nothing else', async () => {
      const made = await draft({ score: 1, slug: 'keeps' });
      const later = { now: '2026-11-21T10:00:00.000001Z' };
      const changed = await ann.update('documents', made.id, { score: null, title: 'new' }, later);
      expect(changed).toEqual({ ...made, score: null, title: 'new', updated_at: '2026-11-21T10:00:00.000001Z' });
      expect(await ann.read('documents', made.id)).toEqual(changed);
    });

    it('must hold before and after by one and the same rule', async () => {
      const team = await ann.create('teams', { name: `team ${Math.random()}` });
      await ann.create('memberships', { role: 'editor', team: team.id, user: ann.id });
      const lead = await world.user(`lead-${Math.random()}@example.org`, ['lead']);
      await lead.create('memberships', { role: 'editor', team: team.id, user: lead.id });
      const { id } = await lead.create('documents', { title: 'x', status: 'published' });
      // A rule allows the stored record, by ownership; another the new one, by membership.
      expect(await refusal(lead.update('documents', id, { owner: bob.id, team: team.id }))).toBe('forbidden');
      await lead.update('documents', id, { team: team.id });
      expect(await lead.update('documents', id, { owner: bob.id })).toMatchObject({ owner: bob.id, team: team.id });
      expect(await refusal(lead.update('documents', id, { team: null }))).toBe('forbidden');
      expect(await lead.read('documents', id)).toMatchObject({ owner: bob.id, team: team.id });
    });

    it('sees both records where a rule names @next', async () => {
      const { id } = await ann.create('orders', {});
      expect(await refusal(ann.update('orders', id, { state: 'sent' }))).toBe('forbidden');
      expect(await ann.update('orders', id, { state: 'paid' })).toMatchObject({ state: 'paid' });
      expect(await refusal(ann.update('orders', id, { note: 'x' }))).toBe('forbidden');
      expect(await ann.update('orders', id, { state: 'sent', note: 'x' })).toMatchObject({ state: 'sent', note: 'x' });
    });

    it('walks relations of both records where a rule names @next', async () => {
      const tag = await ann.create('tags', { name: 'reviewable' });
      const cover = await ann.create('covers', { url: 'shown' });
      const from = await draft({ tags: { set: [tag.id] } });
      const to = await draft({ cover: cover.id });
      expect(await refusal(ann.create('reviews', { document: to.id }))).toBe('forbidden');
      const { id } = await ann.create('reviews', { document: from.id, text: 'a' });
      expect(await refusal(ann.update('reviews', id, { text: 'b' }))).toBe('forbidden');
      expect(await ann.update('reviews', id, { text: 'b', document: to.id })).toMatchObject({ document: to.id });
      expect(await refusal(ann.update('reviews', id, { document: from.id }))).toBe('forbidden');
      expect(await ann.read('reviews', id)).toMatchObject({ text: 'b', document: to.id });
    });

    it('answers with the identifier alone where the result is hidden', async () => {
      const { id } = await bob.create('tags', { name: 'open' });
      expect(await bob.update('tags', id, { secret: true })).toEqual({ id });
      expect(await refusal(bob.read('tags', id))).toBe('not_found');
      expect(await bob.create('tags', { name: 's', secret: true })).toEqual({ id: expect.any(String) });
    });

    it('checks the version against what changes by fields, members and targets that go', async () => {
      const tag = await ann.create('tags', { name: 'goes' });
      const { id } = await draft({ tags: { set: [tag.id] } });
      const first = await ann.version('documents', id);
      expect(await ann.version('documents', id)).toBe(first);
      await ann.update('documents', id, { title: 'b' }, { ifVersion: [first] });
      expect(await refusal(ann.update('documents', id, { title: 'c' }, { ifVersion: [first] }))).toBe('changed');
      expect(await refusal(ann.remove('documents', id, [first]))).toBe('changed');
      const second = await ann.version('documents', id);
      expect(second).not.toBe(first);
      await ann.remove('tags', tag.id);
      const third = await ann.version('documents', id);
      expect(third).not.toBe(second);
      await ann.update('documents', id, { tags: { remove: [tag.id] } }, { ifVersion: ['other', third] });
      expect(await refusal(ann.update('documents', id, { title: 'd' }, { ifVersion: [] }))).toBe('changed');
      await ann.remove('documents', id);
    });

    it('keeps every one of 100 changes made at once', async () => {
      const { id } = await draft({ score: 0 });
      const tags = await Promise.all(Array.from({ length: 100 }, (_, i) => ann.create('tags', { name: `t${i}` })));
      await Promise.all(
        tags.map((tag, i) => ann.update('documents', id, { score: i, title: `title ${i}`, tags: { add: [tag.id] } })),
      );
      const record = await ann.read('documents', id, ['tags']);
      expect(record.title).toBe(`title ${record.score}`);
      expect(record.expand.tags.map(({ id: tag }: { id: string }) => tag)).toEqual(tags.map((tag) => tag.id).sort());
    });

    it('lets one of many take a step that only one may take', async () => {
      const { id } = await ann.create('orders', {});
      const pay = (note: string) =>
        ann.update('orders', id, { state: 'paid', note }).then(
          () => note,
          ({ code }) => code,
        );
      const outcomes = await Promise.all(Array.from({ length: 20 }, (_, i) => pay(`note ${i}`)));
      const winners = outcomes.filter((outcome) => outcome !== 'forbidden');
      expect(winners).toHaveLength(1);
      expect(await ann.read('orders', id)).toMatchObject({ state: 'paid', note: winners[0] });
    });

    it('decides on the row that it waited for, not on the one that it found', async () => {
      const { id } = await ann.create('counters', { n: 11 });
      const refused = db.transaction(async (tx) => {
        await tx.run(sql`UPDATE counters SET n = 13 WHERE id = ${param('uuid', id)}`);
        // Asked for outside of this transaction, it waits for it, on either database.
        const other = outside.run(() => refusal(ann.update('counters', id, { n: 5 })));
        await new Promise((resolve) => setTimeout(resolve, 50));
        return [other];
      });
      expect(await (await refused)[0]).toBe('forbidden');
      expect(await ann.read('counters', id)).toMatchObject({ n: 13 });
    });

    it('loses no count of a record without relations', async () => {
      const { id } = await ann.create('counters', {});
      const increment = async (): Promise<void> => {
        for (;;) {
          const { json, version } = await world.records.read(ann.ask('counters'), { id, relations: [] });
          const data = { n: JSON.parse(String(json)).n + 1 };
          const outcome = await ann.update('counters', id, data, { ifVersion: [version] }).catch(({ code }) => code);
          if (outcome !== 'changed') return;
        }
      };
      await Promise.all(Array.from({ length: 12 }, increment));
      expect(await ann.read('counters', id)).toMatchObject({ n: 12 });
      expect(await refusal(ann.update('counters', id, { n: 13 }))).toBe('forbidden');
    });

    it('loses no count when a changed version is tried again', async () => {
      const { id } = await draft({ score: 0 });
      const increment = async (): Promise<void> => {
        for (;;) {
          const ifVersion = [await ann.version('documents', id)];
          const { score } = await ann.read('documents', id);
          const outcome = await ann
            .update('documents', id, { score: score + 1 }, { ifVersion })
            .catch(({ code }) => code);
          if (outcome !== 'changed') return;
        }
      };
      await Promise.all(Array.from({ length: 12 }, increment));
      expect((await ann.read('documents', id)).score).toBe(12);
    });
  });

  describe('many_to_many', () => {
    const members = async (id: string): Promise<string[]> =>
      (await ann.read('documents', id, ['tags'])).expand.tags.map((tag: { name: string }) => tag.name);
    const tagged = async (...names: string[]) =>
      Promise.all(names.map(async (name) => (await ann.create('tags', { name })).id));

    it('applies set, add and remove in that order, in one write', async () => {
      const [a, b, c, d] = await tagged('a', 'b', 'c', 'd');
      const { id } = await draft({ tags: { add: [a, a], remove: [b] } });
      expect(await members(id)).toEqual(['a']);
      const answer = await ann.update(
        'documents',
        id,
        { tags: { set: [b, c], add: [d, c], remove: [c] } },
        { expand: ['tags'] },
      );
      expect(answer.expand.tags.map(({ name }: { name: string }) => name).sort()).toEqual(['b', 'd']);
      await ann.update('documents', id, { tags: { add: [a], remove: [d] } });
      expect((await members(id)).sort()).toEqual(['a', 'b']);
      await ann.update('documents', id, { tags: { set: [] } });
      expect(await members(id)).toEqual([]);
    });

    it('changes the record: its time and its version', async () => {
      const [a] = await tagged('a');
      const { id } = await draft();
      const before = await ann.version('documents', id);
      const { updated_at } = await ann.update(
        'documents',
        id,
        { tags: { add: [a] } },
        { now: '2027-01-01T00:00:00.000000Z' },
      );
      expect(updated_at).toBe('2027-01-01T00:00:00.000000Z');
      expect(await ann.version('documents', id)).not.toBe(before);
    });

    it('refuses what cannot be an operation', async () => {
      const { id } = await draft();
      const refusals = async (tags: unknown) => refusal(ann.update('documents', id, { tags }));
      const ghost = '01900000-0000-7000-8000-000000000000';
      const [hidden] = await tagged('hidden');
      await ann.update('tags', hidden!, { secret: true });
      expect(await refusals({})).toEqual({ validation_failed: ['/data/tags empty_operation'] });
      expect(await refusals([ghost])).toEqual({ validation_failed: ['/data/tags wrong_type'] });
      expect(await refusals({ set: [], replace: [] })).toEqual({
        validation_failed: ['/data/tags/replace unknown_operation'],
      });
      expect(await refusals({ add: 'x' })).toEqual({ validation_failed: ['/data/tags/add wrong_type'] });
      expect(await refusals({ add: [1, ghost] })).toEqual({
        validation_failed: ['/data/tags/add/0 wrong_type', '/data/tags/add/1 not_found'],
      });
      expect(await refusals({ set: [hidden] })).toEqual({ validation_failed: ['/data/tags/set/0 not_found'] });
      expect(await refusals({ add: Array.from({ length: 1001 }, () => ghost) })).toEqual({
        validation_failed: ['/data/tags/add too_many'],
      });
      expect(await ann.update('documents', id, { tags: { remove: [ghost] } })).toMatchObject({ id });
    });

    it('leaves members that the caller may not read, and neither shows nor matches them', async () => {
      const [open, hidden] = await tagged('open', 'hidden');
      const { id } = await draft({ tags: { set: [open, hidden] } });
      await ann.update('tags', hidden!, { secret: true });
      await ann.update('documents', id, { tags: { set: [], remove: [hidden] } });
      expect(await members(id)).toEqual([]);
      const relation = world.schema.collections.get('documents')!.relations.get('tags')! as never;
      expect((await ann.list('documents', { exact: [{ kind: 'any', relation, id: hidden! }] })).data).toEqual([]);
      await db.run(raw('UPDATE tags SET secret = false'));
      expect(await members(id)).toEqual(['hidden']);
      expect((await ann.list('documents', { exact: [{ kind: 'any', relation, id: hidden! }] })).data).toMatchObject([
        { id },
      ]);
    });

    it('a change of members is undone if the write is refused', async () => {
      const [a] = await tagged('a');
      const { id } = await draft({ slug: 'taken' });
      const other = await draft();
      expect(await refusal(ann.update('documents', other.id, { slug: 'taken', tags: { add: [a] } }))).toEqual({
        unique_violation: ['/data/slug unique_violation'],
      });
      expect(await members(other.id)).toEqual([]);
      expect(await members(id)).toEqual([]);
    });
  });

  describe('has_one', () => {
    const cover = (data: object = {}) => ann.create('covers', { url: 'u', ...data });

    it('moves the reference of the other side, and lets go of the one before', async () => {
      const first = await cover();
      const second = await cover();
      const a = await draft({ cover: first.id });
      expect(a.cover).toBe(first.id);
      const changed = await ann.update('documents', a.id, { cover: second.id }, { expand: ['cover'] });
      expect(changed).toMatchObject({ cover: second.id, expand: { cover: { id: second.id, document: a.id } } });
      expect(await ann.read('covers', first.id)).toMatchObject({ document: null });
      const b = await draft({ cover: second.id });
      expect(await ann.read('documents', a.id)).toMatchObject({ cover: null });
      expect(await ann.update('documents', b.id, { cover: null })).toMatchObject({ cover: null });
      expect(await ann.read('covers', second.id)).toMatchObject({ document: null });
    });

    it('needs the update rule of each record that changes', async () => {
      const locked = await cover({ locked: true });
      const { id } = await draft();
      expect(await refusal(ann.update('documents', id, { cover: locked.id }))).toBe('forbidden');
      const holder = await cover();
      await ann.update('documents', id, { cover: holder.id });
      await ann.update('covers', holder.id, { url: 'v' });
      await db.run(sql`UPDATE covers SET locked = true WHERE id = ${param('uuid', holder.id)}`);
      expect(await refusal(ann.update('documents', id, { cover: null }))).toBe('forbidden');
      const another = await cover();
      expect(await refusal(ann.update('documents', id, { cover: another.id, title: 'x' }))).toBe('forbidden');
      expect(await ann.read('documents', id)).toMatchObject({ cover: holder.id, title: 'a draft' });
    });

    it('shows, takes and matches only what the caller may read', async () => {
      const relation = world.schema.collections.get('documents')!.relations.get('cover')! as never;
      const shown = await cover();
      const { id } = await draft({ cover: shown.id });
      const filter = { exact: [{ kind: 'has_one', relation, id: shown.id }] as never };
      expect((await ann.list('documents', filter)).data).toMatchObject([{ id, cover: shown.id }]);
      await db.run(sql`UPDATE covers SET hidden = true, locked = true WHERE id = ${param('uuid', shown.id)}`);
      expect(await ann.read('documents', id, ['cover'])).toMatchObject({ cover: null, expand: { cover: null } });
      expect((await ann.list('documents', filter)).data).toEqual([]);
      expect(await ann.update('documents', id, { cover: null })).toMatchObject({ cover: null });
      const other = await cover();
      expect(await refusal(ann.update('documents', id, { cover: other.id }))).toEqual({
        unique_violation: ['/data/cover unique_violation'],
      });
      expect(await refusal(ann.update('documents', id, { cover: shown.id }))).toEqual({
        validation_failed: ['/data/cover not_found'],
      });
    });

    it('a has_one is unique from the other side too', async () => {
      const { id } = await draft({ cover: (await cover()).id });
      expect(await refusal(cover({ document: id }))).toEqual({ unique_violation: ['/data/document unique_violation'] });
    });
  });

  describe('delete', () => {
    it('cascades, sets null or refuses', async () => {
      const team = await ann.create('teams', { name: `gone ${Math.random()}` });
      const membership = await ann.create('memberships', { role: 'owner', team: team.id, user: ann.id });
      const document = await draft({ team: team.id });
      const before = await ann.version('documents', document.id);
      await ann.remove('teams', team.id);
      expect(await refusal(ann.read('memberships', membership.id))).toBe('not_found');
      expect(await ann.read('documents', document.id)).toMatchObject({ team: null });
      expect(await ann.version('documents', document.id)).not.toBe(before);
      expect(await refusal(ann.remove('teams', team.id))).toBe('not_found');
    });

    it('refuses what is referred to', async () => {
      const carol = await world.user(`carol-${Math.random()}@example.org`);
      await carol.create('documents', { title: 'hers' });
      // No rule of the schema lets anyone delete a user: borrow the one that everybody meets.
      const permit = carol.ask('teams').permit('teams', 'delete');
      const asked = { ...carol.ask('users'), permit: () => permit };
      expect(await refusal(world.records.remove(asked, { id: carol.id }))).toBe('still_referenced');
    });

    it('obeys its rule', async () => {
      const { id } = await draft();
      await ann.remove('documents', id);
      expect(await refusal(ann.read('documents', id))).toBe('not_found');
      const published = await draft({ status: 'published' });
      expect(await refusal(ann.remove('documents', published.id))).toBe('forbidden');
      await admin.remove('documents', published.id);
    });
  });

  it('a deleted file runs the hook', async () => {
    const values = { name: 'a.txt', content_type: 'text/plain', size: 3, sha256: 'a'.repeat(64), owner: ann.id };
    const id = await insertRecord(world, 'files', values);
    expect(await ann.read('files', id)).toMatchObject({ id, ...values });
    expect(await refusal(bob.remove('files', id))).toBe('not_found');
    expect(removedFiles).toEqual([]);
    expect(await ann.update('files', id, { name: 'b.txt' })).toMatchObject({ ...values, name: 'b.txt' });
    await ann.remove('files', id);
    expect(removedFiles).toEqual([id]);
    expect(await findRecords(world, 'files', sql`t.id = ${param('uuid', id)}`)).toEqual([]);
  });

  describe('list', () => {
    it('pages in the order of creation, filters exactly, and counts when asked', async () => {
      const carol = await world.user(`carol-${Math.random()}@example.org`);
      const made = [];
      for (let i = 0; i < 5; i++)
        made.push(await carol.create('documents', { title: `n${i}`, score: i % 2, due_at: '2026-01-01T00:00:00Z' }));
      const documents = world.schema.collections.get('documents')!;
      const owner = { kind: 'belongs_to', relation: documents.relations.get('owner'), value: carol.id } as never;
      expect(await carol.list('documents', { exact: [owner], limit: 2, offset: 1, count: 'exact' })).toEqual({
        data: made.slice(1, 3),
        hasMore: true,
        total: 5,
      });
      expect(await carol.list('documents', { exact: [owner], limit: 5 })).toEqual({ data: made, hasMore: false });
      const field = (name: string, value: unknown) =>
        ({ kind: 'field', field: documents.fields.get(name), value }) as never;
      expect((await carol.list('documents', { exact: [owner, field('score', 1)] })).data).toEqual([made[1], made[3]]);
      const due = field('due_at', '2026-01-01T00:00:00.000000Z');
      expect((await carol.list('documents', { exact: [owner, due, field('title', 'n4')] })).data).toEqual([made[4]]);
      expect((await carol.list('documents', { exact: [{ kind: 'id', value: made[2].id }] })).data).toEqual([made[2]]);
      expect((await bob.list('documents', { exact: [owner] })).data).toEqual([]);
    });

    it('expands every kind of relation, hidden records left out', async () => {
      const team = await ann.create('teams', { name: `expanded ${Math.random()}` });
      const tag = await ann.create('tags', { name: 'x' });
      const secret = await ann.create('tags', { name: 'y', secret: true });
      const cover = await ann.create('covers', { url: 'c' });
      const document = await draft({ team: team.id, cover: cover.id, tags: { set: [tag.id] } });
      await db.run(sql`INSERT INTO documents__tags SELECT ${param('uuid', document.id)}, ${param('uuid', secret.id)}`);
      const exact = [{ kind: 'id', value: document.id as string }] as const;
      const { data } = await ann.list('documents', { exact }, { expand: ['owner', 'team', 'tags', 'cover'] });
      expect(data).toEqual([
        {
          ...document,
          expand: {
            owner: await ann.read('users', ann.id),
            team: await ann.read('teams', team.id),
            tags: [tag],
            cover: await ann.read('covers', cover.id),
          },
        },
      ]);
      expect((await bob.read('teams', team.id, ['documents'])).expand).toEqual({ documents: [] });
      expect((await ann.read('teams', team.id, ['documents', 'memberships'])).expand).toEqual({
        documents: [await ann.read('documents', document.id)],
        memberships: [],
      });
      await ann.update('documents', document.id, { status: 'published' });
      expect((await bob.read('documents', document.id, ['owner'])).expand).toEqual({ owner: null });
    });
  });

  describe('users', () => {
    it('shows roles and no secret, and lets a user change itself', async () => {
      const dora = await world.user(`dora-${Math.random()}@example.org`);
      const changed = await dora.update('users', dora.id, { nickname: 'd' });
      expect(changed).toEqual({
        id: dora.id,
        email: dora.auth.email,
        email_verified: false,
        roles: ['member'],
        created_at: expect.stringMatching(/Z$/),
        updated_at: expect.stringMatching(/Z$/),
        nickname: 'd',
      });
      expect(changedUsers).toContain(dora.id);
      expect(await refusal(dora.update('users', dora.id, { email: 'x@example.org' }))).toEqual({
        validation_failed: ['/data/email read_only'],
      });
      expect(await refusal(bob.update('users', dora.id, { nickname: 'e' }))).toBe('not_found');
    });

    it('lets those give and take roles who assign them', async () => {
      const erik = await world.user(`erik-${Math.random()}@example.org`, []);
      const lead = await world.user(`lead-${Math.random()}@example.org`, ['lead']);
      expect(await refusal(erik.update('users', erik.id, { roles: { add: ['member'] } }))).toBe('forbidden');
      expect(await lead.update('users', erik.id, { roles: { add: ['member'] } })).toMatchObject({ roles: ['member'] });
      expect(await refusal(lead.update('users', erik.id, { roles: { add: ['admin'] } }))).toBe('forbidden');
      expect(await refusal(lead.update('users', erik.id, { roles: { add: ['mebmer'] } }))).toEqual({
        validation_failed: ['/data/roles/add/0 unknown_role'],
      });
      expect(await refusal(lead.update('users', erik.id, { roles: { remove: ['member'] }, nickname: 'x' }))).toBe(
        'forbidden',
      );
      expect(
        await admin.update('users', erik.id, { roles: { set: ['lead', 'admin'], remove: ['admin'] } }),
      ).toMatchObject({ roles: ['lead'] });
      expect(await refusal(lead.update('users', erik.id, { roles: { set: [] } }))).toBe('forbidden');
    });
  });
});
