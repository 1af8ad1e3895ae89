// @module-tag long
/** Policy tests of adopted tables: the databases of this folder are drafted, and tested without the tables of their owners. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import { draftSchema } from '../../src/migrations/adopt/adopt.ts';
import { printDraft } from '../../src/migrations/adopt/print-draft.ts';
import { readExistingTables } from '../../src/migrations/adopt/read-existing-tables.ts';
import { parseSchema } from '../../src/schema/load.ts';
import { ident, raw, sql } from '../../src/sql.ts';
import { proveStatements } from '../../src/workbench/prove/decide-statements.ts';
import { openEmbeddedDatabase } from '../support/embedded/embedded.ts';
import { edited } from './adopted-database.ts';
import { runPolicyTests } from './run-policy-tests.ts';

const ROLES = { roles: { admin: { assigns: ['admin', 'member'] }, member: {} }, register: { roles: ['member'] } };
const ADMIN = [{ roles: ['admin'] }];

/** A body between `$$` has semicolons of its own. */
const statementsOf = (file: string): readonly string[] =>
  [...file.matchAll(/(?:\$\$[\s\S]*?\$\$|[^;])+/g)]
    .map(([statement]) => statement)
    .filter((each) => each.trim() !== '');

describe('policy tests of adopted tables', () => {
  let db: Database;
  beforeAll(async () => {
    db = await openEmbeddedDatabase();
  });
  afterAll(() => db.close());

  /** The draft of the file's database, which is gone afterwards, with access. */
  async function draftOf(file: string, schemas: readonly string[], collections: object): Promise<string> {
    const text = readFileSync(join(import.meta.dirname, file), 'utf8');
    for (const statement of statementsOf(text)) await db.run(raw(statement));
    await db.run(raw('RESET search_path'));
    const draft = printDraft(draftSchema(await readExistingTables(db, schemas)));
    for (const name of schemas) await db.run(sql`DROP SCHEMA ${ident(name)} CASCADE`);
    return edited(draft, { ...ROLES, collections: collections as Parameters<typeof edited>[1]['collections'] });
  }

  test('int keys, composite keys and enum types of a film rental', async () => {
    const own = '@record.customer.email = @request.auth.email';
    const schema = await draftOf('rental.sql', ['rental'], {
      film: { access: { view: true, create: ADMIN, update: ADMIN, delete: ADMIN } },
      film_list: { access: { view: '@record.copies > 1' } },
      film_actor: { access: { view: '@record.film.rating = "12"' } },
      customer: { access: { view: [{ when: '@record.email = @request.auth.email' }, ...ADMIN] } },
      inventory: { access: { view: true } },
      rental: { access: { view: [{ when: own }, ...ADMIN], create: ADMIN, update: ADMIN } },
      payment: { access: { view: '@record.rental.customer.email = @request.auth.email' } },
    });
    const tests = `
as:
  ann: { roles: [member] }
  bob: { roles: [member] }
  root: { roles: [admin] }
rows:
  language: { english: {} }
  film:
    dinosaur: { language: english, rating: "12" }
    7: { language: english }
  film_list: { many: { copies: 2 }, one: { copies: 1 } }
  actor: { penelope: {}, nick: {} }
  film_actor:
    lead: { actor: penelope, film: dinosaur }
    hidden: { actor: nick, film: 7 }
  customer: { one: { email: ann@example.com }, other: { email: bob@example.com } }
  inventory: { copy: { film: dinosaur } }
  rental:
    hers: { inventory: copy, customer: one }
    his: { inventory: copy, customer: other }
  payment: { paid: { payment_id: 1, paid_on: "2026-01-05", rental: hers, amount: "4.99" } }
tests:
  - rental: hers
    ann: { list: yes, read: yes, update: no }
    bob: none
    root: { read: yes, update: yes }
  - { list: rental, as: ann, expect: [hers] }
  - { list: film_list, as: ann, expect: [many] }
  - { list: film_actor, as: ann, expect: [lead] }
  - { list: payment, as: ann, expect: [paid] }
  - { list: payment, as: bob, expect: [] }
  - { film: 7, as: root, update: { rating: "16" }, expect: yes }
  - { film: 7, as: root, update: { rating: "17" }, expect: 422 }
  - { create: film, as: root, data: { title: New, language: english }, expect: 422 }
  - { create: rental, as: root, data: { inventory: copy, customer: one }, expect: yes }
  - { create: rental, as: ann, data: { inventory: copy, customer: one }, expect: no }
  - film: dinosaur
    root: { delete: 409 }
  - film: 7
    ann: { delete: no }
`;
    expect(await runPolicyTests(db, { schema, tests })).toBe('21 passed, 0 failed\n');
  });

  test('keys of letters, columns of other types and references to unique columns of a trading company', async () => {
    const schema = await draftOf('trading.sql', ['trading'], {
      customers: { access: { view: true, create: ADMIN } },
      orders: { access: { view: '@record.employee.reports_to.last_name = "Davolio"' } },
      order_details: { access: { view: '@record.order.customer.country = "DE"' } },
      deliveries: { access: { view: '@record.order_details.quantity > 10 and @record.sku.product_name = "Chai"' } },
      gift_notes: { access: { view: true } },
      samples: { access: { view: true, create: ADMIN, update: '@record.weight = 0.5 and @record.code = "ab"' } },
      price_notes: { access: { view: true, update: ADMIN } },
    });
    // A collection of the service beside the tables of the owner.
    const bundles = `  bundles:
    relations: { lines: { kind: many_to_many, collection: order_details } }
    access: { view: 'any(@record.lines as l, l.quantity > 11 and l.gift_notes.note = "for you")' }
`;
    const tests = `
as:
  ann: { roles: [member] }
  root: { roles: [admin] }
rows:
  customers: { ALFKI: { country: DE }, DUTCH: { country: NL } }
  employees:
    1: { last_name: Davolio }
    2: { reports_to: 1 }
    3: { reports_to: 2 }
  products: { chai: { product_name: Chai, sku: CH-1 }, konbu: { sku: KO-2 } }
  orders:
    10248: { customer: ALFKI, employee: 2 }
    10249: { customer: DUTCH, employee: 3 }
  order_details:
    many: { order: 10248, product: chai, quantity: 12 }
    few: { order: 10248, product: konbu, quantity: 10 }
    dutch: { order: 10249, product: chai, quantity: 9 }
  gift_notes: { gift: { order_id: 10248, product_id: 1, note: for you } }
  bundles: { gifts: { lines: [many, few] }, plain: { lines: [few, dutch] } }
  deliveries:
    sent: { order_id: 10248, product_id: 1, sku: chai }
    small: { order_id: 10248, product_id: 2, sku: chai }
    wrong: { order_id: 10248, product_id: 1, sku: konbu }
  samples:
    tested: { code: ab, weight: 0.5, measured: "2026-01-31T09:30:00Z", exact: "12.345", raw: { b: 1 }, names: [x], short_names: [y] }
    bare: {}
  price_notes: { note: { product: chai } }
tests:
  - { list: orders, as: ann, expect: [10248] }
  - { list: order_details, as: ann, expect: [many, few] }
  - order_details: dutch
    ann: { read: no }
  - { list: deliveries, as: ann, expect: [sent] }
  - { list: bundles, as: ann, expect: [gifts] }
  - { samples: tested, as: ann, update: { names: [z], measured: "2020-01-01T00:00:00Z", raw: [1] }, expect: yes }
  - { samples: tested, as: ann, update: { weight: 0.25 }, expect: no }
  - samples: bare
    ann: { read: yes, update: no }
  - { create: samples, as: root, data: { code: cd, short_names: [z] }, expect: yes }
  - { create: customers, as: root, data: { id: NEWCO, company_name: New }, expect: yes }
  - { create: customers, as: root, data: { id: ALFKI, company_name: Again }, expect: 409 }
  - { create: customers, as: ann, data: { id: NEWCO, company_name: New }, expect: no }
  - { price_notes: note, as: root, update: { Unit: crate }, expect: yes }
`;
    expect(
      await runPolicyTests(db, { schema: schema.replace('collections:\n', (found) => found + bundles), tests }),
    ).toBe('14 passed, 0 failed\n');
  });

  test('timestamps, enum types and quantifiers of a ticket desk', async () => {
    const atDesk = 'any(@record.desk.agents as a, a.email = @request.auth.email)';
    const schema = await draftOf('ticketing.sql', ['ticketing'], {
      desks: { access: { view: true } },
      workload: { access: { view: ADMIN } },
      shifts: { access: { view: true, create: '@record.agent.email = @request.auth.email' } },
      agents: { access: { view: true } },
      tickets: {
        without: ['made_on', 'changed_on'],
        timestamps: { created_at: 'made_on', updated_at: 'changed_on' },
        access: {
          view: [{ when: atDesk }, { when: '@record.reported_by = @request.auth.email' }],
          create: '@record.reported_by = @request.auth.email',
          update: `${atDesk} and @next.state != "waiting"`,
        },
      },
    });
    const tests = `
as:
  ann: { roles: [member] }
  cem: { roles: [member] }
  root: { roles: [admin] }
rows:
  desks: { IT: {}, HR: {} }
  agents: { first: { email: ann@example.com, desk: IT }, second: { desk: HR } }
  tickets:
    printer: { desk: IT, agent: first, reported_by: cem@example.com }
    contract: { desk: HR, state: waiting, reported_by: cem@example.com }
    laptop: { desk: IT, state: closed, labels: [new] }
  workload: { load: { tickets: 2 } }
tests:
  - tickets: printer
    ann: { list: yes, read: yes, update: yes }
    cem: { read: yes, update: no }
    root: none
  - { list: tickets, as: ann, expect: [printer, laptop] }
  - { list: tickets, as: cem, expect: [printer, contract] }
  - { tickets: laptop, as: ann, update: { state: open, agent: second }, expect: yes }
  - { tickets: laptop, as: ann, update: { state: waiting }, expect: no }
  - { create: tickets, as: cem, data: { desk: IT, subject: Mouse, reported_by: cem@example.com }, expect: yes }
  - { create: tickets, as: ann, data: { desk: IT, subject: Mouse, reported_by: cem@example.com }, expect: no }
  - { create: shifts, as: ann, data: { agent: first, on_day: "2026-03-02" }, expect: yes }
  - { create: shifts, as: cem, data: { agent: first, on_day: "2026-03-02" }, expect: no }
  - workload: load
    root: { list: yes }
    ann: { list: no }
`;
    expect(await runPolicyTests(db, { schema, tests })).toBe('19 passed, 0 failed\n');
  });

  test('uuid keys and tables of two schemas of a workspace product', async () => {
    const member =
      'any(@record.members as m, m.user.email = @request.auth.email and @request.auth.email_verified = true)';
    const ofMember = member.replace('@record', '@record.organization');
    const owner = ofMember.replace('m.user', 'm.seat = "owner" and m.user');
    const schema = await draftOf('workspace.sql', ['accounts', 'workspace'], {
      organizations: { access: { view: member } },
      projects: { access: { view: ofMember, create: owner, update: owner } },
      tasks: { access: { view: ofMember.replace('@record', '@record.project') } },
    });
    const tests = `
as:
  ann: { roles: [member], email_verified: true }
  bob: { roles: [member], email_verified: true }
  eve: { roles: [member], email_verified: false }
rows:
  accounts_users:
    ann: { email: ann@example.com }
    bob: { email: bob@example.com }
    eve: { email: eve@example.com }
  organizations: { acme: {} }
  members:
    first: { organization: acme, user: ann, seat: owner }
    second: { organization: acme, user: bob, seat: viewer }
    third: { organization: acme, user: eve, seat: owner }
  projects: { rocket: { organization: acme, tags: [urgent] } }
  tasks: { fuel: { project: rocket, assignee: bob, title_length: 4 } }
tests:
  - organizations: acme
    ann: { read: yes }
    bob: { read: yes }
    eve: none
  - projects: rocket
    ann: { read: yes, update: yes }
    bob: { read: yes, update: no }
    eve: none
  - { create: projects, as: ann, data: { organization: acme, slug: moon }, expect: yes }
  - { create: projects, as: ann, data: { organization: acme, slug: rocket }, expect: yes }
  - { create: projects, as: bob, data: { organization: acme, slug: moon }, expect: no }
  - { list: tasks, as: bob, expect: [fuel] }
  - { list: tasks, as: eve, expect: no }
`;
    expect(await runPolicyTests(db, { schema, tests })).toBe('19 passed, 0 failed\n');
    const { schema: stating } = parseSchema(`${schema}prove:
  - never: member can update projects where @record.archived_at is null
  - never: guest can read tasks
`);
    // A counterexample is decided by SQL, too.
    const results = await proveStatements(stating!, { budget: 1_000, ask: (statement) => db.rows(statement) as never });
    await db.run(raw('RESET search_path'));
    expect(results.map(({ verdict }) => verdict)).toEqual(['refuted', 'proven']);
  });
});
