/**
 * Policies and the condition that a person who knows PostgreSQL writes for each. `{uid}`, `{now}`, `{team}`, `{tag}`, `{q}`, `{n}` are
 * parameters.
 */
export interface Pair {
  readonly policy: string;
  readonly sql: string;
}
const pair = (policy: string, sql: string): Pair => ({ policy, sql });

const MINE = '@record.owner = @request.auth.id';
const MINE_SQL = 'r.owner_id = {uid}::uuid';
const MEMBER = 'any(@record.team.memberships as m, m.user = @request.auth.id)';
const MEMBER_SQL = 'EXISTS (SELECT 1 FROM memberships m WHERE m.team_id = r.team_id AND m.user_id = {uid}::uuid)';
const MEMBER_KEYS = 'r.team_id = ANY(ARRAY(SELECT m.team_id FROM memberships m WHERE m.user_id = {uid}::uuid))';
const EDITOR = 'any(@record.team.memberships as m, m.user = @request.auth.id and m.role in ["owner", "editor"])';
const EDITOR_SQL = `EXISTS (SELECT 1 FROM memberships m WHERE m.team_id = r.team_id AND m.user_id = {uid}::uuid AND m.role = ANY('{owner,editor}'::text[]))`;
const EDITOR_KEYS = `r.team_id = ANY(ARRAY(SELECT m.team_id FROM memberships m WHERE m.user_id = {uid}::uuid AND m.role = ANY('{owner,editor}'::text[])))`;
const TAGGED_SQL = 'EXISTS (SELECT 1 FROM documents_tags t WHERE t.document_id = r.id AND t.tag_id = {tag}::uuid)';
const TAGGED_KEYS = 'r.id = ANY(ARRAY(SELECT t.document_id FROM documents_tags t WHERE t.tag_id = {tag}::uuid))';
const CHAIN = `WITH RECURSIVE c (id, next, path) AS (
  SELECT t.id, t.parent_id, ARRAY[t.id] FROM teams t WHERE t.id = r.team_id
   UNION ALL
  SELECT t.id, t.parent_id, c.path || t.id FROM c JOIN teams t ON t.id = c.next
   WHERE cardinality(c.path) < 32 AND c.next <> ALL(c.path))`;

export const PAIRS: readonly Pair[] = [
  pair('@record.status = "published"', `r.status = 'published'`),
  pair(MINE, MINE_SQL),
  pair(`@record.status = "published" or ${MINE}`, `r.status = 'published' OR ${MINE_SQL}`),
  pair(`@record.status = "draft" and ${MINE}`, `r.status = 'draft' AND ${MINE_SQL}`),
  pair('@record.status in ["review", "draft"]', `r.status = ANY('{review,draft}'::text[])`),
  pair('@record.status not in ["review", "draft", "archived"]', `r.status <> ALL('{review,draft,archived}'::text[])`),
  pair('@record.status != "published"', `r.status <> 'published'`),
  pair(`not (@record.status = "published") and ${MINE}`, `r.status <> 'published' AND ${MINE_SQL}`),
  pair('@record.due_at < @now', 'r.due_at < {now}::timestamptz'),
  pair(`@record.due_at < @now and ${MINE}`, `r.due_at < {now}::timestamptz AND ${MINE_SQL}`),
  pair('@record.due_at >= "2025-11-20T00:00:00Z"', `r.due_at >= '2025-11-20T00:00:00Z'::timestamptz`),
  pair(
    '@record.created_at > "2024-06-01T00:00:00Z" and @record.pinned',
    `r.created_at > '2024-06-01T00:00:00Z'::timestamptz AND r.pinned`,
  ),
  pair('@record.pinned', 'r.pinned'),
  pair('not @record.pinned', 'NOT r.pinned'),
  pair('@record.score > 990', 'r.score > 990'),
  pair('@record.score >= 998.5', 'r.score >= 999'),
  pair('@record.score = 500 or @record.score = 501', `r.score = ANY('{500,501}'::int8[])`),
  pair('@record.score is null', 'r.score IS NULL'),
  pair(`@record.score is not null and ${MINE}`, `r.score IS NOT NULL AND ${MINE_SQL}`),
  pair('not (@record.score < 990)', 'r.score >= 990'),
  pair('@record.score > 10 and @record.score > 995', 'r.score > 995'),
  pair('@record.score >= @request.query.n', 'r.score >= {n}::int8'),
  pair('@record.rating > 99.99', 'r.rating > 99.99'),
  pair('@record.rating <= 0.01 and @record.status = "published"', `r.rating <= 0.01 AND r.status = 'published'`),
  pair(
    '@record.title starts with "document 99999"',
    `r.title >= 'document 99999' AND r.title < 'document 9999:' AND starts_with(r.title, 'document 99999')`,
  ),
  pair(
    '@record.title starts with @request.query.q',
    'r.title >= {q}::text AND r.title < {q2}::text AND starts_with(r.title, {q}::text)',
  ),
  pair('@record.title contains "7777"', `strpos(r.title, '7777') > 0`),
  pair('@record.title = "document 4711"', `r.title = 'document 4711'`),
  pair('@record.team = @request.query.team', 'r.team_id = {team}::uuid'),
  pair('@record.team is null', 'r.team_id IS NULL'),
  pair('@record.team.open', 'EXISTS (SELECT 1 FROM teams t WHERE t.id = r.team_id AND t.open)'),
  pair(
    '@record.team.lead = @request.auth.id',
    'EXISTS (SELECT 1 FROM teams t WHERE t.id = r.team_id AND t.lead_id = {uid}::uuid)',
  ),
  pair(
    `@record.team.lead = @request.auth.id or ${MINE}`,
    `r.team_id = ANY(ARRAY(SELECT t.id FROM teams t WHERE t.lead_id = {uid}::uuid)) OR ${MINE_SQL}`,
  ),
  pair(MEMBER, MEMBER_SQL),
  pair(EDITOR, EDITOR_SQL),
  pair(`${MINE} or ${MEMBER}`, `${MINE_SQL} OR ${MEMBER_KEYS}`),
  pair(`${MINE} or ${EDITOR}`, `${MINE_SQL} OR ${EDITOR_KEYS}`),
  pair('@record.tags contains @request.query.tag', TAGGED_SQL),
  pair(`${MINE} or @record.tags contains @request.query.tag`, `${MINE_SQL} OR ${TAGGED_KEYS}`),
  pair(
    `none(@record.team.memberships as m, m.user = @request.auth.id) and ${MINE}`,
    `r.team_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM memberships m WHERE m.team_id = r.team_id AND m.user_id = {uid}::uuid) AND ${MINE_SQL}`,
  ),
  // No further than the literal asks.
  pair(
    `count(@record.team.memberships) > 29 and ${MINE}`,
    `r.team_id IS NOT NULL
       AND (SELECT count(*) FROM (SELECT 1 FROM memberships m WHERE m.team_id = r.team_id LIMIT 30) c) > 29 AND ${MINE_SQL}`,
  ),
  // A single list of the caller's keys.
  pair(
    'any(@request.auth.memberships as m, m.team = @record.team)',
    'r.team_id = ANY(ARRAY(SELECT m.team_id FROM memberships m WHERE m.user_id = {uid}::uuid))',
  ),
  // Downwards from the teams that the caller leads.
  pair(
    'any(ancestors(@record.team by parent) as t, t.lead = @request.auth.id)',
    `r.team_id = ANY(ARRAY(
       WITH RECURSIVE b (id, place) AS (
         SELECT t.id, 1 FROM teams t WHERE t.lead_id = {uid}::uuid
          UNION
         SELECT t.id, b.place + 1 FROM b JOIN teams t ON t.parent_id = b.id WHERE b.place < 32)
       SELECT id FROM b))`,
  ),
  // Upwards from each team, where no index finds what is asked.
  pair(
    `any(ancestors(@record.team by parent) as t, t.name contains "11") and ${MINE}`,
    `EXISTS (${CHAIN} SELECT 1 FROM c JOIN teams t ON t.id = c.id WHERE strpos(t.name, '11') > 0) AND ${MINE_SQL}`,
  ),
  // A single walk counts, and finds whether more records exist.
  pair(
    `count(ancestors(@record.team by parent)) > 2 and ${MINE}`,
    `r.team_id IS NOT NULL AND (${CHAIN} SELECT count(*) FROM c HAVING NOT EXISTS (
         SELECT 1 FROM c WHERE cardinality(c.path) = 32 AND c.next <> ALL(c.path))) > 2 AND ${MINE_SQL}`,
  ),
  pair('@record.title matches "MENT 99999"', `r."title~folded" LIKE '%ment 99999%'`),
];
