/** Policies of lists, and for each the statement that a person writes who knows the data and PostgreSQL: a page of 21 by id. */
export interface List {
  readonly policy: string;
  /** An exact filter. */
  readonly status?: string;
  readonly sql: string;
}

const MINE = '@record.owner = @request.auth.id';
const MEMBER = 'any(@record.team.memberships as m, m.user = @request.auth.id)';
const PAGE = 'ORDER BY t.id LIMIT 21';
const plain = (where: string): string => `SELECT t.* FROM documents t WHERE ${where} ${PAGE}`;
const range = (where: string): string => `(SELECT d.id FROM documents d WHERE ${where} ORDER BY d.id LIMIT 21)`;
const union = (...parts: readonly string[]): string =>
  `SELECT t.* FROM documents t WHERE t.id = ANY(ARRAY(${parts.join(' UNION ALL ')})) ${PAGE}`;
/** A range for each key. */
const each = (keys: string, where: string): string =>
  `(SELECT d.id FROM (${keys}) k (key) CROSS JOIN LATERAL ${range(where)} d)`;

const OWN = 'd.owner_id = {uid}::uuid';
const TEAMS = 'SELECT m.team_id FROM memberships m WHERE m.user_id = {uid}::uuid';
const OF_TEAM = 'd.team_id = k.key';

export const LISTS: readonly List[] = [
  { policy: MINE, sql: plain('t.owner_id = {uid}::uuid') },
  {
    policy: `${MINE} or @record.status = "published"`,
    sql: plain(`t.owner_id = {uid}::uuid OR t.status = 'published'`),
  },
  {
    policy: `${MINE} or @record.status = "published"`,
    status: 'draft',
    sql: plain(`t.owner_id = {uid}::uuid AND t.status = 'draft'`),
  },
  { policy: MEMBER, sql: union(each(TEAMS, OF_TEAM)) },
  { policy: `${MINE} or ${MEMBER}`, sql: union(range(OWN), each(TEAMS, OF_TEAM)) },
  {
    policy: `${MINE} or ${MEMBER}`,
    status: 'draft',
    sql: union(range(`${OWN} AND d.status = 'draft'`), each(TEAMS, `${OF_TEAM} AND d.status = 'draft'`)),
  },
  {
    policy: `${MINE} or ${MEMBER} or @record.status = "published"`,
    sql: plain(`t.status = 'published' OR t.owner_id = {uid}::uuid OR t.team_id = ANY(ARRAY(${TEAMS}))`),
  },
  {
    policy: `${MINE} or @record.team.lead = @request.auth.id`,
    sql: union(range(OWN), each('SELECT l.id FROM teams l WHERE l.lead_id = {uid}::uuid', OF_TEAM)),
  },
  {
    policy: `${MINE} or any(@request.auth.memberships as m, m.team = @record.team)`,
    sql: union(range(OWN), each(TEAMS, OF_TEAM)),
  },
  {
    policy: `${MINE} or @record.score in [500, 501]`,
    sql: union(range(OWN), range('d.score = 500'), range('d.score = 501')),
  },
  {
    policy: `${MINE} or @record.tags contains @request.query.tag`,
    sql: union(
      range(OWN),
      '(SELECT g.document_id FROM documents_tags g WHERE g.tag_id = {tag}::uuid ORDER BY g.document_id LIMIT 21)',
    ),
  },
  {
    policy: `@record.status = "draft" and (${MINE} or ${MEMBER})`,
    sql: union(range(`${OWN} AND d.status = 'draft'`), each(TEAMS, `${OF_TEAM} AND d.status = 'draft'`)),
  },
];
