/** `bylaw/policy/browser`: the decisions, issues and completions of `bylaw/policy`, in a module that is small enough for a page. */
import { describe, expect, test as it } from 'vitest';
import * as inNode from '../../src/exports/policy.ts';
import { check, compile, complete, format, PolicyError, test } from '../../src/exports/policy-browser.ts';
import { partOfCatalog, writeCatalog } from '../../src/policy/request/catalog-document.ts';
import { parseSchema } from '../../src/schema/load.ts';
import { bundleForBrowser, compressedSize } from '../support/browser/bundle.ts';
import { cases, place, schema } from './policy-cases.ts';

/** A document as a page gets it. */
const sent = (source: inNode.SchemaSource): inNode.PolicyCatalog =>
  JSON.parse(JSON.stringify(inNode.policyCatalog(source)));
const catalog = sent(schema);
const here = { catalog, collection: 'documents', action: 'list' } as const;

const RICH = `
guests: true
timezone: Europe/Amsterdam
roles: [member]
conditions:
  'is_team_owner(team: teams)': 'is_member(team) and team.owner = @request.auth.id'
  'is_member(team: teams)': 'any(team.members as m, m.id = @request.auth.id)'
  'is_high(score: int)': 'score > 3'
collections:
  teams:
    table: T_TEAMS
    fields: { kind: { type: string, enum: [open, closed], column: "K" }, paid: { type: decimal, precision: 5, scale: 2 } }
    relations:
      owner: { kind: belongs_to, collection: users, required: true, column: own_no }
      members: { kind: many_to_many, collection: users }
  documents:
    fields: { score: { type: int, min: 1, max: 9 }, title: { type: string, search: true }, day: date }
    relations:
      team: { kind: belongs_to, collection: teams, unique: true }
      parent: { kind: belongs_to, collection: documents }
    access: { read: 'is_team_owner(@record.team)' }
`;
const TEXTS = [
  'is_team_owner(@record.team) or is_high(@record.score)',
  '@record.team.kind = "opn"',
  '@record.team.kind = "open" and @record.team.kind = "closed"',
  '@record.score > 12 or @record.day < @today',
  'any(ancestors(@record.parent by parent) as d, d.title matches "Plan")',
  '@request.auth.roles contains "guest"',
  '@record.team.paid > 10.25 and @record.ownr = 1',
  '@request.data.score = 1',
];

describe('the document of a schema', () => {
  it('the document names no table, column or rule', () => {
    const text = JSON.stringify(sent(RICH));
    for (const hidden of ['T_TEAMS', '"K"', 'own_no', 'access']) expect(text).not.toContain(hidden);
    expect(text).toContain('is_team_owner');
  });

  it('a part of the document has some collections, their relations among themselves, and nothing of rules', () => {
    const { schema: loaded } = parseSchema(RICH);
    const part = writeCatalog(partOfCatalog(loaded!, new Set(['documents'])), () => []);
    expect([Object.keys(part.collections), part.conditions, part.roles]).toEqual([['documents'], [], []]);
    expect(part.collections.documents!.relations.map(({ name }) => name)).toEqual(['parent']);
    expect(JSON.stringify(part)).not.toContain('team');
  });

  it('the document is rejected if another version made it', () => {
    const other = { ...catalog, version: 2 } as unknown as inNode.PolicyCatalog;
    expect(() => compile('true', { ...here, catalog: other })).toThrow('of the same version');
  });
});

describe('the browser export', () => {
  it('the bundle has at most 90 KB after compression', async () => {
    const code = await bundleForBrowser('src/exports/policy-browser.ts');
    expect(compressedSize(code)).toBeLessThanOrEqual(90 * 1024);
    expect(code).not.toContain('new Function');
  });

  it.each(cases)('%s over %j under %j is %s', (text, record, request, expected) => {
    const input = { record: record as Record<string, unknown>, request };
    expect(test(compile(text, here), input)).toBe(expected);
  });

  it('`test` evaluates the resulting record of an update, and the written one of a create', () => {
    const update = compile('@next.owner = @record.owner', { ...here, action: 'update' });
    const [ada, ben] = ['0190b0a0-0000-7000-8000-000000000001', '0190b0a0-0000-7000-8000-000000000002'];
    expect(test(update, { record: { owner: ada }, next: { owner: ben } })).toBe(false);
    const create = compile('@record.tags contains @request.query.tag', { ...here, action: 'create' });
    expect(test(create, { record: { tags: [ada] }, request: { query: { tag: ada } } })).toBe(true);
  });

  it('`check` and `complete` return the same as in Node, for conditions, enums, guests and ancestors', () => {
    const page = { catalog: sent(RICH), collection: 'documents' } as const;
    const node = { schema: RICH, collection: 'documents' } as const;
    const codes = new Set<string>();
    for (const action of ['list', 'update'] as const) {
      for (const text of TEXTS) {
        const issues = check(text, { ...page, action });
        expect(issues).toEqual(inNode.check(text, { ...node, action }));
        for (const { code } of issues) codes.add(code);
        for (const offset of [8, 15, text.length])
          expect(complete(text, offset, { ...page, action })).toEqual(
            inNode.complete(text, offset, { ...node, action }),
          );
      }
    }
    expect([...codes].toSorted()).toEqual(expect.arrayContaining(['name_unknown']));
    expect(format('@record.score=1')).toBe('@record.score = 1');
  });

  it('a faulty text and an unknown collection throw the errors of Node', () => {
    expect(() => compile('@record.ownr = 1', here)).toThrow(PolicyError);
    expect(() => compile('true', { ...here, collection: 'docs' })).toThrow(
      'unknown collection "docs"; there are users, orders, places, teams',
    );
    expect(() => test(compile('@record.team.name = "x"', here), { record: { team: 'x' } })).toThrow('expected a UUID');
    expect(compile('@record.score=1', here)).toMatchObject({ text: '@record.score = 1', action: place.action });
  });
});
