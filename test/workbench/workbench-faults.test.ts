/** Faults in coverage and in the making of mutants, each of which changes what a small schema shows. */
import { afterAll, expect, it } from 'vitest';
import { parseSchema } from '../../src/schema/load.ts';
import * as coverage from '../../src/workbench/coverage/coverage.ts';
import * as mutations from '../../src/workbench/mutate/mutations.ts';
import { placedRules } from '../../src/workbench/rule-places.ts';
import type { Fault } from '../fuzz/faults/fault.ts';
import { ProgramCopy } from '../fuzz/faults/program-copy.ts';
import { loaderOf } from '../fuzz/policies/compiler.ts';

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

it('leaves that no test has evaluated have no counts, and every mutant operator is made', () => {
  expect(countsOf(coverage)).toEqual([0]);
  expect(operatorsOf(mutations)).toEqual(OPERATORS);
});

const COVERAGE = 'src/workbench/coverage/coverage.ts';
const MUTATIONS = 'src/workbench/mutate/mutations.ts';
const FAULTS: readonly Fault[] = [
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
];
const copies: ProgramCopy[] = [];
afterAll(() => {
  for (const copy of copies) copy.remove();
});

it.each(FAULTS)('a fault shows: $name', async (fault) => {
  const copy = new ProgramCopy();
  copies.push(copy);
  expect(copy.change(fault)).toBe(true);
  const load = loaderOf(copy.root);
  const isCoverage = fault.file === COVERAGE;
  const shown = isCoverage
    ? countsOf(await load<typeof coverage>(COVERAGE))
    : operatorsOf(await load<typeof mutations>(MUTATIONS));
  expect(shown).not.toEqual(isCoverage ? [0] : OPERATORS);
});
