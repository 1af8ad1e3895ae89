/** A statement about the tables of one tenant names its shards, and is left to Citus where it cannot. */
import { expect, test } from 'vitest';
import { TenantShard } from '../../src/cluster/tenant-shard.ts';
import { ident, sql, tableIdent, uuid } from '../../src/sql.ts';

const TEAM = '00000000-0000-4000-8000-00000000000a';
const LONG = 'd'.repeat(60);
const shard = new TenantShard(
  'worker:5432',
  new Map([
    ['documents', 102_008],
    ['say "hi"', 102_009],
    ['users', 102_010],
    [LONG, 102_011],
  ]),
);
const placed = (id: number) =>
  `EXISTS ( SELECT 1 FROM pg_dist_placement AS p WHERE p.shardid = ${id} AND p.groupid = l.groupid)`;
const ofTeam = (table: string, other: string) => sql`
  SELECT t.id, (SELECT u.email FROM ${tableIdent(other)} AS u WHERE u.id = t.owner_id)
    FROM ${tableIdent(table)} AS t
   WHERE t.team_id = ${uuid(TEAM)} AND t.title <> '"documents"'`;

test('a statement names the shards of its tables, and asks in the same snapshot whether they are here', () => {
  const asked = ofTeam('documents', 'users');
  const here = shard.statement(asked)!;
  expect(here.text.replaceAll(/\s+/g, ' ')).toBe(
    'SELECT * FROM ( SELECT t.id, (SELECT u.email FROM "users_102010" AS u WHERE u.id = t.owner_id) FROM "documents_102008" AS t ' +
      `WHERE t.team_id = $1::uuid AND t.title <> '"documents"') AS here WHERE 1 / (SELECT (${placed(102_010)} AND ${placed(102_008)})::int ` +
      `FROM pg_dist_local_group AS l) = 1`,
  );
  expect(here.values).toEqual([TEAM]);
  expect(asked.text).toContain('FROM "documents" AS t');
});

test('a quoted name is that of the table', () => {
  const here = shard.statement(sql`SELECT 1 FROM ${tableIdent('say "hi"')} AS t`)!;
  expect(here.text).toContain('FROM "say ""hi""_102009" AS t');
});

test.each([
  ['another table', ofTeam('documents', 'teams')],
  ['a table of another schema', ofTeam('shop.documents', 'users')],
  ['a table whose shard has a shortened name', ofTeam(LONG, 'users')],
  ['no table', sql`SELECT 1 FROM ${ident('documents')}`],
])('a statement about %s is left to Citus', (_, asked) => {
  expect(shard.statement(asked)).toBeUndefined();
});

test('a statement that has failed here is left to Citus', () => {
  const asked = ofTeam('documents', 'documents');
  expect(shard.statement(asked)).toBeDefined();
  shard.leaveToCitus(asked);
  expect(shard.statement(ofTeam('documents', 'documents'))).toBeUndefined();
  expect(shard.statement(ofTeam('documents', 'users'))).toBeDefined();
});
