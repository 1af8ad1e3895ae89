/** `bylaw diff` on two schemas: verdicts, callers, examples that both the predicate and SQL decide, and its documents. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCommand } from '../../src/cli/index.ts';
import type { Database } from '../../src/database/contract.ts';
import { openDatabase } from '../../src/database/open-database.ts';
import { parseSchema } from '../../src/schema/load.ts';
import type { Schema } from '../../src/schema/model/model.ts';
import { compareSchemas, type SchemaDifference } from '../../src/workbench/diff/compare-schemas.ts';
import { diffDocument, diffLines, diffMarkdown, failsOn } from '../../src/workbench/diff/diff-document.ts';

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

describe('a difference of schemas', () => {
  let db: Database;
  beforeAll(async () => {
    db = await openDatabase({});
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
    const removal = difference.changes.find(
      ({ action, collection }) => action === 'delete' && collection === 'documents',
    );
    expect(removal!.callers).toEqual({
      guest: { gains: false, loses: false },
      signed_in: { gains: false, loses: false },
      admin: { gains: false, loses: false },
      editor: { gains: true, loses: false },
    });
    expect(removal!.wider!.request.auth).toMatchObject({ roles: ['editor'] });
    expect([failsOn(difference, 'wider'), failsOn(difference, 'narrower')]).toEqual([true, true]);
    const document = JSON.stringify(diffDocument(difference));
    expect(JSON.parse(document)).toMatchObject({ settings: ['registration gives `editor`'] });
    expect(diffMarkdown(difference)).toContain('| documents: delete | wider | can newly: editor |');
  });

  it('follows a collection that was renamed', async () => {
    expect(verdicts(await compared({ name: 'papers', remove: 'editor' }))).toEqual({ 'papers delete': 'wider' });
  });

  it('keeps Markdown within 60 KB', async () => {
    const difference = await compared({ remove: 'editor' });
    const change = difference.changes.find(({ verdict }) => verdict === 'wider')!;
    const many = { settings: [], changes: Array.from({ length: 200 }, () => change) };
    expect(new TextEncoder().encode(diffMarkdown(many)).length).toBeLessThanOrEqual(60_000);
  });
});

describe('the command', () => {
  const run = async (...argv: readonly string[]) => {
    let [stdout, stderr] = ['', ''];
    const io = {
      stdout: { write: (text: string) => (stdout += text) },
      stderr: { write: (text: string) => (stderr += text) },
      stdin: process.stdin,
      env: {},
      cwd: process.cwd(),
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

  it('finds nothing between a schema and itself', async () => {
    const { code, stdout } = await run('bylaw.yaml', 'bylaw.yaml', '--json', '--fail-on', 'any');
    expect(code).toBe(0);
    const { changes } = JSON.parse(stdout) as { changes: readonly { verdict: string }[] };
    expect(changes.length).toBeGreaterThan(10);
    expect(new Set(changes.map(({ verdict }) => verdict))).toEqual(new Set(['same']));
  });
});
