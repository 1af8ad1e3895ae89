// @module-tag partitions
/** S8: the version of a record, which its ETag begins with, reveals that it changed and nothing else. */
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { param, raw, sql } from '../../src/sql.ts';
import { type Caller, KINDS, openKind, refusal, World } from '../support/store-world.ts';
import { insertRecord } from '../support/system-records.ts';

const OPEN = '{ list: true, read: true, create: true, update: true, delete: true }';
const SCHEMA = `
roles: { admin: { assigns: [member] }, member: {} }
register: { roles: [member] }
collections:
  users: { access: { list: true, read: true, update: true, delete: true } }
  shelves:
    fields: { name: string }
    access: ${OPEN}
  tags:
    fields: { name: string, hidden: { type: bool, required: true, default: false } }
    relations: { shelf: { kind: belongs_to, collection: shelves, on_delete: cascade } }
    access: { list: true, read: '@record.hidden = false', create: true, update: true, delete: true }
  covers:
    fields: { url: string, locked: { type: bool, required: true, default: false } }
    relations: { document: { kind: belongs_to, collection: documents } }
    access: { list: true, read: true, create: true, update: '@record.locked = false', delete: true }
  documents:
    fields: { title: string, slug: { type: string, unique: true } }
    relations:
      tags:   { kind: many_to_many, collection: tags }
      topic:  { kind: belongs_to, collection: tags, on_delete: set_null }
      cover:  { kind: has_one, collection: covers, via: document }
    access: ${OPEN}
`;

interface Scene {
  readonly document: string;
  readonly other: string;
  readonly tag: string;
  readonly loose: string;
  readonly shelf: string;
  readonly cover: string;
  readonly user: string;
}
interface Step {
  readonly name: string;
  readonly of?: 'documents' | 'covers' | 'users';
  readonly act: (ann: Caller, scene: Scene, world: World) => Promise<unknown>;
}
const refused = async (work: Promise<unknown>): Promise<void> => void (await refusal(work));

/** Each begins with a document whose tag is on a shelf and is its topic too, which has a cover; `loose` is a tag of nothing. */
const CHANGES: readonly Step[] = [
  { name: 'a field', act: (ann, { document }) => ann.update('documents', document, { title: 'b' }) },
  {
    name: 'a field, to the value that it has',
    act: (ann, { document }) => ann.update('documents', document, { title: 'a' }),
  },
  {
    name: 'a member that comes',
    act: (ann, { document, loose }) => ann.update('documents', document, { tags: { add: [loose] } }),
  },
  {
    name: 'a member that goes',
    act: (ann, { document, tag }) => ann.update('documents', document, { tags: { remove: [tag] } }),
  },
  {
    name: 'members that are replaced',
    act: (ann, { document, loose }) => ann.update('documents', document, { tags: { set: [loose] } }),
  },
  { name: 'the end of a member', act: (ann, { tag }) => ann.remove('tags', tag) },
  { name: 'the end of a member with the shelf that it was on', act: (ann, { shelf }) => ann.remove('shelves', shelf) },
  { name: 'a has_one that is let go', act: (ann, { document }) => ann.update('documents', document, { cover: null }) },
  {
    name: 'a has_one that comes from another record',
    act: (ann, { document, other }) => ann.update('documents', document, { cover: other }),
  },
  {
    name: 'being the has_one of another record',
    of: 'covers',
    act: async (ann, { cover }) => {
      const { id } = await ann.create('documents', { title: 'second' });
      await ann.update('documents', id, { cover });
    },
  },
  {
    name: 'being let go as a has_one',
    of: 'covers',
    act: (ann, { document }) => ann.update('documents', document, { cover: null }),
  },
  {
    name: 'the end of the record that it referenced',
    of: 'covers',
    act: (ann, { document }) => ann.remove('documents', document),
  },
  {
    name: 'roles',
    of: 'users',
    act: (_, { user }, world) =>
      world
        .user('boss@example.org', ['admin'])
        .then((boss) => boss.update('users', user, { roles: { add: ['member'] } })),
  },
];
const NO_CHANGES: readonly Step[] = [
  { name: 'a read', act: (ann, { document }) => ann.read('documents', document, ['tags']) },
  { name: 'a change of another record', act: (ann) => ann.create('documents', { title: 'other' }) },
  { name: 'a change of a member', act: (ann, { tag }) => ann.update('tags', tag, { name: 'renamed' }) },
  { name: 'the end of a tag of nothing', act: (ann, { loose }) => ann.remove('tags', loose) },
  {
    name: 'a change that ends in 422',
    act: (ann, { document }) => refused(ann.update('documents', document, { title: 'b', tags: { add: [document] } })),
  },
  {
    name: 'a change that ends in 409',
    act: async (ann, { document }) => {
      const slug = `taken ${Math.random()}`;
      await ann.create('documents', { slug });
      await refused(ann.update('documents', document, { slug }));
    },
  },
  {
    name: 'a change that ends in 412',
    act: (ann, { document }) => refused(ann.update('documents', document, { title: 'b' }, { ifVersion: ['x'] })),
  },
  {
    name: 'a change that ends in 403',
    act: async (ann, { document }) => {
      const { id } = await ann.create('covers', { locked: true });
      await refused(ann.update('documents', document, { cover: id }));
    },
  },
];

describe.each(KINDS)('S8: versions on %s', (kind) => {
  let db: Database;
  let world: World;
  let ann: Caller;

  beforeAll(async () => {
    db = await openKind(kind);
    world = await World.open(db, SCHEMA);
    ann = await world.user('ann@example.org');
  });
  afterAll(() => db?.close());

  async function scene(): Promise<Scene> {
    const shelf = await ann.create('shelves', {});
    const tag = await ann.create('tags', { name: 'tag', shelf: shelf.id });
    const loose = await ann.create('tags', { name: 'loose' });
    const cover = await ann.create('covers', { url: 'c' });
    const other = await ann.create('covers', { url: 'o' });
    const document = await ann.create('documents', {
      title: 'a',
      topic: tag.id,
      tags: { set: [tag.id] },
      cover: cover.id,
    });
    const user = await world.user(`u${Math.random()}@example.org`, []);
    return {
      document: document.id,
      other: other.id,
      tag: tag.id,
      loose: loose.id,
      shelf: shelf.id,
      cover: cover.id,
      user: user.id,
    };
  }
  const subject = (of: Step['of'], { document, cover, user }: Scene): readonly [string, string] =>
    of === 'covers' ? [of, cover] : of === 'users' ? [of, user] : ['documents', document];

  it.each(CHANGES)('a version changes with $name, and an old If-Match fails', async ({ of, act }) => {
    const made = await scene();
    const [collection, id] = subject(of, made);
    const version = await ann.version(collection, id);
    await act(ann, made, world);
    expect(await ann.version(collection, id)).not.toBe(version);
    expect(await refusal(ann.remove(collection, id, [version]))).toBe('changed');
  });

  it.each(NO_CHANGES)('a version stays with $name', async ({ of, act }) => {
    const made = await scene();
    const [collection, id] = subject(of, made);
    const version = await ann.version(collection, id);
    await act(ann, made, world);
    expect(await ann.version(collection, id)).toBe(version);
    await ann.remove(collection, id, [version]);
  });

  it('a cascade that clears a reference sets the time and changes the version', async () => {
    const { document, shelf } = await scene();
    const later = '2027-01-01T00:00:00.000000Z';
    await world.records.remove(ann.ask('shelves', { now: later }), { id: shelf });
    expect(await ann.read('documents', document, ['tags'])).toMatchObject({
      topic: null,
      updated_at: later,
      expand: { tags: [] },
    });
  });

  it('a version holds no digest that a reader could compute', async () => {
    const { document, loose } = await scene();
    await ann.update('documents', document, { tags: { set: [loose] } });
    await ann.update('tags', loose, { hidden: true });
    const { json, version } = await world.records.read(ann.ask('documents'), { id: document, relations: [] });
    const [row] = await db.rows(
      sql`SELECT "_version", xmin::text FROM documents WHERE id = ${param('uuid', document)}`,
    );
    const guesses = [loose, String(json), document, row![0]!, row![1]!, `documents/${document}/${row![0]}`];
    for (const guess of guesses) {
      for (const digest of ['md5', 'sha1', 'sha256']) {
        for (const form of ['hex', 'base64url'] as const) {
          expect(version).not.toContain(createHash(digest).update(guess).digest(form).slice(0, 10));
        }
      }
    }
    expect(version).not.toContain(row![1]!);
  });

  it('differ between databases for one and the same record', { tags: ['long'] }, async () => {
    const twin = await openKind(kind);
    try {
      const elsewhere = await World.open(twin, SCHEMA);
      const bob = await elsewhere.user('bob@example.org');
      const id = '01900000-0000-7000-8000-00000000abcd';
      const at = '2026-01-01T00:00:00.000000Z';
      for (const each of [world, elsewhere]) {
        await insertRecord(each, 'documents', { id, title: 'same', created_at: at, updated_at: at });
      }
      expect(await bob.read('documents', id)).toEqual(await ann.read('documents', id));
      const [here, there] = [await ann.version('documents', id), await bob.version('documents', id)];
      expect([here, there]).toEqual([expect.stringMatching(/^[\w-]{16}$/), expect.not.stringMatching(here)]);
    } finally {
      await twin.close();
    }
  });

  it('a version is the same after a dump and a restore, and on another node', async () => {
    const { document } = await scene();
    await ann.update('documents', document, { title: 'b' });
    const version = await ann.version('documents', document);
    // A restore writes every row anew.
    await db.transaction(async (tx) => {
      await tx.run(raw('CREATE TEMPORARY TABLE dump ON COMMIT DROP AS SELECT * FROM documents'));
      await tx.run(raw('ALTER TABLE documents DISABLE TRIGGER ALL'));
      await tx.run(raw('DELETE FROM documents'));
      await tx.run(raw('INSERT INTO documents SELECT * FROM dump'));
      await tx.run(raw('ALTER TABLE documents ENABLE TRIGGER ALL'));
    });
    const node = await World.open(db, SCHEMA);
    const reader = await node.user(`reader${Math.random()}@example.org`);
    expect(await reader.version('documents', document)).toBe(version);
    await reader.remove('documents', document, [version]);
  });

  it('an older database gets versions without a rewrite of its tables, and at once', async () => {
    const { document } = await scene();
    await db.run(raw('DROP TABLE bylaw_version_key'));
    for (const { table } of world.schema.collections.values())
      await db.run(raw(`ALTER TABLE ${table} DROP COLUMN "_version"`));
    const filenodes = () => db.rows(raw(`SELECT pg_relation_filenode('documents'), pg_relation_filenode('users')`));
    const before = await filenodes();
    const { statements, destructive } = await applyMigration(db, world.schema);
    expect(destructive).toEqual([]);
    expect(statements).toContain('ALTER TABLE "documents" ADD COLUMN "_version" bigint NOT NULL DEFAULT 1');
    expect(await filenodes()).toEqual(before);
    expect((await applyMigration(db, world.schema)).statements).toEqual([]);
    const upgraded = await World.open(db, SCHEMA);
    const reader = await upgraded.user(`upgraded${Math.random()}@example.org`);
    const version = await reader.version('documents', document);
    await reader.update('documents', document, { title: 'after' }, { ifVersion: [version] });
    expect(await refusal(reader.remove('documents', document, [version]))).toBe('changed');
  });
});
