/** The output of `bylaw explain` for a record, a write and its statement, as text and as JSON. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { runCommand } from '../../src/cli/index.ts';
import { type LentWorkspace, lentWorkspace } from '../../src/cli/support/workspace.ts';
import type { Database } from '../../src/database/contract.ts';
import { openDatabase } from '../../src/database/open-database.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { parseSchema } from '../../src/schema/load.ts';
import { systemTables } from '../../src/service/system-tables.ts';
import { raw } from '../../src/sql.ts';
import { openEmbeddedDatabase } from '../support/embedded/embedded.ts';
import { isolatedUrl } from '../support/postgres.ts';
import { insertRecord } from '../support/system-records.ts';

const SERVER = inject('postgresUrl');
const SCHEMA = join(import.meta.dirname, 'explain.yaml');
const schema = parseSchema(readFileSync(SCHEMA, 'utf8')).schema!;
const EMAIL = 'ada@example.com';

const DATABASES: readonly (readonly [name: string, open: (() => Promise<Database>) | undefined])[] = [
  ['embedded', openEmbeddedDatabase],
  ['PostgreSQL', SERVER === '' ? undefined : async () => openDatabase({ url: await isolatedUrl(SERVER) })],
];

describe.each(DATABASES)('explain on %s', (_name, open) => {
  let db: Database;
  let own: string;
  let foreign: string;
  let lone: string;
  let ada: string;
  let ben: string;
  let members: readonly string[];
  let fresh: string;
  let old: string;

  beforeAll(async () => {
    if (open === undefined) return;
    db = await open();
    await applyMigration(db, schema, { systemTables });
    const insert = (collection: string, values: object) => insertRecord({ db, schema }, collection, { ...values });
    ada = await insert('users', { email: EMAIL, roles: ['member'] });
    ben = await insert('users', { email: 'ben@example.com', roles: [] });
    const team = await insert('teams', { name: 'core' });
    members = [
      await insert('memberships', { team, user: ben, level: 1 }),
      await insert('memberships', { team, user: ada, level: 2 }),
      await insert('memberships', { team, user: ben, level: 3 }),
    ];
    fresh = await insert('tags', { label: 'new' });
    old = await insert('tags', { label: 'old' });
    own = await insert('documents', { title: 'own', owner: ada, team, score: 1 });
    foreign = await insert('documents', { title: 'foreign', owner: ben, team });
    lone = await insert('documents', { title: 'lone', owner: ben });
  });
  afterAll(() => db?.close());

  async function explained(...args: readonly string[]) {
    const printed = { stdout: '', stderr: '' };
    const io = {
      stdout: { write: (text: string) => (printed.stdout += text) },
      stderr: { write: (text: string) => (printed.stderr += text) },
      stdin: process.stdin,
      env: {},
      cwd: import.meta.dirname,
    };
    const lent = { db, config: { schema: SCHEMA } } as unknown as LentWorkspace;
    const code = await lentWorkspace.run(lent, () => runCommand(['explain', ...args, '--schema', SCHEMA], io));
    return { code, ...printed, lines: printed.stdout.split('\n') };
  }
  const documentOf = async (...args: readonly string[]) => {
    const { stdout, stderr } = await explained(...args, '--as', EMAIL, '--json');
    expect(stderr).toBe('');
    return JSON.parse(stdout).data;
  };
  const skip = open === undefined;

  test.skipIf(skip)('the verdict comes first', async () => {
    const first = async (...args: readonly string[]) => (await explained(...args)).lines[0];
    expect(await first('documents', 'list')).toBe('denied: no caller is signed in; name one with --as EMAIL (401)');
    expect(await first('documents', 'list', '--as', EMAIL)).toBe(
      'it depends on the record (200 with the permitted records)',
    );
    expect(await first('teams', 'list', '--as', EMAIL)).toBe('allowed for every record (200)');
    expect(await first('teams', 'list')).toBe('denied: no caller is signed in; name one with --as EMAIL (401)');
    expect(await first('teams', 'delete', '--as', EMAIL)).toBe('denied: the action has no rule (403 for every record)');
    expect(await first('documents', 'list', '--as', EMAIL, '--record', own)).toBe(
      'allowed by rule 1 (200 with the record)',
    );
    expect(await first('documents', 'list', '--as', EMAIL, '--record', foreign)).toBe(
      'denied by the only rule (200 without the record)',
    );
    expect(await first('documents', 'update', '--as', EMAIL, '--record', foreign)).toBe(
      'denied: no rule allows it (403)',
    );
    const secret = JSON.stringify({ secret: 'x', score: 5 });
    expect(await first('documents', 'update', '--as', EMAIL, '--record', own, '--set', secret)).toBe(
      'denied: rule 1 allows the record, but not to set secret (403)',
    );
    const enough = JSON.stringify({ secret: 'x', score: 6 });
    expect(await first('documents', 'update', '--as', EMAIL, '--record', own, '--set', enough)).toBe(
      'allowed by rule 1 (200)',
    );
  });

  test.skipIf(skip)('an update is explained for the stored and for the resulting record', async () => {
    const given = await explained(
      ...['documents', 'update', '--as', EMAIL, '--record', own, '--set', JSON.stringify({ owner: ben })],
    );
    expect(given.lines[0]).toBe('denied: no rule allows it (403)');
    expect(given.lines).toContain('  before the write: allowed because `@record.owner = @request.auth.id` is true');
    expect(given.lines).toContain('  after the write: denied because `@record.owner = @request.auth.id` is false');
    const published = JSON.stringify({ status: 'published' });
    const taken = await documentOf('documents', 'update', '--record', foreign, '--set', published);
    expect([taken.allowed, taken.decided_by, taken.rules[1].value]).toEqual([true, 1, 'true']);
    const unchanged = await documentOf('documents', 'update', '--record', foreign);
    expect([unchanged.allowed, unchanged.decided_by, unchanged.rules[1].value]).toEqual([false, null, 'false']);
  });

  test.skipIf(skip)('the printed statement of an update decides and writes', async () => {
    const set = JSON.stringify({ status: 'published', secret: 'x', tags: { add: [fresh] } });
    const { sql, params, plan } = await documentOf('documents', 'update', '--record', own, '--set', set);
    expect(sql).toMatch(/^UPDATE "documents" AS "t"\n +SET .*"status" = \$/);
    expect(sql).toMatch(/\) AS "n"\n +WHERE \(.*"t"\."owner_id" = .*"n"\."status" = /);
    expect(sql).toMatch(/"t"\."score" > 5::int8\)\)\n *RETURNING 1$/);
    expect(params).toEqual(expect.arrayContaining([own, 'published', 'x', ada]));
    expect(plan[0]).toMatch(/^Update on documents/);
    const [stored] = await db.rows(raw(`SELECT status, secret FROM documents WHERE id = '${own}'`));
    expect(stored).toEqual(['draft', null]);
    const read = await documentOf('documents', 'delete', '--record', own);
    expect([read.sql, read.params.at(-1)]).toEqual([expect.stringMatching(/AND "t"\."id" = \$\d+::uuid$/), own]);
  });

  test.skipIf(skip)('the output names the first sufficient element', async () => {
    const { stdout } = await explained('documents', 'read', '--as', EMAIL, '--record', own);
    const found = /allowed because `m\.level > 1` is true for memberships (\S+)/.exec(stdout);
    expect(members.slice(1)).toContain(found?.[1]);
  });

  test.skipIf(skip)('a create is explained with the data of --set, its defaults and its members', async () => {
    const first = async (data: object) =>
      (await explained('documents', 'create', '--as', EMAIL, '--set', JSON.stringify(data))).lines[0];
    expect(await first({ title: 'yes', tags: { add: [fresh] } })).toBe('allowed by rule 1 (201)');
    expect(await first({ title: 'no', tags: { add: [fresh] } })).toBe('denied by the only rule (403)');
    expect(await first({ title: 'yes', tags: { add: [old] } })).toBe('denied by the only rule (403)');
    expect(await first({ title: 'yes', tags: { add: [fresh] }, owner: ben })).toBe('denied by the only rule (403)');
  });

  test.skipIf(skip)('a create is explained with the statement that decides and writes', async () => {
    const set = JSON.stringify({ title: 'yes', tags: { add: [fresh] } });
    const { sql, params, plan } = await documentOf('documents', 'create', '--set', set);
    expect(sql).toMatch(/^INSERT INTO "documents" AS "t" \(/);
    expect(sql).toMatch(/"n"\."owner_id" = [\s\S]*RETURNING 1$/);
    expect(params).toEqual(expect.arrayContaining(['yes', ada, [fresh]]));
    expect(plan[0]).toMatch(/^Insert on documents/);
    const without = await documentOf('remarks', 'create');
    expect([without.allowed, without.sql.startsWith('INSERT INTO')]).toEqual([null, true]);
    expect(await db.rows(raw(`SELECT title FROM documents WHERE title = 'yes'`))).toEqual([]);
  });

  test.skipIf(skip)('a create is explained without data', async () => {
    const { lines, stderr, code } = await explained('documents', 'create', '--record', '--as', EMAIL);
    expect([code, stderr]).toEqual([0, '']);
    expect(lines[0]).toBe('denied by the only rule (403 with valid data, 422 for these)');
    expect(lines).toContainEqual(expect.stringMatching(/^not in the data: \/data\/title: /));
    expect(lines).toContainEqual(expect.stringMatching(/true {4}@record\.owner = @request\.auth\.id$/));
    const other = await explained('documents', 'read', '--as', EMAIL, '--record');
    expect([other.code, other.stderr]).toEqual([
      2,
      'bylaw explain: --record: expected the id of a record; only a create has none\n',
    ]);
  });

  test.skipIf(skip)('a status says why it is 404', async () => {
    const lonely = await explained('documents', 'read', '--record', lone, '--as', EMAIL);
    expect(lonely.lines[0]).toBe(
      'denied by the only rule (404: the caller may not read the record, so it looks as if there were none)',
    );
  });

  test.skipIf(skip)('rules of fields are decided for the record', async () => {
    const { lines } = await explained('documents', 'read', '--as', EMAIL, '--record', own);
    const at = lines.indexOf('fields with rules of their own:');
    expect(lines.slice(at + 1, at + 5)).toEqual([
      '  note: left out  (@record.score > 5)',
      '    denied because `@record.score > 5` is false',
      '  price: shown  (@record.owner = @request.auth.id)',
      '    allowed because `@record.owner = @request.auth.id` is true',
    ]);
    const { members: found } = await documentOf('documents', 'read', '--record', own);
    expect(found[0]).toEqual({
      name: 'note',
      when: '@record.score > 5',
      allowed: false,
      reasons: ['denied because `@record.score > 5` is false'],
    });
  });

  test.skipIf(skip)('only the warnings of the action are printed', async () => {
    expect((await explained('documents', 'list', '--as', EMAIL)).stderr).toBe('');
    const { stderr } = await explained('remarks', 'update', '--as', EMAIL);
    expect(stderr.match(/warning\[\w+\]/g)).toEqual(['warning[next_alone]']);
  });

  test.skipIf(skip)('--json has every leaf with its place and the values of its sides', async () => {
    const published = JSON.stringify({ status: 'published' });
    const { rules, residual } = await documentOf('documents', 'update', '--record', foreign, '--set', published);
    expect(residual).toBe('depends');
    const leaf = { absent: null, element: null };
    const text = '@record.owner = @request.auth.id';
    const owned = { ...leaf, text, offset: 0, length: text.length, value: 'false', left: ben, right: ada };
    expect(rules[0]).toEqual({
      roles: [],
      when: text,
      residual: 'depends',
      value: 'false',
      withheld: false,
      reasons: [`denied because \`${text}\` is false`, `denied because \`${text}\` is false`],
      leaves: [
        { ...owned, of: 'stored' },
        { ...owned, of: 'written' },
      ],
    });
    const [next, before, ...elements] = rules[1].leaves;
    expect([next.offset, next.left, next.right, next.of]).toEqual([0, 'published', 'published', null]);
    expect([before.offset, before.left, before.value]).toEqual([31, 'draft', 'true']);
    const byElement = new Map(elements.map((each: { element: string }) => [each.element, each]));
    expect(byElement.get(`memberships ${members[1]}`)).toEqual({
      text: 'm.user = @request.auth.id',
      offset: null,
      length: 25,
      value: 'true',
      left: ada,
      right: ada,
      absent: null,
      element: `memberships ${members[1]}`,
      of: null,
    });
    const none = await documentOf('documents', 'list');
    expect([none.allowed, none.decided_by, none.rules[0].value, none.rules[0].leaves]).toEqual([null, null, null, []]);
  });

  test.skipIf(skip)('--json has the status of the HTTP response', async () => {
    const status = async (...args: readonly string[]) => (await documentOf(...args)).status;
    expect(await status('documents', 'list')).toBe(200);
    expect(await status('documents', 'list', '--record', foreign)).toBe(200);
    expect(await status('documents', 'read')).toBeNull();
    expect(await status('documents', 'read', '--record', own)).toBe(200);
    expect(await status('tags', 'read', '--record', fresh)).toBe(200);
    expect(await status('documents', 'update', '--record', foreign)).toBe(403);
    expect(await status('documents', 'delete', '--record', own)).toBe(204);
    expect(await status('tags', 'delete', '--record', fresh)).toBe(403);
    const title = (text: string) => ['--set', JSON.stringify({ title: text, tags: { add: [fresh] } })];
    expect(await status('documents', 'create', ...title('yes'))).toBe(201);
    expect(await status('documents', 'create', ...title('no'))).toBe(403);
    const nobody = await explained('documents', 'read', '--record', own, '--json');
    expect(JSON.parse(nobody.stdout).data.status).toBe(401);
    // Ben is in the team, but his level in the first membership is not what lets him read.
    const ofBen = await explained('documents', 'read', '--record', own, '--as', 'ben@example.com', '--json');
    expect(JSON.parse(ofBen.stdout).data.status).toBe(200);
  });

  test.skipIf(skip)("--json has the roles and the condition of a rule in the author's text", async () => {
    const rulesOf = async (...args: readonly string[]) => (await documentOf(...args)).rules;
    const [alone] = await rulesOf('tags', 'delete', '--record', fresh);
    expect([alone.roles, alone.when, alone.leaves.map(({ offset }: { offset: unknown }) => offset)]).toEqual([
      ['editor'],
      null,
      [null],
    ]);
    const [both] = await rulesOf('tags', 'update', '--record', fresh);
    expect([both.roles, both.when]).toEqual([['editor', 'member'], '@record.label = "new"']);
    const offsets = both.leaves.map((leaf: { text: string; offset: unknown }) => [leaf.text, leaf.offset]);
    expect(offsets).toContainEqual(['@record.label = "new"', 0]);
    expect(offsets).toContainEqual(['@request.auth.roles contains "member"', null]);
  });

  test.skipIf(skip)('a wrong --set is reported with the expected form', async () => {
    const message = async (...args: readonly string[]) => {
      const { code, stdout, stderr } = await explained('documents', ...args, '--as', EMAIL);
      expect([code, stdout]).toEqual([2, '']);
      return stderr.trim();
    };
    expect(await message('update', '--record', own, '--set', '[1]')).toBe(
      'bylaw explain: --set: expected a JSON object such as {"status": "draft"}',
    );
    expect(await message('list', '--set', '{}')).toBe(
      'bylaw explain: --set: only a create and an update have data, not a list',
    );
    expect(await message('update', '--set', '{}')).toBe(
      'bylaw explain: --record: an update with data needs the id of the record that it changes',
    );
    expect(await message('create', '--set', '{}', '--record', own)).toContain(
      '--record: a create with data has no stored record',
    );
    expect(await message('update', '--record', own, '--set', '{"title":"12345678901","x":1}')).toMatch(
      /--set: \/data\/title: .*\n.*--set: \/data\/x: `documents` has no field `x`/,
    );
  });
});
