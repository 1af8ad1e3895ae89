/**
 * Measures the statements of lists in the database, at three sizes: those of the service, the usual
 * ones with the rule as a condition, and the best handwritten one for each rule. Prepared
 * statements of one client each, in turns; buffers as EXPLAIN counts them.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import type { Database } from '../src/database/contract.ts';
import { openDatabase } from '../src/database/open-database.ts';
import { applyMigration } from '../src/migrations/apply-migration.ts';
import type { ExactFilter } from '../src/records/page/page-plan.ts';
import { createRecords } from '../src/records/records.ts';
import { parseSchema } from '../src/schema/load.ts';
import type { Schema } from '../src/schema/model/model.ts';
import { sql, uuid } from '../src/sql.ts';
import { isolatedUrl, startPostgres } from '../test/support/postgres.ts';
import { watchedReads } from '../test/support/watched-reads.ts';
import { COLUMNS, RULES } from './servers/documents.ts';
import type { Bench, BenchOptions } from './support/bench.ts';
import { callerAccess } from './support/caller-access.ts';
import { fill } from './support/documents-world.ts';
import { record } from './support/figures.ts';
import { median, verdict } from './support/measure.ts';
import { measureSkewedPages } from './support/skewed-pages.ts';

const SIZES = [1_000, 100_000, 1_000_000];
const SCHEMA = fileURLToPath(new URL('./servers/documents.yaml', import.meta.url));
const CALLER = '01900001-0000-7000-8000-000000000abc';
const NOW = '2026-01-01T00:00:00.000000Z';
const SHOWN = COLUMNS.map((name) => `t.${name}`).join(', ');
const KINDS = ['service', 'usual', 'best'] as const;
type Kind = (typeof KINDS)[number];

interface Question {
  readonly title: string;
  readonly table: string;
  readonly status?: string;
  readonly offset?: number;
  /** `$1`: the caller. */
  readonly best: string;
}

const usual = ({ table, status, offset = 0 }: Omit<Question, 'best'>): string => {
  const filter = status === undefined ? '' : ` AND t.status = '${status}'`;
  return `SELECT ${SHOWN} FROM ${table} t WHERE ${RULES[table]!.view}${filter} ORDER BY t.id LIMIT 21 OFFSET ${offset}`;
};
const A = { title: 'A own or published', table: 'documents' };
const S = { title: 'S own drafts', table: 'documents', status: 'draft' };
const B = { title: 'B own or of a team', table: 'team_documents' };
/** The first of each range, which are enough. */
const teamPage = (offset: number, more = ''): string => `
  SELECT ${SHOWN} FROM team_documents t WHERE t.id = ANY(ARRAY(
    (SELECT d.id FROM team_documents d WHERE d.owner_id = $1${more} ORDER BY d.id LIMIT ${21 + offset})
     UNION ALL
    (SELECT d.id FROM memberships m CROSS JOIN LATERAL (
       SELECT d.id FROM team_documents d WHERE d.team_id = m.team_id${more} ORDER BY d.id LIMIT ${21 + offset}) d WHERE m.user_id = $1)))
   ORDER BY t.id LIMIT 21 OFFSET ${offset}`;
const QUESTIONS: readonly Question[] = [
  { ...A, best: usual(A) },
  { ...B, best: teamPage(0) },
  { ...B, title: 'B, page 10', offset: 180, best: teamPage(180) },
  { ...B, title: 'B drafts', status: 'draft', best: teamPage(0, ` AND d.status = 'draft'`) },
  {
    ...S,
    best: `SELECT ${SHOWN} FROM documents t WHERE t.owner_id = $1 AND t.status = 'draft' ORDER BY t.id LIMIT 21`,
  },
];

interface Statement {
  readonly name: string;
  readonly text: string;
  readonly values: readonly unknown[];
}
/** A client and its statements, in the order of the questions. */
interface World {
  readonly client: pg.Client;
  readonly statements: readonly Readonly<Record<Kind, Statement>>[];
}

async function run({ seconds, rows: most }: BenchOptions): Promise<void> {
  const server = await startPostgres({ settings: { shared_buffers: '1GB' } });
  if (server === undefined)
    throw new Error('this bench needs PostgreSQL: install its binaries or set TEST_DATABASE_URL');
  const worlds: World[] = [];
  try {
    await measureSkewedPages(server.url, most);
    for (const rows of SIZES) worlds.push(await worldOf(await isolatedUrl(server.url), rows));
    for (const world of worlds) await verify(world);
    for (const [i, question] of QUESTIONS.entries())
      await compare(worlds, { question, i, ms: (seconds * 1000) / QUESTIONS.length });
  } finally {
    for (const { client } of worlds) await client.end();
    await server.stop();
  }
}

async function worldOf(url: string, rows: number): Promise<World> {
  const schema = parseSchema(readFileSync(SCHEMA, 'utf8'), SCHEMA).schema!;
  const db = await openDatabase({ url });
  try {
    await applyMigration(db, schema);
    await db.run(sql`INSERT INTO users (id, email, email_verified) VALUES (${uuid(CALLER)}, 'me@example.com', true)`);
    await fill({ url }, CALLER, rows);
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query('VACUUM ANALYZE');
    const sent = await sentBy(db, schema);
    const statements = QUESTIONS.map((question, i) => ({
      service: { name: `service_${i}`, ...sent[i]! },
      usual: { name: `usual_${i}`, text: usual(question), values: [CALLER] },
      best: { name: `best_${i}`, text: question.best, values: [CALLER] },
    }));
    return { client, statements };
  } finally {
    await db.close();
  }
}

/** The statements of the service, when it knows the tables. */
async function sentBy(db: Database, schema: Schema): Promise<readonly Omit<Statement, 'name'>[]> {
  const sent: Omit<Statement, 'name'>[] = [];
  const watched = watchedReads(db, ({ text, values }) => sent.push({ text, values }));
  const records = createRecords(watched, schema);
  const ask = async ({ table, status, offset = 0 }: Question): Promise<void> => {
    const access = callerAccess(schema, table, { auth: { id: CALLER, roles: ['member'] }, now: NOW });
    const { collection } = access;
    const field = collection.fields.get('status')!;
    const exact: readonly ExactFilter[] = status === undefined ? [] : [{ kind: 'field', field, value: status }];
    await records.list(access, { exact, limit: 20, offset });
  };
  await ask(QUESTIONS[0]!);
  // The statistics come meanwhile.
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  sent.length = 0;
  for (const question of QUESTIONS) await ask(question);
  return sent;
}

async function verify({ client, statements }: World): Promise<void> {
  for (const [i, question] of QUESTIONS.entries()) {
    const ids: string[] = [];
    for (const kind of KINDS)
      ids.push((await client.query(queryOf(statements[i]![kind]))).rows.map(({ id }) => id).join());
    if (ids.some((each) => each !== ids[0]))
      throw new Error(`${question.title}: the statements must find the same rows, and some`);
  }
}

const queryOf = ({ name, text, values }: Statement): pg.QueryConfig => ({ name, text, values: [...values] });

interface Comparison {
  readonly question: Question;
  readonly i: number;
  readonly ms: number;
}

async function compare(worlds: readonly World[], { question, i, ms }: Comparison): Promise<void> {
  const times = worlds.map(() => ({ service: [] as number[], usual: [] as number[], best: [] as number[] }));
  const end = performance.now() + ms;
  for (let round = 0; round < 40 || performance.now() < end; round++) {
    for (const [w, { client, statements }] of worlds.entries()) {
      for (let k = 0; k < KINDS.length; k++) {
        const kind = KINDS[(k + round) % KINDS.length]!;
        const start = performance.now();
        await client.query(queryOf(statements[i]![kind]));
        // A plan is settled with the sixth use.
        if (round >= 8) times[w]![kind].push(performance.now() - start);
      }
    }
  }
  const counts: number[] = [];
  for (const { client, statements } of worlds)
    counts.push((await client.query(queryOf(statements[i]!.service))).rows.length);
  const medians = times.map((of) => ({ service: median(of.service), usual: median(of.usual), best: median(of.best) }));
  const buffers: number[] = [];
  console.log(`${question.title}:`);
  for (const [w, { client, statements }] of worlds.entries()) {
    const cells: string[] = [];
    for (const kind of KINDS) {
      const read = await buffersOf(client, statements[i]![kind]);
      if (kind === 'service') buffers.push(read);
      cells.push(`${kind} ${medians[w]![kind].toFixed(3)} ms, ${read} buffers`);
    }
    console.log(`  ${SIZES[w]!.toLocaleString('en').padStart(9)} rows   ${cells.join('   ')}`);
  }
  const series = KINDS.map((kind) => ({ name: kind, values: medians.map((of) => of[kind]) }));
  record({
    bench: 'pages',
    title: question.title,
    unit: 'ms a statement',
    kind: 'lines',
    labels: SIZES.map(String),
    series,
    notes: [],
  });
  const large = medians.at(-1)!;
  verdict(`${question.title}: the service next to the best, 1,000,000 rows`, large.service / large.best, {
    limit: 1.1,
    unit: '×',
  });
  // Buffers do not depend on the load of the machine; they are compared with the smallest size that fills the page: an index of more rows has one more level.
  const w = counts.indexOf(counts.at(-1)!);
  const label = `${question.title}: buffers at 1,000,000 rows next to ${SIZES[w]!.toLocaleString('en')}`;
  verdict(label, buffers.at(-1)! / buffers[w]!, { limit: 1.25, unit: '×' });
}

/** Pages of shared memory that the prepared statement reads. */
async function buffersOf(client: pg.Client, { name, values }: Statement): Promise<number> {
  const literals = values.map((value) => pg.escapeLiteral(String(value)));
  const { rows } = await client.query(
    `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE ${name}(${literals.join(', ')})`,
  );
  const [{ Plan }] = rows[0]['QUERY PLAN'] as [{ Plan: Record<string, number> }];
  return Plan['Shared Hit Blocks']! + Plan['Shared Read Blocks']!;
}

const bench: Bench = {
  name: 'pages',
  question: 'what do the statements of lists cost at 1,000, 100,000 and 1,000,000 rows, next to those by hand?',
  run,
};
export default bench;
