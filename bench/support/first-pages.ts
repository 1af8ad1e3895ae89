/**
 * The first page of every list that a policy or an indexed filter narrows, in a million records: the statements that the service sends, prepared as there,
 * by one client. However large the tables are, the caller owns 200 documents of each and is in five teams, which have 100 each; an eighth are drafts.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import type { Database } from '../../src/database/contract.ts';
import { openDatabase } from '../../src/database/open-database.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { compileFilter } from '../../src/policy/filters/filter.ts';
import { sortPathOf } from '../../src/policy/filters/sort-path.ts';
import { createRecords, type Records } from '../../src/records/records.ts';
import { listRequestOf } from '../../src/routes/records/query/query-string.ts';
import { parseSchema } from '../../src/schema/load.ts';
import type { Schema } from '../../src/schema/model/model.ts';
import type { Sql } from '../../src/sql.ts';
import { isolatedUrl, startPostgres } from '../../test/support/postgres.ts';
import { watchedReads } from '../../test/support/watched-reads.ts';
import { callerAccess } from './caller-access.ts';
import { record } from './figures.ts';
import { median, verdict } from './measure.ts';

const SCHEMA = fileURLToPath(new URL('../servers/growth.yaml', import.meta.url));
const MOST_MS = 5;
const PAGE = 20;
const NOW = '2026-01-01T00:00:00.000000Z';

const idOf = (kind: number, n: number): string => `0190000${kind}-0000-7000-8000-${n.toString(16).padStart(12, '0')}`;
const made = (kind: number, n: string): string =>
  `('0190000${kind}-0000-7000-8000-' || lpad(to_hex(${n}), 12, '0'))::uuid`;
const KIND = { user: 1, team: 2, tag: 3, document: 4, comment: 5 };
const CALLER = idOf(KIND.user, 0);

interface Question {
  readonly title: string;
  readonly collection: string;
  /** The filters of a list, such as `status=draft`. */
  readonly filters?: Readonly<Record<string, string>>;
  /** The filter of a query. */
  readonly filter?: string;
  readonly sort?: string;
}

const QUESTIONS: readonly Question[] = [
  { title: 'published, own or of a team', collection: 'documents' },
  { title: '… `status=published`', collection: 'documents', filters: { status: 'published' } },
  { title: '… `status=draft`: few are readable', collection: 'documents', filters: { status: 'draft' } },
  { title: '… `owner=` the caller', collection: 'documents', filters: { owner: CALLER } },
  { title: '… `owner=` another', collection: 'documents', filters: { owner: idOf(KIND.user, 7) } },
  { title: '… `team=` one of the caller', collection: 'documents', filters: { team: idOf(KIND.team, 0) } },
  { title: '… `code=`, unique', collection: 'documents', filters: { code: 'code 77' } },
  { title: '… `ranked=`, indexed', collection: 'documents', filters: { ranked: '500' } },
  { title: '… `ranked=`, of no record', collection: 'documents', filters: { ranked: '-1' } },
  { title: '… `created_at=`, of no record', collection: 'documents', filters: { created_at: '2001-01-01T00:00:00Z' } },
  { title: '… `comments_any=`', collection: 'documents', filters: { comments_any: idOf(KIND.comment, 9) } },
  { title: '… `tags_any=` of half of the records', collection: 'documents', filters: { tags_any: idOf(KIND.tag, 1) } },
  { title: '… `tags_any=` of one in 500', collection: 'documents', filters: { tags_any: idOf(KIND.tag, 2) } },
  { title: '… `tags_any=` of none', collection: 'documents', filters: { tags_any: idOf(KIND.tag, 999) } },
  {
    title: '… `tags contains` one of one in 500',
    collection: 'documents',
    filter: `tags contains "${idOf(KIND.tag, 2)}"`,
  },
  { title: '… the newest first', collection: 'documents', sort: '-created_at' },
  { title: '… `ranked > 990`, by it', collection: 'documents', filter: 'ranked > 990', sort: 'ranked' },
  { title: 'own or of a team', collection: 'private_documents' },
  { title: '… `status=draft`', collection: 'private_documents', filters: { status: 'draft' } },
  { title: '… `score=`, not indexed', collection: 'private_documents', filters: { score: '500' } },
  {
    title: '… `tags_any=` of half of all, none of them readable',
    collection: 'private_documents',
    filters: { tags_any: idOf(KIND.tag, 1) },
  },
  { title: '… `tags_any=` of one in 500', collection: 'private_documents', filters: { tags_any: idOf(KIND.tag, 2) } },
  { title: 'by the author, or of an own document', collection: 'comments' },
  { title: '… `document=`', collection: 'comments', filters: { document: idOf(KIND.document, 1_000) } },
  { title: 'themselves', collection: 'users' },
  { title: '… `email=`', collection: 'users', filters: { email: 'user0@example.com' } },
];

/** So many records of each collection; the others in proportion. */
function fillings(rows: number): readonly string[] {
  const users = Math.max(1_000, rows / 20);
  const teams = rows / 100;
  const stamps = `now() - (${rows} - n) * interval '1 second', now()`;
  const documents = (table: string, columns: string, values: string): string => `
    INSERT INTO ${table} (id, created_at, updated_at, title, status, score, owner_id, team_id${columns})
    SELECT ${made(KIND.document, 'n')}, ${stamps}, 'document ' || n, CASE WHEN n % 8 = 0 THEN 'draft' ELSE 'published' END, n % 1000,
           CASE WHEN n % ${rows / 200} = 0 THEN '${CALLER}' ELSE ${made(KIND.user, `1 + n % ${users - 1}`)} END,
           ${made(KIND.team, `n * 7919::int8 % ${teams}`)}${values}
      FROM generate_series(1, ${rows}) AS n`;
  const links = (table: string): string => `
    INSERT INTO ${table}__tags (record_id, member_id)
    SELECT ${made(KIND.document, 'n')}, ${made(KIND.tag, '1')} FROM generate_series(1, ${rows}, 2) AS n
     UNION ALL
    SELECT ${made(KIND.document, 'n')}, ${made(KIND.tag, '2 + n % 500')} FROM generate_series(1, ${rows}) AS n`;
  return [
    `INSERT INTO users (id, email, email_verified, name)
     SELECT ${made(KIND.user, 'n')}, 'user' || n || '@example.com', true, 'name ' || n FROM generate_series(0, ${users - 1}) AS n`,
    `INSERT INTO teams (id, name) SELECT ${made(KIND.team, 'n')}, 'team ' || n FROM generate_series(0, ${teams - 1}) AS n`,
    `INSERT INTO memberships (id, team_id, user_id)
     SELECT ${made(KIND.team, 'n')}, ${made(KIND.team, `n % ${teams}`)},
            CASE WHEN n % ${teams / 5} = 0 AND n < ${teams} THEN '${CALLER}' ELSE ${made(KIND.user, '1 + n % 997')} END
       FROM generate_series(0, ${5 * teams - 1}) AS n`,
    `INSERT INTO tags (id, name) SELECT ${made(KIND.tag, 'n')}, 'tag ' || n FROM generate_series(0, 999) AS n`,
    documents('documents', ', code, ranked, pinned', `, 'code ' || n, n * 104729::int8 % 1000, n % 10 = 0`),
    documents('private_documents', '', ''),
    links('documents'),
    links('private_documents'),
    `INSERT INTO comments (id, created_at, updated_at, body, document_id, author_id)
     SELECT ${made(KIND.comment, 'n')}, ${stamps}, 'a comment', ${made(KIND.document, `1 + n * 7919::int8 % ${rows}`)}, ${made(KIND.user, `n % ${users}`)}
       FROM generate_series(1, ${rows / 2}) AS n`,
    'VACUUM ANALYZE',
  ];
}

interface Statement {
  /** Undefined: planned anew each time. */
  readonly name: string | undefined;
  readonly text: string;
  readonly values: readonly unknown[];
}

export async function measureFirstPages(rows: number, seconds: number): Promise<void> {
  const server = await startPostgres({ settings: { shared_buffers: '1GB' } });
  if (server === undefined)
    throw new Error('this bench needs PostgreSQL: install its binaries or set TEST_DATABASE_URL');
  const url = await isolatedUrl(server.url);
  const client = new pg.Client({ connectionString: url });
  try {
    await client.connect();
    const schema = parseSchema(readFileSync(SCHEMA, 'utf8'), SCHEMA).schema!;
    const db = await openDatabase({ url });
    await applyMigration(db, schema);
    for (const statement of fillings(rows)) await client.query(statement);
    const statements = await sentBy(db, schema);
    await db.close();
    report(rows, await timesOf(client, statements, seconds));
  } finally {
    await client.end();
    await server.stop();
  }
}

/** The statements of the service once it knows the tables. */
async function sentBy(db: Database, schema: Schema): Promise<readonly Statement[]> {
  const sent: Sql[] = [];
  const watched = watchedReads(db, (statement) => sent.push(statement));
  const records = createRecords(watched, schema);
  await ask(records, schema, QUESTIONS[0]!);
  // The statistics come meanwhile.
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  const statements: Statement[] = [];
  for (const [i, question] of QUESTIONS.entries()) {
    sent.length = 0;
    await ask(records, schema, question);
    // The expansions of the page, which are others, come after it.
    const { text, values, isPlannedAnew } = sent[0]!;
    statements.push({ name: isPlannedAnew ? undefined : `page_${i}`, text, values });
  }
  return statements;
}

async function ask(records: Records, schema: Schema, question: Question): Promise<void> {
  const { filters = {}, filter, sort } = question;
  const access = callerAccess(schema, question.collection, { auth: { id: CALLER, roles: ['member'] }, now: NOW });
  const { collection } = access;
  if (filter === undefined && sort === undefined) {
    const pairs = Object.entries(filters).map(([key, value]) => ({ key, value }));
    await records.list(access, { ...listRequestOf(pairs, collection, schema), limit: PAGE });
    return;
  }
  const path = sortPathOf((sort ?? 'id').replace('-', ''), collection.name, schema);
  if (typeof path === 'string') throw new Error(path);
  const compiled = filter && compileFilter(filter, { catalog: schema, collection: collection.name, params: {} }).filter;
  await records.list(access, {
    filter: compiled || undefined,
    sort: [{ path, descending: sort?.startsWith('-') === true }],
    limit: PAGE,
    offset: 0,
    isQuery: true,
  });
}

/** Milliseconds of each, in turn. */
async function timesOf(
  client: pg.Client,
  statements: readonly Statement[],
  seconds: number,
): Promise<readonly number[]> {
  const times: number[][] = statements.map(() => []);
  const end = performance.now() + seconds * 1000;
  for (let round = 0; round < 20 || performance.now() < end; round++) {
    for (const [i, { name, text, values }] of statements.entries()) {
      const start = performance.now();
      await client.query({ ...(name !== undefined && { name }), text, values: [...values] });
      // A plan is settled with the sixth use.
      if (round >= 8) times[i]!.push(performance.now() - start);
    }
  }
  return times.map(median);
}

function report(rows: number, times: readonly number[]): void {
  const name = `${rows.toLocaleString('en')} records`;
  for (const [i, { title, collection }] of QUESTIONS.entries())
    verdict(`${collection}: ${title}, ${name}`, times[i]!, { limit: MOST_MS, unit: 'ms' });
  record({
    bench: 'scale',
    title: `first pages of ${name}`,
    unit: 'ms a statement',
    kind: 'bars',
    labels: QUESTIONS.map(({ title, collection }) => `${collection}: ${title}`),
    series: [{ name: 'service', values: times }],
    notes: [],
  });
}
