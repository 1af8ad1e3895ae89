// @module-tag long
/** Statistics of tables whose rows are in partitions. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/database/contract.ts';
import { applyMigration } from '../../../src/migrations/apply-migration.ts';
import { BackgroundStatistics } from '../../../src/records/page/table-statistics.ts';
import { raw } from '../../../src/sql.ts';
import { KINDS, openKind, schemaOf } from '../../support/store-world.ts';

const SAMPLE = schemaOf(readFileSync(join(import.meta.dirname, '../../../docs/distributed.yaml'), 'utf8'));
const TABLES = ['documents', 'tags'];
const [PERSON, TEAM] = ['019a0000-0000-7000-8000-000000000001', '019a0000-0000-7000-8000-000000000002'];

describe.each(KINDS)('partitions on %s', (kind) => {
  let db: Database;
  /** Statements that the database received, from all. */
  const told: string[] = [];
  let watched: Database;
  beforeAll(async () => {
    db = await openKind(kind);
    await applyMigration(db, SAMPLE);
    await db.run(
      raw(`INSERT INTO users (id, email, created_at, updated_at) VALUES ('${PERSON}', 'a@example.org', now(), now())`),
    );
    for (let i = 2; i < 10; i++)
      await db.run(
        raw(`INSERT INTO teams (id, name, created_by_id, created_at, updated_at)
             VALUES ('${TEAM.slice(0, -1)}${i}', 'team ${i}', '${PERSON}', now(), now())`),
      );
    const note = (text: string) => text.startsWith('ANALYZE') && told.push(text);
    watched = {
      ...db,
      run: (statement) => {
        note(statement.text);
        return db.run(statement);
      },
      transaction: (work, options) =>
        db.transaction(
          (tx) =>
            work({
              ...tx,
              run: (statement) => {
                note(statement.text);
                return tx.run(statement);
              },
            }),
          options,
        ),
    };
  });
  afterAll(() => db?.close());

  const grow = (least: number, most: number) =>
    db.run(
      raw(`INSERT INTO documents (id, team_id, owner_id, slug, title, status, created_at, updated_at)
           SELECT gen_random_uuid(), ('${TEAM.slice(0, -1)}' || 2 + n % 8)::uuid, '${PERSON}', 'slug ' || n, repeat('x', 100),
                  CASE WHEN n % 4 = 0 THEN 'draft' ELSE 'published' END, now(), now()
             FROM generate_series(${least}, ${most}) AS n`),
    );
  /** Does the work of autovacuum, which analyses partitions, and never the table. */
  const autovacuum = async (): Promise<void> => {
    if (kind === 'embedded') return;
    const leaves = await db.rows(raw(`SELECT relid::regclass::text FROM pg_partition_tree('documents') WHERE isleaf`));
    for (const [leaf] of leaves) await db.run(raw(`ANALYZE ${leaf}`));
  };

  it('the service analyses partitions through their table, and again after growth', async () => {
    const statistics = new BackgroundStatistics(watched, TABLES);
    await statistics.refresh();
    expect([told, statistics.of('documents')]).toEqual([[], undefined]);
    await grow(1, 3_000);
    await statistics.refresh();
    const { rows, columns } = statistics.of('documents')!;
    expect([told, rows]).toEqual([['ANALYZE "documents"'], 3_000]);
    expect(columns.get('status')).toMatchObject({ distinct: 2, nullShare: 0 });
    expect(columns.get('status')!.common.get('draft')).toBeCloseTo(0.25);
    expect(columns.get('owner_id')!.common.get(PERSON)).toBe(1);

    await grow(3_001, 3_100);
    await autovacuum();
    await statistics.refresh();
    expect([told.length, statistics.of('documents')!.rows]).toEqual([1, 3_000]);
    await grow(3_101, 6_000);
    await autovacuum();
    await statistics.refresh();
    expect([told.length, statistics.of('documents')!.rows]).toEqual([2, 6_000]);
    await new BackgroundStatistics(watched, TABLES).refresh();
    expect(told).toHaveLength(2);
  });

  it('the statistics of a table count former versions of its rows', async () => {
    await db.run(raw('ANALYZE teams'));
    await db.transaction(async (tx) => {
      await tx.rows(raw('SELECT pg_stat_force_next_flush()'));
      await tx.run(raw(`UPDATE teams SET name = name || '!'`));
    });
    const statistics = new BackgroundStatistics(db, ['teams']);
    await statistics.refresh();
    expect(statistics.of('teams')!.dead).toBe(8);
  });

  it.skipIf(kind === 'embedded')('leave other tables known where they may not be looked at', async () => {
    await grow(6_001, 12_000);
    await db.run(raw('ANALYZE tags'));
    await autovacuum();
    const statistics = new BackgroundStatistics(
      { ...db, transaction: () => Promise.reject(new Error('refused')) },
      TABLES,
    );
    await statistics.refresh();
    expect([statistics.of('tags')?.rows, statistics.of('documents')?.rows]).toEqual([0, 6_000]);
  });

  it.skipIf(kind === 'embedded')('the service does not repeat an analysis that changes nothing', async () => {
    await grow(12_001, 24_000);
    await autovacuum();
    let asked = 0;
    const ignored: Database['transaction'] = (work, options) => {
      asked++;
      return db.transaction((tx) => work({ ...tx, run: async () => 0 }), options);
    };
    const statistics = new BackgroundStatistics({ ...db, transaction: ignored }, TABLES);
    for (let i = 0; i < 3; i++) await statistics.refresh();
    expect(asked).toBe(1);
  });
});
