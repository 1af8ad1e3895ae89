// @module-tag long
/** `bylaw prove`: statements about the rules, their verdicts, and counterexamples that the predicate and SQL decide. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCommand } from '../../src/cli/index.ts';
import { testToolsOf } from '../../src/cli/test.ts';
import type { Database } from '../../src/database/contract.ts';
import { parseSchema } from '../../src/schema/load.ts';
import { raw } from '../../src/sql.ts';
import type { Ask } from '../../src/workbench/decided-by-sql.ts';
import { proveStatements } from '../../src/workbench/prove/decide-statements.ts';
import { proofDocument } from '../../src/workbench/prove/prove-document.ts';
import { readTests } from '../../src/workbench/test/read-tests.ts';
import { runTests } from '../../src/workbench/test/run-tests.ts';
import { openEmbeddedDatabase } from '../support/embedded/embedded.ts';

const schemaWith = (prove: readonly string[]): string => `
roles:
  admin: { includes: [editor] }
  editor: {}
  auditor: {}
collections:
  teams:
    fields: { name: { type: string, required: true } }
    relations: { memberships: { kind: has_many, collection: memberships, via: team } }
  memberships:
    relations:
      team: { kind: belongs_to, collection: teams, required: true }
      user: { kind: belongs_to, collection: users, required: true }
  carts:
    soft_delete: true
    fields: { cart_of: string }
    access:
      restore: '@record.cart_of = @request.auth.guest and @record.deleted_at > @now - 1d'
      update: '@record.cart_of = @request.auth.guest'
      delete: '@record.cart_of = @request.auth.former_guest'
  documents:
    fields:
      title: { type: string, required: true }
      seal: { type: int, access: { read: '@request.auth.second_factor and @request.auth.signed_in_at > @now - 1h' } }
      status: { type: string, required: true, enum: [draft, published, archived] }
      salary: { type: int, access: { read: [{ roles: [auditor] }] } }
    relations:
      owner: { kind: belongs_to, collection: users, required: true }
      team: { kind: belongs_to, collection: teams }
    access:
      list: '@record.status = "published" or @record.owner = @request.auth.id'
      read: '@record.status = "published" or @record.owner = @request.auth.id or any(@record.team.memberships as m, m.user = @request.auth.id)'
      create: '@record.owner = @request.auth.id and @record.status = "draft"'
      update:
        - when: '@record.owner = @request.auth.id and @next.owner = @record.owner and @record.status != "archived"'
        - { roles: [editor], when: 'changed_only(@record.status)' }
      delete: [{ roles: [admin] }]
prove:
${prove.map((statement) => `  - { ${statement} }`).join('\n')}
`;

const PROVEN = [
  `never: 'guest can read documents where @record.status != "published"'`,
  `never: 'guest can create or update or delete documents'`,
  `never: 'anyone can create documents where @record.status = "published"'`,
  `never: 'editor without admin can delete documents'`,
  `never: 'editor can read documents.salary'`,
  `never: 'anyone can update documents where @record.owner = @request.auth.id and @record.status = "archived" and changed(@record.title)'`,
  `always: 'anyone can read, list documents where @record.status = "published"'`,
  `always: 'admin can delete documents'`,
  `always: 'signed-in user can read documents where @record.owner = @request.auth.id'`,
  `always: 'who can list documents can read them'`,
  `always: 'anyone who can create documents can read, list it'`,
  `never: 'guest who can read documents can update or delete them'`,
  `always: 'admin can update documents where changed_only(@record.status)'`,
  `never: 'guest can read documents.seal'`,
  `never: 'guest can delete carts'`,
  `never: 'signed-in user can update carts'`,
  `never: 'signed-in user can restore carts'`,
  `never: 'guest can restore carts where @record.deleted_at < @now - 1d'`,
];
const REFUTED = [
  `never: 'guest can list documents', why: 'nothing is public'`,
  `never: 'signed-in user can read documents where @record.status = "draft" and @record.owner != @request.auth.id'`,
  `never: 'auditor can read documents.salary'`,
  `never: 'admin can update documents where @next.status = "published"'`,
  `always: 'editor can delete documents'`,
  `always: 'auditor can read documents.salary'`,
  `always: 'who can read documents can list them'`,
  `always: 'signed-in user who can update documents can read them'`,
  `always: 'who can read documents can update them'`,
  `always: 'who can create documents can delete them'`,
  `always: 'editor can update documents where @record.status = "draft"'`,
  `never: 'editor can read documents.seal'`,
  `never: 'guest can update carts'`,
  `never: 'signed-in user can delete carts'`,
  `never: 'guest can restore carts where @record.cart_of is not null'`,
  `always: 'editor can restore carts'`,
];

/** Statements about records that a schema with these collections can hold. */
const OF_STORED_RECORDS: readonly (readonly [verdict: string, statement: string, collections: string])[] = [
  [
    'refuted',
    'anyone can read docs where @record.a != @record.b',
    `
  teams: { relations: { members: { kind: has_many, collection: members, via: team } } }
  members:
    relations:
      team: { kind: belongs_to, collection: teams, required: true }
      user: { kind: belongs_to, collection: users, required: true, unique: within_team }
  docs:
    relations: { a: { kind: belongs_to, collection: teams }, b: { kind: belongs_to, collection: teams } }
    access: { read: 'any(@record.a.members as m, m.user = @request.auth.id) and any(@record.b.members as m, m.user = @request.auth.id)' }`,
  ],
  [
    'proven',
    'anyone can read docs where @record.d > 999.9 or @record.d < -999.9',
    'docs: { fields: { d: { type: decimal, precision: 4, scale: 1 } }, access: { read: true } }',
  ],
  [
    'refuted',
    'anyone can read docs where @record.d > 999.8',
    'docs: { fields: { d: { type: decimal, precision: 4, scale: 1 } }, access: { read: true } }',
  ],
  [
    'unknown',
    'anyone can read docs where count(@record.l) = 3',
    'docs: { fields: { l: { type: list, of: string, max: 2 } }, access: { read: true } }',
  ],
  ...(
    [
      ['unique: within_team', 's.name = "a"', 'unknown'],
      ['unique: within_team', 's.name != "a"', 'refuted'],
      ['unique: { ignore_case: true }', 's.name in ["a", "A"]', 'unknown'],
      [`unique: { where: '@record.name = "a"' }`, 's.name = "a"', 'unknown'],
      [`unique: { where: '@record.name = "b"' }`, 's.name = "a"', 'refuted'],
    ] as const
  ).map(
    ([unique, condition, verdict]) =>
      [
        verdict,
        `anyone can read teams where count(@record.seats as s, ${condition}) = 2`,
        `
  teams: { relations: { seats: { kind: has_many, collection: seats, via: team } }, access: { read: true } }
  seats:
    fields: { name: { type: string, required: true, ${unique} } }
    relations: { team: { kind: belongs_to, collection: teams, required: true } }`,
      ] as const,
  ),
];

const UNMANAGED = `
  customers:
    managed: false
    id: { type: int }
    timestamps: none
    relations: { orders: { kind: has_many, collection: orders, via: customer } }
  orders:
    managed: false
    id: { type: int }
    timestamps: none
    fields: { at: datetime, f: float, n: int }
    relations: { customer: { kind: belongs_to, collection: customers }, above: { kind: belongs_to, collection: orders } }
    access: { read: true, create: true }`;
const DELETED = `
  rooms: { fields: { name: string }, relations: { bookings: { kind: has_many, collection: bookings, via: room } } }
  bookings:
    soft_delete: true
    fields: { slot: int }
    relations:
      room: { kind: belongs_to, collection: rooms, required: true }
      after: { kind: belongs_to, collection: bookings }
      next: { kind: has_many, collection: bookings, via: after }
    access: { restore: 'none(@record.room.bookings as b, b.id != @record.id and b.slot = @record.slot)' }`;

const NO_FOREIGN_KEYS: typeof OF_STORED_RECORDS = [
  ...(
    [
      ['refuted', 'read orders where @record.customer is not null and @record.customer.id is null'],
      ['proven', 'read orders where @record.customer is null and @record.customer.id is not null'],
      ['proven', 'read orders where @record.customer.id != @record.customer'],
      ['proven', 'create orders where @record.customer is not null and @record.customer.id is null'],
      ['refuted', 'read orders where count(@record.customer.orders) >= 1'],
      ['proven', 'read orders where count(@record.customer.orders) < 0'],
      ['refuted', 'read orders where none(ancestors(@record.above by above) as o, o.n = 1)'],
      ['unknown', 'read orders where @record.at > "9999-12-31T23:59:59.999999Z"'],
      ['unknown', 'read orders where @record.f > 1.7976931348623157e308'],
      ['unknown', 'read orders where @record.n > 9007199254740991'],
      ['unknown', 'read orders where @record.n >= 9007199254740991 and @record.n != 9007199254740991'],
      ['proven', 'read orders where @record.n > 1 and @record.n < 2'],
      ['refuted', 'read orders where @record.n > 9007199254740990'],
    ] as const
  ).map(([verdict, asked]) => [verdict, `anyone can ${asked}`, UNMANAGED] as const),
  ...(
    [
      ['refuted', '@record.after is not null and @record.after.id is null'],
      ['refuted', '@record.after.slot = 3'],
      ['proven', '@record.room.id is null'],
      ['proven', '@record.room is null'],
      ['proven', 'count(@record.next) > 0'],
      ['refuted', 'any(@record.room.bookings as b, b.slot != @record.slot)'],
      // A living record can have the id of the deleted one.
      ['unknown', 'any(@record.room.bookings as b, b.slot = @record.slot)'],
    ] as const
  ).map(([verdict, where]) => [verdict, `anyone can restore bookings where ${where}`, DELETED] as const),
];

const statementsOf = (prove: readonly string[]) => {
  const { schema, issues } = parseSchema(schemaWith(prove));
  if (schema === undefined) throw new Error(JSON.stringify(issues, null, 1));
  return schema;
};

describe('statements', () => {
  let db: Database;
  beforeAll(async () => {
    db = await openEmbeddedDatabase();
  });
  afterAll(() => db.close());

  const proven = (prove: readonly string[]) =>
    proveStatements(statementsOf(prove), {
      budget: 5_000,
      ask: async (statement) => (await db.rows(statement)) as never,
    });

  it('a statement that holds of every caller, request and record is proven', async () => {
    const results = await proven(PROVEN);
    expect(results.map(({ verdict, statement }) => `${verdict} ${statement.text}`)).toEqual(
      results.map(({ statement }) => `proven ${statement.text}`),
    );
  });

  it('every other statement is refuted by a world that the predicate and SQL decide', async () => {
    const results = await proven(REFUTED);
    expect(results.map(({ verdict, statement }) => `${verdict} ${statement.text}`)).toEqual(
      results.map(({ statement }) => `refuted ${statement.text}`),
    );
    expect(results[0]!.counterexample).toMatchObject({ isGuest: true, record: { status: 'published' } });
    expect(results[5]!.counterexample!.request.auth).toMatchObject({ roles: ['auditor'] });
    // The team of the caller reads the record, which no list shows them.
    expect([...results[6]!.counterexample!.rows.keys()]).toContain('memberships');
  });

  it.each([...OF_STORED_RECORDS, ...NO_FOREIGN_KEYS])(
    'decides over records that tables can hold (%s): never %s',
    async (verdict, text, more) => {
      const { schema, issues } = parseSchema(
        `collections:${more.startsWith('\n') ? more : `\n  ${more}`}\nprove: [{ never: '${text}' }]\n`,
      );
      expect(issues.filter(({ severity }) => severity === 'error')).toEqual([]);
      const ask: Ask = async (statement) => (await db.rows(statement)) as never;
      const [result] = await proveStatements(schema!, { budget: 5_000, ask });
      expect(result!.verdict).toBe(verdict);
    },
  );

  it('the JSON of a counterexample has a test that passes on the rules as they are', async () => {
    const schema = statementsOf(REFUTED);
    const { statements } = proofDocument(await proven(REFUTED), 'bylaw.yaml', schema) as ReturnType<JSON['parse']>;
    const tests = statements.map(({ counterexample }: ReturnType<JSON['parse']>) => counterexample.test);
    const written = tests.filter((test: string | null) => test !== null);
    // Rules of fields, and second actions, are more than one decision.
    expect([tests.length, written.length]).toEqual([REFUTED.length, 9]);
    await db.run(raw('SET search_path = public'));
    const tools = await testToolsOf(db, schema);
    for (const test of written) {
      const { results } = await runTests(readTests(test, 'a.policy.yaml', schema).tests!, tools);
      expect([test, results.map(({ isOk }) => isOk)]).toEqual([test, [true]]);
    }
  });

  it('a second action that depends on its own body is unknown', async () => {
    const text = schemaWith([`always: 'who can read documents can update them'`]).replace(
      'changed_only(@record.status)',
      '@request.data.status = "draft"',
    );
    const { schema } = parseSchema(text);
    expect((await proveStatements(schema!, { budget: 1_000 })).map(({ verdict }) => verdict)).toEqual(['unknown']);
  });
});

describe('`bylaw check` of statements', () => {
  it.each([
    [`never: 'gust can read documents'`, 'unknown role `gust`; did you mean `guest`?', 'guest'],
    [`never: 'guest can red documents'`, 'unknown action `red`; did you mean `read`?', 'read'],
    [
      `never: 'guest can view documents'`,
      'unknown action `view`; there are list, read, create, update, delete',
      undefined,
    ],
    [`never: 'guest can read docments'`, 'unknown collection `docments`; did you mean `documents`?', 'documents'],
    [
      `never: 'guest can read documents.salry'`,
      'unknown field of `documents` `salry`; did you mean `salary`?',
      'salary',
    ],
    [
      `never: 'guest can delete documents.salary'`,
      'a field is not deleted or restored; expected list, read, create or update',
      undefined,
    ],
    [
      `never: 'guest can restore documents'`,
      '`documents` keeps no deleted records; add `soft_delete: true`',
      undefined,
    ],
    [`never: 'guest can restore carts.cart_of'`, 'a field is not deleted or restored', undefined],
    [`never: 'who can restore carts can read them'`, 'a deleted record takes no other action', undefined],
    [`never: 'who can read carts can restore them'`, 'unknown action `restore`', undefined],
    [
      `never: 'guest can read documents where @record.statsu = "draft"'`,
      '`documents` has no `statsu`; did you mean `status`?',
      'status',
    ],
    [`never: 'who can read documents can create them'`, 'a record that exists is not created again', undefined],
    [`never: 'editor without editor can read documents'`, '`editor` always has `editor`', undefined],
    [
      `never: 'admin without editor can read documents'`,
      '`admin` always has `editor`, so the statement is about no caller',
      undefined,
    ],
    [`never: 'guests read documents'`, 'expected `<who> can <action> <collection>', undefined],
    [`always: 'guest can read documents can list them'`, 'expected `<who> can <action> <collection>', undefined],
    [`always: 'who can read documents'`, 'expected `<who> can <action> <collection>', undefined],
    [`why: 'x'`, 'a statement needs `never` or `always`, and not both', undefined],
    [`never: 'guest can read teams', always: 7`, 'a statement needs `never` or `always`, and not both', undefined],
  ])('%s: %s', (statement, message, replacement) => {
    const { issues } = parseSchema(schemaWith([statement]));
    const [issue] = issues.filter(({ severity }) => severity === 'error');
    expect(issue?.message).toContain(message);
    expect(issue?.fix?.replacement).toBe(replacement);
    expect(issue?.line).toBe(schemaWith([]).split('\n').length - 1);
  });

  it('a value of another type has no second error', () => {
    const { issues } = parseSchema(schemaWith(['never: 5']));
    const errors = issues.filter(({ severity }) => severity === 'error').map(({ message }) => message);
    expect(errors).toEqual(['expected a string, found `5`']);
  });
});

describe('the command', () => {
  const folder = mkdtempSync(join(tmpdir(), 'bylaw-prove-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const run = (prove: readonly string[], ...flags: readonly string[]) => runOn(schemaWith(prove), ...flags);
  const runOn = async (text: string, ...flags: readonly string[]) => {
    writeFileSync(join(folder, 'bylaw.yaml'), text);
    let [stdout, stderr] = ['', ''];
    const io = {
      stdout: { write: (text: string) => (stdout += text) },
      stderr: { write: (text: string) => (stderr += text) },
      stdin: process.stdin,
      env: {},
      cwd: folder,
    };
    return { code: await runCommand(['prove', ...flags], io), stdout, stderr };
  };

  it('a refuted statement exits with 1, and is printed with its place, reason and counterexample', async () => {
    const { code, stdout } = await run([PROVEN[1]!, REFUTED[0]!]);
    expect(code).toBe(1);
    const [proven, refuted, at, ...rest] = stdout.split('\n');
    expect([proven, refuted]).toEqual([
      'proven   never: guest can create or update or delete documents',
      'refuted  never: guest can list documents',
    ]);
    expect(at).toMatch(/^ {2}at bylaw.yaml:\d+:\d+$/);
    expect(rest.slice(0, 3)).toEqual(['  why: nothing is public', '  list:', '    caller   guest']);
    expect(stdout).toContain('1 proven, 1 refuted, 0 unknown\nthe schema admits no guests');
  });

  it('a proven schema exits with 0, an unknown statement with 1, and a wrong one with 2', async () => {
    const proven = await run([PROVEN[1]!], '--json');
    expect([proven.code, JSON.parse(proven.stdout)]).toEqual([
      0,
      {
        statements: [
          {
            file: 'bylaw.yaml',
            line: expect.any(Number),
            column: expect.any(Number),
            kind: 'never',
            text: 'guest can create or update or delete documents',
            verdict: 'proven',
          },
        ],
      },
    ]);
    const unknown = schemaWith([`always: 'who can read documents can update them'`]).replace(
      'changed_only(@record.status)',
      '@request.data.status = "draft"',
    );
    expect((await runOn(unknown)).code).toBe(1);
    expect((await runOn(unknown, '--allow-unknown')).code).toBe(0);
    expect(await run([`never: 'gust can read documents'`])).toMatchObject({ code: 2 });
    expect(await run(['why: x'], '--json')).toMatchObject({ code: 2, stdout: '' });
  });
});
