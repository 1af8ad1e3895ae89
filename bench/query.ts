/**
 * Compares queries with the plain list. A million rows under a policy, over HTTP, one request after
 * the other, in turn. The pages of three orders: one whose index is all of it, one with nulls, the
 * latest first, whose ties are sorted, and the newest first.
 */
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { openDatabase } from '../src/database/open-database.ts';
import { decide } from '../src/policy/access.ts';
import type { AccessContext } from '../src/records/access-context.ts';
import { createRecords } from '../src/records/records.ts';
import { parseSchema } from '../src/schema/load.ts';
import type { Relation } from '../src/schema/model/model.ts';
import { isolatedUrl, startPostgres } from '../test/support/postgres.ts';
import { watchedReads } from '../test/support/watched-reads.ts';
import { call } from './movies/client.ts';
import type { Bench, BenchOptions } from './support/bench.ts';
import { median, verdict } from './support/measure.ts';
import { startBylaw } from './support/server.ts';

const ROWS = 1_000_000;
const PAGE = 20;
const DEEP = 10_000;
const SCHEMA = fileURLToPath(new URL('./servers/queries.yaml', import.meta.url));
const made = (kind: number, n: string) => `('0190000${kind}-0000-7000-8000-' || lpad(to_hex(${n}), 12, '0'))::uuid`;

async function fill(url: string, owner: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const statements = [
    `INSERT INTO projects (id, created_at, updated_at, name) SELECT ${made(1, 'n')}, now(), now(), 'project ' || n FROM generate_series(1, 100) n`,
    `INSERT INTO items (id, created_at, updated_at, title, status, rank, due_at, owner_id, project_id)
     SELECT ${made(2, 'n')}, now() - (${ROWS} - n) * interval '1 second', now(), 'item ' || n,
            CASE WHEN n % 3 = 0 THEN 'draft' ELSE 'published' END, n::int8 * 7919 % 1000003,
            CASE WHEN n % 7 = 0 THEN NULL ELSE '2024-01-01T00:00:00Z'::timestamptz + (n::int8 * 7919 % 1000003) * interval '1 minute' END,
            '${owner}', ${made(1, 'n % 100 + 1')}
       FROM generate_series(1, ${ROWS}) n`,
    `INSERT INTO notes (id, created_at, updated_at, text, item_id, author_id)
     SELECT ${made(3, 'n')}, now(), now(), 'note', ${made(2, 'n % 100000 + 1')}, '${owner}' FROM generate_series(1, 200000) n`,
    'VACUUM ANALYZE',
  ];
  for (const statement of statements) await client.query(statement);
  await client.end();
}

interface Answer {
  readonly status: number;
  readonly body: { readonly page: { readonly next_cursor?: string } };
}
type Ask = () => Promise<Answer>;

const agent = new Agent({ keepAlive: true, maxSockets: 1 });

/** `fetch` takes a tenth of a millisecond more for a request with a body, which is not the service's. */
function ask(url: string, token: string, body?: object): Promise<Answer> {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const method = text === undefined ? 'GET' : 'POST';
  const sized = text === undefined ? {} : { 'content-type': 'application/json', 'content-length': text.length };
  return new Promise((resolve, reject) => {
    const sent = request(url, { agent, method, headers: { authorization: `Bearer ${token}`, ...sized } }, (answer) => {
      let received = '';
      answer.setEncoding('utf8');
      answer.on('data', (chunk: string) => {
        received += chunk;
      });
      answer.on('end', () => resolve({ status: answer.statusCode!, body: JSON.parse(received) }));
    });
    sent.on('error', reject);
    sent.end(text);
  });
}

/** Milliseconds of each, in turn. */
async function timesOf(asks: readonly Ask[], seconds: number): Promise<readonly (readonly number[])[]> {
  const times: number[][] = asks.map(() => []);
  // So many warm up: a statement is prepared with its second use, and its plan is settled with its sixth.
  for (let i = 0; i < 10; i++) for (const ask of asks) await timed(ask);
  const end = performance.now() + seconds * 1000;
  do for (const [i, ask] of asks.entries()) times[i]!.push(await timed(ask));
  while (performance.now() < end);
  return times;
}

async function timed(ask: Ask): Promise<number> {
  const start = performance.now();
  const { status, body } = await ask();
  if (status !== 200) throw new Error(JSON.stringify(body));
  return performance.now() - start;
}

/** The median of the ratios of neighbours. */
const ratioOf = (a: readonly number[], b: readonly number[]): number => median(a.map((value, i) => value / b[i]!));

async function run({ seconds }: BenchOptions): Promise<void> {
  const postgres = await startPostgres();
  if (postgres === undefined) throw new Error('this bench needs PostgreSQL');
  const data = mkdtempSync(join(tmpdir(), 'bylaw-bench-'));
  const children: ChildProcess[] = [];
  try {
    const url = await isolatedUrl(postgres.url);
    const bylaw = await startBylaw({ schema: SCHEMA, databaseUrl: url, data });
    children.push(bylaw.process);
    const user = { email: 'bench@example.com', password: 'seven-samurai-1954' };
    const { id } = (await call(`${bylaw.url}/api/auth/register`, { method: 'POST', body: user })).body.user;
    const token = (await call(`${bylaw.url}/api/auth/login`, { method: 'POST', body: user })).body.access_token;
    await fill(url, id);
    const list: Ask = () => ask(`${bylaw.url}/api/items?limit=${PAGE}`, token);
    const query =
      (body: object): Ask =>
      () =>
        ask(`${bylaw.url}/api/items/query`, token, body);
    for (const sort of [['rank'], ['-due_at'], ['-created_at']]) {
      const first = query({ sort, limit: PAGE });
      const before = await query({ sort, limit: PAGE, offset: PAGE * (DEEP - 2) })();
      const deep = query({ sort, limit: PAGE, cursor: before.body.page.next_cursor });
      const [plain = [], one = [], far = []] = await timesOf([list, first, deep], seconds / 3);
      console.log(
        `${sort}: plain list ${median(plain).toFixed(2)} ms, page 1 ${median(one).toFixed(2)} ms, page ${DEEP} ${median(far).toFixed(2)} ms`,
      );
      verdict(`${sort}: page 1 next to the plain list`, ratioOf(one, plain), { limit: 1.3, unit: '×' });
      verdict(`${sort}: page ${DEEP} next to page 1`, ratioOf(far, one), { limit: 1.2, unit: '×' });
    }
    verdict('a query with three expanded relations', await statementsOf(url, id), { limit: 4, unit: 'statements' });
  } finally {
    for (const child of children) child.kill('SIGTERM');
    await postgres.stop();
    rmSync(data, { recursive: true, force: true });
  }
}

/** How many statements a nested expand sends. */
async function statementsOf(url: string, callerId: string): Promise<number> {
  const schema = parseSchema(readFileSync(SCHEMA, 'utf8'), SCHEMA).schema!;
  const db = await openDatabase({ url });
  let count = 0;
  const watched = watchedReads(db, (_, options) => {
    if (options?.lane === 'slow') count++;
  });
  const records = createRecords(watched, schema);
  const relation = (collection: string, name: string): Relation =>
    schema.collections.get(collection)!.relations.get(name)!;
  const auth = { id: callerId, roles: ['member'] };
  const now = '2026-01-01T00:00:00.000000Z';
  const access: AccessContext = {
    collection: schema.collections.get('items')!,
    auth,
    kind: 'user',
    principal: auth.id,
    now,
    permit: (name: string, action: 'list' | 'read' | 'create' | 'update' | 'delete') =>
      decide({ rules: schema.collections.get(name)!.access[action], request: { auth, query: {}, now } }),
    member: () => undefined,
    violation: (): never => {
      throw new Error('this bench writes nothing');
    },
    prospect: (): never => {
      throw new Error('this bench asks for no capabilities');
    },
  };
  const author = { relation: relation('notes', 'author'), expands: [] };
  const expands = [
    { relation: relation('items', 'project'), expands: [] },
    { relation: relation('items', 'notes'), expands: [author], limit: 5 },
  ];
  await records.list(access, { limit: PAGE, offset: 0, expands, isQuery: true });
  await db.close();
  return count;
}

export default {
  name: 'query',
  question: 'what do the pages of a query cost in a million rows, next to the plain list?',
  run,
} satisfies Bench;
