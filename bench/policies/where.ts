/**
 * Policies over a million rows: the list query with the compiled condition next to the one with a condition written by hand, as prepared statements,
 * with custom and with generic plans. Both must answer the same rows. Each policy also as row-level security, with the caller set for the session beforehand.
 */
import pg from 'pg';
import { openDatabase } from '../../src/database/open-database.ts';
import { decide } from '../../src/policy/access.ts';
import { compilePolicy } from '../../src/policy/compile.ts';
import type { PolicyRequest } from '../../src/policy/types.ts';
import { amongFirstIds } from '../../src/records/page/first-ids.ts';
import { shortestWay } from '../../src/records/page/page-planner.ts';
import { BackgroundStatistics, type StatisticsOf } from '../../src/records/page/table-statistics.ts';
import { ident, join, param, raw, type Sql, sql } from '../../src/sql.ts';
import { startPostgres } from '../../test/support/postgres.ts';
import type { Bench, BenchOptions } from '../support/bench.ts';
import { COLLECTION, catalog } from '../support/documents.ts';
import { PAIRS, type Pair } from '../support/handwritten.ts';
import { LISTS, type List } from '../support/handwritten-lists.ts';
import { median, verdict } from '../support/measure.ts';
import { fillMillion, ID } from '../support/million.ts';

const MODES = ['force_custom_plan', 'force_generic_plan'] as const;
/** × the time of the condition by hand. */
const LIMIT = 1.1;
const INDEXED = new Set(['id', 'title', 'status', 'score', 'rating', 'due_at', 'created_at', 'owner_id', 'team_id']);
/** The service looks up the records of a list of ids, which a person may trust to be there. */
const LIST_LIMIT = 1.2;
const WINDOW = 'ORDER BY r.id LIMIT 20';
const DOCUMENTS = { where: (...conditions: readonly Sql[]) => sql`documents AS t WHERE ${join(conditions, ' AND ')}` };
const NOW = '2025-01-01T00:00:00.000000Z';
const values: Readonly<Record<string, unknown>> = {
  uid: ID.user(4322),
  now: NOW,
  team: ID.team(77),
  tag: ID.tag(8),
  q: 'document 12345',
  q2: 'document 12346',
  n: 995,
};
const request: PolicyRequest = {
  auth: { id: values.uid, roles: ['member'] },
  query: { team: ID.team(77), tag: ID.tag(8), q: 'document 12345', n: '995' },
  now: NOW,
};

interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}
const named = ({ text, values }: Statement, name: string) => ({ name, text, values: [...values] });

interface Measured {
  readonly ratio: number;
  readonly ms: number;
  readonly hand: number;
  readonly samePlan: boolean;
}

async function run({ seconds }: BenchOptions): Promise<void> {
  const server = await startPostgres({ settings: { shared_buffers: '1GB', work_mem: '64MB' } });
  if (server === undefined)
    throw new Error('this bench needs PostgreSQL: install its binaries or set TEST_DATABASE_URL');
  const client = new pg.Client({ connectionString: server.url });
  try {
    await client.connect();
    const began = performance.now();
    await fillMillion(client);
    console.log(`filled in ${((performance.now() - began) / 1000).toFixed(0)} s`);
    await verify(client);
    for (const mode of MODES) await compareAll(client, { mode, seconds: seconds / 2 });
    await compareLists(client, { url: server.url, seconds: seconds / 2 });
    await rowLevelSecurity(client, server.url);
  } finally {
    await client.end();
    await server.stop();
  }
}

/** Some rows, and the same rows. */
async function verify(client: pg.Client): Promise<void> {
  const faults: string[] = [];
  for (const pair of PAIRS) {
    const ids = async (statement: Statement) =>
      (await client.query(statement as pg.QueryConfig)).rows.map(({ id }) => id as string);
    const [ours, theirs] = [compiled(pair), byHand(pair)];
    const [a, b] = [await ids(ours), await ids(theirs)];
    if (a.length === 0 || a.join() !== b.join())
      faults.push(`${pair.policy}: ${a.length} and ${b.length} rows\n${ours.text}\n${theirs.text}`);
  }
  if (faults.length > 0)
    throw new Error(`the two sides of a comparison must answer alike, and something:\n${faults.join('\n')}`);
}

async function compareAll(
  client: pg.Client,
  { mode, seconds }: { mode: (typeof MODES)[number]; seconds: number },
): Promise<void> {
  await client.query(`SET plan_cache_mode = ${mode}`);
  const all: Measured[] = [];
  for (const [i, pair] of PAIRS.entries()) {
    const measured = await compare(client, { pair, label: `${mode}_${i}`, ms: (seconds * 1000) / PAIRS.length });
    all.push(measured);
    if (measured.ratio <= LIMIT && measured.samePlan) continue;
    console.log(
      `  ${measured.ratio.toFixed(2)} ×${measured.samePlan ? '' : ' OTHER PLAN'}  ${measured.ms.toFixed(3)} ms,` +
        ` by hand ${measured.hand.toFixed(3)} ms: ${pair.policy}`,
    );
  }
  const ratios = all.map(({ ratio }) => ratio);
  const same = all.filter(({ samePlan }) => samePlan).length;
  console.log(
    `${mode}: median ${median(ratios).toFixed(2)} ×, worst ${Math.max(...ratios).toFixed(2)} ×, same plan nodes ${same} of ${all.length}`,
  );
  verdict(`compiled next to handwritten, ${mode}, worst policy`, Math.max(...ratios), { limit: LIMIT, unit: '×' });
  verdict(`other plans than by hand, ${mode}`, all.length - same, { limit: 0, unit: 'policies' });
}

async function compare(
  client: pg.Client,
  { pair, label, ms }: { pair: Pair; label: string; ms: number },
): Promise<Measured> {
  const ours = named(compiled(pair), `ours_${label}`);
  const theirs = named(byHand(pair), `hand_${label}`);
  for (const statement of [ours, theirs]) await client.query(statement);
  const samePlan = (await nodes(client, ours)) === (await nodes(client, theirs));
  const times: Times = { ours: [], theirs: [] };
  await takeTurns(client, { ours, theirs, times, ms });
  // A policy that seems slower is measured for longer before it counts as slower.
  for (let more = 0; more < 3 && ratioOf(times) > LIMIT; more++)
    await takeTurns(client, { ours, theirs, times, ms: ms * 2 });
  return { ratio: ratioOf(times), ms: median(times.ours), hand: median(times.theirs), samePlan };
}

interface Times {
  readonly ours: number[];
  readonly theirs: number[];
}
const ratioOf = ({ ours, theirs }: Times): number => median(ours) / median(theirs);

interface Turns {
  readonly ours: pg.QueryConfig;
  readonly theirs: pg.QueryConfig;
  readonly times: Times;
  readonly ms: number;
}

/** Now one first, now the other. */
async function takeTurns(client: pg.Client, { ours, theirs, times, ms }: Turns): Promise<void> {
  const timed = async (statement: pg.QueryConfig, into: number[]): Promise<void> => {
    const start = performance.now();
    await client.query(statement);
    into.push(performance.now() - start);
  };
  const end = performance.now() + ms;
  for (let pair = 0; pair < 21 || performance.now() < end; pair++) {
    if (pair % 2 === 0) await timed(ours, times.ours);
    await timed(theirs, times.theirs);
    if (pair % 2 === 1) await timed(ours, times.ours);
  }
}

function compiled({ policy }: Pair): Statement {
  const residual = compilePolicy(policy, { catalog, collection: COLLECTION, action: 'list' }).specialise(request);
  const { text, values } = sql`SELECT r.* FROM documents AS r WHERE ${residual.where('r')} ${raw(WINDOW)}`;
  return { text, values };
}

function byHand({ sql: condition }: Pair): Statement {
  return filledIn(`SELECT r.* FROM documents AS r WHERE ${condition} ${WINDOW}`);
}

function filledIn(statement: string): Statement {
  const given: unknown[] = [];
  const numbers = new Map<string, number>();
  const text = statement.replaceAll(/\{([a-z0-9]+)\}(?=::)/g, (_, name: string) => {
    if (!numbers.has(name)) numbers.set(name, given.push(values[name]));
    return `$${numbers.get(name)!}`;
  });
  return { text, values: given };
}

interface Plan {
  readonly 'Node Type': string;
  readonly 'Index Name'?: string;
  readonly 'Relation Name'?: string;
  readonly Plans?: readonly Plan[];
}

/** The nodes of the plan that the prepared statement has under the mode that is set. */
async function nodes(client: pg.Client, statement: Statement & { readonly name: string }): Promise<string> {
  const literals = statement.values.map((value) =>
    value === null ? 'NULL' : pg.escapeLiteral(Array.isArray(value) ? `{${value.join()}}` : String(value)),
  );
  const given = literals.length > 0 ? `(${literals.join(', ')})` : '';
  const { rows } = await client.query(`EXPLAIN (FORMAT JSON) EXECUTE ${statement.name} ${given}`);
  const shape = (plan: Plan): string =>
    `${plan['Node Type']}:${plan['Relation Name'] ?? ''}:${plan['Index Name'] ?? ''}(${(plan.Plans ?? []).map(shape).join()})`;
  return shape((rows[0]['QUERY PLAN'] as readonly { Plan: Plan }[])[0]!.Plan);
}

/** Whole lists: the policy decides by which statement its page is found, next to the best that a person would write. */
async function compareLists(client: pg.Client, { url, seconds }: { url: string; seconds: number }): Promise<void> {
  await client.query("SET plan_cache_mode = 'auto'");
  const db = await openDatabase({ url });
  const statistics = new BackgroundStatistics(db, ['documents', 'teams', 'memberships', 'documents_tags']);
  await statistics.refresh();
  const ratios: number[] = [];
  try {
    for (const [i, list] of LISTS.entries()) {
      const { text, values } = pageOf(list, (table) => statistics.of(table));
      const ours = named({ text, values }, `page_${i}`);
      const theirs = named(filledIn(list.sql), `best_${i}`);
      const [a, b] = [await client.query(ours), await client.query(theirs)].map(({ rows }) =>
        rows.map(({ id }) => id).join(),
      );
      if (a === '' || a !== b)
        throw new Error(`the lists of a comparison must be alike, and ${list.policy} is not\n${text}`);
      const times: Times = { ours: [], theirs: [] };
      const ms = (seconds * 1000) / LISTS.length;
      await takeTurns(client, { ours, theirs, times, ms });
      for (let more = 0; more < 3 && ratioOf(times) > LIMIT; more++)
        await takeTurns(client, { ours, theirs, times, ms: ms * 2 });
      ratios.push(ratioOf(times));
      console.log(
        `  ${ratioOf(times).toFixed(2)} ×  ${median(times.ours).toFixed(3)} ms, best ${median(times.theirs).toFixed(3)} ms: ` +
          `${list.policy}${list.status === undefined ? '' : ` (?status=${list.status})`}`,
      );
    }
  } finally {
    await db.close();
  }
  verdict('lists of 21 next to the best by hand, worst policy', Math.max(...ratios), { limit: LIST_LIMIT, unit: '×' });
}

function pageOf({ policy, status }: List, statisticsOf: StatisticsOf): Statement {
  const rules = [compilePolicy(policy, { catalog, collection: COLLECTION, action: 'list' })];
  const permit = decide({ rules, request }).given(status === undefined ? {} : { status });
  const conditions = status === undefined ? [] : [sql`t.status = ${param('text', status)}`];
  const branches = permit.branches('t', INDEXED);
  const filters = status === undefined ? [] : [{ column: 'status', values: [status] }];
  const isOpen = permit.verdict === 'allow';
  const known = { table: 'documents', collection: {}, branches, filters, isOpen, isById: true, lookUps: [] };
  const way = shortestWay({ ...known, indexed: INDEXED, most: 21 }, statisticsOf);
  const ofRule = isOpen ? [] : [permit.where('t')];
  if (way?.kind === 'branches') {
    const source = { id: raw('t.id'), rows: DOCUMENTS, after: [], conditions, length: 21, descending: false };
    return sql`SELECT t.* FROM documents AS t WHERE ${amongFirstIds(way.branches, source)} ORDER BY t.id LIMIT 21`;
  }
  if (way?.kind !== 'range')
    return sql`SELECT t.* FROM documents AS t WHERE ${join([...conditions, ...ofRule], ' AND ')} ORDER BY t.id LIMIT 21`;
  const { of } = way;
  const range = sql`t.status BETWEEN ${param('text', status)} AND ${param('text', status)}`;
  const where = 'tests' in of ? [...conditions, of.where!] : [range, ...ofRule];
  const order = sql`t.${ident(of.column)}, t.id`;
  return sql`SELECT t.* FROM documents AS t WHERE ${join(where, ' AND ')} ORDER BY ${order} LIMIT 21`;
}

async function rowLevelSecurity(client: pg.Client, url: string): Promise<void> {
  const role = new pg.Client({ connectionString: url });
  await client.query(
    'CREATE ROLE limited; GRANT SELECT ON ALL TABLES IN SCHEMA public TO limited; ALTER TABLE documents ENABLE ROW LEVEL SECURITY',
  );
  await client.query("SET plan_cache_mode = 'auto'");
  await role.connect();
  await role.query(
    `SET ROLE limited; SELECT ${Object.entries(values).map(([name, value]) => `set_config('app.${name}', '${String(value)}', false)`)}`,
  );
  console.log('as row-level security, the caller set beforehand (without its BEGIN, set_config and COMMIT):');
  const text = `SELECT r.* FROM documents AS r ${WINDOW}`;
  for (const [i, pair] of PAIRS.entries()) {
    const condition = pair.sql
      .replaceAll(/\br\./g, 'documents.')
      .replaceAll(/\{(\w+)\}(?!')/g, "current_setting('app.$1')");
    await client.query(
      `DROP POLICY IF EXISTS p ON documents; CREATE POLICY p ON documents FOR SELECT TO limited USING (${condition})`,
    );
    const ours = { ...compiled(pair), name: `rls_${i}` } as pg.QueryConfig;
    const [inlined, secured]: [number[], number[]] = [[], []];
    for (let round = 0; round < 15; round++) {
      for (const [from, statement, times] of [
        [client, ours, inlined],
        [role, { text, name: `secured_${i}` }, secured],
      ] as const) {
        const start = performance.now();
        await from.query(statement);
        times.push(performance.now() - start);
      }
    }
    console.log(
      `  ${median(secured).toFixed(2).padStart(8)} ms, compiled ${median(inlined).toFixed(2).padStart(8)} ms: ${pair.policy}`,
    );
  }
  await role.end();
}

const bench: Bench = {
  name: 'where',
  question: 'what does a compiled policy cost in a list of a million rows, next to a condition written by hand?',
  run,
};
export default bench;
