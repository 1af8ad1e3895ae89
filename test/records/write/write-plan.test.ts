/** Writes of one shape share a plan: it has the statement that each of them would make for itself. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Row } from '../../../src/policy/types.ts';
import { Store } from '../../../src/records/access-context.ts';
import { checksOn } from '../../../src/records/write/checks.ts';
import { readInput } from '../../../src/records/write/input.ts';
import { WritePlan, type WriteValues, writePlanOf } from '../../../src/records/write/write-plan.ts';
import { Caller, schemaOf, type World } from '../../support/store-world.ts';

const IDS = ['a', 'b', 'c', 'd'].map((letter) => `00000000-0000-4000-8000-00000000000${letter}`);

const schema = schemaOf(`
roles: { member: , lead: , admin: { includes: [member] } }
register: { roles: [member] }
collections:
  users:
    fields: { level: int }
    relations:
      home: { kind: belongs_to, collection: teams }
      memberships: { kind: has_many, collection: memberships, via: user }
    access: { view: [{ roles: [admin] }, { when: '@record.id = @request.auth.id' }] }
  teams:
    fields: { name: string }
    relations: { memberships: { kind: has_many, collection: memberships, via: team } }
    access: { view: 'any(@record.memberships as m, m.user = @request.auth.id)', create: true }
  memberships:
    relations:
      team: { kind: belongs_to, collection: teams, on_delete: cascade }
      user: { kind: belongs_to, collection: users, on_delete: cascade }
    access: { view: true }
  documents:
    fields:
      title: { type: string, search: true }
      score: { type: int, access: { write: [{ roles: [lead] }, { when: '@record.score < @request.auth.level' }] } }
      secret: { type: string, access: { read: [{ roles: [admin] }, { when: '@record.owner = @request.auth.id' }] } }
      due: datetime
    relations:
      owner: { kind: belongs_to, collection: users }
      team: { kind: belongs_to, collection: teams }
      tags: { kind: many_to_many, collection: tags }
      cover: { kind: has_one, collection: covers, via: document }
    checks:
      scored: { when: '@next.score < @request.auth.level or @next.owner.level > 1', message: the score is too high }
      kept: { when: '@next.title != @request.query.label or not changed(@record.title)', message: taken }
    access:
      view: [{ when: '@record.owner = @request.auth.id' }, { when: 'any(@record.team.memberships as m, m.user = @request.auth.id)' }]
      create: [{ roles: [lead] }, { when: '@record.owner = @request.auth.id and @record.score < @request.auth.level' }]
      update:
        - roles: [admin]
        - when: '@record.owner = @request.auth.id and @next.owner = @request.auth.id'
        - when: '@record.team = @request.auth.home and any(@next.tags as t, t.label = @request.query.label)'
        - when: '@request.data.title = @record.title and @record.due > @now'
  covers:
    fields: { caption: string }
    relations: { document: { kind: belongs_to, collection: documents, access: { read: [{ when: '@record.caption = @request.query.label' }] } } }
    access:
      view: '@record.document.owner = @request.auth.id'
      create: '@record.document.owner = @request.auth.id'
      update: '@record.document.owner = @request.auth.id or @record.caption = "x"'
  tags:
    fields: { label: string }
    access: { view: true, create: [{ roles: [member] }], update: [{ roles: [member] }] }
`);

const id = fc.constantFrom(...IDS);
const orNull = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null });
const some = <T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }) => fc.record(model, { requiredKeys: [] });
const changes = fc.oneof(
  some<Row>({
    title: orNull(fc.string()),
    score: orNull(fc.integer()),
    secret: orNull(fc.string()),
    due: orNull(fc.constant('2026-01-01T00:00:00.000000Z')),
    owner: orNull(id),
    team: orNull(id),
  }).map((data) => ({ collection: 'documents', data })),
  some<Row>({ caption: orNull(fc.string()), document: orNull(id) }).map((data) => ({ collection: 'covers', data })),
  some<Row>({ label: orNull(fc.string()) }).map((data) => ({ collection: 'tags', data })),
);
const auth = fc.record({
  id,
  home: orNull(id),
  level: orNull(fc.integer()),
  roles: fc.subarray(['member', 'lead', 'admin']),
});
const request = fc.record({
  kind: fc.constantFrom('create' as const, 'update' as const),
  change: changes,
  auth,
  id,
  label: fc.option(fc.string(), { nil: undefined }),
  now: fc.constantFrom('2026-01-01T00:00:00.000000Z', '2026-01-02T00:00:00.000000Z'),
  counts: fc.constantFrom<readonly string[]>([], ['1'], ['2']),
});

type Request = typeof request extends fc.Arbitrary<infer R> ? R : never;

/** The write as the caller asks for it; members that it may never set are left to the rules of the record. */
function askedOf({ kind, change: { collection, data }, auth, id, label, now, counts: stored }: Request) {
  const query: Readonly<Record<string, string>> = label === undefined ? {} : { label };
  const access = new Caller({ schema } as World, auth).ask(collection, { data, now, query });
  const { values, references } = readInput(schema, access, { mode: kind, data });
  const members = Object.keys(data).flatMap((name) => access.member(collection, name, kind) ?? []);
  const permits = [access.permit(collection, kind), ...members];
  const violations = checksOn(access, access.collection, kind).map(({ violation }) => violation);
  const counts = kind === 'update' ? stored : [];
  return {
    access,
    asked: { kind, id, now, tenant: undefined, values, references, permits, violations, counts, isInTurn: false },
  };
}

const printed = ({ statement, written }: WritePlan, values: WriteValues) =>
  [statement, written].map((form) => {
    const { text, params } = form.fill(values);
    return { text, params };
  });

test('a write of a known shape has the statements that it would make for itself', () => {
  const store = new Store({} as Store['db'], schema);
  const plans = new Set<WritePlan>();
  const numRuns = 1_500;
  fc.assert(
    fc.property(request, (given) => {
      const { access, asked } = askedOf(given);
      const { plan, answers } = writePlanOf(store, access, asked);
      // With the access of the request itself, the caller's permits print their values.
      const own = new WritePlan(store, access, asked);
      expect(plan.isExact).toBe(own.isExact);
      expect(printed(plan, { asked, answers })).toEqual(printed(own, { asked, answers: [] }));
      plans.add(plan);
    }),
    { numRuns },
  );
  // Many requests share a plan, and many do not.
  expect(plans.size).toBeGreaterThan(20);
  expect(plans.size).toBeLessThan(numRuns / 2);
});
