/**
 * Filters of a field whose read rule depends on the record. No index on the field serves them, in a GET list or a query: the
 * time of the answer would show how many records hold a value that the caller may not read.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/database/contract.ts';
import { compileFilter } from '../../../src/policy/filters/filter.ts';
import type { ListRequest } from '../../../src/records/page/page-plan.ts';
import { raw, type Sql, sql, uuid } from '../../../src/sql.ts';
import { type Caller, KINDS, openKind, World } from '../../support/store-world.ts';
import { watchedReads } from '../../support/watched-reads.ts';

const SCHEMA = `
roles: { member: {} }
register: { roles: [member] }
collections:
  notes:
    fields:
      code: { type: string, index: true, access: { read: '@record.owner = @request.auth.id' } }
    relations:
      owner: { kind: belongs_to, collection: users, required: true, default: '@request.auth.id' }
    access: { view: true, create: true }
`;
const PAGE = { limit: 5, offset: 0 };

describe.each(KINDS)('filters of a masked field (%s)', (kind) => {
  let db: Database;
  let world: World;
  let ann: Caller;
  let bob: Caller;
  const sent: Sql[] = [];

  beforeAll(async () => {
    db = await openKind(kind);
    const watched = watchedReads(db, (statement) => sent.push(statement));
    world = await World.open(watched, SCHEMA);
    [ann, bob] = [await world.user('ann@example.org'), await world.user('bob@example.org')];
    await db.run(sql`
      INSERT INTO notes (id, code, owner_id)
      SELECT gen_random_uuid(), 'c' || n, ${uuid(ann.id)} FROM generate_series(1, 3000) AS n`);
    await db.run(raw('ANALYZE notes'));
  });
  afterAll(() => db?.close());

  const filterOf = (text: string) =>
    compileFilter(text, { catalog: world.schema, collection: 'notes', params: {} }).filter;
  const code = () => world.schema.collections.get('notes')!.fields.get('code')!;
  const requests: readonly (readonly [name: string, request: () => ListRequest])[] = [
    ['an exact filter', () => ({ ...PAGE, exact: [{ kind: 'field', field: code(), value: 'c7' }] })],
    ['a query', () => ({ ...PAGE, filter: filterOf('code = "c7"') })],
  ];

  it.each(requests)(
    '%s matches only where the caller reads the field, and reads no index by hidden values',
    async (_, request) => {
      const found = async (caller: Caller) =>
        JSON.parse(String((await world.records.list(caller.ask('notes'), request())).json)).map(
          (note: { code: string }) => note.code,
        );
      expect(await found(bob)).toEqual([]);
      sent.length = 0;
      expect(await found(ann)).toEqual(['c7']);
      expect(sent).toHaveLength(1);
      const plan = (await db.rows(sql`EXPLAIN ${sent[0]!}`)).flat().join('\n');
      expect(plan).not.toMatch(/Index Cond: .*code/);
      expect(plan).toMatch(/Filter: .*CASE WHEN/);
    },
  );
});
