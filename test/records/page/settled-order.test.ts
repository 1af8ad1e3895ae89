/** Sorts by a field of which the list rule permits one value alone: the order goes by the next one, unless some records hide the field. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/database/contract.ts';
import { sortPathOf } from '../../../src/policy/filters/sort-path.ts';
import { raw, sql, uuid } from '../../../src/sql.ts';
import { type Caller, KINDS, openKind, World } from '../../support/store-world.ts';
import { watchedReads } from '../../support/watched-reads.ts';

const RULES = {
  ones: [`'@record.kind = "a"'`],
  agreeing: [`'@record.kind = "a" and @record.size > 3'`, `'@record.kind = "a" and @record.owner = @request.auth.id'`],
  differing: [`'@record.kind = "a"'`, `'@record.kind = "b"'`],
  hidden: [`'@record.code = "c"'`],
};
type Name = keyof typeof RULES;
const NAMES = Object.keys(RULES) as Name[];
const SCHEMA = `
roles: [member]
register: { roles: [member] }
collections:
${NAMES.map(
  (name) => `
  ${name}:
    fields:
      kind: { type: string, max: 10, index: true }
      code: { type: string, max: 10, index: true, access: { read: '@record.owner = @request.auth.id' } }
      size: { type: int, index: true }
    relations: { owner: { kind: belongs_to, collection: users } }
    access: { view: [${RULES[name].map((when) => `{ when: ${when} }`).join(', ')}] }`,
).join('')}
`;

describe.each(KINDS)('an order by a field of one value (%s)', (kind) => {
  let db: Database;
  let world: World;
  let ann: Caller;
  const texts: string[] = [];

  beforeAll(async () => {
    db = await openKind(kind);
    world = await World.open(
      watchedReads(db, ({ text }) => texts.push(text)),
      SCHEMA,
    );
    ann = await world.user('ann@example.org');
    for (const name of NAMES)
      await db.run(sql`
        INSERT INTO ${raw(name)} (id, created_at, updated_at, kind, code, size, owner_id)
        SELECT ('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, now(), now(), CASE WHEN n % 2 = 0 THEN 'a' ELSE 'b' END,
               'c', n * 7 % 10, CASE WHEN n % 3 = 0 THEN ${uuid(ann.id)} END
          FROM generate_series(1, 60) AS n`);
  });
  afterAll(() => db?.close());

  const listed = async (name: Name, sorts: readonly string[]) => {
    const sort = sorts.map((key) => {
      const path = sortPathOf(key.replace('-', ''), name, world.schema);
      if (typeof path === 'string') throw new Error(path);
      return { path, descending: key.startsWith('-') };
    });
    const ids: string[] = [];
    let after: string | undefined;
    do {
      const { data, nextCursor } = await ann.list(name, { sort, limit: 7, offset: 0, cursors: { query: 'q', after } });
      ids.push(...data.map(({ id }: { readonly id: string }) => id));
      after = nextCursor;
    } while (after !== undefined);
    return ids;
  };
  /ORDER BY (?:t|"t")\."?(?:kind|id)"?(?:, "t"\."id")? LIMIT|ORDER BY "_k1"/.test(texts.at(-1)!);

  it.each(['ones', 'agreeing'] as const)('%s: the next sort orders the records', async (name) => {
    expect(await listed(name, ['-kind'])).toEqual(await listed(name, []));
    await listed(name, ['kind']);
    expect(texts.at(-1)).toMatch(/\("t"\."id"\) > \([^,]*\)/);
    expect(texts.at(-1)).not.toContain('"present"');
    expect(await listed(name, ['kind', '-size'])).toEqual(await listed(name, ['-size']));
  });

  it('rules of two values leave the order to the field', async () => {
    const [forwards, backwards] = [await listed('differing', ['kind']), await listed('differing', ['-kind'])];
    expect(forwards).toHaveLength(60);
    expect(backwards).toEqual([...forwards.slice(30), ...forwards.slice(0, 30)]);
  });

  it('records that hide the field come last', async () => {
    const ids = await listed('hidden', ['code']);
    const own = ids.filter((id) => Number.parseInt(id.slice(-12), 16) % 3 === 0);
    expect(ids).toHaveLength(60);
    expect(ids.slice(0, 20)).toEqual(own);
  });
});
