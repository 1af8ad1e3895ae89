// @module-tag long
/** Completions while a policy is written: tables of places, and two properties over the policies of test/cases. */
import { describe, expect, it, test } from 'vitest';
import { lexer } from '../../../grammar/tokens.ts';
import { type Completion, type CompletionPlace, completions } from '../../../src/policy/analyse/completions.ts';
import { examineOnce } from '../../../src/policy/check/checker.ts';
import { namedCondition, readHead } from '../../../src/policy/check/condition-calls.ts';
import { OPERATORS } from '../../../src/policy/operators.ts';
import type { Action, NamedCondition } from '../../../src/policy/types.ts';
import { CONNECTIVES, FUNCTIONS, ROOT_DOCS } from '../../../src/policy/words.ts';
import { parseSchema } from '../../../src/schema/load.ts';
import { Random } from '../../fuzz/random.ts';
import { areas, COLLECTION, world } from '../../support/cases.ts';
import { SAMPLE } from '../sample-catalog.ts';

function condition(key: string, text: string): NamedCondition {
  const head = readHead(key, SAMPLE);
  if ('code' in head) throw new Error(head.message);
  return namedCondition(head, text, SAMPLE);
}
const CATALOG = {
  ...SAMPLE,
  conditions: new Map([
    ['is_member', condition('is_member(team: teams)', 'any(team.memberships as m, m.user = @request.auth.id)')],
    ['exceeds', condition('exceeds(value: float, limit: float)', 'value > limit')],
  ]),
};
const PLACE: CompletionPlace = { catalog: CATALOG, collection: 'documents', action: 'update' };

/** `|` is the cursor. */
function at(marked: string, place: Partial<CompletionPlace> = {}): readonly Completion[] {
  const offset = marked.indexOf('|');
  return completions(marked.replace('|', ''), offset, { ...PLACE, ...place });
}
const textsAt = (marked: string, place: Partial<CompletionPlace> = {}): readonly string[] =>
  at(marked, place).map(({ text }) => text);

const TEXT_FACTS = ['@request.method', '@request.origin', '@request.kind'];
const ROOTS = ['@record.', '@next.', '@request.auth.', '@request.query.', '@request.data.'];
const MEMBERSHIP = ['id', 'role', 'note', 'created_at', 'updated_at', 'team', 'team_id', 'user', 'user_id'];

/** The whole of what is offered. */
const PLACES: readonly (readonly [marked: string, texts: readonly string[]])[] = [
  [
    '@record.status |',
    ['!=', '<=', '>=', '<', '>', '=', 'not in', 'in', 'contains', 'starts with', 'ends with', 'is null', 'is not null'],
  ],
  ['@record.score |', ['!=', '<=', '>=', '<', '>', '=', 'not in', 'in', 'is null', 'is not null']],
  ['@record.pinned |', ['!=', '=', 'not in', 'in', 'is null', 'is not null', 'and', 'or']],
  ['@record.owner |', ['!=', '=', 'not in', 'in', 'is null', 'is not null']],
  ['@record.tags |', ['contains']],
  ['@request.auth.roles |', ['contains']],
  ['count(@record.tags) |', ['!=', '<=', '>=', '<', '>', '=', 'not in', 'in']],
  ['@record.status = |', ['"draft"', '"published"', ...ROOTS, ...TEXT_FACTS]],
  ['@record.status = "dr|', ['"draft"', '"published"']],
  ['@record.status in [|', ['"draft"', '"published"', ']']],
  ['@record.status in ["draft"|', [']', ',']],
  ['@record.status in ["draft", |', ['"draft"', '"published"']],
  ['@request.auth.roles contains |', ['"admin"', '"member"', ...ROOTS, ...TEXT_FACTS]],
  ['@record.pinned = |', [...ROOTS, 'true', 'false']],
  ['@record.due_at < |', [...ROOTS, '@now']],
  ['@record.due_at < @now |', ['and', 'or', '+', '-']],
  ['@record.due_at < @now - |', ['1s', '1m', '1h', '1d', '1w']],
  ['@record.score = @record.|', ['score', 'rating', 'owner.', 'owner_id.', 'team.', 'team_id.', 'cover.']],
  ['@record.title = @request.|', ['auth.', 'query.', 'data.', 'method', 'origin', 'kind']],
  ['@request.ip |', ['!=', '=', 'not in', 'in', 'is null', 'is not null']],
  ['@record.score > @now.|', ['hour', 'weekday']],
  ['@record.title = @request.auth.|', ['id', 'email', 'guest', 'former_guest', 'department', 'home', 'home_id']],
  ['@request.data.score > @request.data.|', ['score', 'rating']],
  ['any(|', ['@record.', '@next.', '@request.auth.', 'ancestors(']],
  ['any(@record.|', ['labels', 'owner.', 'owner_id.', 'team.', 'team_id.', 'tags', 'cover.']],
  ['any(@record.tags |', ['as']],
  ['any(@record.tags as |', ['t']],
  ['any(@record.tags as t|', ['t', ',']],
  ['any(@record.tags as t, any(t.documents as |', ['d']],
  ['any(@record.tags as t , any(@record.tags as |', ['x']],
  ['any(@record.tags as t |', [',']],
  ['any(@record.team.memberships as m, m.|', MEMBERSHIP],
  ['any(@record.team.memberships as m, m.user = |', ['m.', ...ROOTS, ...TEXT_FACTS]],
  ['any(@record.tags as t, t.label = "x" |', ['and', 'or', ')']],
  ['count(@record.tags |', ['as', ')']],
  ['any(ancestors(@record.team |', ['by']],
  ['any(ancestors(@record.team by |', ['parent', 'parent_id']],
  ['any(ancestors(@record.team by parent |', [')']],
  ['any(ancestors(@record.|', ['owner.', 'owner_id.', 'team', 'team_id', 'cover.']],
  ['changed(|', ['@record.']],
  ['is_member(@record.|', ['owner.', 'owner_id.', 'team', 'team_id', 'cover.']],
  ['is_member(@record.team |', [')']],
  ['exceeds(@record.score |', [',']],
  ['exceeds(@record.score, @record.|', ['score', 'rating', 'owner.', 'owner_id.', 'team.', 'team_id.', 'cover.']],
  ['(@record.pinned |', ['!=', '=', 'not in', 'in', 'is null', 'is not null', 'and', 'or', ')']],
  ['@record.title is |', ['is null', 'is not null']],
  ['@record.title is not |', ['is not null']],
  ['@record.title starts |', ['starts with']],
  ['@record.score not |', ['not in']],
  ['@record.title = "a" // or |', []],
  ['@record.title = "a" /* or |', []],
  ['@record.nothing.|', []],
  ['@record.title.|', []],
];

describe('completions', () => {
  it.each(PLACES)('%s', (marked, texts) => {
    expect(textsAt(marked)).toEqual(texts);
  });
});

// ---------------------------------------------------------------- properties

interface Place {
  readonly text: string;
  readonly action: Action;
}
/** Every sixth: others differ from them by an operator or a value. */
const POLICIES: readonly Place[] = [
  ...new Map(
    areas()
      .flatMap(({ cases }) => cases)
      .map(({ policy, action }) => [policy, { text: policy, action }]),
  ).values(),
].filter((_, i) => i % 6 === 0);
const random = new Random(20261122);
const placeOf = (action: Action): CompletionPlace => ({ catalog: world.catalog, collection: COLLECTION, action });

const SPELT: Readonly<Record<string, string>> = { '&&': 'and', '||': 'or', '!': 'not' };

/** The names and words of a text; not its values, its variables where they are bound, nor query keys. */
function piecesOf(text: string): readonly { readonly piece: string; readonly start: number }[] {
  const { tokens } = lexer.tokenize(text);
  return tokens.flatMap(({ tokenType, image, startOffset: start }, i) => {
    // The bracket of a call is completed with its word.
    if (
      tokenType.name === 'Open' &&
      /^(?:CallName|Quantifier|Count|Ancestors)$/.test(tokens[i - 1]?.tokenType.name ?? '')
    )
      return [];
    if (/^(?:Text|Numeral|Duration)$/.test(tokenType.name) || tokens[i - 1]?.tokenType.name === 'As') return [];
    if (tokenType.name !== 'AtPath' && tokenType.name !== 'Word')
      return [{ piece: SPELT[image] ?? image.replaceAll(/[ \t\r\n]+/g, ' '), start }];
    const root = /^(?:@(?:request|now)\.\w+|@?\w+)/.exec(image)![0];
    if (root === '@request.query') return [{ piece: root, start }];
    let at = start + root.length;
    const names = image.slice(root.length).split('.').slice(1);
    return [
      { piece: root, start },
      ...names.map((piece) => {
        const named = { piece, start: at + 1 };
        at += 1 + piece.length;
        return named;
      }),
    ];
  });
}

test('completions at each place of a policy include its name or word', () => {
  // Half of the places begin like those of other policies, and only the text before a place counts.
  const known = new Map<string, readonly string[]>();
  for (const { text, action } of POLICIES)
    for (const { piece, start } of piecesOf(text)) {
      const before = `${action} ${text.slice(0, start)}`;
      const offered = () => completions(text, start, placeOf(action)).filter(({ span }) => span.start === start);
      const texts = known.get(before) ?? offered().map((each) => each.text.replace(/[.(]$/, '') || each.text);
      known.set(before, texts);
      expect(texts, `${text.slice(0, start)}|${text.slice(start)}`).toContain(piece);
    }
});

/** The completions of a text that is unfinished, and right so far. */
const UNFINISHED: ReadonlySet<string> = new Set([
  'name_expected',
  'operand_expected',
  'condition_expected',
  'duration_malformed',
  'quantifier_malformed',
  'ancestors_malformed',
  'argument_count',
  'arguments_malformed',
  'parenthesis_unclosed',
  'list_unclosed',
  'policy_expected',
]);

test('a text with an accepted completion is at worst unfinished', () => {
  for (const { text, action } of POLICIES) {
    const offset = random.below(text.length + 1);
    for (const { text: chosen, span } of completions(text, offset, placeOf(action))) {
      const written = text.slice(0, span.start) + chosen;
      const { issues } = examineOnce(written, placeOf(action));
      const wrong = issues.filter(
        ({ severity, code, span: { end } }) => severity === 'error' && end > span.start && !UNFINISHED.has(code),
      );
      expect(wrong, written).toEqual([]);
    }
  }
});

test('a wrong text, and every beginning of one, has completions without an exception', () => {
  for (let i = 0; i < 400; i++) {
    const { text, action } = random.pick(POLICIES);
    const at = random.below(text.length + 1);
    const piece = random.pick([
      '(',
      ')',
      '[',
      '"',
      '/*',
      '@',
      '.',
      '$',
      ' not ',
      ' any(',
      '\\',
      '\0',
      '\ud800',
      ' is ',
      ',',
    ]);
    const hostile = text.slice(0, at) + piece + text.slice(at + random.below(4));
    const offset = random.below(hostile.length + 1);
    for (const { span } of completions(hostile, offset, placeOf(action))) {
      expect(span.start).toBeLessThanOrEqual(offset);
      expect(span.end).toBeGreaterThanOrEqual(offset);
      expect(span.end).toBeLessThanOrEqual(hostile.length);
    }
  }
});

test('a path into json is completed as a whole, and from each of its names', () => {
  const text = 'collections:\n  parts:\n    fields: { meta: { type: json, paths: { color: string, size.w: int } } }\n';
  const place = { catalog: parseSchema(text).schema!, collection: 'parts' };
  expect(textsAt('@record.me|', place)).toEqual(['id', 'created_at', 'updated_at', 'meta.']);
  expect(at('@record.meta.|', place).map(({ text: each, type }) => [each, type])).toEqual([
    ['color', 'string or null'],
    ['size.w', 'int or null'],
  ]);
  expect(textsAt('@record.meta.size.|', place)).toEqual(['w']);
  expect(textsAt('meta.size.|', { ...place, action: 'list', params: {} })).toEqual(['w']);
  expect(textsAt('@record.meta.color.|', place)).toEqual([]);
});

describe('the place of a completion', () => {
  test('the body of a named condition offers its parameters and the request', () => {
    const parameters = [
      { name: 'team', type: { id: 'teams' } },
      { name: 'least', type: 'int' },
    ] as const;
    const body: Partial<CompletionPlace> = { parameters };
    expect(textsAt('|', body)).toEqual(
      expect.arrayContaining(['team', 'least', '@request.auth.', '@request.query.', 'any(']),
    );
    expect(textsAt('|', body).filter((text) => /^(?:@record|@next|@request.data|changed)/.test(text))).toEqual([]);
    expect(textsAt('team.|', body)).toContain('memberships');
    expect(textsAt('@now > |', body)).not.toContain('least');
  });

  test('a rule for another action than update offers no @next, no body and no changes', () => {
    const texts = textsAt('|', { action: 'list' });
    expect(texts.filter((text) => /^(?:@next|@request.data|changed)/.test(text))).toEqual([]);
    expect(textsAt('|', { action: 'create' })).toEqual(expect.arrayContaining(['@next.', '@request.data.']));
  });

  test('the filter of a query offers members of the record, params and @me', () => {
    const filter: Partial<CompletionPlace> = { action: 'list', params: { least: 3 } };
    expect(textsAt('|', filter)).toEqual(
      expect.arrayContaining(['title', 'owner', 'tags', '$least', '@me', '@now', 'any(']),
    );
    expect(textsAt('|', filter).filter((text) => /^(?:@re|@next|is_member)/.test(text))).toEqual([]);
    expect(textsAt('score > |', filter)).toEqual([
      'score',
      'rating',
      'owner.',
      'owner_id.',
      'team.',
      'team_id.',
      'cover.',
      '$least',
      'count(',
    ]);
    expect(textsAt('any(tags as t, t.|', filter)).toContain('label');
  });

  test('nested counts and quantifiers offer their variables', () => {
    const range = '@record.team.memberships as m';
    for (const text of [
      `any(${range}, count(@record.tags as t, |`,
      `count(${range}, any(@record.tags as t, |`,
      `count(${range}, count(@record.tags as t, |`,
      `all(${range}, none(@record.tags as t, count(m.team.memberships as n, |`,
    ])
      expect([text, textsAt(text)]).toEqual([text, expect.arrayContaining(['m', '@record.', 'any('])]);
  });

  test('query keys include those of requests and those of the text', () => {
    expect(textsAt('@record.title = @request.query.|', { queryKeys: ['page'] })).toEqual(['page']);
    expect(textsAt('@record.title = @request.query.q and @record.pinned = @request.query.|')).toEqual(['q']);
  });
});

describe('the details of a completion', () => {
  const find = (marked: string, text: string): Completion | undefined => at(marked).find((each) => each.text === text);
  test('completions have kinds and types', () => {
    expect(find('@record.|', 'score')).toEqual({
      text: 'score',
      kind: 'field',
      type: 'int or null',
      span: { start: 8, end: 8 },
    });
    expect(find('@record.|', 'tags')).toMatchObject({ kind: 'relation', type: 'many of `tags`' });
    expect(find('@record.|', 'team')).toMatchObject({ kind: 'relation', type: 'one of `teams`' });
    expect(find('any(@record.tags as t, |', 't')).toMatchObject({ kind: 'variable', type: 'one of `tags`' });
    expect(find('|', 'is_member(')).toMatchObject({ kind: 'condition', type: '(team: teams)' });
    expect(find('@record.title |', 'starts with')).toMatchObject({
      kind: 'operator',
      doc: OPERATORS['starts with'].doc,
    });
  });
  test('completions document roots, words and functions', () => {
    expect(find('|', '@record.')?.doc).toBe(ROOT_DOCS['@record']!.doc);
    expect(find('@record.pinned |', 'and')?.doc).toBe(CONNECTIVES.and.doc);
    expect(find('|', 'any(')?.doc).toBe(FUNCTIONS.any.doc);
    expect(find('|', 'count(')).toMatchObject({ type: 'int', doc: FUNCTIONS.count.doc });
    expect(find('|', 'changed_only(')?.doc).toBe(FUNCTIONS.changed_only.doc);
    expect(find('|', 'is_member(')?.doc).toBeUndefined();
  });
  test('a completion replaces the whole of a name or a string', () => {
    expect(find('@record.sc|re = 1', 'score')?.span).toEqual({ start: 8, end: 12 });
    expect(find('@record.status = "dr|aft" and true', '"draft"')?.span).toEqual({ start: 17, end: 24 });
    expect(find('@record.title is n|', 'is not null')?.span).toEqual({ start: 14, end: 18 });
  });
});
