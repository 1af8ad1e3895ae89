/** Records on both databases: relations, what is hidden, what is refused. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/store/contract.ts';
import { type Caller, hasPostgres, KINDS, openKind, refusal, stopPostgres, World } from './world.ts';

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
    fields: { url: { type: string, required: true }, locked: { type: bool, required: true, default: false }, hidden: { type: bool, required: true, default: false } }
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
      update: [{ when: '@record.owner = @request.auth.id' }, { when: 'any(@record.team.memberships as m, m.user = @request.auth.id and m.role in ["owner", "editor"])' }]
      delete: [{ roles: [admin] }, { when: '@record.owner = @request.auth.id and @record.status = "draft"' }]
  orders:
    fields: { state: { type: string, required: true, default: open, enum: [open, paid, sent] }, note: string }
    access:
      list: true
      read: true
      create: true
      update: '@record.state = "open" and @next.state = "paid" or @record.state = "paid" and @next.state = "sent"'
`;

const present = await hasPostgres();
afterAll(stopPostgres);

describe.each(KINDS.filter((kind) => kind === 'embedded' || present))('%s', (kind) => {
  let db: Database;
  let world: World;
  let ann: Caller;
  let bob: Caller;
  let admin: Caller;
  const changedUsers: string[] = [];

  beforeAll(async () => {
    db = await openKind(kind);
    world = await World.open(db, SCHEMA, { onUserChanged: async (id) => void changedUsers.push(id) });
    ann = await world.user('ann@example.org');
    bob = await world.user('bob@example.org');
    admin = await world.user('root@example.org', ['admin']);
  }, 60_000);
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

    it('tells all faults at once', async () => {
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
      expect(await refusal(ann.update('documents', id, {}))).toBe('patch_empty');
    });

    it('refuses a record that the rule does not allow, and one that names a hidden record', async () => {
      expect(await refusal(ann.create('documents', { title: 'x', owner: bob.id }))).toEqual({
        validation_failed: ['/data/owner not_found'],
      });
      const lead = await world.user(`lead-${Math.random()}@example.org`, ['lead']);
      expect(await refusal(lead.create('documents', { title: 'x', owner: bob.id }))).toBe('forbidden');
    });
  });
});
