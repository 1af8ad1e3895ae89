/** The audience of a change: its pins, and the related rows that decide. */
import { describe, expect, it } from 'vitest';
import { Audience } from '../../src/changes/audience.ts';
import { decide } from '../../src/policy/access.ts';
import { compileFilter } from '../../src/policy/filters/filter.ts';
import { TooMuchWork } from '../../src/policy/work-budget.ts';
import { Store } from '../../src/records/access-context.ts';
import { FeedCaller } from '../fuzz/changes/feed-caller.ts';
import { schemaOf } from '../support/store-world.ts';

const ME = '00000001-0000-4000-8000-000000000000';
const TEAM = '00000002-0000-4000-8000-000000000000';

function worldOf(list: string) {
  const schema = schemaOf(`
collections:
  users: { relations: { team: { kind: belongs_to, collection: teams } } }
  teams: { relations: { members: { kind: has_many, collection: members, via: team } }, access: { view: true } }
  members:
    fields: { kind: string }
    relations: { team: { kind: belongs_to, collection: teams }, user: { kind: belongs_to, collection: users } }
    access: { view: true }
  places:
    fields:
      name: string
      open: bool
      cost: { type: int, access: { read: '@record.name = "known"' } }
    relations: { team: { kind: belongs_to, collection: teams } }
    access: { read: '@record.open = true' }
  # The members of their team decide who reads them.
  rooms:
    fields: { name: string }
    relations: { team: { kind: belongs_to, collection: teams } }
    access: { read: 'any(@record.team.members as m, m.user = @request.auth.id)' }
  notes:
    changes: true
    fields:
      n: int
      long: bigint
      kind: string
      # A rule that reads no other record.
      secret: { type: string, access: { read: '@record.n = 1' } }
    relations:
      owner: { kind: belongs_to, collection: users }
      team: { kind: belongs_to, collection: teams }
      place: { kind: belongs_to, collection: places }
      room: { kind: belongs_to, collection: rooms }
    access: { list: '${list}' }
`);
  const caller = new FeedCaller(schema, { id: ME, roles: [], team: TEAM }, decide);
  const store = new Store({} as never, schema);
  const audience = (text?: string, isOfSchema = false): Audience => {
    const { filter } = compileFilter(text ?? 'id is not null', { catalog: schema, collection: 'notes', params: {} });
    return new Audience(store, caller.ask('notes'), { filters: text === undefined ? [] : [filter!], isOfSchema });
  };
  return { store, audience };
}

const audienceOf = (list: string): Audience => worldOf(list).audience();

describe('the pins of an audience', () => {
  const owner = { member: 'owner', values: [ME] };
  const team = { member: 'team', values: [TEAM] };
  it.each([
    ['@record.owner = @request.auth.id', [owner]],
    ['@record.n > 2 and @record.owner = @request.auth.id', [owner]],
    ['@record.owner = @request.auth.id or @record.team = @request.auth.team and @record.n = 1', [owner, team]],
    ['@record.kind in ["a", "b"]', [{ member: 'kind', values: ['a', 'b'] }]],
    ['@record.owner = @request.auth.id or @record.n = 1', undefined],
    ['@record.long = 5', undefined],
    ['@record.owner != @request.auth.id', undefined],
    ['@record.owner is null', undefined],
    ['any(@record.team.members as m, m.user = @request.auth.id)', undefined],
    ['true', undefined],
  ])('%s', (rule, pins) => {
    expect(audienceOf(rule).pins).toEqual(pins);
  });
});

it('has another key for each filter, by its shape and by its values', () => {
  const { audience } = worldOf('true');
  const keys = [undefined, 'n = 1', 'n = 2', 'n > 1', 'n = 1'].map((filter) => audience(filter).key);
  expect([new Set(keys).size, keys.at(-1)]).toEqual([4, keys[1]]);
});

it('shows a member of an earlier state where the rule holds for that state and for the newest', () => {
  const { store, audience } = worldOf('true');
  const [related, shape] = [{ one: () => undefined, many: () => [] }, store.shape('notes')];
  const state = (n: string) => {
    const cells = [ME, '2026-01-01 00:00:00+00', '2026-01-01 00:00:00+00', n, '5', 'a', `s${n}`, null, null];
    return { cells, row: shape.row(cells) };
  };
  const shown = (then: string, now: string) => JSON.parse(audience().text(state(then), state(now), related)).secret;
  expect([shown('1', '1'), shown('2', '1'), shown('1', '2')]).toEqual(['s1', undefined, undefined]);
});

describe('related rows', () => {
  const row = (user: string, kind: string) => [{ id: TEAM, user, kind, team: TEAM }];
  const audience = audienceOf('any(@record.team.members as m, m.user = @request.auth.id and m.kind = "full")');

  it('a row concerns an audience whose rule it may meet, also beside rules that read no such row', () => {
    expect(audience.dependsOn('members', row(ME, 'full'))).toBe(true);
    expect(audience.dependsOn('members', row(TEAM, 'full'))).toBe(false);
    expect(audience.dependsOn('members', row(ME, 'other'))).toBe(false);
    expect(audience.dependsOn('users', [{ id: ME }])).toBe(false);
  });
});

describe('a change of a related record', () => {
  const open = { id: TEAM, name: 'a', open: true, cost: 5, team: null };
  it.each([
    ['place.name = "a"', open, true],
    ['place.name = "b"', open, false],
    ['place.name = "a"', { ...open, open: false }, false],
    ['place.name != "b"', open, true],
    ['place.name != "b"', { ...open, open: false }, false],
    ['place.cost = 5', open, false],
    ['place.cost = 5', { ...open, name: 'known' }, true],
    ['place.cost = 6', { ...open, name: 'known' }, false],
  ])('under the filter %s, %o concerns its author only by what is shown of it: %s', (filter, row, expected) => {
    expect(worldOf('true').audience(filter).dependsOn('places', [row])).toBe(expected);
  });

  it('concerns each author of a filter if other records decide who reads it', () => {
    const { audience } = worldOf('true');
    const row = { id: TEAM, name: 'a', team: null };
    const concerned = ['room.name = "a"', 'room.name = "b"'].map((each) => audience(each).dependsOn('rooms', [row]));
    expect(concerned).toEqual([true, true]);
  });

  it('concerns a caller by the values that a rule names', () => {
    const mine = worldOf('@record.place.name = "a"').audience();
    expect([
      mine.dependsOn('places', [{ ...open, open: false }]),
      mine.dependsOn('places', [{ ...open, name: 'b' }]),
    ]).toEqual([true, false]);
  });
});

it('a filter that compares related rows ends at its budget, unless the schema states it', () => {
  const { store, audience } = worldOf('true');
  const members = Array.from({ length: 80 }, (_, i) => ({ id: `${i}`, kind: `${i}`, team: TEAM }));
  const related = { one: () => ({ id: TEAM }), many: () => members };
  const cells = [ME, '2026-01-01 00:00:00+00', '2026-01-01 00:00:00+00', '1', '5', 'a', 's', null, TEAM];
  const state = { cells, row: store.shape('notes').row(cells) };
  const cycle =
    'any(team.members as a, any(team.members as b, any(team.members as c, a.kind < b.kind and b.kind < c.kind and c.kind < a.kind)))';
  expect(() => audience(cycle).listing(related)(state)).toThrow(TooMuchWork);
  expect(audience(cycle, true).listing(related)(state)).toBe(false);
});
