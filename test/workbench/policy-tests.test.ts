// @module-tag long
/** `bylaw test`: what it reads, decides, prints and counts. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseArguments } from '../../src/cli/support/parse-arguments.ts';
import { command, testPolicies, testToolsOf } from '../../src/cli/test.ts';
import { ConfigError } from '../../src/config.ts';
import type { Database } from '../../src/database/contract.ts';
import { compilePolicy } from '../../src/policy/compile.ts';
import { Store } from '../../src/records/access-context.ts';
import { parseSchema } from '../../src/schema/load.ts';
import { mutationsOf } from '../../src/workbench/mutate/mutations.ts';
import { printResults } from '../../src/workbench/test/print-results.ts';
import { readTests } from '../../src/workbench/test/read-tests.ts';
import { runTests } from '../../src/workbench/test/run-tests.ts';
import { openEmbeddedDatabase } from '../support/embedded/embedded.ts';

const SCHEMA = `
roles: { member: {}, editor: { includes: [member] }, admin: {} }
register: { roles: [member] }
collections:
  users:
    fields: { level: { type: int, min: 0 } }
    access: { view: true }
  teams:
    fields: { name: { type: string, required: true, min: 3 } }
    relations: { members: { kind: many_to_many, collection: users } }
    access: { view: true, create: true, update: true }
  posts:
    fields:
      title: { type: string, required: true, max: 5, access: { read: '@record.owner = @request.auth.id' } }
      status: { type: string, required: true, enum: [draft, review, published] }
      score: { type: int, required: true, min: 3, max: 9 }
      due: datetime
    relations:
      owner: { kind: belongs_to, collection: users }
      team: { kind: belongs_to, collection: teams }
    access:
      view:
        - when: '@record.status = "published"'
        - when: '@record.owner = @request.auth.id'
        - when: 'any(@record.team.members as m, m.level > 3 and m.id = @request.auth.id)'
      create: [{ roles: [member], when: '@request.data.status = "draft" and @record.score < 5' }]
      update: '@record.owner = @request.auth.id and @next.owner = @record.owner'
      delete: [{ roles: [admin] }]
    checks:
      due_later: { when: '@next.due > @now', message: it is due in the past, fields: [due] }
      keeps_score: { when: '@next.score >= @record.score', message: the score falls }
`;
const ROWS = `
now: 2026-01-01T00:00:00Z
as:
  ada: { roles: [member], level: 2 }
  ben: { roles: [editor], level: 4 }
  root: { roles: [admin] }
rows:
  teams: { red: { members: [ada, ben] } }
  posts:
    mine: { owner: ada, team: red }
    shown: { status: published }
`;

describe('bylaw test', () => {
  let db: Database;
  let folder: string;
  beforeAll(async () => {
    db = await openEmbeddedDatabase();
    folder = mkdtempSync(join(tmpdir(), 'bylaw-policy-tests-'));
  });
  afterAll(() => db.close());

  async function run(argv: readonly string[], cwd = folder) {
    const printed = { out: '', err: '' };
    const io = {
      stdout: { write: (text: string) => (printed.out += text) },
      stderr: { write: (text: string) => (printed.err += text) },
      stdin: process.stdin,
      env: {},
      cwd,
    };
    const { args, issues } = parseArguments(argv, command);
    if (issues.length > 0) throw new Error(issues.join());
    return { code: await testPolicies(args, io, db), ...printed };
  }
  /** Runs the tests beside the schema. */
  function given(tests: string, schema = SCHEMA, rows = ROWS): void {
    writeFileSync(join(folder, 'bylaw.yaml'), schema);
    writeFileSync(join(folder, 'a.policy.yaml'), `${rows}tests:\n${tests}`);
  }
  const document = async (...argv: readonly string[]) => {
    const { code, out } = await run(['--json', ...argv]);
    return { code, ...JSON.parse(out) };
  };

  test.for([
    ['the sample', '../..', 'bylaw.yaml'],
    ['the project of `bylaw init`', '../../src/cli/project', 'bylaw.yaml'],
    ['the clinic', '../../docs/recipes/clinic', 'bylaw.yaml'],
    ['the recruiting tracker', '../../docs/recipes/recruiting', 'bylaw.yaml'],
  ] as const)('%s has tests of full coverage, and no mutant survives', async ([, at, schema]) => {
    const cwd = resolve(import.meta.dirname, at);
    const { code, out } = await run(['--schema', schema, '--coverage-min', '100', '--mutate', '--json'], cwd);
    const { failed, mutants } = JSON.parse(out);
    const of = (verdict: string) => mutants.filter((mutant: { verdict: string }) => mutant.verdict === verdict).length;
    expect([code, failed, of('survived'), of('unknown')]).toEqual([0, 0, 0, 0]);
    expect(of('killed')).toBeGreaterThan(30);
  });

  test('each action, a table of callers, a write, a create, a list and a field are decided', async () => {
    given(`
  - posts: mine
    ada: { list: yes, read: yes, update: yes, delete: no }
    ben: { list: true, read: yes, update: 403 }
    root: { list: no, read: 404, delete: 204 }
    guest: none
  - posts: shown
    guest: { list: yes, read: yes }
  - posts: mine
    ada: { read: { title: yes } }
    ben: { read: { title: no } }
  - { posts: mine, as: ada, update: { score: 2 }, expect: 422 }
  - { posts: mine, as: ada, update: { owner: ben }, expect: no }
  - { create: posts, as: ada, data: { title: New, status: draft, score: 4 }, expect: yes }
  - { create: posts, as: ada, data: { title: New, status: draft, score: 5 }, expect: no }
  - { create: posts, as: guest, data: { title: New, status: draft, score: 4 }, expect: no }
  - { create: teams, as: ada, data: { name: blue, members: [ada] }, expect: 201 }
  - { list: posts, as: ben, expect: [shown, mine] }
  - { list: posts, as: root, expect: [shown] }
`);
    const { code, passed, failed, tests } = await document();
    expect([code, passed, failed]).toEqual([0, 26, 0]);
    const [{ trace, ...first }] = tests;
    expect(first).toEqual({
      file: 'a.policy.yaml',
      line: 15,
      column: 12,
      collection: 'posts',
      record: 'mine',
      action: 'list',
      as: 'ada',
      expected: true,
      actual: 200,
      ok: true,
    });
    expect(trace.map(({ when, value }: { when: string; value: string }) => [when, value]).slice(0, 2)).toEqual([
      ['@record.status = "published"', 'false'],
      ['@record.owner = @request.auth.id', 'true'],
    ]);
    expect((await document('--only', 'posts, list as root')).passed).toBe(1);
  });

  test('a text of `--only` that no title contains is an error with the nearest titles', async () => {
    given(
      '  - { posts: shown, guest: { read: yes }, ada: { update: no } }\n  - { list: posts, as: root, expect: [shown] }',
    );
    const refused = await run(['--only', 'Shown, reed as guest']).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(ConfigError);
    expect((refused as ConfigError).message.split('\n').slice(-4)).toEqual([
      expect.stringMatching(/--only: no title and no file contains `Shown, reed as guest`; the nearest titles are$/),
      '  posts shown, read as guest',
      '  posts shown, update as ada',
      '  posts, list as root',
    ]);
    given(' []');
    await expect(run(['--only', 'shown'])).rejects.toThrow('contains `shown`; the files have no tests');
  });

  test('a create of a file is decided as one of an empty file', async () => {
    given(
      `
  - create: files
    as: ada
    expect: yes
  - create: files
    as: ben
    data: { name: cv.pdf }
    expect: no
  - create: files
    as: ada
    data: { size: 5 }
    expect: 422`,
      `${SCHEMA}  files: { access: { create: '@request.auth.level < 3' } }
`,
    );
    const { code, passed } = await document();
    expect([code, passed]).toEqual([0, 3]);
  });

  test('the facts of a request are given by a test', async () => {
    const rule = `view: '@request.ip in ["10.0.0.0/8"] or @request.kind = "guest"'`;
    given(
      `
  - { teams: red, request: { ip: 10.1.2.3 }, ben: { read: yes, list: yes }, guest: { read: yes } }
  - { teams: red, request: { ip: 11.1.2.3 }, ben: { read: no, list: no } }
  - { teams: red, as: ben, read: true, expect: no }`,
      SCHEMA.replace('view: true, create', `${rule}, create`),
    );
    expect(await document()).toMatchObject({ code: 0, passed: 6, failed: 0 });
    expect((await run([])).out).toMatch(/^6 passed, 0 failed\nthe schema admits no guests; .*\n$/);
  });

  test('the facts of a session are given by a test, and a guest has none', async () => {
    const rule = `view: '@request.auth.second_factor and @request.auth.signed_in_at > @now - 1h'`;
    given(
      `
  - { teams: red, request: { second_factor: true, signed_in_at: 2025-12-31T23:30:00Z }, ben: { read: yes }, guest: { read: no } }
  - { teams: red, request: { second_factor: true, signed_in_at: 2020-01-01T11:30:00Z }, ben: { read: no } }
  - { teams: red, as: ben, read: true, expect: no }`,
      SCHEMA.replace('view: true, create', `${rule}, create`),
    );
    expect(await document()).toMatchObject({ code: 0, passed: 4, failed: 0 });
    given(`
  - { teams: red, request: { second_factor: perhaps }, ben: { read: yes } }`);
    await expect(run([])).rejects.toThrow('expected bool');
  });

  test('a failure shows its place, the clause that decided, and the value of each leaf', async () => {
    given(`
  - posts: mine
    ada: { read: no }
  - { list: posts, as: ada, expect: [shown] }
`);
    const { code, out } = await run(['--junit', 'junit.xml']);
    expect([code, out]).toEqual([
      1,
      `FAIL a.policy.yaml:15:12  posts mine, read as ada: expected no, found yes (200)
  rule 1: does not allow
    | @record.status = "published"
    | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    false   @record.status = "published"  "draft", "published"
  rule 2: allows
    | @record.owner = @request.auth.id
    | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    true    @record.owner = @request.auth.id  "ada", "ada"
  rule 3: does not allow
    | any(@record.team.members as m, m.level > 3 and m.id = @request.auth.id)
    | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    false   [members ada] m.level > 3  2, 3
    true    [members ada] m.id = @request.auth.id  "ada", "ada"
    true    [members ben] m.level > 3  4, 3
    false   [members ben] m.id = @request.auth.id  "ben", "ada"

FAIL a.policy.yaml:16:29  posts, list as ada: expected [shown], found [mine, shown]
  mine is too many
  rule 1: does not allow
    | @record.status = "published"
    | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    false   @record.status = "published"  "draft", "published"
  rule 2: allows
    | @record.owner = @request.auth.id
    | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    true    @record.owner = @request.auth.id  "ada", "ada"
  rule 3: does not allow
    | any(@record.team.members as m, m.level > 3 and m.id = @request.auth.id)
    | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    false   [members ada] m.level > 3  2, 3
    true    [members ada] m.id = @request.auth.id  "ada", "ada"
    true    [members ben] m.level > 3  4, 3
    false   [members ben] m.id = @request.auth.id  "ben", "ada"

0 passed, 2 failed
`,
    ]);
    expect(readFileSync(join(folder, 'junit.xml'), 'utf8')).toContain('tests="2" failures="2"');
  });

  test('a record that fails a check is 422, by the predicate and by the database, and the failure names the check', async () => {
    given(`
  - { posts: mine, as: ada, update: { due: 2025-12-31T00:00:00Z }, expect: 422 }
  - { posts: mine, as: ada, update: { due: 2026-01-02T00:00:00Z, score: 4 }, expect: 200 }
  - { create: posts, as: ada, data: { title: New, status: draft, score: 4, due: 2025-12-31T00:00:00Z }, expect: 422 }
  - { posts: shown, as: ben, update: { due: 2025-12-31T00:00:00Z }, expect: 403 }
  - { posts: mine, as: ada, update: { due: 2025-12-31T00:00:00Z }, expect: yes }
`);
    const { code, tests } = await document();
    expect([code, tests.map(({ ok }: { ok: boolean }) => ok)]).toEqual([1, [true, true, true, true, false]]);
    expect(tests.map(({ failed_checks }: { failed_checks?: string[] }) => failed_checks)).toEqual([
      ['due_later'],
      undefined,
      ['due_later'],
      undefined,
      ['due_later'],
    ]);
    const { out } = await run([]);
    expect(out).toContain('expected yes, found 422: /data/due: it is due in the past');
    expect(out).toContain(
      [
        '  check due_later: fails',
        '    | @next.due > @now',
        '    false   @next.due > @now  "2025-12-31T00:00:00.000000Z", "2026-01-01T00:00:00.000000Z"',
      ].join('\n'),
    );
  });

  test('checks and transitions have coverage, and mutants that the tests of the file or the solver tell apart', async () => {
    given(
      `
  - { jobs: one, as: ada, update: { pay: 2 }, expect: 422 }
  - { jobs: one, as: ada, update: { pay: 4 }, expect: yes }
  - { jobs: one, as: eve, update: { pay: 2 }, expect: no }
  - { jobs: two, as: ada, update: { stage: hired }, expect: 422 }
`,
      `
collections:
  jobs:
    fields:
      stage: { type: string, required: true, enum: [new, seen, hired], transitions: { new: [seen], seen: [hired] } }
      pay: { type: int, min: 0 }
    relations: { owner: { kind: belongs_to, collection: users } }
    access:
      update: '@record.owner = @request.auth.id'
    checks:
      hired_is_paid: { when: '@next.stage != "hired" or @next.pay is not null', message: nobody works for nothing }
      grows: { when: '@next.pay >= @record.pay', message: never less }
`,
      'as: { ada: {}, eve: {} }\nrows: { jobs: { one: { owner: ada, stage: seen, pay: 3 }, two: { owner: ada } } }\n',
    );
    const { coverage, mutants } = await document('--coverage', '--mutate');
    const counts = coverage.policies.map(({ path, action, decided_alone, leaves }: Json) => [
      path,
      action,
      decided_alone,
      ...leaves.map((leaf: Json) => [`${leaf.line}:${leaf.column}`, leaf.text, leaf.true, leaf.false, leaf.unknown]),
    ]);
    expect(counts).toEqual([
      ['collections.jobs.access.update', 'update', 3, ['9:16', '@record.owner = @request.auth.id', 6, 2, 0]],
      [
        'collections.jobs.fields.stage.transitions',
        'check',
        0,
        ['5:72', 'changed(@record.stage)', 1, 2, null],
        ['5:72', '@record.stage is null', null, 3, null],
        ['5:72', '@next.stage is not null', 3, null, null],
        ['5:87', '@record.stage = "new"', 1, 2, null],
        ['5:87', '@next.stage in ["seen"]', 2, 1, null],
        ['5:100', '@record.stage = "seen"', 2, 1, null],
        ['5:100', '@next.stage in ["hired"]', 1, 2, null],
      ],
      [
        'collections.jobs.checks.hired_is_paid.when',
        'check',
        0,
        ['11:31', '@next.stage != "hired"', 2, 1, null],
        ['11:57', '@next.pay is not null', 2, 1, null],
      ],
      ['collections.jobs.checks.grows.when', 'check', 1, ['12:23', '@next.pay >= @record.pay', 1, 1, 1]],
    ]);
    const of = (wanted: string) => mutants.filter(({ verdict }: Json) => verdict === wanted);
    expect(of('unknown')).toEqual([]);
    const changes = mutants.map(({ path, from, to }: Json) => [path.split('.').at(-1), from, to]);
    const ofTransitions = changes.filter(([last]: string[]) => last === 'transitions');
    expect(ofTransitions).toEqual([
      ['transitions', 'the transitions of stage', 'no transitions'],
      ['transitions', 'new: [seen]', 'new: []'],
      ['transitions', 'new: [seen]', 'new: [seen, hired]'],
      ['transitions', 'seen: [hired]', 'seen: []'],
      ['transitions', 'seen: [hired]', 'seen: [hired, new]'],
      ['transitions', 'hired: []', 'hired: [new]'],
    ]);
    expect(changes).toContainEqual(['when', '@next.pay >= @record.pay', 'no check']);
    const killed = of('killed').map(({ to }: Json) => to);
    expect(killed).toContain('@next.pay < @record.pay');
    // Each survivor comes with a test that notices it.
    const ofChecks = of('survived').filter(({ path }: Json) => !path.includes('access'));
    expect(ofChecks.length).toBeGreaterThan(8);
    for (const { test: text, path, to } of [ofChecks[0], ofChecks.at(-1)]) {
      writeFileSync(join(folder, 'a.policy.yaml'), text);
      const again = await document('--mutate');
      expect([again.failed, again.mutants.find((each: Json) => each.path === path && each.to === to).verdict]).toEqual([
        0,
        'killed',
      ]);
    }
  });

  test('unknown names, and rows that the schema rejects, are errors at their place', async () => {
    given(`
  - { posts: mien, as: ada, update: {}, expect: yes }
  - { posts: mine, adda: { read: yes } }
  - { posts: mine, ada: { raed: yes } }
  - { posts: mine, as: ada, update: { team: rde }, expect: maybe }
`);
    const failed = await run([]).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(ConfigError);
    const { issues } = failed as ConfigError;
    const places = issues.map((issue) => /^error\[(\w+)\][^\n]*\n[^\n]*?:(\d+:\d+)/.exec(issue)?.slice(1).join(' '));
    expect(places).toEqual([
      'unknown_row 14:14',
      'unknown_caller 15:20',
      'unknown_key 16:27',
      'unknown_row 17:45',
      'wrong_type 17:60',
    ]);
    writeFileSync(join(folder, 'a.policy.yaml'), 'rows: { posts: { a: { score: 99, nothing: 1 } } }\ntests: []\n');
    const rejected = ((await run([]).catch((error: unknown) => error)) as ConfigError).issues.join('\n');
    expect(rejected).toContain('error[too_large]');
    expect(rejected).toContain('`posts` has no field `nothing`');
  });

  test('rows that the database rejects beside each other are errors at the later one', async () => {
    const schema = `
collections:
  teams:
    fields: { name: { type: string, unique: true }, code: { type: string, unique: { where: '@record.name is not null' } } }
    access: { read: true }
  bookings:
    no_overlap: { on: [room], from: starts_at, to: ends_at }
    fields: { room: string, starts_at: datetime, ends_at: datetime }
    access: { read: true }
`;
    const rejected = async (rows: string) => {
      writeFileSync(join(folder, 'bylaw.yaml'), schema);
      writeFileSync(join(folder, 'a.policy.yaml'), `rows:\n${rows}tests: []\n`);
      const error = await run([]).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(ConfigError);
      return (error as ConfigError).issues.map((issue) => issue.split('\n').slice(0, 2).join(' '));
    };
    expect(await rejected('  teams:\n    a: { name: x }\n    b: { name: x }\n')).toEqual([
      expect.stringMatching(
        /^error\[unique_violation\]: another record has this `name` .*a\.policy\.yaml:4:16 \(rows\.teams\.b\.name\)$/,
      ),
    ]);
    expect(await rejected('  teams:\n    a: { name: x, code: k }\n    b: { name: y, code: k }\n')).toEqual([
      expect.stringMatching(/^error\[unique_violation\]: another record has this `code` .*:4:25 /),
    ]);
    const times = "room: r, starts_at: '2026-01-01T10:00:00Z', ends_at: '2026-01-01T11:00:00Z'";
    expect(await rejected(`  bookings:\n    a: { ${times} }\n    b: { ${times} }\n`)).toEqual([
      expect.stringMatching(/^error\[conflict\]: another record of .* overlaps with `starts_at` to `ends_at` .*:4:/),
    ]);
  });

  test.each(['--coverage=none/page.html', '--junit=none/page.html'])(
    '%s into a missing folder is a wrong call',
    async (flag) => {
      given('\n  - posts: shown\n    ada: { read: yes }\n');
      await expect(run([flag])).rejects.toMatchObject({
        name: 'ConfigError',
        issues: [expect.stringMatching(/^none\/page.html cannot be written: the folder .*none does not exist$/)],
      });
    },
  );

  test('a leaf counts only where it was evaluated', async () => {
    given('\n  - posts: shown\n    ada: { read: yes }\n');
    const { coverage } = await document('--coverage=page.html');
    const ofView = coverage.policies.filter(({ path }: { path: string }) => path.includes('posts.access.view'));
    const counts = ofView.map(({ decided_alone, leaves }: Json) => [
      decided_alone,
      ...leaves.map((leaf: Json) => [leaf.text, leaf.true, leaf.false, leaf.unknown]),
    ]);
    expect(counts).toEqual([
      [1, ['@record.status = "published"', 1, 0, null]],
      [0, ['@record.owner = @request.auth.id', 0, 0, 1]],
      // The post has no team, so no member was looked at.
      [0, ['m.level > 3', 0, 0, 0], ['m.id = @request.auth.id', 0, 0, 0]],
    ]);
    expect((await run(['--coverage-min', '100'])).code).toBe(1);
    expect(readFileSync(join(folder, 'page.html'), 'utf8')).toContain('@record.owner = @request.auth.id');
  });

  test('a value that no caller and row give is not asked for, and a mutant of the same meaning is not counted', async () => {
    const schema = `
collections:
  posts:
    fields: { score: { type: int, required: true, min: 1, max: 9 }, rank: int }
    access:
      read: '@record.score > 0 or @record.rank > 3'
      delete: '@record.score >= 9'
`;
    writeFileSync(join(folder, 'bylaw.yaml'), schema);
    writeFileSync(
      join(folder, 'a.policy.yaml'),
      `as: { ada: {} }
rows: { posts: { low: { score: 1 }, high: { score: 9 } } }
tests: [{ posts: low, ada: { read: yes, delete: no } }, { posts: high, ada: { delete: yes } }]
`,
    );
    const { coverage, mutants } = await document('--coverage', '--mutate');
    expect(coverage.policies[0].leaves).toMatchObject([
      { text: '@record.score > 0', true: 1, false: null, unknown: null },
      { text: '@record.rank > 3', true: 0, false: 0, unknown: 1 },
    ]);
    const shown = mutants.map(({ from, to, verdict }: Json) => `${verdict} ${from} → ${to}`);
    // No score is above 9, and none below 1.
    expect(shown).not.toContainEqual(expect.stringContaining('@record.score = 9'));
    expect(shown).not.toContainEqual(expect.stringContaining('@record.rank > 4'));
    expect(shown).toContain('killed @record.score >= 9 → @record.score < 9');
    const [survived] = mutants.filter(({ verdict, to }: Json) => verdict === 'survived' && to === '@record.score >= 8');
    expect(survived.test).toContain('"score":8');
  });

  test('a predicate and a database that disagree are a defect of the program', async () => {
    const file = `${ROWS}tests:\n  - posts: mine\n    ben: { list: yes, read: yes }\n  - { list: posts, as: root, expect: [shown] }\n`;
    const [{ schema }, { schema: other }] = [
      parseSchema(SCHEMA),
      parseSchema(SCHEMA.replace('m.level > 3', 'm.level > 4')),
    ];
    const { tests } = readTests(file, 'a.policy.yaml', schema!);
    // The database has the rules of another schema.
    const tools = { ...(await testToolsOf(db, other!)), store: new Store(db, schema!) };
    const { results } = await runTests(tests!, tools);
    expect(results.map(({ isDisagreement }) => isDisagreement)).toEqual([true, true, false]);
    const printed = printResults([{ file: 'a.policy.yaml', names: tests!.names, results }]);
    expect(printed).toContain('DEFECT of bylaw: its predicate and its SQL disagree.');
    expect(printed).toContain('predicate: allowed; SQL: no (404)');
  });

  test('a check that a predicate and a database decide differently is one too', async () => {
    const file = `${ROWS}tests:\n  - { posts: mine, as: ada, update: { due: 2025-12-31T00:00:00Z }, expect: 422 }\n`;
    const { schema } = parseSchema(SCHEMA);
    const { tests } = readTests(file, 'a.policy.yaml', schema!);
    const tools = await testToolsOf(db, schema!);
    // The database takes every write.
    const records = { ...tools.records, dryRun: async <T>(): Promise<T> => undefined as T };
    const { results } = await runTests(tests!, { ...tools, records });
    expect(results.map(({ isOk, isDisagreement }) => [isOk, isDisagreement])).toEqual([[false, true]]);
  });

  test('a restore is decided for a row that is deleted, by its rules, its time and the checks', async () => {
    const schema = `
roles: { member: {}, keeper: {} }
register: { roles: [member] }
collections:
  folders: { fields: { full: { type: bool, required: true } } }
  notes:
    soft_delete: true
    fields: { title: string }
    relations:
      owner: { kind: belongs_to, collection: users }
      folder: { kind: belongs_to, collection: folders }
      answers: { kind: has_many, collection: notes, via: answer_to }
      answer_to: { kind: belongs_to, collection: notes, on_delete: restrict }
    access:
      view: true
      restore: [{ when: '@record.owner = @request.auth.id and @record.deleted_at > @now - 30d' }, { roles: [keeper] }]
    checks: { fits: { when: '@next.folder.full = false', message: the folder is full, fields: [folder] } }
`;
    const rows = `
now: 2026-03-01T00:00:00Z
as: { ada: { roles: [member] }, kim: { roles: [keeper] }, ben: { roles: [member] } }
rows:
  folders: { full: { full: true } }
  notes:
    mine: { owner: ada }
    answer: { owner: ben, answer_to: mine }
    stuck: { owner: ada, folder: full }
`;
    const tests = `
  - notes: mine
    ada: &all { read: yes, restore: yes }
    kim: { <<: *all, delete: no }
    ben: { <<: *all, restore: no }
    guest: { restore: no }
  - { notes: stuck, as: ada, restore: yes, expect: 422 }
  - { notes: stuck, as: ben, restore: yes, expect: no }
  - { notes: mine, as: ada, restore: 2026-02-01T00:00:00Z, expect: yes }
`;
    const late = '  - { notes: mine, as: ada, restore: 2026-01-01T00:00:00Z, expect: no }\n';
    given(tests + late, schema, rows);
    const { passed, failed, coverage, mutants } = await document('--coverage', '--mutate');
    expect([passed, failed]).toEqual([12, 0]);
    const restores = coverage.policies.filter(({ action }: Json) => action === 'restore');
    expect(restores.map(({ path, leaves }: Json) => [path, leaves.length])).toEqual([
      ['collections.notes.access.restore[0]', 2],
      ['collections.notes.access.restore[1]', 1],
    ]);
    const of = (all: readonly Json[]) =>
      all.filter(({ path }) => path.includes('restore')).map(({ verdict }) => verdict);
    expect(of(mutants).filter((verdict) => verdict === 'killed').length).toBeGreaterThan(5);
    expect(of(mutants)).not.toContain('survived');
    given(tests + late.replace('ada', 'kim').replace('no }', 'yes }'), schema, rows);
    const { mutants: fewer } = await document('--mutate');
    const [survivor] = fewer.filter(({ verdict, path }: Json) => verdict === 'survived' && path.includes('restore'));
    expect(survivor).toMatchObject({
      from: expect.stringContaining('@now'),
      test: expect.stringContaining('restore: 2026-01-01'),
    });
    writeFileSync(join(folder, 'a.policy.yaml'), survivor.test);
    expect((await document()).code).toBe(0);
  });

  test('a restore is decided beside the living rows of its collection, without the row itself', async () => {
    const schema = `
roles: { member: {} }
register: { roles: [member] }
collections:
  rooms:
    fields: { name: string }
    relations: { bookings: { kind: has_many, collection: bookings, via: room } }
  bookings:
    soft_delete: true
    fields: { slot: int }
    relations:
      room: { kind: belongs_to, collection: rooms }
      next: { kind: belongs_to, collection: bookings, on_delete: set_null }
      former: { kind: has_many, collection: bookings, via: next }
    access:
      view: true
      restore: 'none(@record.room.bookings as b, b.slot = @record.slot) and none(@record.former as f, f.slot = 9)'
`;
    const rows = `
now: 2026-03-01T00:00:00Z
rows:
  rooms: { one: { name: one } }
  bookings:
    alone: { room: one, slot: 1 }
    first: { room: one, slot: 2 }
    second: { room: one, slot: 2 }
    last: { room: one, slot: 3 }
    ninth: { room: one, slot: 9, next: last }
`;
    given(
      `
  - { bookings: alone, guest: { restore: yes } }
  - { bookings: first, guest: { restore: no } }
  - { bookings: last, guest: { restore: no } }
  - { bookings: ninth, guest: { restore: yes } }
`,
      schema,
      rows,
    );
    const { passed, failed, coverage, mutants } = await document('--coverage', '--mutate');
    expect([passed, failed]).toEqual([4, 0]);
    expect(coverage.policies.filter(({ action }: Json) => action === 'restore')).toHaveLength(1);
    const restores = mutants.filter(({ path }: Json) => path.includes('restore'));
    expect(restores.filter(({ verdict }: Json) => verdict === 'killed').length).toBeGreaterThan(2);
  });

  test('no test of a mutant refers to a record which its caller may not read', async () => {
    const head = 'as: { ada: { roles: [editor] }, ben: { roles: [editor] } }\n';
    given(
      `\n  - { create: notes, as: ada, data: { owner: ada }, expect: yes }\n`,
      `
roles: [editor]
collections:
  users: { access: { view: '@record.id = @request.auth.id' } }
  notes:
    relations: { owner: { kind: belongs_to, collection: users, required: true } }
    access: { create: [{ roles: [editor], when: '@record.owner = @request.auth.id' }] }
`,
      head,
    );
    const { mutants } = await document('--mutate');
    const ofNotes = mutants.filter(({ path }: Json) => path.includes('notes'));
    const dropped = ofNotes.filter(({ verdict }: Json) => verdict !== 'killed');
    expect(dropped.map(({ verdict, test }: Json) => [verdict, test])).toContainEqual(['unknown', null]);
    for (const { test } of mutants) {
      if (test === null) continue;
      writeFileSync(join(folder, 'a.policy.yaml'), test);
      expect([test, (await run([])).code]).toEqual([test, 0]);
    }
  });

  test('a restore of what is never kept, its time, and a merge of no mapping are errors at their places', async () => {
    const { schema } = parseSchema(SCHEMA);
    const read = (tests: string) => readTests(`${ROWS}tests:\n${tests}`, 'a.policy.yaml', schema!).issues;
    expect(read('  - { posts: mine, as: ada, restore: yes, expect: no }\n')).toMatchObject([
      { code: 'no_such_action' },
    ]);
    expect(read('  - { posts: mine, ada: { restore: yes } }\n')).toMatchObject([{ code: 'unknown_key' }]);
    expect(read('  - { posts: mine, ada: { <<: 3 } }\n')).toMatchObject([
      { code: 'yaml_alias', message: 'expected a mapping, or a list of mappings, after `<<`' },
    ]);
  });

  test('the keys of tests are errors as the names of callers, in `as` and in the rows of users', () => {
    const { schema } = parseSchema(SCHEMA);
    const read = (text: string) => readTests(`${text}\ntests: []\n`, 'a.policy.yaml', schema!).issues;
    const keys = [
      'as',
      'query',
      'request',
      'expect',
      'data',
      'now',
      'list',
      'read',
      'create',
      'update',
      'delete',
      'restore',
    ];
    for (const name of [...keys, 'guest']) {
      const reason = name === 'guest' ? 'is always there' : 'is a key of tests';
      const message = `\`${name}\` ${reason}; choose another name`;
      const issue = { code: 'reserved_name', message, line: 1 };
      expect(read(`as: { ${name}: {} }`)).toMatchObject([{ ...issue, column: 7 }]);
      expect(read(`rows: { users: { ${name}: {} } }`)).toMatchObject([{ ...issue, column: 18 }]);
    }
    expect(read('as: { reader: {} }\nrows: { teams: { read: { name: red } } }')).toEqual([]);
  });

  test('every mutation is made', () => {
    const { schema } = parseSchema(SCHEMA);
    const text = `@record.score >= 4 and @record.status in ["draft", "review"] and (@record.status = "draft" or not (@next.due is null))
      and any(@record.team.members as m, m.level > 1) and @request.auth.roles contains "editor" and @next.score > @record.score and changed(@record.title)`;
    const rule = compilePolicy(text, { catalog: schema!, collection: 'posts', action: 'update' });
    const made = mutationsOf(rule, schema!);
    const all = Map.groupBy(made, ({ operator }) => operator);
    const shown = (operator: (typeof made)[number]['operator']) =>
      (all.get(operator) ?? []).map(({ to }) => to.replaceAll(/\s+/g, ' ')).filter((to) => to.length < 60);
    expect(shown('operator')).toEqual([
      '@record.score < 4',
      '@record.score > 4',
      '@record.status not in ["draft", "review"]',
      '@record.status != "draft"',
      'm.level <= 1',
      'm.level >= 1',
      '@next.score <= @record.score',
      '@next.score >= @record.score',
    ]);
    expect(shown('literal')).toEqual([
      '@record.score >= 5',
      '@record.score >= 3',
      '@record.status in ["review"]',
      '@record.status in ["draft"]',
      '@record.status = "review"',
      'm.level > 2',
      'm.level > 0',
    ]);
    expect(shown('role')).toEqual(['@request.auth.roles contains "admin"']);
    expect(shown('quantifier')).toEqual([
      'all(@record.team.members as m, m.level > 1)',
      'none(@record.team.members as m, m.level > 1)',
    ]);
    expect(shown('record')).toEqual(['(@record.due is null)', '@record.score > @record.score']);
    expect(shown('negation')).toEqual(['(@next.due is null)', '@next.due is not null', 'not changed(@record.title)']);
    expect(shown('dropped rule')).toEqual(['no rule']);
    expect([all.get('dropped clause')?.length, all.get('logic')?.length]).toEqual([9, 2]);
  });

  test('`--mutate=changed:REVISION` changes only the rules that the revision does not have', async () => {
    const cwd = mkdtempSync(join(folder, 'revisions-'));
    const git = (...args: readonly string[]) =>
      execFileSync('git', ['-c', 'user.name=x', '-c', 'user.email=x@example.org', ...args], { cwd, stdio: 'ignore' });
    const schema = (update: string) =>
      `collections: { notes: { fields: { n: int }, access: { read: '@record.n > 1', update: '${update}' } } }\n`;
    writeFileSync(join(cwd, 'bylaw.yaml'), schema('@record.n > 2'));
    writeFileSync(
      join(cwd, 'a.policy.yaml'),
      'rows: { notes: { a: { n: 3 } } }\ntests: [{ notes: a, guest: { read: yes } }]\n',
    );
    git('init', '-q');
    git('add', '.');
    git('commit', '-qm', 'first');
    writeFileSync(join(cwd, 'bylaw.yaml'), schema('@record.n > 4'));
    const { mutants } = JSON.parse((await run(['--mutate=changed:HEAD', '--json'], cwd)).out);
    expect(new Set(mutants.map(({ path }: Json) => path))).toEqual(new Set(['collections.notes.access.update']));
    await expect(run(['--mutate=changed:nothing'], cwd)).rejects.toThrow(
      'git has no bylaw.yaml at the revision nothing',
    );
    await expect(run(['--mutate=other'], cwd)).rejects.toThrow('expected changed:REVISION, found other');
  });

  test('a mutant that survives comes with a test that tells the difference', async () => {
    const [withoutChecks = ''] = SCHEMA.split('    checks:');
    given('\n  - posts: mine\n    ada: { read: yes }\n    guest: { read: no }\n', withoutChecks);
    const { code, mutants } = await document('--mutate');
    expect(code).toBe(1);
    const survived = mutants.filter(({ verdict }: Json) => verdict === 'survived');
    expect(survived.length).toBeGreaterThan(5);
    for (const { test: text, path, from, to } of survived.slice(0, 2)) {
      writeFileSync(join(folder, 'a.policy.yaml'), text);
      const again = await document('--mutate');
      expect(again.failed).toBe(0);
      const same = again.mutants.find((each: Json) => each.path === path && each.from === from && each.to === to);
      expect([from, to, same.verdict]).toEqual([from, to, 'killed']);
    }
  });
});

// biome-ignore lint/suspicious/noExplicitAny: the shape is what is being tested
type Json = any;
