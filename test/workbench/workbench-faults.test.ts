/** Faults in coverage, in the making of mutants, and in explanations, each of which changes what a small schema shows. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, expect, it } from 'vitest';
import * as explanation from '../../src/policy/analyse/explanation.ts';
import { compilePolicy } from '../../src/policy/compile.ts';
import type { Related } from '../../src/policy/types.ts';
import { parseSchema } from '../../src/schema/load.ts';
import * as coverage from '../../src/workbench/coverage/coverage.ts';
import * as mutations from '../../src/workbench/mutate/mutations.ts';
import { placedRules } from '../../src/workbench/rule-places.ts';
import type { Fault } from '../fuzz/faults/fault.ts';
import { ROOT } from '../fuzz/policies/compiler.ts';

const TEXT = `
roles: [member, editor]
collections:
  notes:
    fields: { title: string, score: { type: int, required: true } }
    relations: { tags: { kind: many_to_many, collection: tags } }
    access:
      read: '(@record.title = "a" or not @record.score > 3) and any(@record.tags as t, t.word = "x")'
      update: '@request.auth.roles contains "editor" and @next.score = 1'
  tags:
    fields: { word: string }
`;
const schema = parseSchema(TEXT).schema!;
const rules = placedRules(schema, TEXT);

/** The counts of leaves that no test has evaluated. */
const countsOf = ({ CoverageCounter }: typeof coverage): readonly unknown[] => {
  const { policies } = new CoverageCounter().report(rules, { file: 'bylaw.yaml', catalog: schema });
  const counts = policies.flatMap(({ leaves }) => leaves.flatMap((leaf) => [leaf.true, leaf.false, leaf.unknown]));
  return [...new Set(counts.filter((count) => count !== null))];
};
const operatorsOf = ({ mutationsOf }: typeof mutations): readonly string[] => {
  const made = rules.flatMap(({ rule }) => mutationsOf(rule, schema));
  return [...new Set(made.map(({ operator }) => operator))].toSorted();
};
const OPERATORS = [
  'dropped clause',
  'dropped rule',
  'literal',
  'logic',
  'negation',
  'operator',
  'quantifier',
  'record',
  'role',
];

const TAGS = ['x', 'y', 'x'].map((word, i) => ({ id: `tag${i}`, word }));
const RELATED: Related = { one: () => undefined, many: () => TAGS };

/** A rule about a note of the title `a` and the score 2, which has the tags, and the clause that decided. */
const DECIDING: readonly (readonly [rule: string, deciding: string])[] = [
  ['@record.title = "a" or @record.score > 3', '@record.title = "a"'],
  ['@record.title = "a" and @record.score > 3', '@record.score > 3'],
  ['@record.title = "a" and @record.score < 3', '@record.title = "a" and @record.score < 3'],
  ['not (@record.title = "b" or @record.score < 3)', '@record.score < 3'],
  ['not (@record.title = "a" and @record.score > 3)', '@record.score > 3'],
  ['@record.title = @request.query.title and @record.score < 3', '@record.title = @request.query.title'],
  ['any(@record.tags as t, t.word = "x")', 'tags tag0: t.word = "x"'],
  ['none(@record.tags as t, t.word = "x")', 'tags tag0: t.word = "x"'],
  ['all(@record.tags as t, t.word = "x")', 'tags tag1: t.word = "x"'],
  ['any(@record.tags as t, t.word = "z")', 'any(@record.tags as t, t.word = "z")'],
];

const decidingIn = ({ clauseOf, decidingOf }: typeof explanation): readonly string[] =>
  DECIDING.map(([text]) => {
    const policy = compilePolicy(text, { catalog: schema, collection: 'notes', action: 'read' });
    const request = { auth: null, query: {}, now: '2026-03-01T12:00:00.000000Z' };
    const record = { id: 'note', title: 'a', score: 2 };
    const deciding = decidingOf(clauseOf({ policy, request, record, related: RELATED }));
    return deciding.element === undefined ? deciding.text : `${deciding.element}: ${deciding.text}`;
  });
const EXPECTED_DECIDING = DECIDING.map(([, deciding]) => deciding);

it('leaves that no test has evaluated have no counts, every mutant operator is made, and the clause that decided is named', () => {
  expect(countsOf(coverage)).toEqual([0]);
  expect(operatorsOf(mutations)).toEqual(OPERATORS);
  expect(decidingIn(explanation)).toEqual(EXPECTED_DECIDING);
});

const COVERAGE = 'src/workbench/coverage/coverage.ts';
const MUTATIONS = 'src/workbench/mutate/mutations.ts';
const EXPLANATION = 'src/policy/analyse/explanation.ts';

/** The results of the copy of a module, and those of the program. */
const SHOWN = {
  [COVERAGE]: [(module: never) => countsOf(module), [0]],
  [MUTATIONS]: [(module: never) => operatorsOf(module), OPERATORS],
  [EXPLANATION]: [(module: never) => decidingIn(module), EXPECTED_DECIDING],
} as const;

const FAULTS: readonly (Fault & { readonly file: keyof typeof SHOWN })[] = [
  {
    name: 'a leaf that was never evaluated has a count',
    file: COVERAGE,
    find: /(get\(leaf\) \?\? \{ true: )0/,
    put: '$11',
  },
  {
    name: 'a mutant operator is never made',
    file: MUTATIONS,
    find: /return this\.#logicChanges\(node\);/,
    put: 'return [];',
  },
  {
    name: 'the deciding clause is the first of several that had to agree',
    file: EXPLANATION,
    find: /const isEnough = [^;]+;/,
    put: 'const isEnough = true;',
  },
  {
    name: 'the deciding clause is the last element',
    file: EXPLANATION,
    find: /(clause\.parts\.filter\(\(part\) => part\.value === wanted\))/,
    put: '$1.toReversed()',
  },
  {
    name: 'the deciding clause below a negation is one of the same value',
    file: EXPLANATION,
    find: /clause\.inverts \? opposite\(clause\.value\) : clause\.value/,
    put: 'clause.value',
  },
];
const folder = mkdtempSync(join(tmpdir(), 'bylaw-faults-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The module with the fault. The modules that it imports are those of the program. */
async function faulty({ file, find, put }: Fault): Promise<unknown> {
  const url = new URL(file, ROOT);
  const text = readFileSync(url, 'utf8');
  const changed = text.replace(find, put);
  expect(changed).not.toBe(text);
  const path = join(folder, `${FAULTS.findIndex((fault) => fault.find === find)}.ts`);
  writeFileSync(
    path,
    changed.replaceAll(/ from '(\.[^']+)'/g, (_, other: string) => ` from '${new URL(other, url)}'`),
  );
  return import(pathToFileURL(path).href);
}

it.each(FAULTS)('a fault shows: $name', async (fault) => {
  const [shownBy, expected] = SHOWN[fault.file];
  expect(shownBy((await faulty(fault)) as never)).not.toEqual(expected);
});
