/** Conditions over collections that are divided by tenant: every related row is of the tenant of the row that leads to it. */
import { describe, expect, it } from 'vitest';
import { compilePolicy } from '../../../src/policy/compile.ts';
import type { Catalog } from '../../../src/policy/types.ts';
import { readSchemaCatalog } from '../../../src/schema/load.ts';

const { catalog: read } = readSchemaCatalog(`
collections:
  users: { relations: { team: { kind: belongs_to, collection: teams } } }
  teams: { relations: { members: { kind: has_many, collection: members, via: team } } }
  members: { relations: { team: { kind: belongs_to, collection: teams }, user: { kind: belongs_to, collection: users } } }
  tags: { fields: { label: string } }
  folders:
    fields: { name: { type: string, index: true } }
    relations:
      team: { kind: belongs_to, collection: teams, required: true }
      parent: { kind: belongs_to, collection: folders }
      owner: { kind: belongs_to, collection: users }
      papers: { kind: has_many, collection: papers, via: folder }
  papers:
    relations:
      office: { kind: belongs_to, collection: teams, required: true }
      folder: { kind: belongs_to, collection: folders }
      author: { kind: belongs_to, collection: users }
      tags: { kind: many_to_many, collection: tags }
      alike: { kind: many_to_many, collection: papers }
`);
const BY = { folders: { kind: 'by', column: 'team_id' }, papers: { kind: 'by', column: 'office_id' } } as const;
const catalog: Catalog = {
  ...read!,
  collections: new Map(
    [...read!.collections].map(([name, collection]) => [
      name,
      { ...collection, tenantLayout: Object.hasOwn(BY, name) ? BY[name as keyof typeof BY] : { kind: 'reference' } },
    ]),
  ),
};
const ME = '11111111-1111-4111-8111-111111111111';
const TEAM = '22222222-2222-4222-8222-222222222222';
const REQUEST = { auth: { id: ME, team: TEAM, roles: [] }, query: {}, now: '2026-01-01T00:00:00.000000Z' };
const sqlOf = (collection: string, text: string, where = catalog): string =>
  compilePolicy(text, { catalog: where, collection, action: 'list' }).specialise(REQUEST).where('d').text;

describe('a condition on rows of one tenant', () => {
  it.each([
    [
      'a reference',
      'papers',
      '@record.folder.owner = @request.auth.id',
      'EXISTS (SELECT 1 FROM "folders" AS "d_1" WHERE "d_1"."id" = "d"."folder_id" AND "d_1"."team_id" = "d"."office_id" AND "d_1"."owner_id" = $1::uuid)',
    ],
    [
      'a to-many',
      'folders',
      'any(@record.papers as p, p.author = @request.auth.id)',
      'EXISTS (SELECT 1 FROM "papers" AS "d_1" WHERE "d_1"."folder_id" = "d"."id" AND "d_1"."office_id" = "d"."team_id" AND "d_1"."author_id" = $1::uuid)',
    ],
    [
      'what a reference of the record holds, without its row',
      'papers',
      'any(@record.folder.papers as p, p.author = @request.auth.id)',
      'EXISTS (SELECT 1 FROM "papers" AS "d_1" WHERE "d_1"."folder_id" = "d"."folder_id" AND "d_1"."office_id" = ' +
        '"d"."office_id" AND "d_1"."author_id" = $1::uuid)',
    ],
    [
      'links to rows that every machine has',
      'papers',
      'any(@record.tags as t, t.label = "x")',
      `EXISTS (SELECT 1 FROM "papers__tags" AS "d_1_link" JOIN "tags" AS "d_1" ON "d_1"."id" = "d_1_link"."member_id" WHERE ` +
        `"d_1_link"."record_id" = "d"."id" AND "d_1_link"."_tenant" = "d"."office_id" AND "d_1"."label" = 'x'::text)`,
    ],
    [
      'links to rows of the tenant',
      'papers',
      'any(@record.alike as a, a.author = @request.auth.id)',
      'EXISTS (SELECT 1 FROM "papers__alike" AS "d_1_link" JOIN "papers" AS "d_1" ON "d_1"."id" = "d_1_link"."member_id" AND ' +
        '"d_1"."office_id" = "d_1_link"."_tenant" WHERE "d_1_link"."record_id" = "d"."id" AND "d_1_link"."_tenant" = ' +
        '"d"."office_id" AND "d_1"."author_id" = $1::uuid)',
    ],
    [
      'rows that every machine has',
      'papers',
      'any(@record.office.members as m, m.user = @request.auth.id)',
      'EXISTS (SELECT 1 FROM "members" AS "d_1" WHERE "d_1"."team_id" = "d"."office_id" AND "d_1"."user_id" = $1::uuid)',
    ],
  ])('%s', (_, collection, text, wanted) => {
    expect(sqlOf(collection, text)).toBe(wanted);
  });

  it('a condition looks keys up within its required tenant', () => {
    const text =
      '@record.office = @request.auth.team and (@record.author = @request.auth.id or @record.folder.owner = @request.auth.id)';
    expect(sqlOf('papers', text)).toBe(
      '("d"."office_id" = $1::uuid AND ("d"."author_id" = $2::uuid OR "d"."folder_id" = ANY(ARRAY(SELECT "d_1"."id" FROM ' +
        '"folders" AS "d_1" WHERE "d_1"."team_id" = $3::uuid AND "d_1"."owner_id" = $4::uuid))))',
    );
  });

  it('no condition looks keys up among the rows of all tenants', () => {
    const text = '@record.author = @request.auth.id or @record.folder.owner = @request.auth.id';
    expect(sqlOf('papers', text)).toMatch(
      /OR EXISTS \(SELECT 1 FROM "folders" AS "d_1" WHERE .* AND "d_1"."team_id" = "d"."office_id"/,
    );
  });

  it('a condition follows ancestors within the tenant', () => {
    const text =
      '@record.team = @request.auth.team and any(ancestors(@record.parent by parent) as f, f.owner = @request.auth.id)';
    for (const alias of sqlOf('folders', text).matchAll(/"folders" AS ("[^"]+")/g))
      expect(sqlOf('folders', text)).toMatch(new RegExp(`${alias[1]}\\."team_id" = (?:"d"\\."team_id"|\\$\\d)`));
  });

  it('undistributed schemas keep their SQL', () => {
    const plain = { ...read!, collections: read!.collections };
    expect(sqlOf('papers', '@record.folder.owner = @request.auth.id', plain)).toBe(
      'EXISTS (SELECT 1 FROM "folders" AS "d_1" WHERE "d_1"."id" = "d"."folder_id" AND "d_1"."owner_id" = $1::uuid)',
    );
  });
});
