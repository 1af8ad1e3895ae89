/** `bylaw advise`: the indexes that a schema lacks, and what each saves on a sample of the real table. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { runCommand } from '../../src/cli/index.ts';
import type { Database } from '../../src/database/contract.ts';
import { openDatabase } from '../../src/database/open-database.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { Store } from '../../src/records/access-context.ts';
import { parseSchema } from '../../src/schema/load.ts';
import type { Schema } from '../../src/schema/model/model.ts';
import { migrateOptions } from '../../src/service/system-tables.ts';
import { raw } from '../../src/sql.ts';
import { hasIndex, measureIndex } from '../../src/workbench/advise/measure-index.ts';
import { indexesMissing } from '../../src/workbench/advise/missing-indexes.ts';
import { openEmbeddedDatabase } from '../support/embedded/embedded.ts';
import { isolatedUrl } from '../support/postgres.ts';

const TEXT = `
roles: [editor]
collections:
  events:
    index: [created_at]
    fields:
      level: { type: int }
      kind: { type: string, max: 20, index: false }
      state: { type: string, max: 20, index: true }
      place: { type: string, max: 20 }
    access:
      list:
        - { roles: [editor], when: '@record.level > 7' }
        - when: '@record.updated_at > @now - 1d and @record.kind != "x"'
  archived:
    table: old_events
    managed: false
    timestamps: none
    fields: { state: { type: string, max: 20, index: false } }
    access: { list: '@record.state = "open"' }
`;
const schemaOf = (text: string): Schema => {
  const { schema, issues } = parseSchema(text);
  if (schema === undefined) throw new Error(JSON.stringify(issues));
  return schema;
};

const named = (schema: Schema) =>
  indexesMissing(schema).map(({ collection, field, because, rules, line }) =>
    [`${collection.name}.${field.name}`, because, rules.join(), line ?? 'of another program'].join(' | '),
  );

it('the advice names what list rules compare, what lists may be sorted by, and tables of others', () => {
  const advice = indexesMissing(schemaOf(TEXT));
  expect(named(schemaOf(TEXT))).toEqual([
    'events.level | policy | 0 | collections.events.fields.level.index: true',
    'events.updated_at | policy | 1 | collections.events.index: [updated_at]',
    'events.place | filter |  | collections.events.fields.place.index: true',
    'archived.state | policy | 0 | of another program',
  ]);
  expect(advice.find(({ collection }) => collection.name === 'archived')!.statement).toBe(
    'CREATE INDEX CONCURRENTLY IF NOT EXISTS "old_events_state_id_idx" ON "old_events" ("state", "id");',
  );
});

it('a schema with the indexes of its own advice needs no more', () => {
  const text = TEXT.replace('index: [created_at]', 'index: [created_at, updated_at]')
    .replace('level: { type: int }', 'level: { type: int, index: true }')
    .replace('place: { type: string, max: 20 }', 'place: { type: string, max: 20, index: true }')
    .replace(/ {2}archived:[\s\S]*/, '');
  expect(named(schemaOf(text))).toEqual([]);
});

const fill = async (db: Database): Promise<Schema> => {
  const schema = schemaOf(TEXT.replace(/ {2}archived:[\s\S]*/, ''));
  await applyMigration(db, schema, migrateOptions());
  await db.write(
    raw(`INSERT INTO events (id, level, place, created_at, updated_at)
    SELECT gen_random_uuid(), n % 9, 'p' || n, now(), now() FROM generate_series(1, 2000) AS n`),
  );
  return schema;
};
const AUTH = { id: '00000000-0000-7000-8000-000000000000', roles: ['editor'] };
const REQUEST = { auth: AUTH, query: {}, now: '2026-03-01T12:00:00.000000Z' };

describe('a measurement', () => {
  let db: Database;
  beforeAll(async () => {
    db = await openEmbeddedDatabase();
  });
  afterAll(() => db.close());

  it('times are of a sample, and the real table keeps its indexes and rows', async () => {
    const schema = await fill(db);
    const store = new Store(db, schema);
    const state = async () =>
      db.rows(
        raw(
          "SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM pg_index WHERE indrelid = 'events'::regclass)",
        ),
      );
    const before = await state();
    const missing = indexesMissing(schema).filter(({ collection }) => collection.name === 'events');
    for (const each of missing) {
      const measured = (await measureIndex(store, each, REQUEST))!;
      expect(measured.sample!.rows).toBe(2000);
      expect(measured.sample!.before_ms).toBeGreaterThan(0);
      expect(measured.plan.join('\n')).toMatch(/events/);
      expect(await hasIndex(db, each)).toBe(false);
    }
    expect(await state()).toEqual(before);
    // A caller whom the rule denies has no list to measure.
    expect(await measureIndex(store, missing[0]!, { ...REQUEST, auth: { ...AUTH, roles: [] } })).toBeUndefined();
    await db.write(raw('CREATE INDEX ON events (level)'));
    expect(await hasIndex(db, missing[0]!)).toBe(true);
  });
});

describe('the command', () => {
  const folder = mkdtempSync(join(tmpdir(), 'bylaw-advise-'));
  const file = join(folder, 'bylaw.yaml');
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const run = async (...flags: readonly string[]) => {
    let [stdout, stderr] = ['', ''];
    const io = {
      stdout: { write: (text: string) => (stdout += text) },
      stderr: { write: (text: string) => (stderr += text) },
      stdin: process.stdin,
      env: {},
      cwd: folder,
    };
    return { code: await runCommand(['advise', ...flags], io), stdout, stderr };
  };

  it('the command exits with 1 if an index is missing, and needs no database', async () => {
    writeFileSync(file, TEXT);
    const { code, stdout } = await run();
    expect(code).toBe(1);
    expect(stdout).toContain(
      'events.level: a list of `events` reads the whole table for rule 1, which compares `level`\n' +
        '  bylaw.yaml    collections.events.fields.level.index: true\n',
    );
    expect(JSON.parse((await run('--json')).stdout).advice).toContainEqual({
      collection: 'archived',
      field: 'state',
      because: 'policy',
      rules: [0],
      line: null,
      statement: expect.stringContaining('CONCURRENTLY'),
    });
    expect(await run('--caller', 'ada@example.com')).toMatchObject({ code: 2 });
    writeFileSync(
      file,
      'collections: { posts: { fields: { done: { type: bool, index: true } }, access: { list: true } } }',
    );
    expect((await run()).stdout).toBe('every list rule, filter and sort has an index\n');
  });

  it.skipIf(inject('postgresUrl') === '')(
    'on a server, the command measures each index, and leaves out those that exist',
    async () => {
      const url = await isolatedUrl(inject('postgresUrl'));
      const db = await openDatabase({ url });
      try {
        await fill(db);
        await db.write(raw('CREATE INDEX ON events (place)'));
        await db.write(raw('UPDATE events SET level = 0'));
        await db.write(raw('ANALYZE events'));
        const available = await db.rows(raw("SELECT 1 FROM pg_available_extensions WHERE name = 'hypopg'"));
        if (available.length === 0) console.log('the server has no hypopg: plans with an index did not run');
        else await db.write(raw('CREATE EXTENSION hypopg'));
        writeFileSync(file, TEXT.replace(/ {2}archived:[\s\S]*/, ''));
        const { code, stdout } = await run('--database-url', url, '--json');
        expect(code).toBe(1);
        const { advice } = JSON.parse(stdout) as {
          advice: readonly { field: string; measured?: { sample?: object; plan_with_index?: readonly string[] } }[];
        };
        const planned = advice.find(({ field }) => field === 'level')?.measured?.plan_with_index;
        expect(planned?.join('\n') ?? 'no hypopg').toMatch(
          available.length === 0 ? /^no hypopg$/ : /<\d+>btree_\w*events_level_id/,
        );
        expect(await db.rows(raw("SELECT 1 FROM pg_indexes WHERE indexdef LIKE '%(level, id)'"))).toEqual([]);
        const ofEvents = advice.filter(({ measured }) => measured?.sample !== undefined);
        expect(ofEvents.map(({ field }) => field)).toEqual(expect.arrayContaining(['level', 'updated_at']));
        expect(advice.map(({ field }) => field)).not.toContain('place');
        expect(await run('--database-url', url, '--caller', 'nobody@example.com')).toMatchObject({
          code: 2,
          stderr: expect.stringContaining('no user has the email'),
        });
      } finally {
        await db.close();
      }
    },
  );
});
