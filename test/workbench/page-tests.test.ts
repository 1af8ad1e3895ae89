/** Policy tests in a page: the rules alone predict what the service answers, with neither Node nor generated code. */
import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { runInPage } from '../../src/workbench/page/page-tests.ts';
import { ROOT } from '../fuzz/policies/compiler.ts';

const SCHEMA = `roles: [member, editor]
guests: true
oauth: { corp: { issuer: https://id.example.org, client_id: a, client_secret_env: CORP_SECRET } }
collections:
  notes:
    soft_delete: true
    fields:
      text: { type: string, required: true, max: 20 }
      secret: { type: string, access: { read: [{ roles: [editor] }] } }
    relations: { owner: { kind: belongs_to, collection: users, required: true, default: '@request.auth.id' } }
    checks: { polite: { when: 'not @next.text contains "!"', message: be polite } }
    access:
      list: '@record.owner = @request.auth.id'
      read: [{ roles: [member] }]
      create: [{ roles: [member] }]
      update: '@record.owner = @request.auth.id'
      delete: [{ roles: [editor] }]
      restore: '@record.owner = @request.auth.id'
`;
const ROWS = `as: { ann: { roles: [member] }, ben: { roles: [editor] } }
rows: { notes: { one: { text: a, owner: ann } } }
tests:
`;
const runOf = (tests: string, mutate = false) =>
  runInPage({ text: SCHEMA, files: { 'a.policy.yaml': `${ROWS}${tests}` }, mutate });
async function resultsOf(tests: string, mutate = false) {
  const run = await runOf(tests, mutate);
  if ('issues' in run) throw new Error(JSON.stringify(run.issues));
  return run.results;
}

describe('policy tests in a page', () => {
  beforeEach(() => {
    const made = Function;
    // Callable with and without `new`.
    function ofPage(...parts: readonly string[]) {
      // The code of a predicate. Another suite may have the reader of shapes generate code before this one.
      if (parts[0] === 'constants') throw new EvalError('the page forbids generated code');
      return made(...parts);
    }
    vi.stubGlobal('Function', ofPage);
  });
  afterEach(() => vi.unstubAllGlobals());

  test.each([
    ['{ notes: one, read: yes, as: guest, expect: 403 }', 403],
    ['{ notes: one, read: yes, as: ben, expect: 403 }', 403],
    ['{ notes: one, read: yes, as: ann, expect: 200 }', 200],
    ['{ notes: one, update: { text: b }, as: ann, expect: 200 }', 200],
    ['{ notes: one, update: { text: b }, as: ben, expect: 404 }', 404],
    ['{ notes: one, update: { text: "b!" }, as: ann, expect: 422 }', 422],
    ['{ notes: one, delete: yes, as: ben, expect: 204 }', 204],
    ['{ notes: one, delete: yes, as: ann, expect: 403 }', 403],
    ['{ notes: one, restore: yes, as: ann, expect: 200 }', 200],
    ['{ create: notes, data: { text: mine }, as: ann, expect: 201 }', 201],
    ['{ create: notes, data: {}, as: ann, expect: 422 }', 422],
    ['{ create: notes, data: { text: mine }, as: guest, expect: 403 }', 403],
  ])('%s', async (line, status) => {
    const { failed, tests } = await resultsOf(`  - ${line}\n`);
    expect([failed, tests[0]!.actual]).toEqual([0, status]);
  });

  test('a list has the rows that its rules allow, and a field is shown or left out', async () => {
    const { tests } = await resultsOf(`  - { list: notes, as: ann, expect: [one] }
  - { list: notes, as: ben, expect: [] }
  - { notes: one, ann: { read: { text: yes, secret: no } } }
  - { notes: one, ann: none }
`);
    expect(tests.map(({ ok }) => ok)).toEqual([true, true, true, true, false, false, false, true]);
    expect(tests.some((each) => each.disagreement)).toBe(false);
  });

  test('coverage counts each decision once, and mutants have the test that kills them', async () => {
    const { coverage, mutants } = await resultsOf('  - { notes: one, ann: { list: yes } }\n', true);
    const list = coverage!.policies.find(({ path }) => path === 'collections.notes.access.list')!;
    expect(list.leaves.map((leaf) => [leaf.true, leaf.false])).toEqual([[1, 0]]);
    expect(mutants!.some(({ verdict, test: kills }) => verdict === 'survived' && kills !== null)).toBe(true);
  });

  test('an error has its file and line, also one of the schema', async () => {
    expect(await runOf('  - { notes: two, ann: { read: yes } }\n')).toEqual({
      issues: [{ file: 'a.policy.yaml', line: 4, message: expect.stringContaining('`rows` has no `two`') }],
    });
    expect(
      await runInPage({ text: 'collections: { notes: { fields: { a: nothing } } }', files: {}, mutate: false }),
    ).toEqual({
      issues: [{ file: 'bylaw.yaml', line: 1, message: expect.any(String) }],
    });
  });
});

test.each(['.', 'docs/recipes/clinic', 'docs/recipes/recruiting'])('the tests of %s pass in a page', async (folder) => {
  const textOf = (name: string): string => readFileSync(new URL(`${folder}/${name}`, ROOT), 'utf8');
  const files = { 'bylaw.policy.yaml': textOf('bylaw.policy.yaml') };
  const run = await runInPage({ text: textOf('bylaw.yaml'), files, mutate: false });
  if ('issues' in run) throw new Error(JSON.stringify(run.issues));
  expect(run.results.tests.filter(({ ok }) => !ok)).toEqual([]);
  // A database finds that a value is not unique.
  expect(run.results.undecided).toBe(files['bylaw.policy.yaml'].match(/expect: 409/g)!.length);
  expect(run.results.passed).toBeGreaterThan(10);
});
