/** Checks of collections, as the schema reads and describes them. */
import { expect, test } from 'vitest';
import { openapiOf } from '../../src/describe/openapi-document.ts';
import { routes } from '../../src/routes/index.ts';
import { formatPolicies } from '../../src/schema/file/format-policies.ts';
import { parseSchema } from '../../src/schema/load.ts';

const TEXT = `collections:
  bookings:
    fields:
      from: datetime
      to: datetime
      people: int
    access: { view: true, create: true, update: true }
    checks:
      in_order: { when: '@next.from < @next.to', message: ends before it starts, fields: [from, to] }
      never_fewer: { when: '@next.people >= @record.people or changed(@record.to)', message: it shrinks }
`;
const { schema, issues } = parseSchema(TEXT);
const { checks } = schema!.collections.get('bookings')!;
const REQUEST = { auth: { id: 'a', roles: [] }, query: {}, now: '2026-01-01T00:00:00.000000Z' };
const NONE = { one: () => undefined, many: () => [] };
const [EARLY, LATE] = ['2026-01-01T00:00:00.000000Z', '2026-01-02T00:00:00.000000Z'];

test('the checks of a collection are in the order of the file', () => {
  expect(issues).toEqual([]);
  expect(checks.map(({ name, message, when, fields }) => ({ name, message, when, fields }))).toEqual([
    {
      name: 'in_order',
      message: 'ends before it starts',
      when: '@next.from < @next.to',
      fields: ['from', 'to'],
    },
    {
      name: 'never_fewer',
      message: 'it shrinks',
      when: '@next.people >= @record.people or changed(@record.to)',
      fields: [],
    },
  ]);
});

test('a check is not warned about callers, or about values that can be absent', () => {
  const when = (text: string) =>
    parseSchema(TEXT.replace('@next.from < @next.to', text)).issues.map(({ code }) => code);
  expect(when('@next.people > 1 and not (@next.people = 5)')).toEqual([]);
  expect(when('@next.people > 1 and @next.people < 1')).toEqual(['never_true']);
});

test('the rule of a violation holds where the condition is false, and not where it is unknown', () => {
  const [violated] = checks[0]!.violated.create;
  const fails = (record: object): boolean => {
    const residual = violated!.specialise(REQUEST);
    return residual.test({ from: null, to: null, people: null, ...record }, NONE);
  };
  expect(fails({ from: LATE, to: EARLY })).toBe(true);
  expect(fails({ from: EARLY, to: LATE })).toBe(false);
  expect(fails({ from: LATE })).toBe(false);
  expect(fails({})).toBe(false);
});

test('the rule of an update sees the record before and after', () => {
  const residual = checks[1]!.violated.update[0]!.specialise(REQUEST);
  const before = { from: null, to: null, people: 3 };
  expect(residual.test(before, NONE, { ...before, people: 2 })).toBe(true);
  expect(residual.test(before, NONE, { ...before, people: 4 })).toBe(false);
  expect(residual.test(before, NONE, { ...before, people: 2, to: LATE })).toBe(false);
});

test('the formatter writes the conditions of checks in canonical form', () => {
  const { text, changed } = formatPolicies(TEXT.replace('@next.from < @next.to', '@next.from<@next.to'));
  expect([text, changed]).toEqual([TEXT, ['collections.bookings.checks.in_order.when']]);
});

test('the OpenAPI document names the checks of a write, with their fields and messages', () => {
  // biome-ignore lint/suspicious/noExplicitAny: the document is JSON
  const { schemas } = (openapiOf(schema!, routes, '1') as any).components;
  const words = [
    'The record that it makes is held to these checks:',
    '- `in_order` (`from`, `to`): ends before it starts',
    '- `never_fewer`: it shrinks',
  ];
  for (const name of ['BookingCreate', 'BookingUpdate']) expect(schemas[name].description.split('\n')).toEqual(words);
});

const NULL_FAILS = '@next.name is not null';
test.each([
  [NULL_FAILS, true],
  ['@request.auth.roles contains "boss" or @next.kind != "new"', true],
  ['@next.name != "root"', false],
  ['@next.email ends with "@example.org"', false],
  ['@next.created_at < @now', false],
  ['@next.team.open', false],
])('a check of users that no registration passes is a warning: %s', (when, isClosed) => {
  const codes = (register: string): readonly string[] =>
    parseSchema(`
roles: [member, boss]
register: { roles: [member]${register} }
collections:
  teams: { fields: { open: bool } }
  users:
    fields: { name: string, kind: { type: string, default: new } }
    relations: { team: { kind: belongs_to, collection: teams } }
    checks: { c: { when: '${when}', message: m } }
`).issues.map(({ code }) => code);
  expect(codes('')).toEqual(isClosed ? ['registration_closed'] : []);
  expect(codes(', open: false')).toEqual([]);
});
