/** Migrations on a Citus cluster: a schema with records is distributed and taken back, changes online, and goes on from a dump. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import { openDatabase } from '../../src/database/open-database.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { planMigration } from '../../src/migrations/migration.ts';
import type { Schema } from '../../src/schema/model/model.ts';
import { migrateOptions, startOptions } from '../../src/service/system-tables.ts';
import { raw } from '../../src/sql.ts';
import { CitusCluster, citusBinaries } from '../support/cluster/citus.ts';
import { findBinaries, isolatedUrl } from '../support/postgres.ts';
import { clusterUrl, schemaFrom, TestService } from '../support/service.ts';
import { Recorder } from './recorder.ts';
import { runScript } from './script.ts';

const run = promisify(execFile);
const TEXT = readFileSync(join(import.meta.dirname, '../../docs/distributed.yaml'), 'utf8');
const DIVIDED = schemaFrom(TEXT);
const PLAIN = schemaFrom(TEXT.replaceAll(/^ +distribute: .*\n/gm, ''));
const TABLES = [
  'users',
  'teams',
  'memberships',
  'tags',
  'documents',
  'documents__tags',
  'covers',
  'comments',
  'events',
];

const counts = async (db: Database): Promise<readonly string[]> => {
  const found: string[] = [];
  for (const table of TABLES) {
    const [row] = await db.rows(raw(`SELECT count(*) FROM ${table}`));
    found.push(`${table} ${row![0]}`);
  }
  return found;
};

/** How each table is stored. */
const kinds = async (db: Database): Promise<Readonly<Record<string, string>>> => {
  const rows = await db.rows(
    raw(`
    SELECT c.relname, CASE WHEN d.partmethod = 'h' THEN 'distributed' WHEN d.repmodel = 't' THEN 'reference' ELSE 'plain' END
      FROM pg_class c LEFT JOIN pg_dist_partition d ON d.logicalrelid = c.oid
     WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND c.relname NOT LIKE '%bylaw%'
       AND c.relname NOT LIKE '\\_%'
     ORDER BY 1`),
  );
  return Object.fromEntries(rows.map(([name, kind]) => [name!, kind!]));
};

const migrate = (db: Database, schema: Schema, more: object = {}) =>
  applyMigration(db, schema, { ...migrateOptions(), allowDestructive: true, ...more });

// A cluster of its own: a statement that drops a key of a table that moves locks tables in all schemas of the database.
describe.skipIf(clusterUrl === '' || citusBinaries() === undefined)('migrations of a cluster (distributed)', () => {
  let cluster: CitusCluster;
  let url: string;
  let db: Database;
  let before: readonly string[];

  beforeAll(async () => {
    cluster = await CitusCluster.start();
    url = await isolatedUrl(cluster.coordinator.url);
    db = await openDatabase({ url });
    await migrate(db, PLAIN);
    await db.run(
      raw(`
      INSERT INTO users (id, email) SELECT gen_random_uuid(), 'p' || n || '@example.org' FROM generate_series(1, 20) n`),
    );
    await db.run(raw(`INSERT INTO teams (id, name, created_by_id) SELECT gen_random_uuid(), email, id FROM users`));
    await db.run(raw('UPDATE users SET team_id = t.id FROM teams t WHERE t.created_by_id = users.id'));
    await db.run(
      raw(`INSERT INTO memberships (id, team_id, user_id, role)
           SELECT gen_random_uuid(), id, created_by_id, 'owner' FROM teams`),
    );
    await db.run(raw(`INSERT INTO tags (id, label) SELECT gen_random_uuid(), 't' || n FROM generate_series(1, 5) n`));
    await db.run(
      raw(`INSERT INTO documents (id, slug, title, status, team_id, owner_id)
           SELECT gen_random_uuid(), 's' || n, 'a title', 'draft', t.id, t.created_by_id
             FROM teams t, generate_series(1, 100) n`),
    );
    await db.run(
      raw(`UPDATE documents d SET previous_id = o.id FROM documents o WHERE o.team_id = d.team_id AND o.slug = 's1'`),
    );
    await db.run(
      raw(`INSERT INTO documents__tags SELECT d.id, t.id FROM documents d, tags t WHERE d.slug IN ('s1', 's2')`),
    );
    await db.run(
      raw(`INSERT INTO comments (id, body, team_id, document_id, author_id)
           SELECT gen_random_uuid(), 'text', team_id, id, owner_id FROM documents`),
    );
    await db.run(
      raw(`INSERT INTO events (id, what, team_id, document_id, actor_id)
           SELECT gen_random_uuid(), 'made', team_id, id, owner_id FROM documents`),
    );
    before = await counts(db);
  });
  afterAll(async () => {
    await db?.close();
    await cluster?.stop();
  });

  test('a schema with records is distributed', async () => {
    await migrate(db, DIVIDED);
    expect(await counts(db)).toEqual(before);
    expect(await kinds(db)).toMatchObject({
      users: 'reference',
      teams: 'reference',
      memberships: 'reference',
      tags: 'reference',
      files: 'reference',
      documents: 'distributed',
      documents__tags: 'distributed',
      comments: 'distributed',
    });
    expect((await planMigration(db, DIVIDED, migrateOptions())).statements).toEqual([]);
  });

  test('a large table gets an index, a required field and a reference while it is in use', async () => {
    const changed = schemaFrom(
      TEXT.replace('score: { type: int, min: 0, max: 100 }', 'score: { type: int, min: 0, max: 100, index: true }')
        .replace(
          '      due_at: { type: datetime, index: true }\n',
          '      due_at: { type: datetime, index: true }\n      weight: { type: int, required: true, default: 1 }\n',
        )
        .replace(
          '      previous: { kind: belongs_to, collection: documents }\n',
          '      previous: { kind: belongs_to, collection: documents }\n      next: { kind: belongs_to, collection: documents }\n',
        ),
    );
    const plan = await planMigration(db, changed, { ...migrateOptions(), largeFrom: 0 });
    expect(plan.apart.filter((text) => text.includes('CONCURRENTLY')).length).toBeGreaterThan(0);
    await applyMigration(db, changed, { ...startOptions(), largeFrom: 0 });
    expect((await planMigration(db, changed, migrateOptions())).statements).toEqual([]);
    await migrate(db, DIVIDED);
    expect(await counts(db)).toEqual(before);
  });

  test('a dropped reference waits for no writer of the tables of the service', async () => {
    const session = await db.openSession!();
    await session.run(raw('BEGIN'));
    await session.run(raw('LOCK TABLE bylaw_kept_answers IN ROW EXCLUSIVE MODE'));
    const notes: string[] = [];
    const without = schemaFrom(TEXT.replace('      previous: { kind: belongs_to, collection: documents }\n', ''));
    await migrate(db, without, { onNote: (note: string) => notes.push(note) });
    await session.run(raw('ROLLBACK'));
    await session.close();
    expect(notes).toEqual([]);
    await migrate(db, DIVIDED);
  });

  test('a unique field of a large table says that its writers wait', async () => {
    const unique = schemaFrom(
      TEXT.replace(
        'title: { type: string, required: true, min: 1, max: 200 }',
        'title: { type: string, required: true, min: 1, max: 200, unique: within_team }',
      ),
    );
    await db.run(raw('UPDATE documents SET title = slug'));
    const plan = await planMigration(db, unique, { ...migrateOptions(), largeFrom: 0 });
    expect(plan.destructive.map(({ kind }) => kind)).toEqual(['rewrites']);
    await applyMigration(db, unique, { ...migrateOptions(), largeFrom: 0 });
    expect((await planMigration(db, unique, migrateOptions())).statements).toEqual([]);
    await migrate(db, DIVIDED);
  });

  test('a restored dump goes on', async () => {
    const [row] = await db.rows(raw('SELECT current_schema()'));
    const from = row![0]!;
    const server = cluster.coordinator.url;
    const restored = await isolatedUrl(server);
    const to = /search_path%3D(\w+)/.exec(restored)![1]!;
    const bin = findBinaries()!;
    const plain = { maxBuffer: 1 << 28 };
    const { stdout } = await run(join(bin, 'pg_dump'), ['--schema', from, '-d', server], plain);
    const dump = stdout.replaceAll(from, to).replace(`CREATE SCHEMA ${to};`, '');
    const loading = run(join(bin, 'psql'), ['-q', '-v', 'ON_ERROR_STOP=1', '-d', server], plain);
    loading.child.stdin!.end(dump);
    await loading;
    const other = await openDatabase({ url: restored });
    try {
      expect(await counts(other)).toEqual(before);
      await migrate(other, DIVIDED);
      expect(await counts(other)).toEqual(before);
      expect(await kinds(other)).toEqual(await kinds(db));
    } finally {
      await other.close();
    }
  });

  test('the way back, and there again', async () => {
    await migrate(db, PLAIN);
    expect(await counts(db)).toEqual(before);
    expect(new Set(Object.values(await kinds(db)))).toEqual(new Set(['plain']));
    expect((await planMigration(db, PLAIN, migrateOptions())).statements).toEqual([]);
    await migrate(db, DIVIDED);
    expect(await counts(db)).toEqual(before);
  });

  test('a service goes on in what was distributed', async () => {
    const service = new TestService('cluster');
    await service.start({ schema: TEXT, connect: () => url });
    try {
      const recorder = new Recorder(service.url);
      await runScript(recorder, service.app);
      expect(recorder.steps.filter(({ status }) => status >= 500)).toEqual([]);
    } finally {
      await service.stop();
    }
  });
});
