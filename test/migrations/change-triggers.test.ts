/** The change log and its triggers: a migration plans, makes and drops them, and every writer of a table enters the log. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import { separateTriggeredTables } from '../../src/migrations/adopt/triggered-tables.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { planMigration } from '../../src/migrations/migration.ts';
import { parseSchema } from '../../src/schema/load.ts';
import { raw } from '../../src/sql.ts';
import { KINDS, openKind, schemaOf } from '../support/store-world.ts';

const FIRST = `
collections:
  teams:
    fields: { name: string }
    relations: { members: { kind: has_many, collection: memberships, via: team } }
  memberships:
    relations:
      team: { kind: belongs_to, collection: teams, required: true, on_delete: cascade }
      user: { kind: belongs_to, collection: users, required: true }
  notes:
    changes: true
    fields: { title: string, at: datetime, size: float }
    relations: { team: { kind: belongs_to, collection: teams, on_delete: cascade } }
    access: { list: 'any(@record.team.members as m, m.user = @request.auth.id)' }
  others: { fields: { name: string } }
`;
const WITHOUT = FIRST.replace('    changes: true\n', '');
const TEAM = '01900000-0000-7000-8000-000000000001';
const NOTE = '01900000-0000-7000-8000-000000000002';

describe.each(KINDS)('the change log on %s', (kind) => {
  let db: Database;
  beforeAll(async () => {
    db = await openKind(kind);
    await applyMigration(db, schemaOf(WITHOUT));
  });
  afterAll(() => db?.close());

  const logged = async () =>
    (await db.rows(raw('SELECT source, id, before::text, after::text FROM bylaw_changes ORDER BY seq'))).map((row) => [
      ...row,
    ]);
  const changesOf = async (...statements: readonly string[]) => {
    await db.run(raw('DELETE FROM bylaw_changes'));
    await db.transaction(async (tx) => {
      for (const statement of statements) await tx.run(raw(statement));
    });
    return logged();
  };

  it('a migration makes the triggers of the feed and of the rows that its rules read, once', async () => {
    const { statements, destructive } = await planMigration(db, schemaOf(FIRST));
    const on = statements.flatMap((text) => /CREATE TRIGGER "bylaw_changes" .* ON "(\w+)"/.exec(text)?.[1] ?? []);
    expect([on.toSorted(), destructive]).toEqual([['memberships', 'notes', 'teams'], []]);
    expect((await applyMigration(db, schemaOf(FIRST))).statements).toEqual(statements);
    expect((await planMigration(db, schemaOf(FIRST))).statements).toEqual([]);
    const sources = ['memberships', 'notes', 'teams'];
    expect((await logged()).toSorted()).toEqual(sources.map((source) => [source, null, null, null]));
  });

  it('a feed that was switched off and is on again has an entry of any number of changes', async () => {
    const [position] = await db.rows(raw('SELECT coalesce(max(seq), 0) FROM bylaw_changes'));
    // The feed of another collection keeps the log.
    const others = WITHOUT.replace('  others: {', '  others: { changes: true,');
    await applyMigration(db, schemaOf(others));
    await db.run(raw(`INSERT INTO notes (id, title) VALUES ('${NOTE}', 'of the time between')`));
    await applyMigration(db, schemaOf(FIRST));
    const since = await db.rows(raw(`SELECT source, id FROM bylaw_changes WHERE seq > ${position![0]} ORDER BY seq`));
    expect(since.map((row) => [...row])).toContainEqual(['notes', null]);
    await db.run(raw('DELETE FROM notes'));
  });

  it('the triggers leave writes the transaction that they share', async () => {
    const asked: string[] = [];
    await separateTriggeredTables({ ...db, rows: db.rows.bind(db), separateWritesTo: (names) => asked.push(...names) });
    expect(asked).toEqual([]);
  });

  it('every statement of any program enters the log, in cells that its settings do not change', async () => {
    const found = await changesOf(
      `INSERT INTO teams (id, name) VALUES ('${TEAM}', 'x')`,
      `SET LOCAL "TimeZone" = 'Asia/Tokyo'`,
      `SET LOCAL "DateStyle" = 'German'`,
      `INSERT INTO notes (id, title, at, size, team_id, created_at, updated_at)
       VALUES ('${NOTE}', 'a', '2026-01-01T18:00:00', 0.1, '${TEAM}', '2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z')`,
      `UPDATE notes SET title = 'b'`,
      `DELETE FROM teams`,
    );
    expect(found.map(([source, id]) => [source, id])).toEqual([
      ['teams', TEAM],
      ['notes', NOTE],
      ['notes', NOTE],
      ['teams', TEAM],
      ['notes', NOTE],
    ]);
    const [, created, changed, , cascaded] = found;
    expect([created![2], changed![2], cascaded![3]]).toEqual([null, created![3], null]);
    expect(created![3]).toMatch(/^\{01900000-0000-7000-8000-000000000002,.*"2026-01-01 09:00:00\+00",0\.1,/);
    expect(cascaded![2]).toBe(changed![3]);
  });

  it('the settings of a writer are as they were behind its write', async () => {
    const settings = {
      TimeZone: 'Asia/Tokyo',
      DateStyle: 'German, DMY',
      bytea_output: 'escape',
      extra_float_digits: '-2',
    };
    const found = await db.transaction(async (tx) => {
      for (const [name, value] of Object.entries(settings)) await tx.run(raw(`SET LOCAL "${name}" = '${value}'`));
      await tx.run(raw('DELETE FROM bylaw_changes'));
      await tx.run(
        raw(`INSERT INTO notes (id, title, size, at) VALUES ('${TEAM}', 'a', 0.1, '2026-01-01 09:00:00+00')`),
      );
      const [cells] = await tx.rows(raw('SELECT after::text FROM bylaw_changes'));
      const [kept] = await tx.rows(raw(`SELECT ${Object.keys(settings).map((name) => `current_setting('${name}')`)}`));
      await tx.run(raw(`DELETE FROM notes WHERE id = '${TEAM}'`));
      return { cells: cells![0], kept: [...kept!] };
    });
    expect(found).toEqual({
      cells: expect.stringMatching(/"2026-01-01 09:00:00\+00",0\.1,/),
      kept: Object.values(settings),
    });
  });

  it('a transaction that imports writes no entry for each row, and one without the setting does', async () => {
    const insertion = `INSERT INTO teams (id, name) VALUES ('${TEAM}', 'x')`;
    expect(await changesOf("SET LOCAL bylaw.bulk = 'on'", insertion, 'DELETE FROM teams')).toEqual([]);
    expect(await changesOf(insertion, 'DELETE FROM teams')).toHaveLength(2);
  });

  it('a migration makes a trigger anew that has no condition', async () => {
    const [row] = await db.rows(
      raw(
        `SELECT tgfoid::regproc::text FROM pg_trigger WHERE tgrelid = 'teams'::regclass AND tgname = 'bylaw_changes'`,
      ),
    );
    await db.run(raw('DROP TRIGGER bylaw_changes ON teams'));
    await db.run(
      raw(
        `CREATE TRIGGER bylaw_changes AFTER INSERT OR UPDATE OR DELETE ON teams FOR EACH ROW EXECUTE FUNCTION ${row![0]}()`,
      ),
    );
    const { statements } = await applyMigration(db, schemaOf(FIRST));
    expect(statements.filter((text) => text.startsWith('CREATE'))).toEqual([
      expect.stringMatching(/^CREATE TRIGGER "bylaw_changes" .* ON "teams" FOR EACH ROW WHEN \(/),
      expect.stringMatching(/^CREATE TRIGGER "bylaw_changes_truncate" .* ON "teams"/),
    ]);
    expect((await planMigration(db, schemaOf(FIRST))).statements).toEqual([]);
  });

  it.each([
    ['DROP TRIGGER bylaw_changes_truncate ON teams', 'has lost its trigger of truncations'],
    ['ALTER TABLE teams DISABLE TRIGGER bylaw_changes_truncate', 'has a disabled trigger of truncations'],
    [
      'CREATE TRIGGER bylaw_changes_insert AFTER INSERT ON teams FOR EACH ROW EXECUTE FUNCTION $function()',
      'has one more trigger',
    ],
  ])('`%s`: a migration makes the triggers of a table anew that %s', async (statement) => {
    const [row] = await db.rows(
      raw(
        `SELECT tgfoid::regproc::text FROM pg_trigger WHERE tgrelid = 'teams'::regclass AND tgname = 'bylaw_changes'`,
      ),
    );
    await db.run(raw(statement.replace('$function', row![0]!)));
    const { statements } = await applyMigration(db, schemaOf(FIRST));
    expect(statements.filter((text) => text.startsWith('CREATE'))).toEqual([
      expect.stringMatching(/^CREATE TRIGGER "bylaw_changes" .* ON "teams"/),
      expect.stringMatching(/^CREATE TRIGGER "bylaw_changes_truncate" .* ON "teams"/),
    ]);
    expect((await planMigration(db, schemaOf(FIRST))).statements).toEqual([]);
  });

  it('a truncation is one entry without an id, and a new id is an end and a beginning', async () => {
    const found = await changesOf(
      `INSERT INTO teams (id, name) VALUES ('${TEAM}', 'x')`,
      `UPDATE teams SET id = '${NOTE}'`,
      'TRUNCATE teams CASCADE',
    );
    expect(found.map(([source, id]) => [source, id])).toEqual([
      ['teams', TEAM],
      ['teams', TEAM],
      ['teams', NOTE],
      ['teams', null],
      ['memberships', null],
      ['notes', null],
    ]);
  });

  it('a table without a feed pays nothing, and a column more gives the entries another shape', async () => {
    expect(await changesOf(`INSERT INTO others (id, name) VALUES ('${TEAM}', 'x')`)).toEqual([]);
    const more = schemaOf(FIRST.replace('title: string,', 'title: string, more: int,'));
    const { statements } = await applyMigration(db, more);
    expect(statements.filter((text) => /FUNCTION|TRIGGER/.test(text))).toHaveLength(1);
    await applyMigration(db, schemaOf(FIRST), { allowDestructive: true });
  });

  it('a migration to a schema without feeds drops the log, its functions and triggers', async () => {
    expect((await applyMigration(db, schemaOf(WITHOUT), { keepsExtra: true })).statements).toEqual([]);
    expect((await applyMigration(db, schemaOf(WITHOUT))).destructive).toEqual([]);
    const [left] = await db.rows(
      raw(`SELECT to_regclass('bylaw_changes') IS NULL, count(*)
             FROM pg_proc WHERE pronamespace = current_schema()::regnamespace AND proname LIKE 'bylaw\\_log%'`),
    );
    expect(left).toEqual(['t', '0']);
  });
});

describe('the key `changes`', () => {
  const issuesOf = (text: string) =>
    parseSchema(text).issues.flatMap(({ severity, code, path }) => (severity === 'error' ? [`${code} ${path}`] : []));

  it.each([
    ['a retention of more than a month', 'changes: { retention: 31d }', 'invalid_retention'],
    ['a table of another owner', 'changes: true\n    managed: false', 'not_logged'],
    ['a misspelt bound', 'changes: { retain: 1d }', 'unknown_key'],
  ])('%s is an error', (_, keys, code) => {
    const text = `collections:\n  notes:\n    fields: { title: string }\n    ${keys}\n`;
    expect(issuesOf(text)).toEqual([expect.stringContaining(code)]);
  });

  it('names that feeds need are taken', () => {
    expect(issuesOf('collections: { changes: {}, notes: { fields: { since: string, feed: string } } }')).toHaveLength(
      3,
    );
  });
});
