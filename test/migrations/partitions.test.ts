// @module-tag partitions
/** A table that an operator has partitioned, in place of shards: its constraints have other names. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Database, StoreError } from '../../src/database/contract.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { planMigration } from '../../src/migrations/migration.ts';
import { toRefusal } from '../../src/records/constraint-errors.ts';
import { raw } from '../../src/sql.ts';
import { hashPartitioned } from '../support/cluster/partitioned.ts';
import { type Caller, KINDS, openKind, refusal, schemaOf, World } from '../support/store-world.ts';

const SCHEMA = `
roles: { admin: { assigns: [member] }, member: {} }
register: { roles: [member] }
collections:
  users: { access: { list: true, read: true, update: true } }
  notes:
    fields: { slug: { type: string, unique: true }, slug_long: { type: string, unique: true }, n: int }
    access: { list: true, read: true, create: true, update: true, delete: true }
`;
/** Partitioned by the column, so that it can be unique. */
const PARTITIONED = `
ALTER TABLE notes RENAME TO notes_whole;
CREATE TABLE notes (LIKE notes_whole INCLUDING DEFAULTS) PARTITION BY HASH (slug);
CREATE TABLE notes_0 PARTITION OF notes FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE notes_1 PARTITION OF notes FOR VALUES WITH (MODULUS 2, REMAINDER 1);
ALTER TABLE notes ADD CONSTRAINT notes_slug_only UNIQUE (slug)`;

describe.each(KINDS)('partitions on %s', (kind) => {
  let db: Database;
  let ann: Caller;
  beforeAll(async () => {
    db = await openKind(kind);
    const world = await World.open(db, SCHEMA);
    ann = await world.user('ann@example.org');
    for (const statement of PARTITIONED.split(';')) await db.run(raw(statement));
  });
  afterAll(() => db?.close());

  it('partitioned tables support create, read, update and delete', async () => {
    const { id } = await ann.create('notes', { slug: 'one' });
    const version = await ann.version('notes', id);
    await ann.update('notes', id, { n: 1 }, { ifVersion: [version] });
    expect(await refusal(ann.remove('notes', id, [version]))).toBe('changed');
    await ann.remove('notes', id);
  });

  it('an error of a partition names the field that is not unique', async () => {
    await ann.create('notes', { slug: 'taken' });
    const { id } = await ann.create('notes', { slug: 'free' });
    const taken = { unique_violation: ['/data/slug unique_violation'] };
    expect(await refusal(ann.create('notes', { slug: 'taken' }))).toEqual(taken);
    expect(await refusal(ann.update('notes', id, { slug: 'taken' }))).toEqual(taken);
  });
});

const WHOLE = `
roles: { admin: { assigns: [member] }, member: {} }
register: { roles: [member] }
collections:
  users: { access: { list: true, read: true, update: true } }
  shelves:
    fields: { name: { type: string, search: true } }
    relations:
      owner: { kind: belongs_to, collection: users, default: '@request.auth.id' }
      books: { kind: has_many, collection: books, via: shelf }
      sign: { kind: has_one, collection: signs, via: shelf }
    access: { view: true, create: true, update: '@record.owner = @request.auth.id', delete: '@record.owner = @request.auth.id' }
  books:
    fields: { title: { type: string, required: true }, pages: int }
    relations:
      shelf: { kind: belongs_to, collection: shelves, required: true, on_delete: cascade }
      next: { kind: belongs_to, collection: books, on_delete: set_null }
      kept: { kind: belongs_to, collection: shelves, on_delete: restrict }
      alike: { kind: many_to_many, collection: books }
    access: { view: '@record.shelf.owner = @request.auth.id', create: '@record.shelf.owner = @request.auth.id', update: true, delete: true }
  signs:
    fields: { text: { type: string, unique: true } }
    relations: { shelf: { kind: belongs_to, collection: shelves } }
    access: { view: true, create: true, update: true }
`;

describe.each(KINDS)('a schema on hash partitions of its keys on %s', (kind) => {
  let db: Database;
  let ann: Caller;
  let bob: Caller;
  beforeAll(async () => {
    db = await openKind(kind);
    await applyMigration(hashPartitioned(db, schemaOf(WHOLE)), schemaOf(WHOLE));
    const world = await World.open(db, WHOLE);
    [ann, bob] = [await world.user('ann@example.org'), await world.user('bob@example.org')];
  });
  afterAll(() => db?.close());

  it('all tables without unique fields are partitioned, and the next start has nothing to do', async () => {
    const parted = await db.rows(
      raw(
        `SELECT relname FROM pg_class WHERE relkind = 'p' AND relnamespace = current_schema()::regnamespace ORDER BY 1`,
      ),
    );
    expect(parted.flat()).toEqual(['books', 'books__alike', 'files', 'shelves']);
    expect((await planMigration(db, schemaOf(WHOLE))).statements).toEqual([]);
  });

  it('partitioned tables follow a changed schema and its reversal', async () => {
    const more = schemaOf(
      WHOLE.replace('pages: int', 'pages: { type: int, required: true, default: 3, index: true }, note: string'),
    );
    expect((await applyMigration(db, more)).destructive).toEqual([]);
    expect((await planMigration(db, more)).statements).toEqual([]);
    await applyMigration(db, schemaOf(WHOLE), { allowDestructive: true });
    expect((await planMigration(db, schemaOf(WHOLE))).statements).toEqual([]);
  });

  it('partitioned tables accept and reject the same requests as others', async () => {
    const shelf = await ann.create('shelves', { name: 'Mine' });
    const books = [];
    for (const title of ['a', 'b', 'c', 'd']) books.push(await ann.create('books', { title, shelf: shelf.id }));
    const [a, b, c] = books as [{ id: string }, { id: string }, { id: string }];
    expect(await ann.update('books', a.id, { next: b.id, alike: { set: [b.id, c.id] } })).toMatchObject({ next: b.id });
    expect((await ann.read('books', a.id, ['alike'])).expand.alike).toHaveLength(2);
    expect(await refusal(bob.read('books', a.id))).toBe('not_found');
    expect(await refusal(bob.update('shelves', shelf.id, { name: 'his' }))).toBe('forbidden');
    const version = await ann.version('books', a.id);
    await ann.update('books', a.id, { pages: 1 }, { ifVersion: [version] });
    expect(await refusal(ann.update('books', a.id, { pages: 2 }, { ifVersion: [version] }))).toBe('changed');
    await ann.remove('books', b.id);
    expect(await ann.read('books', a.id, ['alike'])).toMatchObject({ next: null, expand: { alike: [{ id: c.id }] } });
  });

  it('foreign keys hold across partitions, and from tables without partitions', async () => {
    const [shelf, other] = [await ann.create('shelves', {}), await ann.create('shelves', {})];
    const sign = await ann.create('signs', { text: 'here', shelf: shelf.id });
    const book = await ann.create('books', { title: 'x', shelf: shelf.id });
    const kept = await ann.create('books', { title: 'y', shelf: other.id, kept: shelf.id });
    expect(await refusal(ann.remove('shelves', shelf.id))).toBe('still_referenced');
    await ann.remove('books', kept.id);
    expect(await ann.update('shelves', other.id, { sign: sign.id })).toMatchObject({ sign: sign.id });
    await ann.remove('shelves', shelf.id);
    expect(await refusal(ann.read('books', book.id))).toBe('not_found');
    await ann.remove('shelves', other.id);
    expect(await ann.read('signs', sign.id)).toMatchObject({ shelf: null });
    // The program checks references; these are the database's own, named by their field.
    const orphan = raw(`INSERT INTO books (id, title, shelf_id) VALUES (gen_random_uuid(), 'z', '${shelf.id}')`);
    const broken = await db.run(orphan).catch((error: unknown) => error);
    const { collections } = schemaOf(WHOLE);
    expect(await refusal(Promise.reject(toRefusal(broken, collections.get('books')!)))).toEqual({
      validation_failed: ['/data/shelf not_found'],
    });
  });
});

describe('the member of a constraint', () => {
  const notes = schemaOf(SCHEMA).collections.get('notes')!;
  const pointerOf = (constraint: string, columns: readonly string[]) => {
    const error = new StoreError('unique', undefined, { constraint, columns });
    return (toRefusal(error, notes) as { errors: { pointer?: string }[] }).errors[0]!.pointer;
  };
  it.each([
    ['notes_slug_key', [], '/data/slug'],
    ['notes_slug_key_102009', [], '/data/slug'],
    ['notes_slug_long_key', [], '/data/slug_long'],
    ['notes_slug_long_key_102009', [], '/data/slug_long'],
    ['notes_6_team_id_slug_key', ['team_id', 'slug'], '/data/slug'],
    ['notes_6_team_id_slug_key', [], undefined],
    ['of an operator', ['elsewhere'], undefined],
  ])('the member of %s over %j is %s', (constraint, columns, pointer) => {
    expect(pointerOf(constraint, columns)).toBe(pointer);
  });
});
