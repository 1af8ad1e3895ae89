import { describe, expect, it } from 'vitest';
import { type Change, decide, isPermit, Permit, systemPermit } from '../../src/policy/access.ts';
import { compile } from '../../src/policy/compile.ts';
import { type Action, NO_RELATED, type PolicyRequest, type Row } from '../../src/policy/types.ts';
import { SAMPLE as catalog } from './sample-catalog.ts';

const ME = '11111111-1111-4111-8111-111111111111';
const YOU = '33333333-3333-4333-8333-333333333333';
const REQUEST: PolicyRequest = { auth: { id: ME, roles: ['member'] }, query: {}, now: '2026-01-01T00:00:00.000000Z' };
const permitOf = (action: Action, texts: readonly string[]) =>
  decide({ rules: texts.map((text) => compile(text, { catalog, collection: 'documents', action })), request: REQUEST });

const MINE = '@record.owner = @request.auth.id';
const DRAFT = '@record.status = "draft"';
const row = (owner: string, status: string): Row => ({ id: 'd', owner, status, team: null });
const change = (record: Row, next: Row): Change => ({ record, related: NO_RELATED, next, nextRelated: NO_RELATED });

describe('decide', () => {
  it('denies an action without a rule', () => {
    const permit = permitOf('list', []);
    expect([permit.verdict, permit.where('d').text, permit.test(row(ME, 'draft'), NO_RELATED)]).toEqual([
      'deny',
      'FALSE',
      false,
    ]);
  });

  const VERDICTS: readonly (readonly [texts: readonly string[], verdict: string, where: string])[] = [
    [['false'], 'deny', 'FALSE'],
    [['@request.auth.roles contains "admin"'], 'deny', 'FALSE'],
    [['@request.query.q = "x"'], 'deny', 'FALSE'],
    [['true'], 'allow', 'TRUE'],
    [[DRAFT, '@request.auth.roles contains "member"'], 'allow', 'TRUE'],
    [[DRAFT, 'false'], 'depends', `"d"."status" = 'draft'::text`],
    [[DRAFT, MINE], 'depends', `("d"."status" = 'draft'::text OR "d"."owner_id" = $1::uuid)`],
    [
      ['@record.team.lead = @request.auth.id'],
      'depends',
      'EXISTS (SELECT 1 FROM "teams" AS "d_1" WHERE "d_1"."id" = "d"."team_id" AND "d_1"."lead_id" = $1::uuid)',
    ],
    [
      ['@record.team.lead = @request.auth.id', MINE],
      'depends',
      '("d"."team_id" = ANY(ARRAY(SELECT "d_1"."id" FROM "teams" AS "d_1" WHERE "d_1"."lead_id" = $1::uuid)) OR "d"."owner_id" = $2::uuid)',
    ],
  ];
  it.each(VERDICTS)('of %o is %s', (texts, verdict, where) => {
    const permit = permitOf('list', texts);
    expect([permit.verdict, permit.where('d').text]).toEqual([verdict, where]);
  });

  it('tests the union', () => {
    const permit = permitOf('create', [DRAFT, MINE]);
    const rows = [row(ME, 'published'), row(YOU, 'draft'), row(YOU, 'published')];
    expect(rows.map((record) => permit.test(record, NO_RELATED))).toEqual([true, true, false]);
  });

  it('merges what the rules need', () => {
    const permit = permitOf('list', [
      '@record.team.name = "x"',
      'any(@record.team.memberships as m, m.user.email = "x")',
      '@record.cover.caption = "x"',
    ]);
    expect(permit.needs).toEqual({
      record: [
        { relation: 'team', needs: [{ relation: 'memberships', needs: [{ relation: 'user', needs: [] }] }] },
        { relation: 'cover', needs: [] },
      ],
      next: [],
    });
  });
});

describe('an update', () => {
  /** As the store does it: the columns on the locked row, then the rest. */
  function decided(texts: readonly string[], { record, next }: { readonly record: Row; readonly next: Row }): boolean {
    const permit = permitOf('update', texts);
    const pure = permit.rules.filter(({ namesNext }) => !namesNext);
    expect(permit.update.columns('d')).toHaveLength(permit.verdict === 'depends' ? pure.length : 0);
    const stored = permit.verdict === 'depends' ? pure.map(({ residual }) => residual.test(record, NO_RELATED)) : [];
    return permit.update.holds(stored, change(record, next));
  }

  const CHANGES: readonly (readonly [why: string, texts: readonly string[], from: Row, to: Row, allowed: boolean])[] = [
    ['mine stays mine', [MINE], row(ME, 'draft'), row(ME, 'published'), true],
    ['a record is not taken over', [MINE], row(YOU, 'draft'), row(ME, 'draft'), false],
    ['a record is not given away', [MINE], row(ME, 'draft'), row(YOU, 'draft'), false],
    ['two rules do not share the two halves', [MINE, DRAFT], row(ME, 'published'), row(YOU, 'draft'), false],
    ['one of two rules holds for both', [MINE, DRAFT], row(YOU, 'draft'), row(ME, 'draft'), true],
    [
      'a rule that names @next may let it go',
      ['@record.owner = @request.auth.id and @next.status = "draft"'],
      row(ME, 'published'),
      row(YOU, 'draft'),
      true,
    ],
    [
      'and reads the stored half of the stored record',
      ['@record.owner = @request.auth.id and @next.status = "draft"'],
      row(YOU, 'published'),
      row(ME, 'draft'),
      false,
    ],
    [
      'beside a rule that does not',
      [DRAFT, '@record.owner = @request.auth.id and @next.status = "published"'],
      row(ME, 'draft'),
      row(YOU, 'published'),
      true,
    ],
    ['no rule', [], row(ME, 'draft'), row(ME, 'draft'), false],
    [
      'a rule that the request meets',
      ['@request.auth.roles contains "member"'],
      row(YOU, 'draft'),
      row(YOU, 'x'),
      true,
    ],
  ];
  it.each(CHANGES)('%s', (_, texts, record, next, allowed) => {
    expect(decided(texts, { record, next })).toBe(allowed);
  });

  it('asks the stored record by columns, and finds by what does not name @next', () => {
    const pure = permitOf('update', [MINE, DRAFT]).update;
    expect(pure.columns('d').map(({ text }) => text)).toEqual([
      '"d"."owner_id" = $1::uuid',
      `"d"."status" = 'draft'::text`,
    ]);
    expect(pure.where('d').text).toBe(`("d"."owner_id" = $1::uuid OR "d"."status" = 'draft'::text)`);
    const mixed = permitOf('update', [MINE, '@next.status = "draft"']).update;
    expect([mixed.columns('d').map(({ text }) => text), mixed.where('d').text]).toEqual([
      ['"d"."owner_id" = $1::uuid'],
      'TRUE',
    ]);
  });

  it('is not decided by half of the answers', () => {
    const permit = permitOf('update', [MINE, DRAFT]);
    expect(() => permit.update.holds([true], change(row(ME, 'draft'), row(ME, 'draft')))).toThrow('every rule');
  });

  it('takes a NULL column for no', () => {
    const permit = permitOf('update', [MINE]);
    const holds = [true, false, null as unknown as boolean].map((stored) =>
      permit.update.holds([stored], change(row(ME, 'a'), row(ME, 'b'))),
    );
    expect(holds).toEqual([true, false, false]);
  });

  it('needs what its rules read of the resulting record', () => {
    const needs = (text: string) => permitOf('update', [text]).update.needs;
    const team = { relation: 'team', needs: [] };
    expect(needs('@record.team.name = "x"')).toEqual({ record: [], next: [team] });
    expect(needs('@record.team.name = @next.cover.caption')).toEqual({
      record: [team],
      next: [{ relation: 'cover', needs: [] }],
    });
  });
});

describe('permits', () => {
  it('are made by the gate only', () => {
    // @ts-expect-error: the constructor is private
    const forged = () => new Permit({ rules: [], reason: 'because' }, Symbol('gate'));
    expect(forged).toThrow('decide');
    const lookalike = Object.assign(Object.create(Permit.prototype), { verdict: 'allow' });
    expect([permitOf('list', []), systemPermit('a test'), lookalike, {}, null].map(isPermit)).toEqual([
      true,
      true,
      false,
      false,
      false,
    ]);
  });

  it('of the system allow everything and say why', () => {
    const permit = systemPermit('register a user');
    const [record, next] = [row(YOU, 'a'), row(ME, 'b')];
    expect([permit.verdict, permit.reason, permit.where('d').text, permit.test(record, NO_RELATED)]).toEqual([
      'allow',
      'register a user',
      'TRUE',
      true,
    ]);
    expect([permit.update.columns('d'), permit.update.holds([], change(record, next)), permit.needs]).toEqual([
      [],
      true,
      { record: [], next: [] },
    ]);
    expect(() => systemPermit('')).toThrow('what it is for');
  });
});
