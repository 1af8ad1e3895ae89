/**
 * First pages of skewed tables, each beside the best statement by hand, for three callers: `u0` owns 200 documents and
 * is in three teams, `u1` owns the last 45 % of all, which are due at once, `u2` owns none and is in 51 teams. Of the
 * documents, 2.75 % are published, one kind is rare and another one late. Of the tasks, `u1` owns 45 %, spread over all folders, and the first
 * 99 % are done; they are stored in no order. Half of the folders have a label that no caller may read, and the other half
 * one that all may. A third of the entries was updated since the last VACUUM. Every caller sees all parcels, of which 98 % have arrived.
 * All boards have a label, but none that permits them; one in 100 has an owner. A draft that is hidden from all three has many comments.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { openDatabase } from '../../src/database/open-database.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { compileFilter } from '../../src/policy/filters/filter.ts';
import { sortPathOf } from '../../src/policy/filters/sort-path.ts';
import { BackgroundStatistics } from '../../src/records/page/table-statistics.ts';
import { createRecords, type Records } from '../../src/records/records.ts';
import { listRequestOf } from '../../src/routes/records/query/query-string.ts';
import { parseSchema } from '../../src/schema/load.ts';
import type { Schema } from '../../src/schema/model/model.ts';
import { storedTables } from '../../src/schema/model/stored-names.ts';
import type { Sql } from '../../src/sql.ts';
import { watchedReads } from '../../test/support/watched-reads.ts';
import { callerAccess } from './caller-access.ts';
import { record } from './figures.ts';
import { median, verdict } from './measure.ts';

const SCHEMA = fileURLToPath(new URL('../servers/skewed.yaml', import.meta.url));
const NOW = '2026-01-01T00:00:00.000000Z';
const PAGE = 20;
/** The service next to the best by hand, in buffers; a page of few buffers may take some more. */
const MOST_RATIO = 3;
const FEW_BUFFERS = 500;

const KIND = { user: 1, team: 2, document: 4, comment: 5, note: 6, folder: 7, task: 8, entry: 9, parcel: 3, board: 0 };
const idOf = (kind: number, n: number): string => `0190000${kind}-0000-7000-8000-${n.toString(16).padStart(12, '0')}`;
const made = (kind: number, n: string): string =>
  `('0190000${kind}-0000-7000-8000-' || lpad(to_hex(${n}), 12, '0'))::uuid`;
const CALLERS = ['u0', 'u1', 'u2'] as const;
const callerId = (caller: number): string => idOf(KIND.user, caller);

/** A draft of another user without a team, and a published document. */
const [HIDDEN, PUBLISHED] = [idOf(KIND.document, 1), idOf(KIND.document, 400)];

/** So many documents; the others in proportion. */
function fillings(rows: number): readonly string[] {
  const users = Math.max(1_000, rows / 20);
  const teams = rows / 100;
  const stamps = (of: number): string => `now() - (${of} - n) * interval '1 second', now()`;
  const other = made(KIND.user, `3 + n::int8 * 7907 % ${users - 3}`);
  const owner = (of: number): string => `CASE
      WHEN n > ${Math.floor(of * 0.55)} THEN ${made(KIND.user, '1')}
      WHEN n % ${Math.floor((of * 0.55) / 200)} = 0 THEN ${made(KIND.user, '0')}
      ELSE ${other} END`;
  return [
    `INSERT INTO users (id, email, email_verified, name)
     SELECT ${made(KIND.user, 'n')}, 'user' || n || '@example.com', true, 'name ' || n
       FROM generate_series(0, ${users - 1}) AS n`,
    `INSERT INTO teams (id, name) SELECT ${made(KIND.team, 'n')}, 'team ' || n FROM generate_series(0, ${teams - 1}) AS n`,
    `INSERT INTO memberships (id, team_id, user_id)
     SELECT ${made(KIND.team, 'n')}, ${made(KIND.team, `n % ${teams}`)}, CASE
              WHEN n < 51 THEN ${made(KIND.user, '2')}
              WHEN n < 54 THEN ${made(KIND.user, '0')}
              ELSE ${made(KIND.user, `3 + n % ${users - 3}`)} END
       FROM generate_series(0, ${5 * teams - 1}) AS n`,
    `INSERT INTO documents (id, created_at, updated_at, title, "title~folded", status, kind, score, due_at, owner_id, team_id)
     SELECT ${made(KIND.document, 'n')}, ${stamps(rows)}, 'document ' || n || ' of many', 'document ' || n || ' of many',
            CASE WHEN n::int8 * 7919 % 400 < 11 THEN 'published' ELSE 'draft' END,
            CASE WHEN n > ${Math.floor(rows * 0.998)} THEN 'late' WHEN n % 2000 = 0 THEN 'rare' ELSE 'kind ' || n % 5 END,
            n::int8 * 104729 % 101, now() + (${rows} - least(n, ${Math.floor(rows * 0.55)})) * interval '1 minute', ${owner(rows)},
            CASE WHEN n % 2 = 0 THEN ${made(KIND.team, `n::int8 * 7907 % ${teams}`)} END
       FROM generate_series(1, ${rows}) AS n`,
    `INSERT INTO comments (id, created_at, updated_at, body, document_id, author_id)
     SELECT ${made(KIND.comment, 'n')}, ${stamps(rows * 0.3)}, 'c' || n, ${made(KIND.document, 'n * 10 / 3')},
            CASE WHEN n % 5000 = 7 THEN ${made(KIND.user, 'n / 5000 % 3')} ELSE ${other} END
       FROM generate_series(1, ${rows * 0.3}) AS n`,
    `INSERT INTO comments (id, body, document_id, author_id)
     SELECT ${made(KIND.comment, `${rows * 0.3} + n`)}, 'c', '${HIDDEN}', ${other}
       FROM generate_series(1, ${rows * 0.01}) AS n`,
    `INSERT INTO notes (id, created_at, updated_at, title, open, owner_id)
     SELECT ${made(KIND.note, 'n')}, ${stamps(rows * 0.5)}, 'note ' || n, n % 2 = 0, ${owner(rows * 0.5)}
       FROM generate_series(1, ${rows * 0.5}) AS n`,
    `INSERT INTO folders (id, created_at, updated_at, name)
     SELECT ${made(KIND.folder, 'n')}, ${stamps(rows * 0.05)}, 'folder ' || n FROM generate_series(0, ${rows * 0.05 - 1}) AS n`,
    `INSERT INTO folders__labels (record_id, member_id)
     SELECT ${made(KIND.folder, 'n')}, CASE WHEN n % 2 = 0 THEN '${HIDDEN}'::uuid ELSE '${PUBLISHED}'::uuid END
       FROM generate_series(0, ${rows * 0.05 - 1}) AS n`,
    `INSERT INTO tasks (id, created_at, updated_at, done, folder_id, owner_id)
     SELECT ${made(KIND.task, 'n')}, ${stamps(rows * 0.3)}, n < ${rows * 0.297}, ${made(KIND.folder, `n::int8 * 7907 % ${rows * 0.05}`)},
            CASE
              WHEN n % 2000 = 0 THEN ${made(KIND.user, '0')}
              WHEN n::int8 * 7919 % 20 < 9 THEN ${made(KIND.user, '1')}
              ELSE ${other} END
       FROM generate_series(1, ${rows * 0.3}) AS n ORDER BY n::int8 * 104729 % ${rows * 0.3}`,
    `INSERT INTO entries (id, created_at, updated_at, body, open)
     SELECT ${made(KIND.entry, 'n')}, ${stamps(rows * 0.6)}, CASE WHEN n > ${rows * 0.3} THEN 'late ' ELSE 'early ' END || n, n % 2 = 0
       FROM generate_series(1, ${rows * 0.6}) AS n`,
    `INSERT INTO parcels (id, created_at, updated_at, state)
     SELECT ${made(KIND.parcel, 'n')}, ${stamps(rows * 0.5)}, CASE n % 50 WHEN 0 THEN CASE WHEN n % 200 = 0 THEN 'lost' ELSE 'moving' END ELSE 'arrived' END
       FROM generate_series(1, ${rows * 0.5}) AS n`,
    `INSERT INTO boards (id, created_at, updated_at, title, place, owner_id)
     SELECT ${made(KIND.board, 'n')}, ${stamps(rows)}, 'board ' || n % 1000, n::int8 * 104729 % ${rows},
            CASE WHEN n % 100 = 0 THEN ${made(KIND.user, `n / 100 % ${users}`)} END
       FROM generate_series(1, ${rows}) AS n`,
    `INSERT INTO boards__labels (record_id, member_id)
     SELECT ${made(KIND.board, 'n')}, ${made(KIND.folder, `n::int8 * 7907 % ${rows * 0.05}`)} FROM generate_series(1, ${rows}) AS n`,
    // The server may have tables of other tests, whose plans must not change.
    `VACUUM ANALYZE users, teams, memberships, documents, comments, notes, folders, folders__labels, tasks, entries, parcels,
                    boards, boards__labels`,
    `UPDATE entries SET updated_at = now() WHERE id <= ${made(KIND.entry, `${rows * 0.2}`)}`,
    // Other sessions know at once how many rows have former versions.
    'SELECT pg_stat_force_next_flush()',
  ];
}

interface Asked {
  readonly filters?: Readonly<Record<string, string>>;
  /** The filter of a query. */
  readonly filter?: string;
  readonly sort?: string;
}
interface Case extends Asked {
  readonly title: string;
  readonly collection: 'documents' | 'comments' | 'notes' | 'folders' | 'tasks' | 'entries' | 'parcels' | 'boards';
  /** `$1`: the caller. */
  readonly best: string;
}

// ---------------------------------------------------------------- the best by hand

const TEAMS = 'SELECT m.team_id FROM memberships m WHERE m.user_id = $1';
const isReadable = (row: string): string =>
  `(${row}.status = 'published' OR ${row}.owner_id = $1 OR ${row}.team_id = ANY(ARRAY(${TEAMS})))`;
const isCommentReadable = (row: string): string => `(${row}.author_id = $1 OR EXISTS (
  SELECT 1 FROM documents d WHERE d.id = ${row}.document_id AND ${isReadable('d')} OFFSET 0))`;

const ranges = (table: string, column: string, value: string, more: string): string => `
  SELECT b.id FROM ${table} b WHERE b.${column} BETWEEN ${value} AND ${value} AND ${more}
   ORDER BY b.${column}, b.id LIMIT 21`;
/** The first documents of each part of the rule. */
const inBranches = (more: string, parts: readonly ('published' | 'own' | 'teams')[]): string => {
  const branches = {
    published: `(${ranges('documents', 'status', `'published'`, more)})`,
    own: `(${ranges('documents', 'owner_id', '$1', more)})`,
    teams: `(SELECT x.id FROM (${TEAMS}) k CROSS JOIN LATERAL (
      ${ranges('documents', 'team_id', 'k.team_id', more)}) x)`,
  };
  return `SELECT t.* FROM documents t WHERE t.id = ANY(ARRAY(${parts.map((part) => branches[part]).join(' UNION ALL ')}))
    ORDER BY t.id LIMIT 21`;
};
const gathered = (filter: string, order: string): string => `
  WITH m AS MATERIALIZED (SELECT * FROM documents b WHERE ${filter})
  SELECT m.* FROM m WHERE ${isReadable('m')} ORDER BY ${order} LIMIT 21`;
const commentsBy = (filter: string, order: string): string =>
  `SELECT t.* FROM comments t WHERE ${filter} AND ${isCommentReadable('t')} ORDER BY ${order} LIMIT 21`;
const ofKind = (kind: string): Pick<Case, 'title' | 'collection' | 'filters' | 'best'> => ({
  title: `C2 documents ?kind=${kind}`,
  collection: 'documents',
  filters: { kind },
  best: `SELECT t.* FROM documents t WHERE t.kind BETWEEN '${kind}' AND '${kind}' AND ${isReadable('t')}
    ORDER BY t.kind, t.id LIMIT 21`,
});
const ownNotes = (more: string): string => `
  SELECT t.* FROM notes t WHERE t.owner_id BETWEEN $1 AND $1${more} ORDER BY t.owner_id, t.id LIMIT 21`;
const foldersOf = (more: string): string => `
  SELECT t.* FROM folders t WHERE ${more} AND EXISTS (
    SELECT 1 FROM tasks k WHERE k.folder_id = t.id AND k.owner_id = $1 OFFSET 0) ORDER BY t.id LIMIT 21`;
const isLabelled = (label: string): string => `(
  EXISTS (SELECT 1 FROM documents d WHERE d.id = '${label}' AND ${isReadable('d')})
  AND EXISTS (SELECT 1 FROM folders__labels l WHERE l.record_id = t.id AND l.member_id = '${label}' OFFSET 0))`;
const gatheredBoards = (more: string, order: string): string => `
  WITH m AS MATERIALIZED (SELECT * FROM boards b WHERE ${more} AND (b.owner_id = $1 OR b.id = ANY(ARRAY(
    SELECT l.record_id FROM folders f JOIN boards__labels l ON l.member_id = f.id WHERE f.name > 'none' COLLATE "C"))))
  SELECT m.* FROM m ORDER BY ${order} LIMIT 21`;
const AUTHOR = idOf(KIND.user, 7);

const CASES: readonly Case[] = [
  { title: 'C1 comments', collection: 'comments', best: commentsBy('true', 't.id') },
  {
    title: 'C1 comments ?author=',
    collection: 'comments',
    filters: { author: AUTHOR },
    best: commentsBy(`t.author_id BETWEEN '${AUTHOR}' AND '${AUTHOR}'`, 't.author_id, t.id'),
  },
  {
    title: 'C1 comments ?document= a hidden one of many comments',
    collection: 'comments',
    filters: { document: HIDDEN },
    best: commentsBy(`t.document_id = '${HIDDEN}' AND t.author_id = $1`, 't.id'),
  },
  ...['late', 'rare', 'none', 'kind 1'].map(ofKind),
  {
    title: 'C3 documents ?status=draft',
    collection: 'documents',
    filters: { status: 'draft' },
    best: inBranches(`b.status = 'draft'`, ['own', 'teams']),
  },
  { title: 'C4 notes', collection: 'notes', best: ownNotes('') },
  { title: 'C4 notes ?open=true', collection: 'notes', filters: { open: 'true' }, best: ownNotes(' AND t.open') },
  {
    title: 'folders with tasks of the caller',
    collection: 'folders',
    best: `SELECT t.* FROM folders t
      WHERE EXISTS (SELECT 1 FROM tasks k WHERE k.folder_id = t.id AND k.owner_id = $1) ORDER BY t.id LIMIT 21`,
  },
  {
    title: 'folders, labels contains a hidden document',
    collection: 'folders',
    filter: `labels contains "${HIDDEN}"`,
    best: foldersOf(isLabelled(HIDDEN)),
  },
  {
    title: 'folders, labels contains a hidden document or one by its name',
    collection: 'folders',
    filter: `labels contains "${HIDDEN}" or name = "folder 7"`,
    best: foldersOf(`(t.name = 'folder 7' OR ${isLabelled(HIDDEN)})`),
  },
  {
    title: 'folders, labels contains a published document',
    collection: 'folders',
    filter: `labels contains "${PUBLISHED}"`,
    best: foldersOf(isLabelled(PUBLISHED)),
  },
  {
    title: 'folders, name starts with "folder 49"',
    collection: 'folders',
    filter: 'name starts with "folder 49"',
    best: `WITH m AS MATERIALIZED (SELECT f.* FROM folders f WHERE f.name LIKE 'folder 49%' ORDER BY f.id)
      SELECT m.* FROM m WHERE EXISTS (
        SELECT 1 FROM tasks k WHERE k.folder_id = m.id AND k.owner_id = $1 OFFSET 0) ORDER BY m.id LIMIT 21`,
  },
  {
    title: 'tasks, of which the last are open',
    collection: 'tasks',
    best: `WITH m AS MATERIALIZED (SELECT * FROM tasks b WHERE b.owner_id = $1 AND NOT b.done)
      SELECT m.* FROM m ORDER BY m.id LIMIT 21`,
  },
  {
    title: 'entries, body starts with "late", of which the first third was updated',
    collection: 'entries',
    filter: 'body starts with "late"',
    best: `WITH m AS MATERIALIZED (SELECT * FROM entries b WHERE b.body LIKE 'late%' AND b.open)
      SELECT m.* FROM m ORDER BY m.id LIMIT 21`,
  },
  {
    title: 'C5 documents, score > 99',
    collection: 'documents',
    filter: 'score > 99',
    best: inBranches('b.score > 99', ['published', 'own', 'teams']),
  },
  {
    title: 'C5 documents, title matches "document"',
    collection: 'documents',
    filter: 'title matches "document"',
    best: inBranches(`b."title~folded" LIKE '%document%'`, ['published', 'own', 'teams']),
  },
  {
    title: 'C6 documents, kind = "late", the last due first',
    collection: 'documents',
    filter: 'kind = "late"',
    sort: '-due_at',
    best: gathered(`b.kind = 'late'`, 'm.due_at DESC, m.id'),
  },
  // All rows have one kind, so the order is that of the ids.
  {
    ...ofKind('kind 1'),
    title: 'documents, kind = "kind 1", by kind',
    filters: {},
    filter: 'kind = "kind 1"',
    sort: '-kind',
  },
  // Few rows have the first value of the order, and most have another one.
  {
    title: 'documents, the last kind first',
    collection: 'documents',
    filters: { sort: '-kind' },
    best: `SELECT t.* FROM documents t WHERE ${isReadable('t')} ORDER BY t.kind COLLATE "C" DESC, t.id LIMIT 21`,
  },
  // The same where the rule permits every record.
  {
    title: 'parcels, the last state first',
    collection: 'parcels',
    filters: { sort: '-state' },
    best: `SELECT t.* FROM parcels t WHERE t.state = 'moving' ORDER BY t.state, t.id LIMIT 21`,
  },
  // No related record meets the rule, which compares other than for a value.
  {
    title: 'boards with labels of late names',
    collection: 'boards',
    best: gatheredBoards('true', 'm.id'),
  },
  // The index of the order would find the few that match at its end.
  {
    title: 'boards, title = "board 7" or "board 8", by place',
    collection: 'boards',
    filter: 'title = "board 7" or title = "board 8"',
    sort: 'place',
    best: gatheredBoards(`b.title IN ('board 7', 'board 8')`, 'm.place, m.id'),
  },
  // Another value than the frequent one is the first.
  {
    title: 'documents, the last due first',
    collection: 'documents',
    filters: { sort: '-due_at' },
    best: `SELECT t.* FROM documents t WHERE ${isReadable('t')} ORDER BY t.due_at DESC, t.id LIMIT 21`,
  },
  // The order begins in the middle of its index.
  {
    title: 'documents, score < 50, the highest first',
    collection: 'documents',
    filter: 'score < 50',
    sort: '-score',
    best: `SELECT t.* FROM documents t WHERE t.score < 50 AND ${isReadable('t')} ORDER BY t.score DESC, t.id LIMIT 21`,
  },
  {
    title: 'comments but one, the newest first',
    collection: 'comments',
    filter: 'body != "c77"',
    sort: '-created_at',
    best: commentsBy(`t.body <> 'c77'`, 't.created_at DESC, t.id'),
  },
  {
    title: 'C7 documents, any(comments as c, c.body = "c77")',
    collection: 'documents',
    filter: 'any(comments as c, c.body = "c77")',
    best: `WITH c AS MATERIALIZED (SELECT * FROM comments c WHERE c.body = 'c77')
      SELECT t.* FROM documents t WHERE t.id IN (SELECT c.document_id FROM c WHERE ${isCommentReadable('c')})
         AND ${isReadable('t')} ORDER BY t.id LIMIT 21`,
  },
  {
    title: 'documents, score > 100, which none has',
    collection: 'documents',
    filter: 'score > 100',
    best: gathered('b.score > 100', 'm.id'),
  },
  {
    title: 'documents, any(comments as c, c.author = @me)',
    collection: 'documents',
    filter: 'any(comments as c, c.author = @me)',
    best: `WITH c AS MATERIALIZED (SELECT * FROM comments c WHERE c.author_id = $1)
      SELECT t.* FROM documents t WHERE t.id IN (SELECT c.document_id FROM c) AND ${isReadable('t')}
       ORDER BY t.id LIMIT 21`,
  },
  {
    title: 'C8 documents, title matches "document 77777 "',
    collection: 'documents',
    filter: 'title matches "document 77777 "',
    best: gathered(`b."title~folded" LIKE '%document 77777 %'`, 'm.id'),
  },
  {
    title: 'folders ?expand=tasks',
    collection: 'folders',
    filters: { expand: 'tasks' },
    best: `WITH page AS MATERIALIZED (${foldersOf('true')})
      SELECT page.*, (SELECT json_agg(x.id) FROM (SELECT k.id FROM tasks k
        WHERE k.folder_id = page.id AND k.owner_id = $1 AND NOT k.done ORDER BY k.id LIMIT 101) x) FROM page ORDER BY page.id`,
  },
  {
    title: 'C9 documents ?expand=comments',
    collection: 'documents',
    filters: { expand: 'comments' },
    best: `WITH page AS MATERIALIZED (SELECT t.* FROM documents t WHERE ${isReadable('t')} ORDER BY t.id LIMIT 21)
      SELECT page.*, (SELECT json_agg(x.body) FROM (SELECT c.body FROM comments c
        WHERE c.document_id = page.id AND ${isCommentReadable('c')} ORDER BY c.id LIMIT 101) x) FROM page ORDER BY page.id`,
  },
];

// ---------------------------------------------------------------- the statements

interface Statement {
  /** Undefined: planned anew each time. */
  readonly name: string | undefined;
  readonly text: string;
  readonly values: readonly unknown[];
}
interface Measured {
  readonly ms: number;
  readonly buffers: number;
  readonly ids: string;
}

/** Measures all cases on the server. Tables that a former run has left on it are used again. */
export async function measureSkewedPages(server: string, rows: number): Promise<void> {
  const url = await filledUrl(server, rows);
  for await (const page of skewedPages(url)) report(page, rows);
}

/** The pages of all cases and callers. Throws where the service shows other records than the statement by hand. */
export async function* skewedPages(url: string): AsyncGenerator<SkewedPage> {
  const schema = skewedSchema();
  const db = await openDatabase({ url });
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  // As the service's own connections have it.
  await client.query('SET jit = off');
  try {
    const sent: Sql[] = [];
    const statistics = new BackgroundStatistics(db, [...storedTables(schema)]);
    await statistics.refresh();
    const watched = watchedReads(db, (statement) => sent.push(statement));
    const records = createRecords(watched, schema, { statisticsOf: (table) => statistics.of(table) });
    for (const each of CASES) {
      for (const caller of CALLERS.keys()) {
        sent.length = 0;
        await ask(records, schema, { ...each, caller });
        const title = `${each.title}, ${CALLERS[caller]}`;
        const service = await measured(
          client,
          sent.map((statement, i) => namedStatement(`${title} ${i}`, statement)),
        );
        const text = each.best.replaceAll('$1', `'${callerId(caller)}'`);
        const best = await measured(client, [{ name: undefined, text, values: [] }]);
        if (service.ids !== best.ids) throw new Error(`${title}: the statements must find the same rows`);
        yield { title, service, best };
      }
    }
  } finally {
    await client.end();
    await db.close();
  }
}

const skewedSchema = (): Schema => parseSchema(readFileSync(SCHEMA, 'utf8'), SCHEMA).schema!;

const namedStatement = (title: string, { text, values, isPlannedAnew }: Sql): Statement => ({
  name: isPlannedAnew ? undefined : `s${createHash('sha1').update(title).digest('hex')}`,
  text,
  values,
});

/** The schema of the database is named by the rows and their making. */
async function filledUrl(server: string, rows: number): Promise<string> {
  const made = createHash('sha1').update(readFileSync(SCHEMA, 'utf8')).update(fillings(rows).join()).digest('hex');
  const name = `skewed_${rows}_${made.slice(0, 8)}`;
  const url = `${server}${server.includes('?') ? '&' : '?'}options=${encodeURIComponent(`-c search_path=${name},public`)}`;
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows: found } = await client.query(`SELECT to_regclass('${name}.filled') AS filled`);
    if (found[0].filled !== null) return url;
    await client.query(`DROP SCHEMA IF EXISTS ${name} CASCADE`);
    await client.query(`CREATE SCHEMA ${name}`);
    await client.query('CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA public');
    await fillSkewed(url, rows);
    await client.query('CREATE TABLE filled ()');
    return url;
  } finally {
    await client.end();
  }
}

/** Makes the tables, with so many documents. */
export async function fillSkewed(url: string, rows: number): Promise<void> {
  const db = await openDatabase({ url });
  await applyMigration(db, skewedSchema());
  await db.close();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const statement of fillings(rows)) await client.query(statement);
  } finally {
    await client.end();
  }
}

async function ask(records: Records, schema: Schema, asked: Case & { readonly caller: number }): Promise<void> {
  const { collection: name, filters = {}, filter, sort, caller } = asked;
  const access = callerAccess(schema, name, { auth: { id: callerId(caller), roles: ['member'] }, now: NOW });
  if (filter === undefined) {
    const pairs = Object.entries(filters).map(([key, value]) => ({ key, value }));
    await records.list(access, { ...listRequestOf(pairs, access.collection, schema), limit: PAGE });
    return;
  }
  const path = sortPathOf((sort ?? 'id').replace('-', ''), name, schema);
  if (typeof path === 'string') throw new Error(path);
  const compiled = compileFilter(filter, { catalog: schema, collection: name, params: {} }).filter!;
  await records.list(access, {
    filter: compiled,
    sort: sort === undefined ? [] : [{ path, descending: sort.startsWith('-') }],
    limit: PAGE,
    offset: 0,
    isQuery: true,
  });
}

/** A plan is settled with the sixth use. */
const WARM = 7;
const TIMED = 5;

async function measured(client: pg.Client, statements: readonly Statement[]): Promise<Measured> {
  let [ms, buffers, ids] = [0, 0, ''];
  for (const { name, text, values } of statements) {
    const query = { ...(name !== undefined && { name }), text, values: [...values] };
    const times: number[] = [];
    for (let round = 0; round < WARM + TIMED; round++) {
      const start = performance.now();
      const { rows } = await client.query(query);
      const took = performance.now() - start;
      if (rows[0]?.id !== undefined && ids === '') ids = rows.map(({ id }) => id).join();
      if (round >= WARM) times.push(took);
    }
    ms += median(times);
    // The service asks how many rows a filter finds.
    if (text.startsWith('EXPLAIN')) continue;
    buffers += await buffersOf(client, { name, text, values });
  }
  return { ms, buffers, ids };
}

async function buffersOf(client: pg.Client, { name, text, values }: Statement): Promise<number> {
  const literals = values.map((value) => pg.escapeLiteral(Array.isArray(value) ? `{${value.join()}}` : String(value)));
  const custom = 'custom';
  if (name === undefined) {
    await client.query('SET plan_cache_mode = force_custom_plan');
    await client.query(`PREPARE ${custom} AS ${text}`);
  }
  const given = literals.length === 0 ? '' : `(${literals.join(', ')})`;
  const explain = 'EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON)';
  const { rows } = await client.query(`${explain} EXECUTE ${name ?? custom}${given}`);
  if (name === undefined) await client.query(`DEALLOCATE ${custom}; RESET plan_cache_mode`);
  const [{ Plan }] = rows[0]['QUERY PLAN'] as [{ Plan: Record<string, number> }];
  return Plan['Shared Hit Blocks']! + Plan['Shared Read Blocks']!;
}

export interface SkewedPage {
  readonly title: string;
  readonly service: Measured;
  readonly best: Measured;
}

/** The buffers that the service may read for a page. */
export const mostBuffersOf = ({ best }: SkewedPage): number => Math.max(MOST_RATIO * best.buffers, FEW_BUFFERS);

function report(page: SkewedPage, rows: number): void {
  const { title, service, best } = page;
  const label = `${title}, ${rows.toLocaleString('en')} rows`;
  const shown = ({ ms, buffers }: Measured): string => `${ms.toFixed(2)} ms, ${buffers} buffers`;
  console.log(`${label}: ${shown(service)}; best ${shown(best)}`);
  verdict(label, service.buffers, { limit: mostBuffersOf(page), unit: 'buffers' });
  record({
    bench: 'pages',
    title: label,
    unit: 'ms a statement',
    kind: 'bars',
    labels: ['service', 'best'],
    series: [{ name: 'ms', values: [service.ms, best.ms] }],
    notes: [`${service.buffers} and ${best.buffers} buffers`],
  });
}
