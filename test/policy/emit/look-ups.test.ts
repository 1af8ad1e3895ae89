/** Relation tests in statements that read few records: lists of keys where there are few keys, else a look-up for each record. */
import { describe, expect, it } from 'vitest';
import { decide } from '../../../src/policy/access.ts';
import type { KeyCount, LookUp } from '../../../src/policy/branch.ts';
import { compilePolicy } from '../../../src/policy/compile.ts';
import { readSchemaCatalog } from '../../../src/schema/load.ts';
import type { Place } from '../../../src/sql.ts';

const { catalog } = readSchemaCatalog(`
collections:
  users: { relations: { memberships: { kind: has_many, collection: members, via: user } } }
  teams: { relations: { members: { kind: has_many, collection: members, via: team } } }
  members: { relations: { team: { kind: belongs_to, collection: teams }, user: { kind: belongs_to, collection: users } } }
  documents:
    fields: { status: { type: string, index: true }, title: string }
    relations: { owner: { kind: belongs_to, collection: users }, team: { kind: belongs_to, collection: teams } }
  comments:
    relations: { document: { kind: belongs_to, collection: documents }, author: { kind: belongs_to, collection: users } }
`);
const ME = '11111111-1111-4111-8111-111111111111';
const REQUEST = { auth: { id: ME, roles: [] }, query: {}, now: '2026-01-01T00:00:00.000000Z' };
const permitOf = (...rules: readonly string[]) =>
  decide({
    rules: rules.map((text) => compilePolicy(text, { catalog: catalog!, collection: 'comments', action: 'list' })),
    request: REQUEST,
  });

const OWN = '@record.author = @request.auth.id';
const PUBLISHED = '@record.document.status = "published"';
const OF_OWN_DOCUMENT = '@record.document.owner = @request.auth.id';
const OF_TEAM = 'any(@record.document.team.members as m, m.user = @request.auth.id)';
const OF_OWN_TEAM = 'any(@request.auth.memberships as m, m.team = @record.document.team)';

describe('a list rule over related rows', () => {
  it('has a list of keys for each test where all rows are read', () => {
    const { text, values } = permitOf(PUBLISHED, OWN).where('t');
    const keys = `SELECT "t_1"."id" FROM "documents" AS "t_1" WHERE "t_1"."status" = 'published'::text`;
    expect([text, values]).toEqual([`("t"."document_id" = ANY(ARRAY(${keys})) OR "t"."author_id" = $1::uuid)`, [ME]]);
  });

  it('looks up one row for the tests of all rules on it', () => {
    const { text, values } = permitOf(PUBLISHED, OWN, OF_OWN_DOCUMENT, OF_TEAM).lookingUp().where('t');
    expect(text.split(' OR ')).toEqual([
      '("t"."author_id" = $1::uuid',
      `EXISTS (SELECT 1 FROM "documents" AS "t_1" WHERE "t_1"."id" = "t"."document_id" AND ("t_1"."status" = 'published'::text`,
      '"t_1"."owner_id" = $2::uuid',
      'EXISTS (SELECT 1 FROM "members" AS "t_2" WHERE "t_2"."team_id" = "t_1"."team_id" AND ("t_2"."user_id" = $3::uuid) IS TRUE OFFSET 0)) OFFSET 0))',
    ]);
    expect(values).toEqual([ME, ME, ME]);
  });

  it.each([
    [OF_TEAM, false],
    [OF_OWN_TEAM, false],
    // The team of a document is read for each row of the caller.
    [`not (${OF_OWN_TEAM})`, true],
    ['not (any(@request.auth.memberships as m, m.user = @record.author))', false],
    ['not (any(@record.document.team.members as m, m.user = @record.author))', true],
    ['any(@record.document.team.members as m, m.user = @record.author)', true],
  ])('knows whether no join finds the rows for all records: %s, %j', (rule, isOfEach) => {
    const all = (of: readonly LookUp[]): readonly LookUp[] => of.flatMap((each) => [each, ...all(each.within)]);
    const found = all(permitOf(rule).lookingUp(() => false).lookUps);
    expect(found.some((each) => each.isOfEach === true)).toBe(isOfEach);
  });

  it('knows the column by which the rows of the caller are looked up', () => {
    const { lookUps } = permitOf('any(@request.auth.memberships as m, m.team = @record.document.team)').lookingUp(
      () => false,
    );
    const team = { table: 'members', column: 'team_id', by: 'team_id', of: 'user_id', within: [] };
    expect(lookUps).toEqual([{ table: 'documents', column: 'id', isId: true, by: 'document_id', within: [team] }]);
  });

  it('lets no other index than that of the key find the looked-up rows, but one of both columns', () => {
    const rule = 'any(@record.tasks as k, k.owner = @request.auth.id and k.rank > 3)';
    const lookedUp = (unique: string, asked = rule) => {
      const { catalog: made } = readSchemaCatalog(`
collections:
  users: { fields: { level: { type: string, index: true } }, relations: { tasks: { kind: has_many, collection: tasks, via: owner } } }
  folders: { relations: { tasks: { kind: has_many, collection: tasks, via: folder } } }
  tasks:
    fields: { open: bool, rank: { type: int, index: true } }
    relations:
      folder: { kind: belongs_to, collection: folders, required: true }
      owner: { kind: belongs_to, collection: users${unique} }
      next: { kind: belongs_to, collection: tasks }
`);
      const policy = compilePolicy(asked, { catalog: made!, collection: 'folders', action: 'list' });
      return decide({ rules: [policy], request: REQUEST })
        .lookingUp((table, _count, isOfRequest) => isOfRequest || table === 'users')
        .where('t').text;
    };
    const rows = 'EXISTS (SELECT 1 FROM "tasks" AS "t_1" WHERE "t_1"."folder_id" = "t"."id"';
    // PostgreSQL knows how many rows have a value that the rule states.
    const others = '"t_1"."rank" > 3::int8 OFFSET 0)';
    expect(lookedUp('')).toBe(`${rows} AND ("t_1"."owner_id" = $1::uuid) IS TRUE AND ${others}`);
    expect(lookedUp(', unique: within_folder')).toBe(`${rows} AND "t_1"."owner_id" = $1::uuid AND ${others}`);
    const ofCaller = 'any(@record.tasks as k, any(@request.auth.tasks as o, o.next = k.next))';
    const list = 'SELECT "t_2"."next_id" FROM "tasks" AS "t_2" WHERE "t_2"."owner_id" = $1::uuid';
    expect(lookedUp('', ofCaller)).toBe(`${rows} AND ("t_1"."next_id" = ANY(ARRAY(${list}))) IS TRUE OFFSET 0)`);
    // Such an index would be searched for each key of the list.
    const levels = `SELECT "t_2"."id" FROM "users" AS "t_2" WHERE "t_2"."level" = 'a'::text`;
    expect(lookedUp('', 'any(@record.tasks as k, k.owner.level = "a")')).toBe(
      `${rows} AND ("t_1"."owner_id" = ANY(ARRAY(${levels}))) IS TRUE OFFSET 0)`,
    );
  });

  it('has lists of the keys that are few, within the rows that are looked up', () => {
    const tables: string[] = [];
    const permit = permitOf(PUBLISHED, OF_TEAM).lookingUp((table) => {
      tables.push(table);
      return table === 'members';
    });
    const teams = 'SELECT "t_2"."team_id" FROM "members" AS "t_2" WHERE "t_2"."user_id" = $1::uuid';
    const document = 'SELECT 1 FROM "documents" AS "t_1" WHERE "t_1"."id" = "t"."document_id"';
    const tests = `("t_1"."status" = 'published'::text OR "t_1"."team_id" = ANY(ARRAY(${teams})))`;
    expect(permit.where('t').text).toBe(`EXISTS (${document} AND ${tests} OFFSET 0)`);
    expect(tables).toEqual(['documents', 'members']);
  });

  it('joins the rows that give the keys, unless a value finds them', () => {
    const textOf = (rule: string) =>
      permitOf(rule)
        .lookingUp((table) => table === 'documents')
        .where('t').text;
    const documents = '"t"."document_id" = ANY(ARRAY(SELECT "t_1"."id" FROM "documents" AS "t_1" WHERE';
    const members = 'EXISTS (SELECT 1 FROM "members" AS "t_2" WHERE "t_2"."team_id" = "t_1"."team_id" AND';
    expect(textOf(OF_TEAM)).toBe(`${documents} ${members} "t_2"."user_id" = $1::uuid)))`);
    const ofPublished = `any(@record.document.team.members as m, m.user = @request.auth.id) and ${PUBLISHED}`;
    const isMember = `${members} ("t_2"."user_id" = $1::uuid) IS TRUE OFFSET 0)`;
    expect(textOf(ofPublished)).toBe(`${documents} "t_1"."status" = 'published'::text AND ${isMember}))`);
  });

  it('keeps the keys of a longer list in memory where all records are read', () => {
    const textBy = (hashed: string) =>
      permitOf(PUBLISHED, OF_TEAM)
        .lookingUp(
          () => false,
          (table) => table === hashed,
        )
        .where('t').text;
    const teams = 'SELECT "t_2"."team_id" FROM "members" AS "t_2" WHERE "t_2"."user_id" = $1::uuid';
    expect(textBy('members')).toContain(`OR "t_1"."team_id" IN (${teams}))`);
    expect(textBy('none')).not.toContain(' IN (');
  });

  it('joins the rows of lists where all records are read, but for those under `or`, which an index may serve', () => {
    const textOf = (...rules: readonly string[]) =>
      permitOf(...rules)
        .lookingUp(
          () => true,
          () => false,
        )
        .where('t').text;
    const published = `SELECT "t_1"."id" FROM "documents" AS "t_1" WHERE "t_1"."status" = 'published'::text`;
    expect(textOf(PUBLISHED)).toBe(`"t"."document_id" IN (${published})`);
    expect(textOf(PUBLISHED, OWN)).toContain(` OR "t"."document_id" = ANY(ARRAY(${published}))`);
  });

  it('tells the number of its keys by values of columns, through other lists', () => {
    const counts: (KeyCount | undefined)[] = [];
    permitOf(PUBLISHED, OF_OWN_DOCUMENT, OF_TEAM).lookingUp((_, count) => counts.push(count()) > 0);
    const members = {
      kind: 'rows',
      table: 'members',
      share: { kind: 'all', of: [{ kind: 'values', column: 'user_id', values: [ME] }] },
      areIds: false,
    };
    const documents = [
      { kind: 'values', column: 'status', values: ['published'] },
      { kind: 'values', column: 'owner_id', values: [ME] },
      { kind: 'keys', column: 'team_id', keys: members },
    ];
    expect(counts).toEqual([
      { kind: 'rows', table: 'documents', share: { kind: 'all', of: [{ kind: 'any', of: documents }] }, areIds: true },
      members,
    ]);
  });

  it('looks up a row that depends on the record alone before the elements of the caller', () => {
    const teams = 'SELECT "t_2"."team_id" FROM "members" AS "t_2" WHERE "t_2"."user_id" = $1::uuid';
    const document = '"documents" AS "t_1" WHERE "t_1"."id" = "t"."document_id"';
    const permit = permitOf(OF_OWN_TEAM).lookingUp();
    expect(permit.where('t').text).toBe(
      `EXISTS (SELECT 1 FROM ${document} AND "t_1"."team_id" = ANY(ARRAY(${teams})) OFFSET 0)`,
    );
    expect(permit.lookUps).toEqual([{ table: 'documents', column: 'id', isId: true, by: 'document_id', within: [] }]);
    const counts: (KeyCount | undefined)[] = [];
    permitOf(OF_OWN_TEAM).lookingUp((_, count) => counts.push(count()) > 0);
    const ofCaller = { kind: 'values', column: 'user_id', values: [ME] };
    const ofRows = { kind: 'all', of: [ofCaller] };
    const keys = { kind: 'rows', table: 'members', column: 'team_id', share: ofRows, areIds: false };
    const share = { kind: 'all', of: [{ kind: 'keys', column: 'team_id', keys }] };
    expect(counts).toEqual([{ kind: 'rows', table: 'documents', share, areIds: true }, keys]);
  });

  it('excludes keys of the caller that are found once, or looks up each alternative by an index of its own', () => {
    const rule = 'not any(@request.auth.memberships as m, m.team = @record.team)';
    const compiled = compilePolicy(rule, { catalog: catalog!, collection: 'documents', action: 'list' });
    const excluding = decide({ rules: [compiled], request: REQUEST });
    const keys = 'SELECT "t_1"."team_id" FROM "members" AS "t_1" WHERE "t_1"."user_id" = $1::uuid';
    expect(excluding.lookingUp().where('t').text).toBe(`"t"."team_id" NOT IN (${keys})`);
    const lookedUp = (row: string, condition: string): string =>
      `NOT EXISTS (SELECT 1 FROM "members" AS "${row}" WHERE ${condition} OFFSET 0)`;
    const parts = [
      lookedUp('t_1', '("t_1"."user_id" = $1::uuid) IS TRUE AND "t_1"."team_id" = "t"."team_id"'),
      lookedUp('t_2', '"t_2"."user_id" = $2::uuid AND "t_2"."team_id" IS NULL'),
      lookedUp('t_3', '"t_3"."user_id" = $3::uuid AND "t"."team_id" IS NULL'),
    ];
    expect(excluding.lookingUp(() => false).where('t').text).toBe(`(${parts.join(' AND ')})`);
    // Memory may not hold many keys, and PostgreSQL would compare each record with all of them.
    const none = () => false;
    const [joined, ...tests] = parts;
    const isJoined = joined!
      .replace('("t_1"."user_id" = $1::uuid) IS TRUE', '"t_1"."user_id" = $1::uuid')
      .replace(' OFFSET 0', '');
    expect(excluding.lookingUp(none, none).where('t').text).toBe(`(${[isJoined, ...tests].join(' AND ')})`);
  });

  it('tests the parts that depend on no element once, before the elements', () => {
    const rule = 'any(@record.document.team.members as m, any(@request.auth.memberships as n, n.team = m.team))';
    const own = 'SELECT "t_2"."team_id" FROM "members" AS "t_2" WHERE "t_2"."user_id" = $1::uuid';
    const some = 'EXISTS (SELECT 1 FROM "members" AS "t_3" WHERE "t_3"."team_id" = "t_1"."team_id" OFFSET 0)';
    const { text } = permitOf(rule).lookingUp().where('t');
    expect(text).toContain(`"t_1"."team_id" = ANY(ARRAY(${own})) AND ${some}`);
  });

  it('has a shape for each choice of lists, and the same permit again for none', () => {
    const permit = permitOf(PUBLISHED, OF_TEAM);
    const shapeOf = (isFew: boolean) => permit.lookingUp(() => isFew).shape;
    expect(new Set([shapeOf(true), shapeOf(false), permit.shape]).size).toBe(3);
    expect(shapeOf(true)).toBe(shapeOf(true));
    const own = permitOf(OWN);
    expect(own.lookingUp()).toBe(own);
    expect([
      own.lookUps,
      permitOf(PUBLISHED).lookingUp().lookUps,
      permitOf(PUBLISHED).lookingUp(() => true).lookUps,
    ]).toEqual([[], [{ table: 'documents', column: 'id', isId: true, by: 'document_id', within: [] }], []]);
  });

  it('keeps the places of values beside those that the request leaves out', () => {
    const permit = permitOf(`@record.author = @request.query.x or ${OWN}`, OF_OWN_DOCUMENT);
    const { text, values } = permit.lookingUp().where('t');
    expect(text).toContain('"t_1"."owner_id" = $2::uuid OFFSET 0');
    expect(values).toEqual([ME, ME]);
    expect(
      permit
        .placed(() => permit)
        .lookingUp()
        .where('t')
        .params.map(({ value }) => (value as Place<null>).read(null)),
    ).toEqual([ME, ME]);
  });

  it('looks up by the values of the request that fills a form', () => {
    const permit = permitOf(OF_OWN_DOCUMENT, OWN);
    const placed = permit.placed(() => permit).lookingUp();
    expect(placed.where('t').text).toBe(permit.lookingUp().where('t').text);
    expect(placed.shape).toBe(permit.lookingUp().shape);
  });
});
