// @module-tag long
/** Two versions of a program on one database: the older version serves the tables of the newer one. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import { openDatabase } from '../../src/database/open-database.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { readCatalog } from '../../src/migrations/catalog.ts';
import { MigrationRefused, planMigration } from '../../src/migrations/migration.ts';
import { hasAllOf } from '../../src/migrations/readiness.ts';
import { raw } from '../../src/sql.ts';
import { hasPostgres, ONE_KIND, openKind, postgresUrl, schemaOf } from '../support/store-world.ts';
import { until } from '../support/until.ts';

const things = (fields: string, more = ''): ReturnType<typeof schemaOf> =>
  schemaOf(`collections:\n  things: { fields: { ${fields} } }\n${more}`);
const OLD = things('name: string');
const INSERT = `INSERT INTO things (id, name) VALUES (gen_random_uuid(), 'by the old version')`;

async function refusal(db: Database, schema: ReturnType<typeof schemaOf>, allowDestructive = false): Promise<string> {
  const before = await readCatalog(db);
  const error = await applyMigration(db, schema, { allowDestructive, keepsExtra: true }).catch(
    (thrown: Error) => thrown,
  );
  expect(error).toBeInstanceOf(MigrationRefused);
  expect(await readCatalog(db)).toEqual(before);
  return (error as MigrationRefused).message;
}

describe.each(ONE_KIND)('two versions on %s', (kind) => {
  let db: Database;
  beforeAll(async () => {
    db = await openKind(kind);
  });
  afterAll(() => db?.close());
  const serve = async (schema: ReturnType<typeof schemaOf>): Promise<readonly string[]> => {
    const notes: string[] = [];
    await applyMigration(db, schema, { keepsExtra: true, onNote: (note) => notes.push(note) });
    return notes;
  };

  const NEWER = {
    'an optional field': things('name: string, note: string'),
    'a required field with a default': things(
      'name: string, note: string, kind: { type: string, required: true, default: "it\'s" }',
    ),
    'a collection': things('name: string', '  others: { fields: { name: string } }\n'),
    'an index and a unique': things('name: { type: string, unique: true, index: true }'),
    'a relation that is not required': schemaOf(
      'collections:\n  others: {}\n  things:\n    fields: { name: string }\n    relations: { other: { kind: belongs_to, collection: others } }\n',
    ),
    'and removed': schemaOf('collections:\n  things: { fields: {} }\n'),
  };

  it.each(Object.keys(NEWER))(
    'the old version still serves, and starts, after the new one has added %s',
    async (name) => {
      await serve(OLD);
      await db.run(raw('DELETE FROM things'));
      expect([await serve(NEWER[name as keyof typeof NEWER]), await hasAllOf(db, OLD)]).toEqual([
        expect.anything(),
        true,
      ]);
      await db.run(raw(INSERT));
      const notes = await serve(OLD);
      expect(notes.every((note) => note.startsWith('kept, though the schema does not have it: '))).toBe(true);
      expect([await hasAllOf(db, OLD), await hasAllOf(db, NEWER[name as keyof typeof NEWER])]).toEqual([true, true]);
    },
  );

  it('rows of the old version get the default of the new one', async () => {
    await serve(NEWER['a required field with a default']);
    await db.run(raw('DELETE FROM things'));
    await db.run(raw(INSERT));
    expect(await db.rows(raw('SELECT kind FROM things'))).toEqual([["it's"]]);
  });

  it('a start of an older version keeps the unique constraints of newer nodes', async () => {
    await serve(OLD);
    await db.run(raw('DELETE FROM things'));
    await serve(NEWER['an index and a unique']);
    expect(await serve(OLD)).toContainEqual(
      'kept, though the schema does not have it: unique values of "things"."name"',
    );
    await db.run(raw(INSERT));
    await expect(db.run(raw(INSERT))).rejects.toMatchObject({ kind: 'unique' });
    await applyMigration(db, OLD, { allowDestructive: true });
    await db.run(raw(INSERT));
  });

  it('an older version is not ready, or fails its writes, if it cannot serve the new tables', async () => {
    await serve(OLD);
    await db.run(raw('DELETE FROM things'));
    // Documented: its creates fail.
    await serve(things('name: string, must: { type: int, required: true }'));
    expect(await hasAllOf(db, OLD)).toBe(false);
    await expect(db.run(raw(INSERT))).rejects.toThrow();
    await applyMigration(db, OLD, { allowDestructive: true });
    await serve(things('title: { type: string, was: name }'));
    expect(await hasAllOf(db, OLD)).toBe(false);
    expect(await refusal(db, OLD)).toContain('give that `was: title`');
    await serve(things('name: { type: string, was: title }'));
    await applyMigration(db, things('name: int'), { allowDestructive: true });
    expect([await hasAllOf(db, OLD), await refusal(db, OLD)]).toEqual([false, expect.stringContaining('would change')]);
    await applyMigration(db, OLD, { allowDestructive: true });
  });

  it('a column of another version does not prevent writes of this one', async () => {
    await serve(OLD);
    await db.run(raw('DELETE FROM things'));
    await db.run(raw('ALTER TABLE things ADD COLUMN must int NOT NULL'));
    const stale = things('name: { type: string, max: 9 }');
    expect(await serve(stale)).toContainEqual('kept, though the schema does not have it: "things"."must"');
    await db.run(raw(INSERT));
    expect(await hasAllOf(db, stale)).toBe(true);
    await db.run(raw('ALTER TABLE things DROP COLUMN must'));
  });

  it('`migrate apply` drops extra columns with consent', async () => {
    await serve(NEWER['a collection']);
    const { destructive } = await planMigration(db, OLD);
    expect(destructive.map(({ why }) => why)).toContainEqual(expect.stringContaining('the table "others"'));
    await applyMigration(db, OLD, { allowDestructive: true });
    expect([(await readCatalog(db)).has('others'), (await planMigration(db, OLD)).statements]).toEqual([false, []]);
  });

  it('a possible rename is refused with a hint, and a changed type is not ready', async () => {
    expect(await refusal(db, things('title: string'))).toContain('give that `was: name`');
    expect(await hasAllOf(db, things('name: int'))).toBe(false);
    expect(await hasAllOf(db, things('name: string, more: string'))).toBe(false);
  });

  it('a refusal names the rows that prevent a change by a query, and offers no consent', async () => {
    await db.run(raw('DELETE FROM things'));
    await db.run(
      raw(
        `INSERT INTO things (id, name) VALUES (gen_random_uuid(), 'x'), (gen_random_uuid(), 'x'), (gen_random_uuid(), NULL)`,
      ),
    );
    const cases = {
      'name: { type: string, required: true }': 'SELECT "id" FROM "things" WHERE "name" IS NULL finds them',
      'name: { type: string, unique: true }': 'HAVING count(*) > 1 finds them',
      'name: string, must: { type: int, required: true }': 'give it a default, or add it as optional first',
    };
    for (const [fields, hint] of Object.entries(cases)) {
      for (const allowDestructive of [false, true]) {
        const message = await refusal(db, things(fields), allowDestructive);
        expect(message).toContain(hint);
        expect(message).not.toContain('--allow-destructive');
      }
    }
  });

  it('rows without a value get the default of a field that becomes required', async () => {
    await serve(things('name: { type: string, required: true, default: "none" }'));
    expect(await db.rows(raw('SELECT name FROM things ORDER BY name'))).toEqual([['none'], ['x'], ['x']]);
  });
});

describe.runIf(hasPostgres)('a migration', () => {
  it('a migration waits for a lock in short turns, with readers between them', async () => {
    const url = await postgresUrl();
    const db = await openDatabase({ url, pipelines: 1 });
    const other = await openDatabase({ url, pipelines: 1 });
    try {
      await applyMigration(db, OLD);
      const end = Promise.withResolvers<void>();
      const reading = Promise.withResolvers<void>();
      const report = other.transaction(async (tx) => {
        await tx.rows(raw('SELECT count(*) FROM things'));
        reading.resolve();
        await end.promise;
      });
      await reading.promise;
      const notes: string[] = [];
      const migrated = applyMigration(db, things('name: string, note: string'), { onNote: (note) => notes.push(note) });
      await until('the migration waits', () => notes.length > 0);
      // The migration cannot end before the report does.
      expect(await other.rows(raw('SELECT count(*) FROM things'))).toEqual([['0']]);
      expect(notes[0]).toContain('in use by another program');
      end.resolve();
      await report;
      expect((await migrated).statements).toHaveLength(1);
    } finally {
      await db.close();
      await other.close();
    }
  });
});
