// @module-tag long
/**
 * Migrations of tables that are in use: each begins where an interrupted one stopped, and the result is that of the
 * embedded database, which does all in one transaction.
 */
import { describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import { openDatabase } from '../../src/database/open-database.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { type ActualTable, readCatalog } from '../../src/migrations/catalog.ts';
import { readPastMigrations } from '../../src/migrations/history.ts';
import { MigrationRefused, planMigration } from '../../src/migrations/migration.ts';
import { hasAllOf } from '../../src/migrations/readiness.ts';
import { raw } from '../../src/sql.ts';
import { openEmbeddedDatabase } from '../support/embedded/embedded.ts';
import { hasPostgres, postgresUrl, schemaOf } from '../support/store-world.ts';

const TEAM = '01900000-0000-7000-8000-000000000001';
const BEFORE = schemaOf(`
collections:
  teams: { fields: { name: string } }
  others: { fields: { name: string } }
  things:
    fields: { name: string, code: string, kind: string, title: { type: string, unique: true } }
    relations:
      team: { kind: belongs_to, collection: teams, on_delete: cascade }
      tags: { kind: many_to_many, collection: teams }
`);
const ROWS = `
INSERT INTO teams (id, name) VALUES ('${TEAM}', 'a');
INSERT INTO things (id, name, code, kind, title, team_id)
  SELECT ('01900000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'Thing ' || n, 'c' || n,
         CASE WHEN n % 2 = 0 THEN 'k' END, 't' || n, '${TEAM}'::uuid
    FROM generate_series(1, 40) n;
INSERT INTO things__tags (record_id, member_id) SELECT id, '${TEAM}' FROM things`;
/** Indexes, unique, required with and without nulls, a reference that changes, a new one, search, new names. */
const AFTER = schemaOf(`
collections:
  teams: { fields: { name: string } }
  others: { fields: { name: string } }
  pieces:
    was: things
    fields:
      name: { type: string, required: true, index: true, search: true }
      number: { type: string, unique: true, was: code, max: 100 }
      kind: { type: string, required: true, default: plain }
      title: { type: string, unique: true }
    relations:
      team: { kind: belongs_to, collection: teams, on_delete: restrict }
      other: { kind: belongs_to, collection: others }
      labels: { kind: many_to_many, collection: teams, was: tags }
`);
const ROWS_AFTER = [
  'SELECT id, name, number, kind, title, team_id, other_id, "name~folded" FROM pieces ORDER BY id',
  'SELECT * FROM pieces__labels ORDER BY 1',
];

interface State {
  readonly tables: readonly ActualTable[];
  readonly rows: readonly unknown[];
}

async function stateOf(db: Database): Promise<State> {
  const tables = [...(await readCatalog(db)).values()].filter(({ name }) => !name.startsWith('bylaw_'));
  const sorted = tables.map((table) => ({
    ...table,
    columns: new Map([...table.columns].sort()),
    constraints: table.constraints.toSorted((a, b) => a.name.localeCompare(b.name)),
    // Only one of the two databases has the extension.
    indexes: table.indexes.filter(({ columns }) => !columns.join().includes('~')),
  }));
  return { tables: sorted, rows: await Promise.all(ROWS_AFTER.map((query) => db.rows(raw(query)))) };
}

async function fill(db: Database): Promise<void> {
  await applyMigration(db, BEFORE);
  for (const statement of ROWS.split(';')) await db.run(raw(statement));
}

const LARGE = { largeFrom: 0 };
const openUrl = (url: string): Promise<Database> => openDatabase({ url, pipelines: 1, poolSize: 3 });
const opened = async (): Promise<Database> => openUrl(await postgresUrl());

describe.runIf(hasPostgres)('a migration of tables in use', () => {
  it('an interrupted migration reaches the state of a single transaction', async () => {
    const embedded = await openEmbeddedDatabase();
    await fill(embedded);
    const whole = await applyMigration(embedded, AFTER);
    expect([whole.apart, await planMigration(embedded, AFTER)]).toEqual([
      [],
      { statements: [], destructive: [], apart: [] },
    ]);
    const expected = await stateOf(embedded);
    expect(expected.rows[0]).toHaveLength(40);
    await embedded.close();

    let steps = Number.POSITIVE_INFINITY;
    // The fuzz of migrations stops at every place.
    for (let stop = 0; stop <= steps; stop += 7) {
      const db = await opened();
      await fill(db);
      let seen = 0;
      const onStatement = (): void => {
        if (seen++ === stop) throw new Error('interrupted');
      };
      const first = await applyMigration(db, AFTER, { ...LARGE, onStatement }).catch((error: Error) => error);
      if (first instanceof Error) {
        expect(first.message).toBe('interrupted');
        await applyMigration(db, AFTER, LARGE);
      } else steps = seen;
      expect(await stateOf(db), `after ${stop} statements`).toEqual(expected);
      expect(await planMigration(db, AFTER, LARGE)).toEqual({ statements: [], destructive: [], apart: [] });
      const history = await readPastMigrations(db);
      expect(history.at(-1)!.finishedAt).not.toBeNull();
      await db.close();
    }
    expect(steps).toBeGreaterThan(20);
  });

  it('a migration to the former schema starts from every state of an interrupted one', async () => {
    const after = schemaOf(`
collections:
  teams: { fields: { name: string } }
  others: { fields: { name: string } }
  things:
    fields:
      name: { type: string, required: true, index: true, search: true }
      code: { type: string, unique: true, max: 100 }
      kind: { type: string, required: true, default: plain }
      title: { type: string, unique: true }
    relations:
      team: { kind: belongs_to, collection: teams, on_delete: cascade }
      tags: { kind: many_to_many, collection: teams }
`);
    const db = await opened();
    try {
      await fill(db);
      let isDone = false;
      let stop = 0;
      for (; !isDone; stop++) {
        let seen = 0;
        const onStatement = (): void => {
          if (seen++ === stop) throw new Error('interrupted');
        };
        const outcome = await applyMigration(db, after, { ...LARGE, onStatement }).catch((error: Error) => error);
        isDone = !(outcome instanceof Error);
        if (outcome instanceof Error) expect(outcome.message).toBe('interrupted');
        await applyMigration(db, BEFORE, { ...LARGE, keepsExtra: true });
        expect(await hasAllOf(db, BEFORE)).toBe(true);
        await db.run(raw(`INSERT INTO things (id, name, kind) VALUES (gen_random_uuid(), NULL, NULL)`));
        await db.run(raw('DELETE FROM things WHERE name IS NULL'));
        await applyMigration(db, BEFORE, { ...LARGE, allowDestructive: true });
        await db.run(raw(`UPDATE things SET kind = NULL WHERE kind = 'plain'`));
        await db.run(raw('DROP INDEX IF EXISTS things_name_id_idx, things_code_key'));
        expect(await db.rows(raw('SELECT count(*), count(kind) FROM things'))).toEqual([['40', '20']]);
      }
      expect(stop).toBeGreaterThan(15);
    } finally {
      await db.close();
    }
  });

  it('a migration rebuilds the index of a dead process while others read and write', async () => {
    const url = await postgresUrl();
    const [db, other] = [await openUrl(url), await openUrl(url)];
    try {
      await fill(db);
      const indexed = schemaOf(
        'collections:\n  teams: { fields: { name: { type: string, index: true, max: 100 } } }\n',
      );
      const held = await holdWrite(other, `UPDATE teams SET name = name WHERE id = '${TEAM}'`);
      const migration = applyMigration(db, indexed, { ...LARGE, keepsExtra: true });
      const outcome = migration.catch((error: Error) => error);
      const pid = await untilBuilding(db);
      await db.run(raw(`INSERT INTO teams (id, name) VALUES (gen_random_uuid(), 'written meanwhile')`));
      expect(await hasAllOf(db, indexed)).toBe(true);
      await db.rows(raw(`SELECT pg_terminate_backend(${pid})`));
      expect(await outcome).toBeInstanceOf(Error);
      held.end();
      await held.ended;
      const indexes = () => namedIndexes(db);
      expect(await indexes()).toMatchObject([{ name: 'teams_name_id_idx', isValid: false }]);
      await applyMigration(db, indexed, { ...LARGE, keepsExtra: true });
      expect(await indexes()).toMatchObject([{ name: 'teams_name_id_idx', isValid: true }]);
      const ends = (await readPastMigrations(db)).map(({ finishedAt }) => finishedAt !== null);
      expect(ends).toEqual([true, false, true]);
    } finally {
      await db.close();
      await other.close();
    }
  });

  it('a migration reports duplicates that are written during an index build, and leaves nothing that blocks writers', async () => {
    const url = await postgresUrl();
    const [db, other] = [await openUrl(url), await openUrl(url)];
    try {
      await fill(db);
      const unique = schemaOf(
        'collections:\n  teams: { fields: { name: { type: string, unique: true, max: 100 } } }\n',
      );
      const held = await holdWrite(other, `INSERT INTO teams (id, name) VALUES (gen_random_uuid(), 'a')`);
      const outcome = applyMigration(db, unique, { ...LARGE, keepsExtra: true }).catch((error: Error) => error);
      await untilBuilding(db);
      held.end();
      await held.ended;
      const refused = await outcome;
      expect(refused).toBeInstanceOf(MigrationRefused);
      expect((refused as Error).message).toContain('HAVING count(*) > 1 finds them');
      expect(await namedIndexes(db)).toEqual([]);
      await db.run(raw(`INSERT INTO teams (id, name) VALUES (gen_random_uuid(), 'a')`));
    } finally {
      await db.close();
      await other.close();
    }
  });

  it('three nodes that start together run a migration once', async () => {
    const url = await postgresUrl();
    const nodes = await Promise.all([1, 2, 3].map(() => openUrl(url)));
    try {
      await fill(nodes[0]!);
      const done = await Promise.all(nodes.map((db) => applyMigration(db, AFTER, LARGE)));
      expect(done.filter(({ statements }) => statements.length > 0)).toHaveLength(1);
      expect(await readPastMigrations(nodes[0]!)).toHaveLength(2);
      expect(await planMigration(nodes[0]!, AFTER, LARGE)).toEqual({ statements: [], destructive: [], apart: [] });
    } finally {
      await Promise.all(nodes.map((db) => db.close()));
    }
  });

  it('values stay unique while a migration replaces a deferred constraint', async () => {
    const wanted = schemaOf(
      'collections:\n  teams: { fields: { label: { type: string, unique: true, max: 100, was: name } } }\n',
    );
    const old = 'ALTER TABLE teams ADD CONSTRAINT teams_name_key UNIQUE (name) DEFERRABLE INITIALLY DEFERRED';
    // A constraint of an earlier version or of an owner, with the name of the wanted one and with another.
    for (const adopted of [old, old.replace('_name_key', '_label_key'), old.replace('teams_name_key', 'mine')]) {
      let isDone = false;
      let stop = 0;
      for (; !isDone; stop++) {
        const db = await opened();
        try {
          await fill(db);
          await db.run(raw(adopted));
          let seen = 0;
          const onStatement = (): void => {
            if (seen++ === stop) throw new Error('interrupted');
          };
          const options = { ...LARGE, keepsExtra: true };
          const first = await applyMigration(db, wanted, { ...options, onStatement }).catch((error: Error) => error);
          isDone = !(first instanceof Error);
          if (first instanceof Error) expect(first.message).toBe('interrupted');
          const [unique, ...more] = await uniquesOf(db);
          expect([unique?.isValidated, more], `after ${stop} statements`).toEqual([true, []]);
          const again = `INSERT INTO teams (id, ${unique!.columns[0]}) VALUES (gen_random_uuid(), 'a')`;
          await expect(db.run(raw(again))).rejects.toMatchObject({ kind: 'unique' });
          // As if it had died while the index was built.
          if (stop === 3)
            await db.run(
              raw(`UPDATE pg_index SET indisvalid = false WHERE indexrelid = to_regclass('teams_label_newkey')`),
            );
          await applyMigration(db, wanted, options);
          expect(await uniquesOf(db)).toMatchObject([{ name: 'teams_label_key', columns: ['label'], isPlain: true }]);
          const { indexes } = (await readCatalog(db)).get('teams')!;
          expect(indexes.filter(({ isUnique }) => isUnique)).toEqual([]);
          expect((await planMigration(db, wanted, options)).statements).toEqual([]);
        } finally {
          await db.close();
        }
      }
      expect(stop).toBeGreaterThan(3);
    }
  });

  it('a migration drops the index of an interrupted one if the schema no longer wants it', async () => {
    const db = await opened();
    try {
      await fill(db);
      await db.run(raw('ALTER TABLE teams ADD CONSTRAINT mine UNIQUE (name) DEFERRABLE'));
      const unique = schemaOf(
        'collections:\n  teams: { fields: { name: { type: string, unique: true, max: 100 } } }\n',
      );
      const onStatement = (statement: string): void => {
        if (statement.includes('USING INDEX')) throw new Error('interrupted');
      };
      const stopped = applyMigration(db, unique, { ...LARGE, keepsExtra: true, onStatement });
      await expect(stopped).rejects.toThrow('interrupted');
      expect(await namedIndexes(db)).toMatchObject([{ name: 'teams_name_newkey', isValid: true }]);
      await applyMigration(db, BEFORE, { ...LARGE, allowDestructive: true });
      expect([await namedIndexes(db), await uniquesOf(db)]).toEqual([[], []]);
      await db.run(raw(`INSERT INTO teams (id, name) VALUES (gen_random_uuid(), 'a')`));
    } finally {
      await db.close();
    }
  });

  it('a node is not ready while its unique field is unchecked', async () => {
    const db = await opened();
    try {
      await fill(db);
      const unique = schemaOf(
        'collections:\n  teams: { fields: { name: { type: string, unique: true, max: 100 } } }\n',
      );
      const plain = schemaOf('collections:\n  teams: { fields: { name: string } }\n');
      const ready: unknown[] = [];
      const onStatement = (statement: string): void => {
        if (statement.startsWith('CREATE UNIQUE')) throw new Error('interrupted');
      };
      const stopped = applyMigration(db, unique, { ...LARGE, keepsExtra: true, onStatement });
      await expect(stopped).rejects.toThrow('interrupted');
      ready.push(await hasAllOf(db, plain), await hasAllOf(db, unique));
      await applyMigration(db, unique, { ...LARGE, keepsExtra: true });
      ready.push(await hasAllOf(db, plain), await hasAllOf(db, unique));
      expect(ready).toEqual([true, false, true, true]);
    } finally {
      await db.close();
    }
  });

  it('a start does not rewrite a large table', async () => {
    const db = await opened();
    try {
      const schemaWith = (type: string) => schemaOf(`collections:\n  things: { fields: { n: ${type} } }\n`);
      await applyMigration(db, schemaWith('int'));
      await db.run(raw('INSERT INTO things (id, n) SELECT gen_random_uuid(), n FROM generate_series(1, 9) n'));
      const start = applyMigration(db, schemaWith('float'), { ...LARGE, mayRewrite: false, keepsExtra: true });
      await expect(start).rejects.toThrow(
        /changes that shut a large table while they run:\n- "things"\."n" would change from bigint to double precision[\s\S]*bylaw migrate apply$/,
      );
      await applyMigration(db, schemaWith('float'), LARGE);
      expect(await db.rows(raw('SELECT sum(n) FROM things'))).toEqual([['45']]);
    } finally {
      await db.close();
    }
  });
});

/** The indexes on names of teams. */
const namedIndexes = async (db: Database) =>
  (await readCatalog(db)).get('teams')!.indexes.filter(({ columns }) => columns.includes('name'));

/** Unique constraints of teams. */
const uniquesOf = async (db: Database) =>
  (await readCatalog(db)).get('teams')!.constraints.filter(({ kind }) => kind === 'u');

/** A transaction that has written, and stays open until `end`. */
async function holdWrite(db: Database, statement: string): Promise<{ end(): void; readonly ended: Promise<void> }> {
  const end = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const ended = db.transaction(async (tx) => {
    await tx.run(raw(statement));
    held.resolve();
    await end.promise;
  });
  await held.promise;
  return { end: () => end.resolve(), ended };
}

/** → the process that builds an index and waits for others. */
async function untilBuilding(db: Database): Promise<string> {
  for (let i = 0; i < 500; i++) {
    const [row] = await db.rows(
      raw(`
      SELECT pid
        FROM pg_stat_activity
       WHERE query ILIKE 'create %index concurrently%'
         AND wait_event_type = 'Lock'
         AND query NOT ILIKE '%pg_stat_activity%'
         AND pid IN (SELECT pid FROM pg_locks WHERE relation = to_regclass('teams'))`),
    );
    if (row?.[0] != null) return row[0];
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error('no index is built');
}
