/** Decisions that both policy exports make, in memory. */
export const schema = `
roles: [member, admin]
collections:
  users: { relations: { memberships: { kind: has_many, collection: memberships, via: user } } }
  orders:
    id: { type: int }
    fields: { code: string }
  places:
    id: { type: string }
    fields: { name: string }
  teams:
    fields: { name: { type: string, required: true } }
    relations: { memberships: { kind: has_many, collection: memberships, via: team } }
  memberships:
    fields: { role: { type: string, required: true } }
    relations:
      team: { kind: belongs_to, collection: teams, required: true }
      user: { kind: belongs_to, collection: users, required: true }
  documents:
    fields: { status: { type: string, required: true }, score: int, due_at: datetime, meta: { type: json, paths: { color: string, size.w: int } } }
    relations:
      owner: { kind: belongs_to, collection: users }
      team: { kind: belongs_to, collection: teams }
      tags: { kind: many_to_many, collection: tags }
      order: { kind: belongs_to, collection: orders }
      place: { kind: belongs_to, collection: places }
  tags:
    fields: { name: string }
`;
export const ADA = '0190b0a0-0000-7000-8000-000000000001';
export const BEN = '0190b0a0-0000-7000-8000-000000000002';
export const TEAM = '0190b0a0-0000-7000-8000-000000000003';
export const place = { schema, collection: 'documents', action: 'list' } as const;
const MEMBER = 'any(@record.team.memberships as m, m.user = @request.auth.id and m.role in ["owner", "editor"])';

export const cases: readonly (readonly [text: string, record: object, request: object, expected: boolean | null])[] = [
  ['@record.owner = @request.auth.id', { owner: ADA }, { auth: { id: ADA } }, true],
  ['@record.owner = @request.auth.id', { owner: BEN }, { auth: { id: ADA } }, false],
  ['@record.owner = @request.auth.id', { owner: null }, { auth: { id: ADA } }, null],
  ['@record.owner = @request.auth.id', { owner: ADA }, {}, null],
  ['@record.order = 5', { order: 5 }, {}, true],
  ['@record.order.id = 5 and @record.order.code = "x"', { order: { id: 5, code: 'x' } }, {}, true],
  ['@record.place = "here"', { place: 'here' }, {}, true],
  ['none(@request.auth.memberships as m, m.role = "owner")', {}, { auth: { id: ADA, memberships: [] } }, true],
  [
    'none(@request.auth.memberships as m, m.role = "owner")',
    {},
    { auth: { id: ADA, memberships: [{ role: 'owner', user: ADA }] } },
    false,
  ],
  ['count(@request.auth.memberships) = 2', {}, { auth: { id: ADA, memberships: [{}, {}] } }, true],
  // A required field that the record leaves out is absent, not "something else".
  ['@record.status != "draft"', {}, {}, null],
  ['not (@record.status = "draft")', {}, {}, null],
  ['@request.auth.roles contains "admin"', {}, { auth: { id: ADA, roles: ['admin'] } }, true],
  ['@record.meta.size.w = 5', { meta: { size: { w: 5 } } }, {}, true],
  ['@record.meta.size.w = 5', { meta: { size: { w: 5.5 } } }, {}, null],
  ['@record.meta.color = "red"', { meta: { color: ['red'] } }, {}, null],
  ['@record.meta.color is null', { meta: 'red' }, {}, true],
  ['@record.meta is null', { meta: {} }, {}, false],
  ['@record.score > 3 or @record.status = "x"', { score: 4 }, {}, true],
  ['@record.due_at < @now', { due_at: '2026-01-01T01:00:00+01:00' }, { now: '2026-01-01T00:00:01Z' }, true],
  ['@record.status = @request.query.status', { status: 'open' }, { query: { status: 'open' } }, true],
  ['@record.tags contains @request.query.tag', { tags: [TEAM] }, { query: { tag: TEAM } }, true],
  [
    MEMBER,
    {
      team: {
        memberships: [
          { user: BEN, role: 'owner' },
          { user: ADA, role: 'editor' },
        ],
      },
    },
    { auth: { id: ADA } },
    true,
  ],
  [MEMBER, { team: { memberships: [{ user: ADA, role: 'reader' }] } }, { auth: { id: ADA } }, false],
  [MEMBER, { team: null }, { auth: { id: ADA } }, null],
];
