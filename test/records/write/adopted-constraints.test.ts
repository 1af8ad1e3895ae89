/** Constraints that the owner of an adopted table has given it: their violations are the caller's to mend, and reveal no record. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/database/contract.ts';
import { raw } from '../../../src/sql.ts';
import { type Caller, KINDS, openKind, refusal, World } from '../../support/store-world.ts';

const SCHEMA = `
roles: { admin: { assigns: [member] }, member: {} }
register: { roles: [member] }
collections:
  users: { access: { list: true, read: true, update: true } }
  rooms:
    fields: { rating: float, opens: int, closes: int, place: int, hidden: bool }
    relations: { owner: { kind: belongs_to, collection: users, default: '@request.auth.id' } }
    access:
      read: '@record.owner = @request.auth.id'
      create: '@record.owner = @request.auth.id and @record.place > 0'
      update: '@record.owner = @request.auth.id'
`;
const CONSTRAINTS = `
ALTER TABLE rooms ADD CHECK (rating > 0);
ALTER TABLE rooms ADD CONSTRAINT hours CHECK (opens < closes);
ALTER TABLE rooms ADD CONSTRAINT one_place EXCLUDE USING btree (place WITH =)`;

describe.each(KINDS)('constraints of others on %s', (kind) => {
  let db: Database;
  let ann: Caller;
  let bob: Caller;
  beforeAll(async () => {
    db = await openKind(kind);
    const world = await World.open(db, SCHEMA);
    ann = await world.user('ann@example.org');
    bob = await world.user('bob@example.org');
    for (const statement of CONSTRAINTS.split(';')) await db.run(raw(statement));
  });
  afterAll(() => db?.close());

  const atField = { validation_failed: ['/data/rating check_violation'] };
  const atRecord = { validation_failed: ['/data check_violation'] };

  it('a constraint of one field is reported with the field, others with the record', async () => {
    expect(await refusal(ann.create('rooms', { rating: -1, place: 1 }))).toEqual(atField);
    expect(await refusal(ann.create('rooms', { opens: 9, closes: 8, place: 1 }))).toEqual(atRecord);
    const { id } = await ann.create('rooms', { rating: 1, opens: 8, place: 1 });
    expect(await refusal(ann.update('rooms', id, { rating: 0 }))).toEqual(atField);
    expect(await refusal(ann.update('rooms', id, { closes: 7 }))).toEqual(atRecord);
    expect((await ann.update('rooms', id, { closes: 9 })).closes).toBe(9);
  });

  it('the error names the constraint, and no value of the row', async () => {
    const thrown = await ann.create('rooms', { opens: 4711, closes: 8, place: 2 }).catch((error: unknown) => error);
    expect((thrown as { errors: unknown }).errors).toEqual([
      {
        pointer: '/data',
        code: 'check_violation',
        detail: 'expected what the constraint `hours` of the database allows',
      },
    ]);
  });

  it('an exclusion is a conflict of its fields', async () => {
    await ann.create('rooms', { place: 3 });
    expect(await refusal(bob.create('rooms', { place: 3 }))).toEqual({
      conflict: ['/data/place conflict'],
    });
  });

  it('only after the policies have allowed the write', async () => {
    const { id } = await ann.create('rooms', { rating: 1, place: 4 });
    const hidden = await refusal(bob.update('rooms', id, { rating: 2 }));
    expect(hidden).toBe('not_found');
    expect(await refusal(bob.update('rooms', id, { rating: -1 }))).toEqual(hidden);
    expect(await refusal(ann.create('rooms', { rating: -1, place: -1 }))).toBe('forbidden');
  });
});
