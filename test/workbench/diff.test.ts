// @module-tag long
/** `bylaw diff` on two schemas: verdicts, callers, examples that both the predicate and SQL decide, and its documents. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCommand } from '../../src/cli/index.ts';
import { reportDisagreement } from '../../src/cli/support/disagreement.ts';
import { testToolsOf } from '../../src/cli/test.ts';
import type { Database } from '../../src/database/contract.ts';
import type { World } from '../../src/policy/analyse/solve/world.ts';
import { compilePolicy } from '../../src/policy/compile.ts';
import { parseSchema } from '../../src/schema/load.ts';
import type { Schema } from '../../src/schema/model/model.ts';
import { raw } from '../../src/sql.ts';
import { type Ask, ReplayDisagreement } from '../../src/workbench/decided-by-sql.ts';
import { compareSchemas, type SchemaDifference } from '../../src/workbench/diff/compare-schemas.ts';
import { diffDocument, diffLines, diffMarkdown, failsOn } from '../../src/workbench/diff/diff-document.ts';
import { smallestWorld } from '../../src/workbench/smallest-world.ts';
import { readTests } from '../../src/workbench/test/read-tests.ts';
import { runTests } from '../../src/workbench/test/run-tests.ts';
import { openEmbeddedDatabase } from '../support/embedded/embedded.ts';

const MEMBERS = 'any(@record.team.memberships as m, m.user = @request.auth.id)';
const VIEW = '@record.status = "published" or @record.owner = @request.auth.id';

const schemaText = (changes: Readonly<Record<string, string>> = {}): string => {
  const given = {
    view: VIEW,
    update: '@record.owner = @request.auth.id',
    remove: 'admin',
    salary: 'admin',
    name: 'documents',
    more: '',
    ...changes,
  };
  return `
roles:
  admin: { includes: [editor] }
  editor: {}
${given.more}
collections:
  teams:
    fields: { name: { type: string, required: true, max: 80, unique: true } }
    relations: { memberships: { kind: has_many, collection: memberships, via: team } }
  memberships:
    relations:
      team: { kind: belongs_to, collection: teams, required: true }
      user: { kind: belongs_to, collection: users, required: true }
  ${given.name}:
    ${given.name === 'documents' ? '' : 'was: documents'}
    fields:
      title: { type: string, required: true, max: 20, search: true }
      status: { type: string, required: true, enum: [draft, published], default: draft }
      salary: { type: int, access: { read: [{ roles: [${given.salary}] }] } }
    relations:
      owner: { kind: belongs_to, collection: users, required: true, default: '@request.auth.id' }
      team: { kind: belongs_to, collection: teams }
      tags: { kind: many_to_many, collection: teams }
    access:
      view: '${given.view}'
      create: '@record.owner = @request.auth.id'
      update: '${given.update}'
      delete: [{ roles: [${given.remove}] }]
`;
};
const schemaOf = (changes?: Readonly<Record<string, string>>): Schema => {
  const { schema, issues } = parseSchema(schemaText(changes));
  if (schema === undefined) throw new Error(JSON.stringify(issues));
  return schema;
};

type Json = ReturnType<JSON['parse']>;

describe('a difference of schemas', () => {
  let db: Database;
  beforeAll(async () => {
    db = await openEmbeddedDatabase();
  });
  afterAll(() => db.close());

  const compared = (changes: Readonly<Record<string, string>>): Promise<SchemaDifference> =>
    compareSchemas(schemaOf(), schemaOf(changes), {
      budget: 10_000,
      ask: async (statement) => (await db.rows(statement)) as never,
    });
  const verdicts = ({ changes }: SchemaDifference): Readonly<Record<string, string>> =>
    Object.fromEntries(
      changes
        .filter(({ verdict }) => verdict !== 'same')
        .map(({ collection, action, verdict }) => [`${collection} ${action}`, verdict]),
    );

  it('finds none between equal schemas', async () => {
    const difference = await compared({});
    expect(verdicts(difference)).toEqual({});
    expect(difference.changes.length).toBeGreaterThan(20);
    expect(diffLines(difference)).toEqual(['no rule allows more or less than before']);
    expect(failsOn(difference, 'any')).toBe(false);
  });

  it('names each rule that changes, with its callers and an example', async () => {
    const difference = await compared({
      view: `${MEMBERS} or @record.title matches "é" or @record.tags contains "01900000-0000-7000-8000-000000000000"`,
      update: '@record.owner = @request.auth.id and changed_only(@record.title)',
      remove: 'editor',
      salary: 'editor',
      more: 'register: { roles: [editor] }',
    });
    expect(verdicts(difference)).toEqual({
      'documents list': 'both',
      'documents read': 'both',
      'documents update': 'narrower',
      'documents delete': 'wider',
      'documents read salary': 'wider',
    });
    expect(difference.settings).toEqual(['registration gives `editor`']);
    expect(diffLines(difference).at(-1)).toMatch(/^the schema admits no guests; /);
    const removal = difference.changes.find(
      ({ action, collection }) => action === 'delete' && collection === 'documents',
    );
    expect(removal!.callers).toEqual({
      guest: { gains: false, loses: false },
      signed_in: { gains: false, loses: false },
      admin: { gains: false, loses: false },
      editor: { gains: true, loses: false },
    });
    expect(removal!.wider!.world.request.auth).toMatchObject({ roles: ['editor'] });
    expect([failsOn(difference, 'wider'), failsOn(difference, 'narrower')]).toEqual([true, true]);
    const document = JSON.stringify(diffDocument(difference, [schemaOf(), schemaOf()]));
    expect(JSON.parse(document)).toMatchObject({ settings: ['registration gives `editor`'] });
    expect(diffMarkdown(difference)).toContain('| `documents` delete | **wider** | editor |  |');
    expect(diffMarkdown(difference)).toContain('|\n\nthe schema admits no guests; ');
  });

  it('gives each example as a test that passes on the new schema and fails on the old one', async () => {
    const changes = {
      view: MEMBERS,
      update: '@record.owner = @request.auth.id and changed_only(@record.title)',
      remove: 'editor',
      salary: 'editor',
    };
    const [old, changed] = [schemaOf(), schemaOf(changes)];
    const { changes: rules } = diffDocument(await compared(changes), [old, changed]) as Json;
    // The comparison has left a schema of its own.
    await db.run(raw('SET search_path = public'));
    const ofRecords = rules.filter(({ action }: Json) => !action.includes(' '));
    const examples = ofRecords.flatMap(({ wider, narrower }: Json) => [wider ?? [], narrower ?? []].flat());
    expect(examples.length).toBeGreaterThan(4);
    for (const [schema, isPassed] of [
      [changed, true],
      [old, false],
    ] as const) {
      const tools = await testToolsOf(db, schema);
      for (const { test } of examples) {
        const { results } = await runTests(readTests(test, 'a.policy.yaml', schema).tests!, tools);
        expect([test, results.map(({ isOk, isDisagreement }) => [isOk, isDisagreement])]).toEqual([
          test,
          [[isPassed, false]],
        ]);
      }
    }
  });

  it('compares the checks and transitions of writes, for the writes that the rules allow', async () => {
    const jobs = (changes: Readonly<Record<string, string>> = {}): Schema => {
      const given = {
        transitions: 'new: [seen], seen: [hired]',
        update: '@record.owner = @request.auth.id',
        checks: `paid: { when: '@next.stage != "hired" or @next.pay is not null', message: nobody works for nothing }`,
        ...changes,
      };
      const { schema, issues } = parseSchema(`
roles: { boss: {} }
collections:
  jobs:
    fields:
      stage: { type: string, required: true, enum: [new, seen, hired], transitions: { ${given.transitions} } }
      pay: { type: int, min: 0, max: 9 }
    relations: { owner: { kind: belongs_to, collection: users } }
    access:
      view: true
      create: { roles: [boss], when: '@record.owner = @request.auth.id', message: bosses make jobs }
      update: '${given.update}'
    checks:
      ${given.checks}
`);
      if (schema === undefined) throw new Error(JSON.stringify(issues));
      return schema;
    };
    const differing = async (changed: Schema) => {
      const difference = await compareSchemas(jobs(), changed, {
        budget: 10_000,
        ask: async (statement) => (await db.rows(statement)) as never,
      });
      return { ...difference, document: diffDocument(difference, [jobs(), changed]) as Json };
    };
    const same = await differing(
      jobs({ checks: `wages: { when: 'not (@next.stage = "hired" and @next.pay is null)', message: other words }` }),
    );
    expect(verdicts(same)).toEqual({});
    expect(same.settings).toEqual([
      '`jobs` has the check `wages`',
      '`jobs` has the check `paid` no longer',
      '`jobs` has the message "other words"',
      '`jobs` has the message "nobody works for nothing" no longer',
    ]);

    const changed = jobs({
      transitions: 'new: [seen, hired]',
      checks: `paid: { when: '@next.stage != "hired" or (@next.pay is not null and @next.pay > 2)', message: nobody works for nothing }`,
      update: '@record.stage = "new" and @next.stage is not null',
    });
    const { document, ...difference } = await differing(changed);
    expect(verdicts(difference)).toEqual({
      'jobs update': 'both',
      'jobs create checks': 'narrower',
      'jobs update checks': 'both',
    });
    const change = (action: string) => document.changes.find((each: Json) => each.action === action);
    expect(change('create checks').callers).toMatchObject({
      guest: { gains: false, loses: false },
      signed_in: { gains: false, loses: false },
      boss: { gains: false, loses: true },
    });
    expect(change('create checks').narrower.failed_checks).toEqual(['paid']);
    expect(change('create checks').narrower.record).toMatchObject({ stage: 'hired' });
    expect(change('update checks').wider.failed_checks).toEqual(['stage transitions']);
    expect(change('update checks').wider).toMatchObject({ record: { stage: 'new' }, next: { stage: 'hired' } });
    const markdown = diffMarkdown(difference);
    expect(markdown).toContain('Rules that differ: 2 allow more, 3 allow less.');
    expect(markdown).toContain('| `jobs` create checks | narrower |  | boss |');
    // The example has only what its decision reads.
    expect(markdown).toContain(
      [
        '<details><summary><code>jobs</code> create checks: no longer allowed</summary>',
        '',
        '```',
        'caller   {"roles":["boss"]}',
        'request  {"data":{"stage":"hired","pay":0,"owner":"the caller"}}',
        'record   {"stage":"hired","pay":0,"owner":"the caller"}',
        'fails    the check `paid`',
        '```',
      ].join('\n'),
    );

    await db.run(raw('SET search_path = public'));
    for (const [schema, isPassed] of [
      [changed, true],
      [jobs(), false],
    ] as const) {
      const tools = await testToolsOf(db, schema);
      for (const { test } of document.changes.flatMap(({ wider, narrower }: Json) =>
        [wider ?? [], narrower ?? []].flat(),
      )) {
        const { results } = await runTests(readTests(test, 'a.policy.yaml', schema).tests!, tools);
        expect([test, results.map(({ isOk, isDisagreement }) => [isOk, isDisagreement])]).toEqual([
          test,
          [[isPassed, false]],
        ]);
      }
    }
  });

  it('compares rules over references to records that are gone', async () => {
    const ofOwner = (list: string): Schema =>
      parseSchema(`
collections:
  customers: { managed: false, id: { type: int }, timestamps: none }
  orders:
    managed: false
    id: { type: int }
    timestamps: none
    relations: { customer: { kind: belongs_to, collection: customers } }
    access: { list: '${list}' }
`).schema!;
    const [present, there] = ['@record.customer is not null', '@record.customer.id is not null'].map(ofOwner);
    const ask: Ask = async (statement) => (await db.rows(statement)) as never;
    const difference = await compareSchemas(there!, present!, { budget: 10_000, ask });
    expect(verdicts(difference)).toEqual({ 'orders list': 'wider' });
    expect(difference.changes.find(({ wider }) => wider !== undefined)!.wider!.world.rows.get('customers')).toEqual([]);
  });

  it('compares the rules for `restore`, over deleted records', async () => {
    const notes = (restore: string, name = 'notes'): Schema => {
      const { schema, issues } = parseSchema(`
roles: { keeper: {} }
guests: true
collections:
  ${name}:
    ${name === 'notes' ? '' : 'was: notes'}
    soft_delete: ${restore !== ''}
    fields: { title: { type: string, required: true } }
    relations:
      owner: { kind: belongs_to, collection: users }
      tags: { kind: many_to_many, collection: ${name} }
    access: { view: true${restore === '' ? '' : `, restore: ${restore}`} }
`);
      if (schema === undefined) throw new Error(JSON.stringify(issues));
      return schema;
    };
    const differing = async (old: Schema, changed: Schema) => {
      const difference = await compareSchemas(old, changed, {
        budget: 10_000,
        ask: async (statement) => (await db.rows(statement)) as never,
      });
      const document = diffDocument(difference, [old, changed]) as Json;
      return { difference, change: document.changes.find(({ action }: Json) => action === 'restore') };
    };
    const keepers = notes('[{ roles: [keeper] }]');
    const own = `'@record.owner = @request.auth.id and @record.deleted_at > @now - 30d'`;
    const opened = await differing(keepers, notes('true'));
    expect(verdicts(opened.difference)).toEqual({ 'notes restore': 'wider' });
    expect(failsOn(opened.difference, 'wider')).toBe(true);
    expect(opened.change.callers.guest).toEqual({ gains: true, loses: false });
    for (const [old, changed, verdict] of [
      [keepers, notes(own), 'both'],
      [notes(own), notes(own, 'papers'), 'same'],
      [notes(''), notes(own), 'wider'],
      [notes(own), notes(''), 'narrower'],
      [notes(''), notes(''), undefined],
    ] as const) {
      const { change } = await differing(old, changed);
      expect(change?.verdict).toBe(verdict);
    }
    const { change } = await differing(keepers, notes(own));
    await db.run(raw('SET search_path = public'));
    for (const [schema, isPassed] of [
      [notes(own), true],
      [keepers, false],
    ] as const) {
      const tools = await testToolsOf(db, schema);
      for (const { test } of [change.wider, change.narrower]) {
        const { results } = await runTests(readTests(test, 'a.policy.yaml', schema).tests!, tools);
        expect([test, results.map(({ isOk }) => isOk)]).toEqual([test, [isPassed]]);
      }
    }
  });

  it('gives no test of a write that refers to a record which its caller may not read', async () => {
    const parsed = (create: string, view: string) =>
      parseSchema(`
roles: { editor: {} }
collections:
  users: { access: { view: ${view} } }
  notes:
    relations: { owner: { kind: belongs_to, collection: users, required: true } }
    access: { create: [{ roles: [editor]${create} }] }
`).schema!;
    for (const [view, isTold] of [
      ['[]', false],
      ['true', true],
    ] as const) {
      const [old, changed] = [parsed('', view), parsed(`, when: '@record.owner = @request.auth.id'`, view)];
      const difference = await compareSchemas(old, changed, {
        budget: 10_000,
        ask: async (statement) => (await db.rows(statement)) as never,
      });
      const { changes } = diffDocument(difference, [old, changed]) as Json;
      const { narrower } = changes.find(({ verdict }: Json) => verdict === 'narrower');
      expect([view, typeof narrower.test]).toEqual([view, isTold ? 'string' : 'object']);
      await db.run(raw('SET search_path = public'));
      const told = isTold ? [narrower.test] : [];
      for (const test of told) {
        const { results } = await runTests(
          readTests(test, 'a.policy.yaml', changed).tests!,
          await testToolsOf(db, changed),
        );
        expect(results.map(({ isOk }) => isOk)).toEqual([true]);
      }
    }
  });

  it('says nothing of a rule that opens what a check still stops', async () => {
    const parsed = (update: string) =>
      parseSchema(`
collections:
  jobs:
    fields: { pay: { type: int, required: true, min: 0 } }
    access: { update: '${update}' }
    checks: { modest: { when: '@next.pay < 5', message: too much } }
`).schema!;
    const difference = await compareSchemas(parsed('@next.pay < 4'), parsed('@next.pay < 4 or @next.pay > 7'), {
      budget: 10_000,
      ask: async (statement) => (await db.rows(statement)) as never,
    });
    expect(verdicts(difference)).toEqual({});
  });

  it('rejects an example that SQL decides in another way, and exits with 3', async () => {
    const asked = compareSchemas(schemaOf(), schemaOf({ remove: 'editor' }), { budget: 10_000, ask: async () => [] });
    const error = await asked.catch((reason: unknown) => reason);
    if (!(error instanceof ReplayDisagreement)) throw error;
    let stderr = '';
    const io = {
      stdout: process.stdout,
      stderr: { write: (text: string) => (stderr += text) },
      stdin: process.stdin,
      env: {},
      cwd: '.',
    };
    expect(reportDisagreement('diff', error, io)).toBe(3);
    expect(stderr).toMatch(
      /^bylaw diff: SQL and the predicate decide delete on `documents` differently: a defect of bylaw/,
    );
    expect(stderr).toContain('caller   {');
  });

  it('gives required json and lists a value', async () => {
    const parsed = (read: string) =>
      parseSchema(`
collections:
  notes:
    fields: { meta: { type: json, required: true }, words: { type: list, of: string, required: true } }
    access: { read: '${read}', delete: true }
`).schema!;
    const changed = parsed('@request.query.key = "x" or @request.query.key = "y"');
    const old = parsed('@request.query.key = "x"');
    const difference = await compareSchemas(old, changed, {
      budget: 10_000,
      ask: async (statement) => (await db.rows(statement)) as never,
    });
    expect(verdicts(difference)).toEqual({ 'notes read': 'wider' });
    const { changes } = diffDocument(difference, [old, changed]) as Json;
    const { record, test } = changes.find(({ verdict }: Json) => verdict === 'wider').wider;
    expect(record).toMatchObject({ meta: {}, words: [] });
    expect(test).toContain('"meta":{},"words":[]');
  });

  it('takes out of an example what its decision does not need', () => {
    const catalog = schemaOf();
    const rule = compilePolicy('@record.owner = @request.auth.id', {
      catalog,
      collection: 'documents',
      action: 'list',
    });
    const [adaId, benId, teamId, recordId] = [1, 2, 3, 4].map((i) => `01900000-0000-7000-8000-00000000000${i}`);
    const ada = { id: adaId, email: 'ada@example.com' };
    const team = { id: teamId, name: 'red' };
    const record = { id: recordId, title: 'a', status: 'draft', salary: 3, owner: adaId, team: teamId };
    const world: World = {
      action: 'list',
      collection: 'documents',
      isGuest: false,
      request: { auth: { ...ada, roles: ['admin', 'editor'] }, query: { q: 'x' }, now: '2026-03-01T12:00:00.000000Z' },
      record,
      rows: new Map([
        ['users', [ada, { id: benId, email: 'ben@example.com' }]],
        ['teams', [team]],
        ['documents', [record]],
      ]),
      links: [{ collection: 'documents', relation: 'tags', owner: recordId!, element: teamId! }],
    };
    const smallest = smallestWorld(world, { allowedBy: [rule], deniedBy: [] }, { catalog });
    const left = { ...record, salary: null, team: null };
    expect(smallest).toEqual({
      ...world,
      request: { ...world.request, auth: { ...ada, roles: [] }, query: {} },
      record: left,
      rows: new Map<string, unknown>([
        ['users', [ada]],
        ['teams', []],
        ['documents', [left]],
      ]),
      links: [],
    });
  });

  it.each(['a"b', 'a\\b'])('keeps the record %s, to which another one refers', (id) => {
    const catalog = schemaOf();
    const rule = compilePolicy('@record.owner is not null', { catalog, collection: 'documents', action: 'list' });
    const [ada, record] = [{ id }, { id: 'paper', owner: id }];
    const world: World = {
      action: 'list',
      collection: 'documents',
      isGuest: true,
      request: { auth: null, query: {}, now: '2026-03-01T12:00:00.000000Z' },
      record,
      rows: new Map([
        ['users', [ada]],
        ['documents', [record]],
      ]),
      links: [],
    };
    expect(smallestWorld(world, { allowedBy: [rule], deniedBy: [] }, { catalog }).rows.get('users')).toEqual([ada]);
  });

  const parsedDocs = ({ field = 'd: date', head = '', access = 'read: true' }) => {
    const { schema, issues } = parseSchema(
      `${head}\ncollections: { docs: { fields: { ${field} }, access: { ${access} } } }`,
    );
    if (schema === undefined) throw new Error(JSON.stringify(issues));
    return schema;
  };
  const differenceOf = (old: Schema, changed: Schema) =>
    compareSchemas(old, changed, { budget: 10_000, ask: async (statement) => (await db.rows(statement)) as never });

  const enumOf = (value: string) => `st: { type: string, required: true, enum: [draft, published], default: ${value} }`;
  const OMITTED = `create: '@request.data.st is null and @record.st = "published"'`;
  const DAY = `read: '@record.d = @today'`;
  const PART = `read: '@record.j.k > 1'`;
  it.each([
    [
      'the type of a part of json',
      { field: 'j: { type: json, paths: { k: int } }', access: PART },
      { field: 'j: { type: json, paths: { k: float } }', access: PART },
      { 'docs read': 'unknown' },
    ],
    [
      'a renamed field with a part',
      { field: 'i: { type: json, paths: { k: int } }', access: PART.replace('j.k', 'i.k') },
      { field: 'j: { type: json, was: i, paths: { k: int } }', access: PART },
      {},
    ],
    [
      'the default of a member that the body leaves out',
      { field: enumOf('draft'), access: OMITTED },
      { field: enumOf('published'), access: OMITTED },
      { 'docs create': 'unknown' },
    ],
    [
      'the time zone of `@today`',
      { access: DAY },
      { access: DAY, head: 'timezone: Asia/Tokyo' },
      { 'docs read': 'unknown' },
    ],
    ['the time zone of no rule', {}, { head: 'timezone: Asia/Tokyo' }, {}],
    [
      'the scale of a decimal',
      { field: 'd: { type: decimal, precision: 6, scale: 1 }', access: `read: '@record.d > 1'` },
      { field: 'd: { type: decimal, precision: 6, scale: 0 }', access: `read: '@record.d >= 2'` },
      { 'docs read': 'narrower' },
    ],
  ] as const)('does not take rules for the same that differ by %s', async (_, old, changed, expected) => {
    expect(verdicts(await differenceOf(parsedDocs(old), parsedDocs(changed)))).toEqual(expected);
  });

  it('a field with rules of its own that only one schema has is added or removed', async () => {
    const [without, guarded] = ['t: string', 't: string, pay: { type: int, access: { read: false, write: true } }'].map(
      (field) => parsedDocs({ field }),
    );
    expect(verdicts(await differenceOf(without!, guarded!))).toEqual({
      'docs read pay': 'added',
      'docs write pay': 'added',
    });
    expect(verdicts(await differenceOf(guarded!, without!))).toEqual({
      'docs read pay': 'removed',
      'docs write pay': 'removed',
    });
    const renamed = parsedDocs({
      field: 't: string, sum: { type: int, was: pay, access: { read: true, write: true } }',
    });
    expect(verdicts(await differenceOf(guarded!, renamed))).toEqual({ 'docs read sum': 'wider' });
  });

  it('examples have lists, json, points and bytes as records have them', async () => {
    const field = 'l: { type: list, of: string }, j: { type: json, paths: { k: int } }, p: point, b: bytes';
    const every =
      '@record.l contains "a" and @record.j.k = 5 and within(@record.p, 52.1, 4.3, 5km) and @record.b = "aGk="';
    const [old, changed] = ['false', `'${every}'`].map((rule) =>
      parsedDocs({ field, access: `read: ${rule}, create: ${rule}` }),
    );
    const difference = await differenceOf(old!, changed!);
    const { changes } = diffDocument(difference, [old!, changed!]) as Json;
    const value = { l: ['a'], j: { k: 5 }, p: { lat: 52.1, lng: 4.3 }, b: 'aGk=' };
    for (const action of ['read', 'create']) {
      const { wider } = changes.find((change: Json) => change.action === action && change.collection === 'docs');
      expect(wider.record).toMatchObject(value);
      if (action === 'create') expect(wider.request.data).toEqual(value);
      expect(wider.test).toContain('"p":{"lat":52.1,"lng":4.3}');
    }
    expect(diffLines(difference).join('\n')).toContain('"l":["a"],"j":{"k":5},"p":{"lat":52.1,"lng":4.3},"b":"aGk="');
  });

  it('lists changes of registration and of the time zone', async () => {
    const closed = parsedDocs({ head: 'register: { open: false }' });
    const opened = await differenceOf(closed, parsedDocs({ head: 'timezone: Asia/Tokyo' }));
    expect(opened.settings).toEqual(['registration is open', 'the time zone is Asia/Tokyo']);
    expect(failsOn(opened, 'any')).toBe(true);
  });

  it('follows a collection that was renamed', async () => {
    expect(verdicts(await compared({ name: 'papers', remove: 'editor' }))).toEqual({ 'papers delete': 'wider' });
  });

  it('keeps Markdown within 60 KB', async () => {
    const difference = await compared({ remove: 'editor' });
    const change = difference.changes.find(({ verdict }) => verdict === 'wider')!;
    const many = { ...difference, changes: Array.from({ length: 200 }, () => change) };
    expect(new TextEncoder().encode(diffMarkdown(many)).length).toBeLessThanOrEqual(60_000);
  });
});

describe('the command', () => {
  const run = (...argv: readonly string[]) => runIn(process.cwd(), ...argv);
  const runIn = async (cwd: string, ...argv: readonly string[]) => {
    let [stdout, stderr] = ['', ''];
    const io = {
      stdout: { write: (text: string) => (stdout += text) },
      stderr: { write: (text: string) => (stderr += text) },
      stdin: process.stdin,
      env: {},
      cwd,
    };
    return { code: await runCommand(['diff', ...argv], io), stdout, stderr };
  };

  it('rejects a schema that it cannot read, a wrong kind and a wrong budget', async () => {
    expect(await run('no.yaml', 'bylaw.yaml')).toMatchObject({ code: 2, stderr: expect.stringContaining('no.yaml') });
    expect(await run('git:HEAD', 'git:HEAD')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('names no file'),
    });
    expect(await run('bylaw.yaml', 'bylaw.yaml', '--fail-on', 'all')).toMatchObject({ code: 2 });
    expect(await run('bylaw.yaml', 'bylaw.yaml', '--budget', '0')).toMatchObject({ code: 2 });
  });

  it('compares with the file of a revision, and with another file of it', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'bylaw-diff-'));
    try {
      const git = (...args: readonly string[]) =>
        execFileSync('git', ['-c', 'user.name=x', '-c', 'user.email=x@example.org', ...args], {
          cwd: folder,
          stdio: 'ignore',
        });
      writeFileSync(join(folder, 'bylaw.yaml'), schemaText());
      git('init', '-q');
      git('add', '.');
      git('commit', '-qm', 'first');
      writeFileSync(join(folder, 'bylaw.yaml'), schemaText({ remove: 'editor' }));
      const since = await runIn(folder, 'git:HEAD', 'bylaw.yaml', '--fail-on', 'wider');
      expect([since.code, since.stdout]).toEqual([1, expect.stringContaining('documents: delete: wider')]);
      const narrower = await runIn(folder, 'bylaw.yaml', 'git:HEAD:bylaw.yaml', '--fail-on', 'wider');
      expect([narrower.code, narrower.stdout]).toEqual([0, expect.stringContaining('documents: delete: narrower')]);
      for (const wrong of ['git:nothing', 'git:HEAD:other.yaml', 'git:--output=x'])
        expect(await runIn(folder, wrong, 'bylaw.yaml')).toMatchObject({ code: 2 });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it('finds nothing between a schema and itself', async () => {
    const { code, stdout } = await run('bylaw.yaml', 'bylaw.yaml', '--json', '--fail-on', 'any');
    expect(code).toBe(0);
    const { changes } = JSON.parse(stdout) as { changes: readonly { verdict: string }[] };
    expect(changes.length).toBeGreaterThan(10);
    expect(new Set(changes.map(({ verdict }) => verdict))).toEqual(new Set(['same']));
  });
});
