// @module-tag partitions
/** The columns by which masks are read: no condition where the caller alone decides, one `CASE` where the record does. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import { Store } from '../../src/records/access-context.ts';
import { RecordView } from '../../src/records/record-view.ts';
import { openKind, World } from '../support/store-world.ts';

const SCHEMA = `
roles: { hr: {}, member: {} }
collections:
  people:
    fields:
      name: { type: string, required: true }
      salary: { type: int, access: { read: [{ roles: [hr] }] } }
      note: { type: string, access: { read: [{ roles: [hr] }, { when: '@record.owner = @request.auth.id' }] } }
      code: { type: string, access: { write: [{ roles: [hr] }] } }
    relations:
      owner: { kind: belongs_to, collection: users, required: true, default: '@request.auth.id' }
      desk: { kind: has_one, collection: desks, via: person }
    access: { list: true, read: true, create: true }
  desks:
    fields: { place: string }
    relations: { person: { kind: belongs_to, collection: people, access: { read: [{ roles: [hr] }] } } }
    access: { list: true, read: true, create: true }
`;

describe('the columns of a record', () => {
  let db: Database;
  let world: World;
  beforeAll(async () => {
    db = await openKind('embedded');
    world = await World.open(db, SCHEMA);
  });
  afterAll(() => db?.close());

  /** As one line, without the columns of every record. */
  const columns = async (roles: readonly string[], members?: readonly string[]): Promise<string> => {
    const caller = await world.user(`${Math.random()}@example.org`, roles);
    const wanted = members && new Set(members);
    const view = new RecordView(new Store(db, world.schema), caller.ask('people'), {
      collection: 'people',
      members: wanted,
    });
    const text = view.columns('t').text.replaceAll(/\s+/g, ' ');
    return text.slice(text.indexOf('"name"') - '"t".'.length);
  };
  const DESK = 'SELECT "t_desk"."id" FROM "desks" AS "t_desk" WHERE "t_desk"."person_id" = "t"."id" AND TRUE AND';

  test('a caller who may read all gets the plain columns', async () => {
    expect(await columns(['hr'])).toBe(
      `"t"."name", "t"."salary", "t"."note", "t"."code", "t"."owner_id", ( ${DESK} TRUE)`,
    );
  });

  test('a caller who may read some gets NULL for hidden columns, and a CASE if the record decides', async () => {
    const mine = '"t"."owner_id" = $1::uuid';
    const flag = '("t"."owner_id" = $2::uuid)';
    expect(await columns(['member'])).toBe(
      `"t"."name", NULL, CASE WHEN ${mine} THEN "t"."note" END, "t"."code", "t"."owner_id", ( ${DESK} FALSE), ${flag}`,
    );
  });

  test('the statement leaves out columns that the request does not select', async () => {
    expect(await columns(['member'], ['name', 'salary'])).toBe('"t"."name", NULL, NULL, NULL, NULL, NULL');
  });
});
