import type { PGlite } from '@electric-sql/pglite';
import { beforeAll, describe, expect, it } from 'vitest';
import { decide, Permit } from '../../src/policy/access.ts';
import { compilePolicy } from '../../src/policy/compile.ts';
import { type Action, NO_RELATED, type PolicyRequest, type Row } from '../../src/policy/types.ts';
import { ident, param, sql } from '../../src/sql.ts';
import { emptySnapshot, openEngine } from '../support/embedded/embedded.ts';
import { SAMPLE as catalog } from './sample-catalog.ts';

const ME = '11111111-1111-4111-8111-111111111111';
const YOU = '33333333-3333-4333-8333-333333333333';
const REQUEST: PolicyRequest = { auth: { id: ME, roles: ['member'] }, query: {}, now: '2026-01-01T00:00:00.000000Z' };
const permitOf = (action: Action, texts: readonly string[]) =>
  decide({
    rules: texts.map((text) => compilePolicy(text, { catalog, collection: 'documents', action })),
    request: REQUEST,
  });

const MINE = '@record.owner = @request.auth.id';
const DRAFT = '@record.status = "draft"';
const row = (owner: string, status: string): Row => ({ id: 'd', owner, status, team: null });
interface Change {
  readonly record: Row;
  readonly next: Row;
}

describe('decide', () => {
  it('a permit denies an action without a rule', () => {
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
  it.each(VERDICTS)('the permit of %o is %s', (texts, verdict, where) => {
    const permit = permitOf('list', texts);
    expect([permit.verdict, permit.where('d').text]).toEqual([verdict, where]);
  });

  it('a permit tests the union of its rules', () => {
    const permit = permitOf('create', [DRAFT, MINE]);
    const rows = [row(ME, 'published'), row(YOU, 'draft'), row(YOU, 'published')];
    expect(rows.map((record) => permit.test(record, NO_RELATED))).toEqual([true, true, false]);
  });

  it('a permit reports rules that read other rows', () => {
    const consults = (...texts: string[]) => permitOf('list', texts).consultsOthers;
    expect([consults(DRAFT), consults(DRAFT, '@record.cover.caption = "x"'), consults('true')]).toEqual([
      false,
      true,
      false,
    ]);
    const update = permitOf('update', ['@record.team.name = @next.title']);
    expect(update.consultsOthers).toBe(true);
  });
});

describe('an update', () => {
  let embedded: PGlite;
  beforeAll(async () => {
    embedded = await openEngine({ loadDataDir: await emptySnapshot() });
  });

  /** As the store asks it, of the stored row and the written one. */
  async function decided(texts: readonly string[], { record, next }: Change): Promise<boolean> {
    const rowAs = (alias: string, { owner, status }: Row) =>
      sql`(SELECT ${param('uuid', owner)} AS owner_id, ${param('text', status)} AS status) AS ${ident(alias)}`;
    const condition = permitOf('update', texts).update.allows('d', 'n');
    const { text, values } = sql`SELECT FROM ${rowAs('d', record)}, ${rowAs('n', next)} WHERE ${condition}`;
    const { rows } = await embedded.query(text, values);
    return rows.length > 0;
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
  it.each(CHANGES)('%s', async (_, texts, record, next, allowed) => {
    expect(await decided(texts, { record, next })).toBe(allowed);
  });

  it('an update permit tests the stored record by its rules of one record, and its search ignores the others', () => {
    const pure = permitOf('update', [MINE, DRAFT]).update;
    const either = `("d"."owner_id" = $1::uuid OR "d"."status" = 'draft'::text)`;
    expect([pure.holds('d').text, pure.where('d').text]).toEqual([either, either]);
    const mixed = permitOf('update', [MINE, '@next.status = "draft"']).update;
    expect([mixed.holds('d').text, mixed.where('d').text]).toEqual(['"d"."owner_id" = $1::uuid', 'TRUE']);
    const both = permitOf('update', ['@next.status = "draft"']).update;
    expect([both.holds('d').text, both.where('d').text]).toEqual(['FALSE', 'TRUE']);
  });

  it('an update permit tests the same rule on both rows, and a rule that names @next once', () => {
    const mixed = permitOf('update', [MINE, '@record.status = @next.status']).update;
    expect(mixed.allows('d', 'n').text).toBe(
      '(("d"."owner_id" = $1::uuid AND "n"."owner_id" = $2::uuid) OR "d"."status" = "n"."status")',
    );
    const verdicts = [permitOf('update', ['true']), permitOf('update', [])];
    expect(verdicts.map(({ update }) => update.allows('d', 'n').text)).toEqual(['TRUE', 'FALSE']);
  });

  it('a permit reads members and partner of the written row from the row itself', () => {
    const rule = 'any(@record.tags as t, t.label = "x") and @record.cover.caption = "x"';
    expect(permitOf('update', [rule]).update.allows('d', 'n').text).toContain(
      `AND (EXISTS (SELECT 1 FROM "tags" AS "n_1" WHERE "n_1"."id" = ANY("n"."tags.ids") AND "n_1"."label" = 'x'::text)` +
        ` AND EXISTS (SELECT 1 FROM "covers" AS "n_2" WHERE "n_2"."id" = "n"."cover.id"`,
    );
  });
});

describe('permits', () => {
  it('only the gate makes permits', () => {
    // @ts-expect-error: the constructor is private
    const forged = () => new Permit([], Symbol('gate'));
    expect(forged).toThrow('decide');
  });
});
