/** Filters that name an element of a many_to_many: the database asks once if the caller may read it, and then for links alone. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/database/contract.ts';
import { compileFilter } from '../../../src/policy/filters/filter.ts';
import { raw, type Sql, sql, uuid } from '../../../src/sql.ts';
import { type Caller, KINDS, openKind, World } from '../../support/store-world.ts';
import { watchedReads } from '../../support/watched-reads.ts';

const SCHEMA = `
roles: { member: {} }
register: { roles: [member] }
collections:
  labels:
    fields: { name: { type: string, required: true } }
    relations:
      owner: { kind: belongs_to, collection: users, required: true }
    access: { view: '@record.owner = @request.auth.id' }
  notes:
    fields:
      code: { type: string, required: true }
      kind: { type: string, required: true }
    relations:
      labels: { kind: many_to_many, collection: labels }
    access: { view: [{ when: '@record.kind = "k1"' }, { when: '@record.kind = "k2"' }] }
`;
const LABEL = '01900001-0000-7000-8000-000000000001';
/** No label has it. */
const NONE = '01900001-0000-7000-8000-000000000002';

describe.each(KINDS)('filters that name an element (%s)', (kind) => {
  let db: Database;
  let world: World;
  let ann: Caller;
  let bob: Caller;
  let sent: Sql[] = [];

  beforeAll(async () => {
    db = await openKind(kind);
    const watched = watchedReads(db, (statement) => {
      if (!statement.text.startsWith('EXPLAIN')) sent.push(statement);
    });
    world = await World.open(watched, SCHEMA);
    [ann, bob] = [await world.user('ann@example.org'), await world.user('bob@example.org')];
    await db.run(sql`INSERT INTO labels (id, name, owner_id) VALUES (${uuid(LABEL)}, 'red', ${uuid(ann.id)})`);
    await db.run(
      raw(`
      INSERT INTO notes (id, code, kind)
      SELECT ('01900002-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'c' || n, 'k' || n % 4
        FROM generate_series(1, 400) AS n`),
    );
    await db.run(
      sql`INSERT INTO notes__labels (record_id, member_id) SELECT id, ${uuid(LABEL)} FROM notes WHERE code LIKE '%1'`,
    );
    await db.run(raw('ANALYZE'));
  });
  afterAll(() => db?.close());

  async function found(caller: Caller, text: string): Promise<string> {
    sent = [];
    const { filter } = compileFilter(text, { catalog: world.schema, collection: 'notes', params: {} });
    const { json } = await world.records.list(caller.ask('notes'), { limit: 4, offset: 0, filter });
    return JSON.parse(String(json))
      .map(({ code }: { readonly code: string }) => code)
      .join(' ');
  }

  it.each([
    [`labels contains "${LABEL}"`, 'c1 c21 c41 c61', ''],
    [`any(labels as l, l.id = "${LABEL}" and l.name = "red")`, 'c1 c21 c41 c61', ''],
    [`any(labels as l, l.id = "${LABEL}" and l.name = "blue")`, '', ''],
    [`labels contains "${LABEL}" or code = "c2"`, 'c1 c2 c21 c41', 'c2'],
    [`not (labels contains "${LABEL}")`, 'c2 c5 c6 c9', 'c1 c2 c5 c6'],
    [`none(labels as l, l.id = "${LABEL}" and l.name = "red")`, 'c2 c5 c6 c9', 'c1 c2 c5 c6'],
    [`labels contains "${NONE}"`, '', ''],
  ])('%s', async (text, ofOwner, ofOther) => {
    expect([await found(ann, text), await found(bob, text)]).toEqual([ofOwner, ofOther]);
  });

  it.each([LABEL, NONE])(
    'a page reads no record where the caller may not read the element, hidden or missing: %s',
    async (id) => {
      expect(await found(bob, `labels contains "${id}"`)).toBe('');
      expect(sent).toHaveLength(1);
      const plan = (await db.rows(sql`EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF) ${sent[0]!}`)).flat().join('\n');
      expect(plan).toMatch(/One-Time Filter/);
      // The plan tests one row of the labels at most.
      const read = [...plan.matchAll(/on (\w+)[^\n]*\(actual/g)].map(([, table]) => table);
      expect(new Set(read)).toEqual(new Set(['labels']));
    },
  );
});
