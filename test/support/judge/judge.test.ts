/** The judge of statements: what it lets pass, and a fault for each of its rules. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { schemaOf } from '../store-world.ts';
import { Judge, type Offence } from './judge.ts';

const SAMPLE = schemaOf(readFileSync(join(import.meta.dirname, '../../../docs/distributed.yaml'), 'utf8'));
const judge = new Judge(SAMPLE, new Set(['array_to_json', 'now']));
const [RED, BLUE] = ['red', 'blue'];

type Case = readonly [what: string, text: string, values?: readonly unknown[]];
const PASSES: readonly Case[] = [
  ['a row by its id and tenant', 'SELECT t.id FROM documents AS t WHERE t.id = $1 AND t.team_id = $2::uuid', [1, RED]],
  ['a lock', 'SELECT 1 FROM documents AS t WHERE t.team_id = $1 AND t.id = $2 FOR NO KEY UPDATE', [RED, 1]],
  [
    'an `or` of which each part requires it',
    'SELECT 1 FROM documents AS t WHERE (t.team_id = $1 AND t.score = 1) OR (t.score = 2 AND t.team_id = $1)',
    [RED],
  ],
  ['two values that are equal', 'SELECT 1 FROM documents AS t WHERE (t.team_id = $1) AND t.team_id = $2', [RED, RED]],
  [
    'a semi-join within the tenant',
    'SELECT 1 FROM documents AS t WHERE t.team_id = $1 AND EXISTS (SELECT 1 FROM comments AS c WHERE c.document_id ' +
      '= t.id AND c.team_id = $2)',
    [RED, RED],
  ],
  [
    'keys of the tenant',
    'SELECT 1 FROM documents AS t WHERE t.team_id = $1 AND t.id = ANY(ARRAY(SELECT c.document_id FROM comments AS ' +
      'c WHERE c.team_id = $2))',
    [RED, RED],
  ],
  [
    'rows that every machine has',
    'SELECT 1 FROM users AS t WHERE t.id = $1 AND EXISTS (SELECT 1 FROM memberships AS m WHERE m.user_id = t.id)',
    [1],
  ],
  ['a local table', 'UPDATE _auth_keys SET a = array_to_json(b) WHERE c = now()'],
  [
    'a written row',
    'UPDATE documents AS t SET title = $1 WHERE t.id = $2 AND t.team_id = $3 AND EXISTS (SELECT 1 FROM (SELECT ' +
      't.team_id AS team_id) AS n WHERE EXISTS (SELECT 1 FROM comments AS c WHERE c.team_id = $4)) RETURNING ' +
      't.id',
    ['x', 1, RED, RED],
  ],
  [
    'a new row that is judged',
    'SELECT (EXISTS (SELECT 1 FROM covers AS c WHERE c.team_id = $3)) FROM (SELECT $1::uuid AS id, $2::uuid AS ' +
      'team_id) AS n',
    [1, RED, RED],
  ],
  ['a new row', 'INSERT INTO comments (id, team_id) VALUES ($1, $2)', [1, RED]],
  [
    'links',
    'INSERT INTO documents__tags (_tenant, record_id, member_id) SELECT $1::uuid, $2::uuid, target FROM ' +
      'unnest($3::uuid[]) AS target ON CONFLICT DO NOTHING',
    [RED, 1, []],
  ],
  [
    'pairs within the tenant',
    'UPDATE /* every tenant */ documents SET score = 1 WHERE (team_id, id) IN (SELECT l._tenant, l.record_id FROM ' +
      'documents__tags AS l WHERE l.member_id = $1)',
    [1],
  ],
  [
    'a chain of ancestors',
    'SELECT 1 FROM comments AS t WHERE t.team_id = $1 AND EXISTS (WITH RECURSIVE c (id) AS (SELECT s.id FROM ' +
      'comments AS s WHERE s.id = t.id AND s.team_id = $1 UNION ALL SELECT s.id FROM c JOIN comments AS s ON ' +
      's.id = c.id AND s.team_id = $1) SELECT 1 FROM c)',
    [RED],
  ],
  [
    'what is about all tenants, and says so',
    'SELECT /* every tenant */ t.team_id FROM events AS t WHERE t.id = $1',
    [1],
  ],
  ['a definition', 'ALTER TABLE documents ADD CONSTRAINT k UNIQUE (team_id, slug)'],
];

const FAULTS: readonly (readonly [Offence, what: string, text: string, values?: readonly unknown[]])[] = [
  ['unpinned', 'a row by its id alone', 'SELECT t.id FROM documents AS t WHERE t.id = $1', [1]],
  ['unpinned', 'a lock by the id alone', 'SELECT 1 FROM documents AS t WHERE t.id = $1 FOR UPDATE', [1]],
  [
    'unpinned',
    'an `or` of which one part requires it',
    'SELECT 1 FROM documents AS t WHERE t.team_id = $1 OR t.score = 2',
    [RED],
  ],
  ['unpinned', 'the opposite', 'SELECT 1 FROM documents AS t WHERE NOT (t.team_id = $1)', [RED]],
  ['unpinned', 'one of several tenants', 'SELECT 1 FROM documents AS t WHERE t.team_id = ANY($1)', [[RED]]],
  [
    'unpinned',
    'a semi-join over tenants',
    'SELECT 1 FROM documents AS t WHERE t.team_id = $1 AND EXISTS (SELECT 1 FROM comments AS c WHERE c.document_id ' +
      '= t.id)',
    [RED],
  ],
  [
    'unpinned',
    'a tenant that only a subquery requires',
    'SELECT 1 FROM documents AS t WHERE EXISTS (SELECT 1 FROM comments AS c WHERE c.team_id = t.team_id AND ' +
      'c.team_id = $1)',
    [RED],
  ],
  [
    'unpinned',
    'keys of all tenants',
    'SELECT 1 FROM documents AS t WHERE t.team_id = $1 AND t.id = ANY(ARRAY(SELECT c.document_id FROM comments AS ' +
      'c WHERE c.author_id = $2))',
    [RED, 1],
  ],
  [
    'unpinned',
    'a column of a partner of any tenant',
    'SELECT (SELECT c.id FROM covers AS c WHERE c.document_id = t.id) FROM documents AS t WHERE t.team_id = $1',
    [RED],
  ],
  ['unpinned', 'links of any tenant', 'DELETE FROM documents__tags WHERE record_id = $1', [1]],
  [
    'unpinned',
    'an outer join that requires nothing',
    'SELECT 1 FROM tags LEFT JOIN documents AS t ON t.team_id = $1',
    [RED],
  ],
  [
    'unpinned',
    'what a new row returns',
    'INSERT INTO documents AS t (id, team_id) VALUES ($1, $2) RETURNING (SELECT c.id FROM covers AS c WHERE ' +
      'c.document_id = t.id)',
    [1, RED],
  ],
  [
    'unpinned',
    'half of a union',
    'SELECT 1 FROM documents AS t WHERE t.team_id = $1 UNION ALL SELECT 1 FROM comments',
    [RED],
  ],
  [
    'two_tenants',
    'rows of two tenants',
    'SELECT 1 FROM documents AS t WHERE t.team_id = $1 AND EXISTS (SELECT 1 FROM comments AS c WHERE c.team_id = ' +
      '$2)',
    [RED, BLUE],
  ],
  [
    'outer_tenant',
    'the tenant of the row outside',
    'SELECT (EXISTS (SELECT 1 FROM comments AS c WHERE c.document_id = t.id AND c.team_id = t.team_id)) FROM ' +
      'documents AS t WHERE t.team_id = $1',
    [RED],
  ],
  [
    'outer_tenant',
    'the tenant of the written row',
    'UPDATE documents AS t SET title = $1 WHERE t.team_id = $2 AND EXISTS (SELECT 1 FROM (SELECT t.team_id AS ' +
      'team_id) AS n WHERE EXISTS (SELECT 1 FROM comments AS c WHERE c.team_id = n.team_id))',
    ['x', RED],
  ],
  [
    'param_in_returning',
    'a value in RETURNING after a query',
    'INSERT INTO documents AS t (id, team_id) SELECT n.id, n.team_id FROM (SELECT $1::uuid AS id, $2::uuid AS ' +
      'team_id) AS n RETURNING t.id, t.owner_id = $3',
    [1, RED, 1],
  ],
  [
    'function_in_conflict',
    'the time of a row that is there already',
    'INSERT INTO kept (id, at) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET at = now()',
    [1, 2],
  ],
  [
    'lock_on_all',
    'a lock in all tenants',
    'SELECT /* every tenant */ t.id FROM events AS t WHERE t.id = $1 FOR UPDATE',
    [1],
  ],
  [
    'local_beside',
    'a local table beside it',
    'SELECT 1 FROM documents AS t WHERE t.team_id = $1 AND EXISTS (SELECT 1 FROM _auth_sessions)',
    [RED],
  ],
  [
    'function_in_returning',
    'a function in RETURNING',
    'UPDATE users SET name = $1 WHERE id = $2 RETURNING array_to_json(roles)',
    ['x', 1],
  ],
  [
    'function_in_update',
    'a function of a column in SET',
    'UPDATE documents SET updated_at = greatest(updated_at, now()) WHERE team_id = $1',
    [RED],
  ],
  ['set_constraints', 'checks that wait', 'SET CONSTRAINTS ALL DEFERRED'],
  ['deferrable', 'a constraint that waits', 'ALTER TABLE documents ADD CONSTRAINT k UNIQUE (team_id, slug) DEFERRABLE'],
  ['unrouted_insert', 'rows of any tenant', 'INSERT INTO comments (id, team_id) SELECT id, created_by_id FROM teams'],
  ['unrouted_insert', 'a row without a tenant', 'INSERT INTO comments (id) VALUES ($1)', [1]],
  [
    'select_without_from',
    'a condition without rows',
    'INSERT INTO teams (id) SELECT $1 WHERE NOT EXISTS (SELECT 1 FROM tags)',
    [1],
  ],
  [
    'tenant_changed',
    'another tenant',
    'UPDATE documents SET team_id = $1 WHERE team_id = $2 AND id = $3',
    [BLUE, RED, 1],
  ],
];

describe('the judge of statements', () => {
  it.each(PASSES.map(([what, text, values = []]) => ({ what, text, values })))(
    'lets $what pass',
    ({ text, values }) => {
      expect(judge.offences({ text, values })).toEqual([]);
    },
  );

  it.each(FAULTS.map(([offence, what, text, values = []]) => ({ offence, what, text, values })))(
    'reports $offence: $what',
    ({ offence, text, values }) => {
      expect(judge.offences({ text, values })).toEqual([offence]);
    },
  );

  it('has a fault for every rule', () => {
    const source = readFileSync(join(import.meta.dirname, './judge.ts'), 'utf8');
    const [, union = ''] = /export type Offence =([^;]*);/.exec(source) ?? [];
    const rules = [...union.matchAll(/'(\w+)'/g)].map(([, rule]) => rule);
    expect(rules.length).toBeGreaterThan(5);
    expect(new Set(FAULTS.map(([offence]) => offence))).toEqual(new Set(rules));
  });
});
