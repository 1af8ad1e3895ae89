/**
 * The usual way to write such a server by hand: node:http, a pool of pg with named statements (or `query` of PGlite), the rules in the SQL, one
 * guarded statement a write, JSON.stringify. Arguments: DATABASE_URL or data folder, TOKEN, USER_ID, processes (default 1). Prints its address.
 */
import { randomUUID } from 'node:crypto';
import type { Ask } from './ask.ts';
import { answer, askedBy, COLUMNS, type Handlers, listen, RULES, WRITABLE } from './documents.ts';
import { inProcesses } from './in-processes.ts';
import { openUsual } from './open-usual.ts';

const [place, token, userId, processes = '1'] = process.argv.slice(2) as [string, string, string, string?];
const callers = new Map([[token, userId]]);
const SHOWN = COLUMNS.map((name) => (name.endsWith('_id') ? `t.${name} AS ${name.slice(0, -3)}` : `t.${name}`)).join(
  ', ',
);

const handlersOn = (ask: Ask<object>): Handlers => ({
  async list({ table, caller }, { limit, offset, status, count }) {
    const where = `${RULES[table]!.view} AND ($2::text IS NULL OR t.status = $2)`;
    const filtered = status === null ? RULES[table]!.view : where.replace('$2::text IS NULL OR ', '');
    const values = status === null ? [caller] : [caller, status];
    const n = values.length;
    const page = ask(
      `list ${table} ${n}`,
      `SELECT ${SHOWN} FROM ${table} t WHERE ${filtered} ORDER BY t.id LIMIT $${n + 1} OFFSET $${n + 2}`,
      [...values, limit + 1, offset],
    );
    const total = count
      ? ask(`count ${table} ${n}`, `SELECT count(*) AS total FROM ${table} t WHERE ${filtered}`, values)
      : undefined;
    const { rows } = await page;
    const found = ((await total)?.rows[0] as { readonly total: number } | undefined)?.total;
    return JSON.stringify({
      data: rows.slice(0, limit),
      page: { limit, offset, has_more: rows.length > limit, total: found },
    });
  },
  async read({ table, caller }, id) {
    const text = `SELECT ${SHOWN} FROM ${table} t WHERE t.id = $2 AND ${RULES[table]!.view}`;
    const { rows } = await ask(`read ${table}`, text, [caller, id]);
    return rows.length === 0 ? undefined : JSON.stringify({ data: rows[0] });
  },
  async create({ table, caller }, data) {
    const names = Object.keys(data).filter((name) => name !== 'team');
    const text = `INSERT INTO ${table} AS t (owner_id, team_id, id, status, pinned, ${names.join(', ')})
      SELECT $1, $2, $3, 'draft', false, ${names.map((name, i) => `$${i + 4}::${WRITABLE[name as keyof typeof WRITABLE]}`).join(', ')}
       WHERE ${RULES[table]!.create} RETURNING ${SHOWN}`;
    const values = [caller, data.team ?? null, randomUUID(), ...names.map((name) => data[name])];
    const { rows } = await ask(`create ${table} ${names}`, text, values);
    return rows.length === 0 ? undefined : JSON.stringify({ data: rows[0] });
  },
  async patch({ table, caller }, id, data) {
    const names = Object.keys(data);
    const set = names.map((name, i) => `${name} = $${i + 3}`).join(', ');
    const text = `UPDATE ${table} t SET ${set}, updated_at = now(), _version = _version + 1
      WHERE t.id = $2 AND ${RULES[table]!.change} RETURNING ${SHOWN}`;
    const { rows } = await ask(`patch ${table} ${names}`, text, [caller, id, ...names.map((name) => data[name])]);
    return rows.length === 0 ? undefined : JSON.stringify({ data: rows[0] });
  },
  async remove({ table, caller }, id) {
    const text = `DELETE FROM ${table} t WHERE t.id = $2 AND ${RULES[table]!.change}`;
    const { count } = await ask(`delete ${table}`, text, [caller, id]);
    return count === 1;
  },
});

await inProcesses(Number(processes), async () => {
  const handlers = handlersOn(await openUsual(place));
  listen((request, response) =>
    answer(handlers, { asked: askedBy(request, callers), request }, (status, body) => {
      if (body === undefined) response.writeHead(status, status === 204 ? {} : { 'content-length': 0 }).end();
      else {
        const length = Buffer.byteLength(body);
        response.writeHead(status, { 'content-type': 'application/json', 'content-length': length }).end(body);
      }
    }),
  );
});
