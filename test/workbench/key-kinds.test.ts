/** `bylaw prove` and `bylaw diff` of collections whose ids are ints or strings, with references by other unique columns. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import { parseSchema } from '../../src/schema/load.ts';
import type { Schema } from '../../src/schema/model/model.ts';
import { compareSchemas } from '../../src/workbench/diff/compare-schemas.ts';
import { proveStatements } from '../../src/workbench/prove/decide-statements.ts';
import { testOfWorld } from '../../src/workbench/world-test.ts';
import { openEmbeddedDatabase } from '../support/embedded/embedded.ts';

const textOf = (statements: readonly string[], update: string): string => `
roles: [clerk, member]
collections:
  customers:
    table: shop.customers
    managed: false
    timestamps: none
    id: { type: int, column: customer_no, made_by: caller }
    fields: { code: { type: string, unique: true }, name: string, rank: int }
    relations:
      orders: { kind: has_many, collection: orders, via: customer }
      agent: { kind: belongs_to, collection: users, column: agent_email, references: email }
  countries:
    id: { type: string, column: iso }
    fields: { name: string, iso_too: string }
    relations: { visited: { kind: many_to_many, collection: customers } }
    access:
      read: '@record.id = @record.iso_too or @record.visited contains 7'
      update: '@record.id in ["NL", "DE"]'
  orders:
    table: shop.orders
    managed: false
    timestamps: none
    id: { type: int, column: order_no, made_by: database }
    fields: { state: string, total: int }
    relations:
      customer: { kind: belongs_to, collection: customers, column: cust_code, references: code }
      country: { kind: belongs_to, collection: countries }
    access:
      read: '@record.customer.agent = @request.auth.id or @record.id = @record.total'
      update: ${JSON.stringify(update)}
      delete: '@record.customer = 8812 and @record.country != "NL"'
      create: '@record.country = @request.query.in and @record.customer.rank = @record.customer'
${statements.length === 0 ? '' : `prove:\n${statements.map((statement) => `  - ${statement}`).join('\n')}`}
`;

const UPDATE = '@record.customer = 8812';

const PROVEN = [
  'never: member can delete orders where @record.customer = 8813',
  'never: member can delete orders where @record.customer is null',
  'always: "signed-in user can read orders where @record.customer.agent = @request.auth.id"',
  `never: 'member can update countries where @record.id = "FR"'`,
  'always: who can delete orders can update them',
  `never: 'member can create orders where @record.customer = 5 and @record.customer.rank = 6'`,
  'never: member can update orders where @record.customer.code is null',
];
const REFUTED = [
  'never: member can delete orders where @record.customer = 8812',
  'never: member can read orders where @record.id = 5',
  'never: member can read orders where @record.customer.orders contains 9',
  'never: member can read countries where @record.name is not null',
  `never: 'member can update countries where @record.iso_too != @record.id'`,
  `never: 'member can create orders where @record.country = "NL"'`,
  'always: who can update orders can delete them',
  'always: member can read orders where any(@record.customer.orders as o, o.total > 3)',
];

describe('ids that are no UUIDs', () => {
  let db: Database;
  beforeAll(async () => {
    db = await openEmbeddedDatabase();
  });
  afterAll(() => db.close());
  const ask = async (statement: Parameters<Database['rows']>[0]) => (await db.rows(statement)) as never;
  const parsed = (statements: readonly string[] = [], update = UPDATE): Schema => {
    const { schema, issues } = parseSchema(textOf(statements, update));
    if (schema === undefined) throw new Error(JSON.stringify(issues, null, 1));
    return schema;
  };

  it('statements about them are proven, or refuted by a world that SQL decides, too', async () => {
    const all = [...PROVEN, ...REFUTED];
    const results = await proveStatements(parsed(all), { budget: 5_000, ask });
    const expected = all.map((_, i) => (i < PROVEN.length ? 'proven' : 'refuted'));
    expect(results.map(({ verdict, statement }) => `${verdict} ${statement.text}`)).toEqual(
      results.map(({ statement }, i) => `${expected[i]} ${statement.text}`),
    );
    const world = results[PROVEN.length]!.counterexample!;
    expect(world.record).toMatchObject({ id: expect.any(Number), customer: 8812 });
    // The reference is the code of its record.
    expect(world.rows.get('customers')).toMatchObject([{ id: 8812, code: expect.any(String) }]);
  });

  it('a changed rule has examples, which tests of policies say by names', async () => {
    const [old, changed] = [parsed(), parsed([], '@record.customer.rank > 3')];
    const { changes } = await compareSchemas(old, changed, { budget: 5_000, ask });
    const different = changes.filter(({ verdict }) => verdict !== 'same');
    expect(different.map(({ action, verdict }) => `${action} ${verdict}`)).toEqual(['update both']);
    const { world } = different[0]!.wider!;
    expect(testOfWorld(world, changed, { expected: 'yes' })).toMatch(/"customer":"customers_\d"/);
  });
});
