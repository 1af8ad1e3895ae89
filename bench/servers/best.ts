/**
 * The best that a person could write by hand on node:http: pipelined connections (or messages for PGlite that go in one call), cells as text, a
 * serialiser of its own, heads made once, and for each rule the SQL that its author knows to be fast on this data.
 * Arguments: DATABASE_URL or data folder, TOKEN, USER_ID, processes (default 1). Prints its address.
 */
import { randomUUID } from 'node:crypto';
import type { Cells } from './ask.ts';
import { answer, askedBy, COLUMNS, type Handlers, listen, RULES, WRITABLE } from './documents.ts';
import { inProcesses } from './in-processes.ts';
import { type Asks, openBest } from './open-best.ts';

const [place, token, userId, processes = '1'] = process.argv.slice(2) as [string, string, string, string?];
const callers = new Map([[token, userId]]);

const quoted = (cell: string): string => `"${cell}"`;
const instant = (cell: string): string => `"${cell.slice(0, 10)}T${cell.slice(11, -3)}Z"`;
const KINDS: Readonly<Record<string, (cell: string) => string>> = {
  title: JSON.stringify,
  body: JSON.stringify,
  score: String,
  pinned: (cell) => (cell === 't' ? 'true' : 'false'),
  created_at: instant,
  updated_at: instant,
  due_at: instant,
};
const PARTS = COLUMNS.map((name, i) => ({
  key: `${i === 0 ? '{' : ','}"${name.replace(/_id$/, '')}":`,
  print: KINDS[name] ?? quoted,
}));
function toJson(cells: Cells): string {
  let json = '';
  for (let i = 0; i < PARTS.length; i++) {
    const cell = cells[i] ?? null;
    json += PARTS[i]!.key + (cell === null ? 'null' : PARTS[i]!.print(cell));
  }
  return `${json}}`;
}
const inData = (cells: Cells | undefined): string | undefined => cells && `{"data":${toJson(cells)}}`;

const SHOWN = COLUMNS.map((name) => `t.${name}`).join(', ');
const TEAMS = 'ARRAY(SELECT m.team_id FROM memberships m WHERE m.user_id = $1)';

/** A published document is anybody's, and any other only its owner's. */
const documentsOf = (status: string | null): string => {
  if (status === null) return `(t.owner_id = $1 OR t.status = 'published')`;
  return status === 'published'
    ? `$1::uuid IS NOT NULL AND t.status = 'published'`
    : `t.owner_id = $1 AND t.status = 'draft'`;
};

/** Each branch has an index, and finds some hundreds: their ids are sorted before a row is shown. */
const teamPage = `
  WITH mine AS MATERIALIZED (
    SELECT t.id FROM team_documents t WHERE t.owner_id = $1
     UNION
    SELECT t.id FROM team_documents t WHERE t.team_id = ANY(${TEAMS}))
  SELECT ${SHOWN} FROM (SELECT id FROM mine ORDER BY id LIMIT $2 OFFSET $3) AS page JOIN team_documents t USING (id) ORDER BY t.id`;

const handlersOn = ({ reads, writes }: Asks): Handlers => ({
  async list({ table, caller }, { limit, offset, status, count }) {
    const isTeam = table === 'team_documents';
    const where = isTeam ? `(t.owner_id = $1 OR t.team_id = ANY(${TEAMS}))` : documentsOf(status);
    const text = isTeam ? teamPage : `SELECT ${SHOWN} FROM ${table} t WHERE ${where} ORDER BY t.id LIMIT $2 OFFSET $3`;
    const page = reads(`list ${table} ${status}`, text, [caller, limit + 1, offset]);
    const total = count
      ? writes(`count ${table} ${status}`, `SELECT count(*) FROM ${table} t WHERE ${where}`, [caller])
      : undefined;
    const { rows } = await page;
    const found = (await total)?.rows[0]?.[0];
    const shown = rows.length > limit ? rows.slice(0, limit) : rows;
    const more = found === undefined ? '' : `,"total":${found}`;
    return `{"data":[${shown.map(toJson).join(',')}],"page":{"limit":${limit},"offset":${offset},"has_more":${rows.length > limit}${more}}}`;
  },
  async read({ table, caller }, id) {
    const text = `SELECT ${SHOWN} FROM ${table} t WHERE t.id = $2 AND ${RULES[table]!.view}`;
    return inData((await reads(`read ${table}`, text, [caller, id])).rows[0]);
  },
  async create({ table, caller }, data) {
    const names = Object.keys(data).filter((name) => name !== 'team');
    const cells = names.map((name, i) => `$${i + 4}::${WRITABLE[name as keyof typeof WRITABLE]}`).join(', ');
    const text = `INSERT INTO ${table} AS t (owner_id, team_id, id, status, pinned, ${names.join(', ')})
      SELECT $1, $2, $3, 'draft', false, ${cells} WHERE ${RULES[table]!.create} RETURNING ${SHOWN}`;
    const values = [caller, data.team ?? null, randomUUID(), ...names.map((name) => data[name])];
    return inData((await writes(`create ${table} ${names}`, text, values)).rows[0]);
  },
  async patch({ table, caller }, id, data) {
    const names = Object.keys(data);
    const set = names.map((name, i) => `${name} = $${i + 3}`).join(', ');
    const text = `UPDATE ${table} t SET ${set}, updated_at = now(), _version = _version + 1
      WHERE t.id = $2 AND ${RULES[table]!.change} RETURNING ${SHOWN}`;
    const values = [caller, id, ...names.map((name) => data[name])];
    return inData((await writes(`patch ${table} ${names}`, text, values)).rows[0]);
  },
  async remove({ table, caller }, id) {
    const text = `DELETE FROM ${table} t WHERE t.id = $2 AND ${RULES[table]!.change}`;
    return (await writes(`delete ${table}`, text, [caller, id])).count === 1;
  },
});

await inProcesses(Number(processes), async () => {
  const handlers = handlersOn(await openBest(place));
  listen((request, response) =>
    answer(handlers, { asked: askedBy(request, callers), request }, (status, body) => {
      if (body === undefined) response.writeHead(status, status === 204 ? [] : ['content-length', '0']).end();
      else {
        const length = String(Buffer.byteLength(body));
        response.writeHead(status, ['content-type', 'application/json', 'content-length', length]).end(body);
      }
    }),
  );
});
