/** A collection whose table an operator has partitioned, as a stand-in for shards: constraints have other names there. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { raw } from '../../src/sql.ts';
import { type Database, StoreError } from '../../src/store/database/contract.ts';
import { toRefusal } from '../../src/store/records/constraint-errors.ts';
import { type Caller, KINDS, openKind, refusal, schemaOf, World } from './world.ts';

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
  }, 60_000);
  afterAll(() => db?.close());

  it('create, read, change and delete as elsewhere', async () => {
    const { id } = await ann.create('notes', { slug: 'one' });
    const version = await ann.version('notes', id);
    await ann.update('notes', id, { n: 1 }, { ifVersion: [version] });
    expect(await refusal(ann.remove('notes', id, [version]))).toBe('changed');
    await ann.remove('notes', id);
  });

  it('name the field that is not unique', async () => {
    await ann.create('notes', { slug: 'taken' });
    const { id } = await ann.create('notes', { slug: 'free' });
    const taken = { unique_violation: ['/data/slug unique_violation'] };
    expect(await refusal(ann.create('notes', { slug: 'taken' }))).toEqual(taken);
    expect(await refusal(ann.update('notes', id, { slug: 'taken' }))).toEqual(taken);
  });
});

describe('the member of a constraint', () => {
  const notes = schemaOf(SCHEMA).collections.get('notes')!;
  const pointerOf = (constraint: string, columns: readonly string[]) => {
    const error = new StoreError('unique', { constraint, columns });
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
  ])('%s over %j is %s', (constraint, columns, pointer) => {
    expect(pointerOf(constraint, columns)).toBe(pointer);
  });
});
