/** Pairs of policies with the verdict that the definition gives. Seeded faults in the solver must change some. */
import { compilePolicy } from '../../../../src/policy/compile.ts';
import type { Action, Policy } from '../../../../src/policy/types.ts';
import { parseSchema } from '../../../../src/schema/load.ts';

type SolveModule = typeof import('../../../../src/policy/analyse/solve/solve.ts');
type BudgetModule = typeof import('../../../../src/policy/analyse/solve/search.ts');

const SCHEMA = `
roles:
  admin: { includes: [editor] }
  editor: { includes: [member] }
  member: {}
  auditor: {}
collections:
  users:
    fields: { level: int, team_name: string, words: { type: list, of: string } }
    relations:
      memberships: { kind: has_many, collection: memberships, via: user }
  teams:
    fields: { name: { type: string, required: true } }
    relations:
      memberships: { kind: has_many, collection: memberships, via: team }
      parent: { kind: belongs_to, collection: teams }
  memberships:
    fields: { role: { type: string, required: true, enum: [owner, editor, reader] }, level: { type: int, required: true, min: 0, max: 9 } }
    relations:
      team: { kind: belongs_to, collection: teams, required: true }
      user: { kind: belongs_to, collection: users, required: true }
  nodes:
    relations:
      up: { kind: belongs_to, collection: nodes }
      down: { kind: has_one, collection: nodes, via: up }
  covers:
    relations: { document: { kind: belongs_to, collection: documents } }
  counters: { id: { type: int } }
  tags:
    fields: { word: { type: string, unique: true } }
  documents:
    fields:
      title: { type: string, required: true, max: 10 }
      status: { type: string, required: true, enum: [draft, published, archived] }
      score: int
      rating: float
      pinned: { type: bool, required: true }
      due_at: datetime
      day: date
      at: time
      price: { type: decimal, precision: 6, scale: 2 }
      big: bigint
      key: uuid
      hash: bytes
      labels: { type: list, of: string }
      meta: { type: json, paths: { size: int, owner.name: string } }
      place: point
    relations:
      owner: { kind: belongs_to, collection: users, required: true }
      team: { kind: belongs_to, collection: teams }
      node: { kind: belongs_to, collection: nodes }
      counter: { kind: belongs_to, collection: counters }
      tags: { kind: many_to_many, collection: tags }
      cover: { kind: has_one, collection: covers, via: document }
`;

export type Verdict = 'same' | 'narrower' | 'wider' | 'both' | 'unknown';
/** The old rules, the new ones, and the verdict. A list is a union. */
export type SolveCase = readonly [old: Rules, changed: Rules, verdict: Verdict, action?: Action];
type Rules = string | readonly string[];

const MINE = '@record.owner = @request.auth.id';
const STATUS = '@record.status';
const NEARLY_ONE = '0.99999999999999999999';

export const SOLVE_CASES: readonly SolveCase[] = [
  // An id that is an int equals no numeral beside the ints, however near.
  [`@record.counter not in [${NEARLY_ONE}] and @record.counter = 1`, '@record.counter = 1', 'same'],
  [`@record.counter in [${NEARLY_ONE}] or @record.counter = ${NEARLY_ONE}`, 'false', 'same'],
  // A list of the caller's is not their roles.
  ['@request.auth.words contains "x" or @record.score > 1', '@record.score > 1', 'narrower'],
  ['@request.auth.words is not null or @record.score > 1', '@record.score > 1', 'narrower'],
  ['"x" in @request.auth.words', 'any(@record.labels as l, l = "x") and "x" in @request.auth.words', 'narrower'],
  // A chain of which every record has a parent closes.
  ['all(ancestors(@record.team by parent) as t, t.parent.name = "a")', 'false', 'narrower'],
  ['@record.team.name = "b" and all(ancestors(@record.team by parent) as t, t.parent.name = "a")', 'false', 'narrower'],
  // The node below another has that above it, unless both are one.
  ['count(ancestors(@record.node.down by up)) <= 1', 'false', 'narrower'],
  ['count(ancestors(@record.node.down by up)) <= 1', 'count(ancestors(@record.node.down by up)) = 1', 'same'],
  ['count(ancestors(@record.node.down by up)) = 1 and @record.node.down.id != @record.node.id', 'false', 'same'],
  // A list of the body is that of the record that the write makes.
  [
    '@request.data.labels contains "a"',
    '@record.labels contains "a" and @request.data.labels is not null',
    'same',
    'create',
  ],
  ['@request.data.labels contains "a"', '@next.labels contains "a"', 'wider', 'update'],
  ['"a" not in @request.data.labels and @next.labels contains "a"', 'false', 'same', 'update'],
  ['"a" not in @request.data.labels', '@request.data.labels is not null', 'wider', 'update'],
  ['@record.title in @request.data.labels', '@request.data.labels is not null', 'wider', 'update'],
  // Json and points
  ['@record.meta is not null', '@record.meta is null', 'both'],
  ['@record.meta.size > 3', '@record.meta.size > 3 and @record.meta is not null', 'same'],
  ['@record.meta.size > 3', '@record.meta.size >= 4', 'same'],
  ['@record.meta.owner.name = "a" and @record.meta.size = 1', '@record.meta.size = 1', 'wider'],
  [
    '@next.meta.size = 1 and not changed(@record.meta)',
    '@record.meta.size = 1 and not changed(@record.meta)',
    'same',
    'update',
  ],
  ['changed(@record.meta)', '@record.meta.size != @next.meta.size', 'narrower', 'update'],
  ['within(@record.place, 52.1, 4.3, 5km)', '@record.place is not null', 'wider'],
  ['within(@record.place, 52.1, 4.3, 5km) and not within(@record.place, 52.1, 4.3, 5km)', 'false', 'same'],
  ['within(@record.place, 52.1, 4.3, 5km)', 'within(@record.place, -10, 4.3, 5km)', 'both'],
  // Lists
  ['@record.labels contains "a"', 'any(@record.labels as l, l = "a")', 'same'],
  ['@record.labels contains "a"', 'count(@record.labels as l, l = "a") >= 1', 'same'],
  ['all(@record.labels as l, l = "a")', '@record.labels contains "a" or count(@record.labels) = 0', 'wider'],
  ['none(@record.labels as l, l starts with "a")', 'not (@record.labels contains "ab")', 'wider'],
  ['@record.labels contains "a"', '@record.labels is not null', 'wider'],
  ['count(@record.labels) > 1 and all(@record.labels as l, l = "a")', 'false', 'narrower'],
  ['changed(@record.labels) and @record.labels is null and @next.labels is null', 'false', 'same', 'update'],
  ['not changed(@record.labels) and @record.labels contains "a"', '@next.labels contains "a"', 'wider', 'update'],
  ['changed(@record.labels)', 'true', 'wider', 'update'],
  // The service sets the times of a record: a body need not have them.
  [
    '@record.score > 1 and @request.data.created_at is null',
    '@record.score > 1 and @request.data.created_at is not null',
    'both',
    'create',
  ],
  // Facts of the request
  ['@request.ip in ["10.0.0.0/8"]', '@request.ip in ["10.0.0.0/9", "10.128.0.0/9"]', 'same'],
  ['@request.ip in ["10.0.0.0/8"]', '@request.ip in ["10.0.0.0/9"]', 'narrower'],
  ['@request.ip not in ["10.0.0.0/8"]', 'true', 'wider'],
  ['@request.method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]', 'true', 'same'],
  ['@request.method = "GET" or @record.score > 1', '@record.score > 1', 'narrower'],
  ['@request.origin is null', '@request.origin != "https://a.example"', 'both'],
  ['@request.kind = "key" and @request.auth.id is null', 'false', 'same'],
  ['@request.kind = "user"', '@request.auth.signed_in_at is not null', 'same'],
  ['@request.kind = "key" and @record.score > 1', 'false', 'narrower'],
  ['@request.kind = "guest"', '@request.auth.id is null', 'same'],
  ['@now.hour >= 8 and @now.hour < 9', '@now.hour = 8', 'same'],
  ['@now.weekday < 6', '@now.weekday <= 6', 'wider'],
  ['@now.weekday > @record.score and @record.score > 6', 'false', 'same'],
  // Between two instants that are four microseconds apart
  [
    '@record.created_at = "2024-03-01T12:00:00.000001Z" or @record.created_at = "2024-03-01T12:00:00.000005Z"',
    '@record.created_at >= "2024-03-01T12:00:00.000001Z" and @record.created_at <= "2024-03-01T12:00:00.000005Z"',
    'wider',
    'create',
  ],
  // Three values
  ['@record.score > 1 or not @record.score > 1', 'true', 'wider'],
  ['@record.score > 1 or not @record.score > 1', '@record.score is not null', 'same'],
  [MINE, `${MINE} and @request.auth.id is not null`, 'same'],
  ['not @record.pinned', '@record.pinned = false', 'same'],
  ['@record.score in []', 'false', 'same'],
  ['@record.score not in []', 'true', 'same'],
  ['@request.query.mode = "x"', 'not @request.query.mode != "x"', 'same'],
  ['@request.query.mode != "x"', 'true', 'wider'],
  // Roles
  ['@request.auth.roles contains "admin"', '@request.auth.roles contains "editor"', 'wider'],
  [
    '@request.auth.roles contains "admin" or @request.auth.roles contains "member"',
    '@request.auth.roles contains "member"',
    'same',
  ],
  ['@request.auth.roles contains "auditor"', '@request.auth.roles contains "member"', 'both'],
  ['"admin" in @request.auth.roles and "member" not in @request.auth.roles', 'false', 'same'],
  [`${STATUS} in @request.auth.roles`, 'false', 'same'],
  ['@record.title in @request.auth.roles', '@record.title in ["admin", "editor", "member", "auditor", "x"]', 'both'],
  ['@request.auth.roles contains "guest"', '@request.auth.id is null', 'same'],
  ['@request.auth.roles contains "guest"', 'false', 'narrower'],
  // Equality, order and bounds
  [MINE, `${MINE} and ${STATUS} = "draft"`, 'narrower'],
  [`${STATUS} != "draft"`, `${STATUS} in ["published", "archived"]`, 'same'],
  [`${STATUS} != "draft"`, `${STATUS} = "published"`, 'narrower'],
  ['@record.score >= 1.5', '@record.score > 1', 'same'],
  ['@record.score > 1 and @record.score < 3', '@record.score = 2', 'same'],
  ['@record.rating > 1 and @record.rating < 3', '@record.rating = 2', 'narrower'],
  ['@record.score = 9007199254740993', 'false', 'same'],
  ['@record.price > 1 and @record.price < 1.02', '@record.price = 1.01', 'same'],
  ['@record.big > 9007199254740992 and @record.big < 9007199254740994', '@record.big = 9007199254740993', 'same'],
  ['@record.day > "2026-01-01" and @record.day < "2026-01-03"', '@record.day = "2026-01-02"', 'same'],
  ['@record.at >= "23:59:59.999999"', '@record.at = "23:59:59.999999"', 'same'],
  ['@record.due_at > @now - 24h', '@record.due_at > @now', 'narrower'],
  [
    '@record.due_at > @now and @now > "2031-01-01T00:00:00Z"',
    '@record.due_at > "2030-01-01T00:00:00Z" and @record.due_at > @now',
    'wider',
  ],
  ['@record.key = "01900000-0000-7000-8000-000000000000"', '@record.key is not null', 'wider'],
  ['@record.hash = "aGk="', '@record.hash != "aGk="', 'both'],
  ['any(@record.team.memberships as m, m.level > 9)', 'false', 'same'],
  ['@record.score > @request.auth.level and @request.auth.level > @record.score', 'false', 'same'],
  ['@record.big < 0 or @record.big is null', '@record.big is null or @record.big > 0', 'both'],
  ['@record.score <= 0', '@record.score = 0', 'narrower'],
  ['@record.day <= "2026-01-01"', '@record.day = "2026-01-01"', 'narrower'],
  ['@record.price <= 0', '@record.price < 0', 'narrower'],
  // Parts of texts
  ['@record.title starts with "ab"', '@record.title starts with "a"', 'wider'],
  ['@record.title starts with "ab" and @record.title starts with "b"', 'false', 'same'],
  ['@record.title starts with "ab" and not @record.title contains "a"', 'false', 'same'],
  ['@record.title starts with "ab" and @record.title < "a"', 'false', 'same'],
  ['@record.title contains "12345678901"', 'false', 'same'],
  ['@record.title ends with @request.auth.team_name', '@record.title contains @request.auth.team_name', 'wider'],
  // Relations
  [
    'any(@record.team.memberships as m, m.user = @request.auth.id)',
    'any(@record.team.memberships as m, m.user = @request.auth.id and m.role = "owner")',
    'narrower',
  ],
  [
    'any(@record.team.memberships as m, m.user = @request.auth.id)',
    'any(@request.auth.memberships as m, m.team = @record.team)',
    'same',
  ],
  [
    'none(@record.team.memberships as m, m.role = "owner")',
    'all(@record.team.memberships as m, m.role != "owner")',
    'same',
  ],
  [
    'none(@record.team.memberships as m, m.role = "owner")',
    'not any(@record.team.memberships as m, m.role = "owner")',
    'same',
  ],
  ['all(@record.team.memberships as m, m.level > 3)', '@record.team is not null', 'wider'],
  ['count(@record.team.memberships) >= 1', 'any(@record.team.memberships as m, true)', 'same'],
  ['count(@record.team.memberships) < 2', 'count(@record.team.memberships) < 3', 'wider'],
  ['count(@record.tags) >= 1', '@record.tags contains "01900000-0000-7000-8000-000000000000"', 'narrower'],
  ['@record.cover.document = @record.id', '@record.cover is not null', 'same'],
  ['any(@record.tags as t, t.word = "a") and count(@record.tags as t, t.word = "a") > 1', 'false', 'same'],
  ['@record.team.parent.name = "a"', '@record.team.name = "a"', 'both'],
  ['any(ancestors(@record.team by parent) as t, t.name = "a")', '@record.team.name = "a"', 'narrower'],
  // Unions and writes
  [[MINE, `${STATUS} = "draft"`], `${MINE} or ${STATUS} = "draft"`, 'same'],
  [[MINE, `${STATUS} = "draft"`], `${MINE} or ${STATUS} = "draft"`, 'wider', 'update'],
  [MINE, `${MINE} and not changed(@record.owner)`, 'same', 'update'],
  [MINE, `${MINE} and @next.owner = @request.auth.id`, 'same', 'update'],
  [MINE, '@next.owner = @request.auth.id', 'wider', 'update'],
  ['changed_only(@record.title)', 'changed_only(@record.title, @record.score)', 'wider', 'update'],
  ['@request.data.status = "draft"', '@next.status = "draft"', 'wider', 'update'],
  [MINE, '@request.data.owner = @request.auth.id', 'same', 'create'],
  ['@record.created_at = @now', 'true', 'same', 'create'],
];

export const schema = parseSchema(SCHEMA).schema!;

export function verdictOf(solver: SolveModule & BudgetModule, [old, changed, , action = 'read']: SolveCase): Verdict {
  const place = { catalog: schemaCatalog, collection: 'documents', action };
  const compiled = (rules: Rules): readonly Policy[] => [rules].flat().map((text) => compilePolicy(text, place));
  const budget = new solver.Budget(125);
  return solver.compareRules(place, [compiled(old), compiled(changed)], { budget }).verdict;
}

const schemaCatalog = {
  collections: schema.collections,
  roles: new Map<string, unknown>([...schema.roles, ['guest', {}]]),
  timezone: schema.timezone,
};
