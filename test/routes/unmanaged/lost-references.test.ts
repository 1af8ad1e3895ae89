// @module-tag long
/** References that no foreign key ensures: a rule over a record that is gone is unknown, in SQL and in the process. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PolicyRequest, Row } from '../../../src/policy/types.ts';
import { Store } from '../../../src/records/access-context.ts';
import { loadRelated } from '../../../src/records/relations/related.ts';
import { findSystem } from '../../../src/records/system.ts';
import { compileDraft } from '../../../src/schema/rules/draft-rules.ts';
import { sql, tableIdent } from '../../../src/sql.ts';
import { relatedOf } from '../../oracle/database.ts';
import { interpret } from '../../oracle/interpret.ts';
import { NOBODY } from '../../support/records.ts';
import { describeOnBoth, type User } from '../../support/service.ts';
import { ownersWorld, ownSchema } from './owners-table.ts';

/** Each is about the group of a paper, whose marks go with it. */
const RULES = [
  'all(@record.group.marks as m, m.name = "open")',
  'not all(@record.group.marks as m, m.name = "open")',
  'none(@record.group.marks as m, m.name = "secret")',
  'not none(@record.group.marks as m, m.name = "secret")',
  'any(@record.group.marks as m, m.name = "open")',
  'not any(@record.group.marks as m, m.name = "open")',
  'count(@record.group.marks as m, m.name = "secret") = 0',
  'not (count(@record.group.marks as m, m.name = "secret") > 0)',
  'count(@record.group.marks as m, m.name = "open") != 1',
  'none(ancestors(@record.group by above) as g, g.name = "strict")',
  'none(@record.group.above.marks as m, m.name = "secret")',
  'count(@record.group.owner.groups) != -1',
  'not (count(@record.group.owner.groups) = -1)',
  'count(@record.group.owner.groups as g, g.name = "strict") != 2',
  'all(@record.group.owner.groups as g, g.owner = g.owner)',
  'none(@record.group.papers as p, any(p.group.marks as m, m.name = "secret"))',
  '@record.group.name != "strict"',
  '@record.group.id != "00000000-0000-4000-8000-000000000000"',
  'not (@record.group.id = "00000000-0000-4000-8000-000000000000")',
  'not (@record.group.name = "strict")',
  'not (@record.group.name in ["strict"])',
  '@record.group is null or all(@record.group.marks as m, m.name = "open") or @record.name = "else"',
];
/** A reference has its value all the same, and what comes after it is null. */
const OF_LOST = [
  '@record.group = @record.group and @record.group is not null',
  '@record.group.created_at is null',
  '@record.group.created_at is not null',
  'not (@record.group.created_at is null)',
  '@record.group.above.created_at is null',
  '@record.group.owner is not null',
  '@record.group.owner.id is not null',
  'not (@record.group.owner.created_at is null)',
  '@record.group.id is null',
  '@record.group.id is not null',
  '@record.group.id not in []',
  '@record.group.above.id not in []',
];
/** True for a paper after 32 others. */
const CHAIN_RULES = [
  'none(ancestors(@record.after by after) as p, p.name = "nowhere")',
  'all(ancestors(@record.after by after) as p, p.name != "nowhere")',
  'not 1 <= count(ancestors(@record.after by after) as p, p.name = "nowhere")',
  'count(ancestors(@record.after by after)) = 32',
];
/** The same of the kinds that an offer has. */
const LINK_RULES = [
  'all(@record.kinds as k, k = 1)',
  'none(@record.kinds as k, k = 2)',
  '@record.kinds contains 2',
  'not (@record.kinds contains 2)',
  'count(@record.kinds) = 1',
  'count(@record.kinds as k, k.name = "red") < 2',
];

describe('references without foreign keys', () => {
  const shop = ownSchema();
  const world = ownersWorld(
    `
CREATE SCHEMA ${shop};;
CREATE TABLE ${shop}.papers (no bigint PRIMARY KEY, group_id uuid, name text, after_id bigint);;
CREATE TABLE ${shop}.colours (no bigint PRIMARY KEY, name text);;
CREATE VIEW ${shop}.kinds AS SELECT no, name FROM ${shop}.colours;;
INSERT INTO ${shop}.colours VALUES (1, 'red'), (2, 'blue');;
`,
    `
roles: [member, admin]
register: { roles: [member] }
collections:
  users: { relations: { groups: { kind: has_many, collection: groups, via: owner } }, access: { view: true } }
  papers:
    table: ${shop}.papers
    managed: false
    timestamps: none
    id: { type: int, column: no, made_by: caller }
    fields:
      name: { type: string, access: { read: 'none(@record.group.marks as m, m.name = "secret")' } }
    relations: { group: { kind: belongs_to, collection: groups }, after: { kind: belongs_to, collection: papers } }
    access: { list: true, read: '@record.group is null or all(@record.group.marks as m, m.name = "open")' }
  groups:
    fields: { name: string }
    relations:
      above: { kind: belongs_to, collection: groups, on_delete: cascade }
      owner: { kind: belongs_to, collection: users, required: true, default: '@request.auth.id' }
      marks: { kind: has_many, collection: marks, via: group }
      papers: { kind: has_many, collection: papers, via: group }
    access: { view: true, create: true, delete: true }
  marks:
    fields: { name: string }
    relations: { group: { kind: belongs_to, collection: groups, on_delete: cascade } }
    access: { view: true, create: true }
  kinds:
    table: ${shop}.kinds
    managed: false
    timestamps: none
    id: { type: int, column: no }
    fields: { name: string }
    access: { view: true }
  offers:
    fields: { name: string }
    relations: { kinds: { kind: many_to_many, collection: kinds } }
    access: { view: true, create: true }
`,
  );

  describeOnBoth(
    'to records that are gone',
    (service) => {
      let client: User['client'];
      const ids = new Map<string, string>();
      const make = async (collection: string, data: object): Promise<string> => {
        const { body, text } = await client.post(`/api/${collection}`, { data });
        expect(text).toContain('"data"');
        return body.data.id;
      };

      beforeAll(async () => {
        ({ client } = await service.user());
        const groups = [
          ['open', ['open']],
          ['strict', ['open', 'secret']],
          ['none', []],
          ['gone', ['secret']],
        ] as const;
        for (const [name, marks] of groups) {
          const group = await make('groups', { name, above: ids.get('strict') });
          ids.set(name, group);
          for (const mark of marks) await make('marks', { name: mark, group });
        }
        const rows = [...ids].map(([name, id], i) => `(${i + 1}, '${id}', '${name}')`);
        await world.run(`INSERT INTO ${shop}.papers VALUES ${rows.join()}, (9, NULL, 'alone'), (10, NULL, 'else')`);
        await make('offers', { name: 'both', kinds: { set: [1, 2] } });
        await make('offers', { name: 'red', kinds: { set: [1] } });
        await make('offers', { name: 'blue', kinds: { set: [2] } });
      });
      afterAll(() => world.run(`DROP SCHEMA IF EXISTS ${shop} CASCADE`).catch(() => undefined));

      async function everyRow(): Promise<ReadonlyMap<string, readonly Row[]>> {
        const { schema, db } = service.app;
        const store = new Store(db, schema);
        const names = ['users', 'papers', 'groups', 'marks', 'kinds', 'offers'];
        return new Map(
          await Promise.all(
            names.map(
              async (collection) =>
                [collection, await findSystem(store, db, { collection, where: sql`TRUE` })] as const,
            ),
          ),
        );
      }

      async function linksTo(kinds: readonly Row[]): Promise<readonly (readonly [string, string])[]> {
        const links = await world.rows('SELECT record_id::text, member_id::text FROM offers__kinds');
        return links
          .map(([offer, kind]) => [String(offer), String(kind)] as const)
          .filter(([, kind]) => kinds.some(({ id }) => String(id) === kind));
      }

      /** The names of the records that a rule allows: by SQL, by the predicate, and by the definition of the language. */
      async function namesBy(when: string, collection: string): Promise<readonly (readonly string[])[]> {
        const { schema, db } = service.app;
        const { policies, issues } = compileDraft([{ when }], { schema, collection, action: 'read' });
        expect(issues).toEqual([]);
        const [policy] = policies;
        const rows = await everyRow();
        const related = relatedOf(schema, {
          rows,
          links: new Map([['offers__kinds', await linksTo(rows.get('kinds')!)]]),
        });
        const request: PolicyRequest = {
          auth: { id: NOBODY, roles: [] },
          query: {},
          now: '2026-11-01T00:00:00.000000Z',
        };
        const residual = policy!.specialise(request);
        const { table } = schema.collections.get(collection)!;
        const found = await db.rows(sql`SELECT name FROM ${tableIdent(table)} AS t WHERE ${residual.where('t')}`);
        const source = { store: new Store(db, schema), q: db, tenant: undefined };
        const tested: Row[] = [];
        for (const stored of rows.get(collection)!) {
          const loading = { collection, stored, needs: residual.needs.record };
          if (residual.test(stored, await loadRelated(source, loading))) tested.push(stored);
        }
        const meant = rows
          .get(collection)!
          .filter((record) => interpret(policy!.checked, { record, related, request }) === true);
        return [found.map(([name]) => name), tested.map(({ name }) => name), meant.map(({ name }) => name)].map(
          (names) => names.map(String).toSorted(),
        );
      }

      /** The records that each rule allows, on which the three agree. */
      async function allowedBy(rules: readonly string[], collection: string) {
        const allowed = new Map<string, readonly string[]>();
        for (const when of rules) {
          const [bySql, byPredicate, byMeaning] = await namesBy(when, collection);
          expect({ when, bySql, byPredicate }).toEqual({ when, bySql: byMeaning, byPredicate: byMeaning });
          allowed.set(when, bySql!);
        }
        return allowed;
      }

      it('SQL, the predicate and the definition agree while every record exists', async () => {
        const papers = await allowedBy(RULES, 'papers');
        expect(papers.get(RULES[1]!)).toEqual(['gone', 'strict']);
        const offers = await allowedBy(LINK_RULES, 'offers');
        expect(offers.get('@record.kinds contains 2')).toEqual(['blue', 'both']);
      });

      it('a rule over a record that is gone opens nothing, and a link to one does not count', async () => {
        await world.run(
          `DELETE FROM groups WHERE id = '${ids.get('gone')}';; DELETE FROM ${shop}.colours WHERE no = 2`,
        );
        const papers = await allowedBy(RULES, 'papers');
        for (const [when, names] of papers)
          expect({ when, names }).not.toEqual({ when, names: expect.arrayContaining(['gone']) });
        const lost = await allowedBy(OF_LOST, 'papers');
        for (const when of ['@record.group.created_at is not null', '@record.group.id is not null'])
          expect(lost.get(when)).toEqual(['none', 'open', 'strict']);
        const offers = await allowedBy(LINK_RULES, 'offers');
        expect(offers.get('@record.kinds contains 2')).toEqual([]);
        expect(offers.get('count(@record.kinds) = 1')).toEqual(['both', 'red']);
      });

      it('a filter decides as the same rule, also that of an aggregate', async () => {
        const stored = (await everyRow()).get('papers')!;
        const idOf = (name: string) => stored.find((row) => row.name === name)!.id;
        // The caller may not read every name, and not every paper of a group.
        for (const when of [...RULES, ...OF_LOST].filter((rule) => !/@record\.name|papers/.test(rule))) {
          const [names] = await namesBy(when, 'papers');
          const filter = when.replaceAll('@record.', '');
          const { body } = await client.post('/api/papers/query', { filter, sort: ['id'] });
          const found = body.data.map(({ id }: Row) => id);
          expect({ filter, found }).toEqual({
            filter,
            found: names!.map(idOf).toSorted((a, b) => Number(a) - Number(b)),
          });
          const measures = { n: { of: 'count', where: filter } };
          const counted = await client.post('/api/papers/aggregate', { measures });
          expect({ filter, data: counted.body.data }).toEqual({ filter, data: [{ n: names!.length }] });
        }
      });

      it('no answer has such a record, or a member that its rule hides', async () => {
        const { body } = await client.get('/api/papers');
        const shown = body.data.map(({ id, name }: { id: number; name?: string }) => [id, name]);
        expect(shown).toEqual([
          [1, 'open'],
          [2, undefined],
          [3, 'none'],
          [4, undefined],
          [9, undefined],
          [10, undefined],
        ]);
        expect((await client.get('/api/papers/4')).status).toBe(404);
        expect((await client.get('/api/papers/3')).status).toBe(200);
      });

      it('a chain of 32 that ends before a record that is gone is whole', async () => {
        const chain = (first: number, last: number) =>
          `INSERT INTO ${shop}.papers SELECT no, NULL, 'of a chain', no + 1 FROM generate_series(${first}, ${last}) AS no`;
        // The first chain has 32 papers and refers to none; the second has 33.
        await world.run(
          `${chain(101, 132)};; ${chain(201, 233)};; INSERT INTO ${shop}.papers VALUES (11, NULL, 'ends', 101), (12, NULL, 'goes on', 201)`,
        );
        const papers = await allowedBy(CHAIN_RULES, 'papers');
        for (const [when, names] of papers) {
          expect({ when, names }).toEqual({ when, names: expect.arrayContaining(['ends']) });
          expect({ when, names }).not.toEqual({ when, names: expect.arrayContaining(['goes on']) });
        }
      });
    },
    world.options,
  );
});
