import { describe, expect, it } from 'vitest';
import { parse } from '../../../grammar/parser.ts';
import { print } from '../../../grammar/printer.ts';
import { explain } from '../../../src/policy/analyse/explanation.ts';
import { examine } from '../../../src/policy/check/checker.ts';
import { compilePolicy } from '../../../src/policy/compile.ts';
import type { Catalog, Related, Row } from '../../../src/policy/types.ts';
import { readSchemaCatalog } from '../../../src/schema/load.ts';

const catalog = catalogOf(`
conditions:
  'owned(folder: folders)': 'any(ancestors(folder by parent) as f, f.owner = @request.auth.id)'
collections:
  users:
    fields: { name: string }
    relations:
      boss: { kind: belongs_to, collection: users }
      groups: { kind: has_many, collection: folders, via: owner }
  folders:
    fields: { name: { type: string, required: true } }
    relations:
      parent: { kind: belongs_to, collection: folders }
      owner: { kind: belongs_to, collection: users }
      papers: { kind: has_many, collection: papers, via: folder }
  papers:
    fields: { title: string, size: int }
    relations:
      folder: { kind: belongs_to, collection: folders }
      first: { kind: belongs_to, collection: papers }
      owner: { kind: belongs_to, collection: users, required: true }
      shelf: { kind: belongs_to, collection: shelves }
  shelves:
    relations: { left: { kind: belongs_to, collection: shelves }, right: { kind: belongs_to, collection: shelves } }
`);
const ADA = '11111111-1111-4111-8111-111111111111';
const REQUEST = { auth: { id: ADA, roles: [] }, query: {}, now: '2026-01-01T00:00:00.000000Z' };
const place = { catalog, collection: 'papers', action: 'update', roles: ['member'] } as const;
const sqlOf = (text: string): string => compilePolicy(text, place).specialise(REQUEST).where('d').text;

function catalogOf(yaml: string): Catalog {
  const { catalog: read, issues } = readSchemaCatalog(yaml);
  if (read === undefined) throw new Error(JSON.stringify(issues));
  return read;
}

/** The code, the marked text, and what the fix makes of the policy. */
function found(text: string): unknown[] {
  return examine(text, place).issues.map(({ code, span, fix }) => {
    const fixed = fix && text.slice(0, fix.span.start) + fix.replacement + text.slice(fix.span.end);
    return fixed === undefined
      ? [code, text.slice(span.start, span.end)]
      : [code, text.slice(span.start, span.end), fixed];
  });
}

const RECORD_FIX = 'any(ancestors(@record.first by first) as p, p.title = "x")';

describe('ancestors', () => {
  it.each<[string, readonly unknown[]]>([
    ['any(ancestors(@record by first) as p, p.title = "x")', ['ancestors_of_record', '@record', RECORD_FIX]],
    ['any(ancestors(@record.id by first) as p, p.title = "x")', ['ancestors_of_record', '@record.id', RECORD_FIX]],
    [
      'any(ancestors(@next by first) as p, p.title = "x")',
      ['ancestors_of_record', '@next', RECORD_FIX.replace('record', 'next')],
    ],
    [
      'any(ancestors(@record.folder by owner) as f, f.name = "x")',
      ['ancestors_relation', 'owner', 'any(ancestors(@record.folder by parent) as f, f.name = "x")'],
    ],
    [
      'any(ancestors(@record.folder by parnt) as f, f.name = "x")',
      ['name_unknown', 'parnt', 'any(ancestors(@record.folder by parent) as f, f.name = "x")'],
    ],
    ['any(ancestors(@record.shelf by owner) as s, true)', ['name_unknown', 'owner']],
    [
      'any(ancestors(@record.folder by papers) as f, f.name = "x")',
      ['ancestors_relation', 'papers', 'any(ancestors(@record.folder by parent) as f, f.name = "x")'],
    ],
    ['any(ancestors(@record.folder by a.b) as f, true)', ['ancestors_malformed', 'a.b']],
    ['any(ancestors(@record.folder) as f, true)', ['ancestors_malformed', ')']],
    ['any(ancestors(@record.folder by parent as f, true)', ['ancestors_malformed', 'as']],
    ['any(ancestors(@record.folder by parent).papers as p, true)', ['character_unknown', '.']],
    ['any(ancestors(@record.title by parent) as f, true)', ['ancestors_start', '@record.title']],
    ['any(ancestors(@record.folder.papers by first) as f, true)', ['ancestors_start', '@record.folder.papers']],
    ['any(ancestors(@request.query.f by parent) as f, true)', ['ancestors_start', '@request.query.f']],
    ['any(ancestors(@request.auth.roles by parent) as f, true)', ['ancestors_start', '@request.auth.roles']],
    [
      'ancestors(@record.folder by parent) contains @request.auth.id',
      ['to_many_compared', 'ancestors(@record.folder by parent)'],
    ],
    [
      'ancestors(@record.owner by boss) contains @request.auth.id',
      [
        'to_many_compared',
        'ancestors(@record.owner by boss)',
        'any(ancestors(@record.owner by boss) as x, x = @request.auth.id)',
      ],
    ],
    [
      '@request.auth.id not in ancestors(@record.owner by boss)',
      [
        'to_many_compared',
        'ancestors(@record.owner by boss)',
        'none(ancestors(@record.owner by boss) as x, x = @request.auth.id)',
      ],
    ],
    ['ancestors(@record.owner by boss) is null', ['null_of_list', 'ancestors(@record.owner by boss)']],
    [
      'ancestors(@record.owner by boss)',
      ['condition_expected', 'ancestors(@record.owner by boss)', 'any(ancestors(@record.owner by boss) as x, true)'],
    ],
    ['owned(ancestors(@record.folder by parent))', ['type_mismatch', 'ancestors(@record.folder by parent)']],
    ['changed(ancestors(@record.folder by parent))', ['change_argument', 'ancestors(@record.folder by parent)']],
    ['any(@record.folder.papers as by, true)', ['word_reserved', 'by']],
    [
      'ANY(ancestors(@record.folder BY parent) as f, f.name = "x")',
      ['word_case', 'ANY', 'any(ancestors(@record.folder BY parent) as f, f.name = "x")'],
    ],
  ])('reports %s', (text, first) => {
    expect(found(text)[0]).toEqual(first);
  });

  it('ancestors begin at a record: a path, the caller, a variable or a parameter', () => {
    for (const text of [
      'any(ancestors(@record.folder_id by parent_id) as f, f.name = "x")',
      'any(ancestors(@record.folder.id by parent) as f, f.name = "x")',
      'any(ancestors(@request.auth.id by boss) as u, u = @record.owner)',
      'any(ancestors(@request.auth.boss by boss) as u, u = @record.owner)',
      'any(@record.folder.papers as p, any(ancestors(p by first) as q, q.title = "x"))',
      'any(ancestors(@next.folder by parent) as f, f.name = "x")',
      'any(ancestors(@request.data.folder by parent) as f, f.name = "x")',
      'owned(@record.folder)',
      'count(ancestors(@record.folder by parent)) < 3',
    ])
      expect([text, found(text)]).toEqual([text, []]);
  });

  it('`ancestors` is a word only before a parenthesis', () => {
    expect(found('any(@record.folder.papers as ancestor, ancestor.title = "x")')).toEqual([]);
    const text = 'any( ancestors /* up */ ( @record.folder  by\nparent )as f,f.name="x")';
    expect(print(parse(text).expr!)).toBe('any(ancestors(@record.folder by parent) as f, f.name = "x")');
  });

  it('ancestors count as one level', () => {
    const nested = (depth: number): string =>
      `${'('.repeat(depth)}any(ancestors(@record.folder by parent) as f, f.name = "x")${')'.repeat(depth)}`;
    expect(found(nested(62))).toEqual([]);
    expect(found(nested(63))[0]).toEqual(['too_deep', '(']);
  });

  it('SQL walks downwards from indexed records, and upwards from one record', () => {
    const below = sqlOf('any(ancestors(@record.folder by parent) as f, f.owner = @request.auth.id)');
    expect(below).toMatch(
      /^"d"\."folder_id" = ANY\(ARRAY\(WITH RECURSIVE .* UNION SELECT .*"place" < 32\) SELECT "id"/,
    );
    const above = sqlOf('any(ancestors(@record.folder by parent) as f, f.name = "x")');
    expect(above).toMatch(/^EXISTS \(WITH RECURSIVE .* UNION ALL .* SELECT 1 FROM .* OFFSET 0\)$/);
    // The caller is one record: its chain is shorter than all that is below the owner.
    expect(sqlOf('any(ancestors(@request.auth.id by boss) as u, u.boss = @request.auth.id)')).toMatch(/^EXISTS/);
  });

  it('SQL checks truncation only if it matters', () => {
    const cut = /cardinality\("[^"]*chain"\."path"\) = 32/;
    expect(sqlOf('any(ancestors(@record.folder by parent) as f, f.name = "x")')).not.toMatch(cut);
    for (const text of [
      'none(ancestors(@record.folder by parent) as f, f.name = "x")',
      'all(ancestors(@record.folder by parent) as f, f.name = "x")',
      'count(ancestors(@record.folder by parent)) >= 0',
      'count(ancestors(@record.folder by parent) as f, f.name = "x") >= 1',
    ])
      expect(sqlOf(text)).toMatch(cut);
  });

  it('a count climbs the ancestors once, or walks downwards for one or more', () => {
    const climbs = (text: string): number => sqlOf(text).match(/WITH RECURSIVE/g)?.length ?? 0;
    for (const compared of ['< 3', '= @record.size', '>= 1', '= 0', '>= 0', 'in [2, 4]', 'not in [-1]']) {
      const text = `count(ancestors(@record.folder by parent) as f, f.name = "x") ${compared}`;
      expect([text, climbs(text), climbs(`not (${text})`) <= 1]).toEqual([text, 1, true]);
    }
    const owned = 'count(ancestors(@record.folder by parent) as f, f.owner = @request.auth.id) >= 1';
    expect(sqlOf(owned)).toMatch(/^\("d"\."folder_id" = ANY\(ARRAY\(WITH RECURSIVE .* AND NOT EXISTS \(WITH RECURSIVE/);
  });

  it('needs name the ancestors to load', () => {
    const text = 'any(ancestors(@record.folder by parent) as f, any(f.papers as p, p.owner = @request.auth.id))';
    const papers = { relation: 'papers', needs: [] };
    expect(compilePolicy(text, place).specialise(REQUEST).needs.record).toEqual([
      { relation: 'folder', needs: [{ relation: 'parent', isFollowed: true, needs: [papers] }] },
    ]);
  });

  it('an explanation shows the ancestors up to the cut', () => {
    const rows = Array.from({ length: 40 }, (_, i): Row => ({ id: `f${i}`, name: `n${i}`, parent: `f${i + 1}` }));
    const related: Related = { one: (_, id) => rows.find((row) => row.id === id), many: () => [] };
    const sentence = (text: string, folder: string): string =>
      explain({ policy: compilePolicy(text, place), request: REQUEST, record: { id: 'p', folder }, related }).sentence;
    const none = 'none(ancestors(@record.folder by parent) as f, f.name = "n39")';
    expect(sentence(none, 'f0')).toBe(
      'denied because `ancestors(@record.folder by parent)` is unknown: `ancestors(@record.folder by parent)` goes on beyond 32 records',
    );
    expect(sentence(none, 'f20')).toBe('denied because `f.name = "n39"` is true for parent f39');
  });
});
