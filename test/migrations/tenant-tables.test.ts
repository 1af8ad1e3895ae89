// @module-tag long
/** The tables of collections that are stored by tenant: hash partitions, and the statements for a Citus cluster. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database, Transaction } from '../../src/database/contract.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { readCatalog } from '../../src/migrations/catalog.ts';
import { planSteps } from '../../src/migrations/diff.ts';
import { MigrationRefused, planMigration } from '../../src/migrations/migration.ts';
import { tablesOf } from '../../src/migrations/tables.ts';
import { exportRecords } from '../../src/records/transfer/export-records.ts';
import { ImportRejected, importRecords } from '../../src/records/transfer/import-records.ts';
import type { Schema } from '../../src/schema/model/model.ts';
import { raw } from '../../src/sql.ts';
import { Judge } from '../support/judge/judge.ts';
import { judged } from '../support/judge/judged-database.ts';
import { type Json, ONE_KIND, openKind, schemaOf } from '../support/store-world.ts';

const SAMPLE = schemaOf(readFileSync(join(import.meta.dirname, '../../docs/distributed.yaml'), 'utf8'));

/** `distribute` of both collections can be given and taken. */
const notes = (distribute: string, unique = 'within_team'): Schema =>
  schemaOf(`
roles: { admin: { assigns: [member] }, member: {} }
register: { roles: [member] }
collections:
  users: { access: { list: true, read: true }, relations: { team: { kind: belongs_to, collection: teams } } }
  teams: { fields: { name: string }, access: { view: true, create: true }${distribute === '' ? '' : ', distribute: reference'} }
  notes:
    ${distribute}
    fields: { slug: { type: string, required: true, unique: ${unique} }, body: { type: string, max: 2000, search: true } }
    relations:
      team: { kind: belongs_to, collection: teams, required: true, default: '@request.auth.team' }
      above: { kind: belongs_to, collection: notes }
      alike: { kind: many_to_many, collection: notes }
    access: { view: '@record.team = @request.auth.team', create: '@record.team = @request.auth.team' }
`);
const BY_TEAM = 'distribute: { by: team }';

/** Objects that no schema can declare. */
const OWNED = `
ALTER TABLE notes ADD CONSTRAINT positive CHECK (length(slug) > 0);;
ALTER TABLE notes ADD CONSTRAINT three UNIQUE (team_id, slug, body);;
CREATE UNIQUE INDEX owners_unique ON notes (team_id, lower(slug));;
CREATE INDEX owners_index ON notes (body, slug);;
CREATE INDEX owners_partial ON notes (body) WHERE slug > 'a';;
CREATE FUNCTION pass() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';;
CREATE TRIGGER owners_trigger BEFORE INSERT ON notes FOR EACH ROW EXECUTE FUNCTION pass();;
CREATE POLICY owners_policy ON notes USING (true);;
ALTER TABLE notes ENABLE ROW LEVEL SECURITY;;
ALTER TABLE notes ALTER COLUMN body SET DEFAULT 'none';;
COMMENT ON TABLE notes IS 'of the owner';;
GRANT SELECT ON notes TO PUBLIC`;

describe.each(ONE_KIND)('hash partitions on %s', (kind) => {
  let db: Database;
  beforeAll(async () => {
    db = await openKind(kind);
    await applyMigration(db, SAMPLE);
  });
  afterAll(() => db?.close());

  it('a second start has nothing to do', async () => {
    expect((await planMigration(db, SAMPLE)).statements).toEqual([]);
  });

  it('every key and index begins with the tenant, and foreign keys stay within it', async () => {
    const { tenantLayout, constraints, indexes } = (await readCatalog(db)).get('comments')!;
    expect(tenantLayout).toEqual({ kind: 'by', column: 'team_id' });
    expect(
      constraints.map(({ kind: of, columns, onDelete = '' }) => [of, ...columns, onDelete].join(' ')).toSorted(),
    ).toEqual([
      'f author_id RESTRICT',
      'f team_id CASCADE',
      'f team_id answer_to_id NO ACTION',
      'f team_id document_id CASCADE',
      'p team_id id ',
    ]);
    expect(new Set(indexes.map(({ columns }) => columns[0]))).toEqual(new Set(['team_id']));
    const links = (await readCatalog(db)).get('documents__tags')!;
    expect(links.tenantLayout).toEqual({ kind: 'by', column: '_tenant' });
    expect(links.constraints.map(({ kind: of, columns }) => [of, ...columns].join(' ')).toSorted()).toEqual([
      'f _tenant record_id',
      'f member_id',
      'p _tenant record_id member_id',
    ]);
  });

  it('an import writes records with their links', async () => {
    const [team, user, one, two] = [1, 2, 3, 4].map((n) => `00000000-0000-4000-8000-00000000010${n}`);
    await db.run(raw(`INSERT INTO users (id, email, email_verified) VALUES ('${user}', 'a@example.org', true)`));
    await db.run(raw(`INSERT INTO teams (id, name, created_by_id) VALUES ('${team}', 'imported', '${user}')`));
    const values = (id: string, more = {}) => ({ id, slug: id, title: 't', team, owner: user, ...more });
    async function* records() {
      for (const [line, value] of [values(one!), values(two!, { related: [one], previous: one })].entries())
        yield { line, members: new Map(Object.entries(value)), isText: false };
    }
    const collection = SAMPLE.collections.get('documents')!;
    const now = '2026-01-01T00:00:00.000000Z';
    const done = await importRecords(db, { schema: SAMPLE, collection, records, now });
    expect(done).toMatchObject({ created: 2, updated: 0 });
    expect(await db.rows(raw('SELECT _tenant, record_id, member_id FROM documents__related'))).toEqual([
      [team, two, one],
    ]);
  });

  it('an import rejects records that change their tenant or share a slug', async () => {
    const [team, user, one, two] = [1, 2, 3, 4].map((n) => `00000000-0000-4000-8000-00000000010${n}`);
    const other = '00000000-0000-4000-8000-000000000109';
    await db.run(raw(`INSERT INTO teams (id, name, created_by_id) VALUES ('${other}', 'other', '${user}')`));
    const collection = SAMPLE.collections.get('documents')!;
    const now = '2026-01-01T00:00:00.000000Z';
    const errorsOf = async (rows: readonly object[], upsert?: string) => {
      async function* records() {
        for (const [line, value] of rows.entries())
          yield { line, members: new Map(Object.entries({ title: 't', owner: user, ...value })), isText: false };
      }
      const request = { schema: SAMPLE, collection, records, now, ...(upsert !== undefined && { upsert }) };
      const error = await importRecords(db, request).catch((reason: unknown) => reason);
      return error instanceof ImportRejected ? error.errors.map(({ message }) => message) : [];
    };
    expect(await errorsOf([{ id: one, slug: one, team: other }], 'id')).toEqual([
      `\`team\` never changes; the record is of ${team}`,
    ]);
    const fresh = { slug: 'fresh', team: other };
    const rule = '`slug` must be unique within `team`';
    expect(await errorsOf([fresh, fresh])).toEqual([`${rule}; line 0 has the same value`]);
    expect(await errorsOf([{ slug: two, team }])).toEqual([`${rule}; the record ${two} has this value`]);
    expect(await errorsOf([{ slug: two, team: other }])).toEqual([]);
  });

  it('an import rejects references and links to another tenant', async () => {
    const collection = (name: string) => SAMPLE.collections.get(name)!;
    const [, user, one, two] = [1, 2, 3, 4].map((n) => `00000000-0000-4000-8000-00000000010${n}`);
    const other = '00000000-0000-4000-8000-000000000109';
    const fresh = '00000000-0000-4000-8000-000000000110';
    const errorsOf = async (name: string, rows: readonly object[]) => {
      async function* records() {
        for (const [line, value] of rows.entries())
          yield { line, members: new Map(Object.entries(value)), isText: false };
      }
      const now = '2026-01-01T00:00:00.000000Z';
      const request = { schema: SAMPLE, collection: collection(name), records, now };
      const error = await importRecords(db, request).catch((reason: unknown) => reason);
      return error instanceof ImportRejected ? error.errors.map(({ line, message }) => `${line}: ${message}`) : [];
    };
    const missing = (id: string | undefined) => `there is no record ${id} in \`documents\` of the same \`team\``;
    expect(await errorsOf('comments', [{ body: 'x', team: other, document: one, author: user }])).toEqual([
      `0: \`document\`: ${missing(one)}`,
    ]);
    const document = { slug: 'x', title: 't', owner: user, team: other };
    expect(
      await errorsOf('documents', [
        { ...document, id: fresh, previous: one, related: [two, fresh] },
        {
          ...document,
          slug: 'y',
          team: '00000000-0000-4000-8000-000000000101',
          previous: fresh,
          related: [fresh, one],
        },
      ]),
    ).toEqual([
      `0: \`previous\`: ${missing(one)}`,
      `0: \`related\`: ${missing(two)}`,
      `1: \`previous\`: ${missing(fresh)}`,
      `1: \`related\`: ${missing(fresh)}`,
    ]);
  });

  it('an export uses statements that a cluster accepts, and an import sets no tenant', async () => {
    const collection = SAMPLE.collections.get('documents')!;
    const judgedDb = await judged(db, SAMPLE);
    const exported = async (): Promise<readonly Json[]> => {
      const lines: Json[] = [];
      for await (const line of exportRecords({ q: judgedDb, schema: SAMPLE }, collection)) lines.push(JSON.parse(line));
      return lines;
    };
    const two = '00000000-0000-4000-8000-000000000104';
    const one = (await exported()).find(({ slug, related }) => slug === two && related.length === 1)!;
    const judge = new Judge(SAMPLE, new Set());
    const found = new Set<string>();
    const watch = (tx: Transaction): Transaction => ({
      ...tx,
      rows: (statement) => tx.rows(statement),
      run: (statement) => {
        for (const offence of judge.offences(statement)) found.add(offence);
        return tx.run(statement);
      },
    });
    const watched: Database = Object.create(db, {
      transaction: { value: (work: (tx: Transaction) => Promise<unknown>) => db.transaction((tx) => work(watch(tx))) },
    });
    async function* records() {
      yield { line: 1, members: new Map(Object.entries({ ...one, title: 'changed', related: [two] })), isText: false };
    }
    const now = '2026-01-01T00:00:00.000000Z';
    expect(await importRecords(watched, { schema: SAMPLE, collection, records, upsert: 'id', now })).toMatchObject({
      updated: 1,
    });
    // Staged rows are in tables of their own; no row of a tenant moves.
    expect([...found]).not.toContain('tenant_changed');
    expect(found.size).toBeGreaterThan(0);
    expect((await exported()).find(({ id }) => id === one.id)).toEqual({ ...one, title: 'changed', related: [two] });
  });

  it('each table has eight partitions', async () => {
    const [row] = await db.rows(raw(`SELECT count(*) FROM pg_inherits WHERE inhparent = 'documents'::regclass`));
    expect(row).toEqual(['8']);
  });
});

describe.each(ONE_KIND)('distribute on tables with rows, on %s', (kind) => {
  const [red, blue] = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222'];
  const id = (n: number): string => `00000000-0000-4000-8000-00000000000${n}`;
  let db: Database;
  const open = async (schema: Schema): Promise<void> => {
    db = await openKind(kind);
    await applyMigration(db, schema);
    await db.run(raw(`INSERT INTO teams (id, name) VALUES ('${red}', 'red'), ('${blue}', 'blue')`));
    await db.run(
      raw(
        `INSERT INTO notes (id, slug, body, _body_folded, team_id, above_id) VALUES
        ('${id(1)}', 'a', 'One', 'one', '${red}', NULL), ('${id(2)}', 'b', 'Two', 'two', '${red}', '${id(1)}'),
        ('${id(3)}', 'c', NULL, NULL, '${blue}', NULL)`.replaceAll('_body_folded', folded),
      ),
    );
  };
  let folded = '';
  const rows = async () => db.rows(raw('SELECT id, slug, body, team_id, above_id, _version FROM notes ORDER BY id'));
  beforeAll(() => {
    const columns = tablesOf(notes('')).get('notes')!.columns;
    folded = columns.find(({ foldedFrom }) => foldedFrom === 'body')!.name;
    folded = `"${folded}"`;
  });

  it('`migrate apply` moves the rows in both directions, and a start refuses to', async () => {
    await open(notes(''));
    await db.run(raw(`INSERT INTO notes__alike (record_id, member_id) VALUES ('${id(2)}', '${id(1)}')`));
    const before = await rows();
    const refused = await applyMigration(db, notes(BY_TEAM), { mayRewrite: false }).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(MigrationRefused);
    expect((refused as Error).message).toMatch(
      /"notes" would be divided by "team_id".*stop the service first.*bylaw migrate apply/s,
    );
    await applyMigration(db, notes(BY_TEAM));
    expect((await readCatalog(db)).get('notes')!.tenantLayout).toEqual({ kind: 'by', column: 'team_id' });
    expect(await rows()).toEqual(before);
    expect(await db.rows(raw('SELECT _tenant, record_id, member_id FROM notes__alike'))).toEqual([[red, id(2), id(1)]]);
    expect((await planMigration(db, notes(BY_TEAM))).statements).toEqual([]);
    await applyMigration(db, notes(''));
    expect((await readCatalog(db)).get('notes')!.tenantLayout).toBeUndefined();
    expect(await rows()).toEqual(before);
    expect((await planMigration(db, notes(''))).statements).toEqual([]);
    await db.close();
  });

  it('a refusal names rows that reference another tenant, and values that would not be unique', async () => {
    await open(notes(''));
    await db.run(raw(`UPDATE notes SET above_id = '${id(3)}' WHERE id = '${id(1)}'`));
    const before = await rows();
    const plan = await planMigration(db, notes(BY_TEAM));
    expect(plan.destructive.filter(({ kind: of }) => of === 'impossible').map(({ why }) => why)).toEqual([
      expect.stringContaining('"notes"."above_id" would reference "notes", but already holds ids of other records'),
    ]);
    const [, query] = /; (SELECT .*) finds them/.exec(
      plan.destructive.find(({ kind: of }) => of === 'impossible')!.why,
    )!;
    expect(await db.rows(raw(query!))).toEqual([[id(1)]]);
    await expect(applyMigration(db, notes(BY_TEAM), { allowDestructive: true })).rejects.toThrow(MigrationRefused);
    expect(await rows()).toEqual(before);
    await db.run(raw(`UPDATE notes SET above_id = NULL`));
    await applyMigration(db, notes(BY_TEAM));
    await db.run(raw(`UPDATE notes SET slug = 'a' WHERE id = '${id(3)}'`));
    const back = await planMigration(db, notes('', 'true'));
    expect(back.destructive.filter(({ kind: of }) => of === 'impossible')).toMatchObject([
      { why: expect.stringContaining('"notes"."slug" becomes unique') },
    ]);
    await db.close();
  });

  it.each([
    ['a move', '', BY_TEAM],
    ['a move back', BY_TEAM, ''],
  ])(
    '%s needs consent to lose objects of the owner, and names them',
    async (_, from, to) => {
      await open(notes(from));
      for (const statement of OWNED.split(';;')) await db.run(raw(statement));
      const [lost, ...more] = (await planMigration(db, notes(to))).destructive.filter(
        ({ kind: of }) => of === 'destructive',
      );
      expect(lost!.sql).toBe('DROP TABLE "_notes_former"');
      expect(/would lose: (.*); make that again afterwards$/.exec(lost!.why)![1]!.split(', ')).toEqual([
        'the comment on "notes"',
        'the constraint "positive"',
        'the constraint "three"',
        'the default of "body"',
        'the rights that were granted on it',
        'the index "owners_index"',
        'the index "owners_partial"',
        'the index "owners_unique"',
        'the policy "owners_policy"',
        'its row level security',
        'the trigger "owners_trigger"',
      ]);
      expect(more).toEqual([]);
      const before = await rows();
      await expect(applyMigration(db, notes(to))).rejects.toThrow(/the trigger "owners_trigger".*--allow-destructive/s);
      expect(await rows()).toEqual(before);
      await applyMigration(db, notes(to), { allowDestructive: true });
      expect(await rows()).toEqual(before);
      expect((await planMigration(db, notes(to))).statements).toEqual([]);
      await db.close();
    },
    60_000,
  );

  it('a move is impossible while a foreign table or view needs the table', async () => {
    await open(notes(''));
    await db.run(raw('CREATE TABLE invoices (note uuid REFERENCES notes (id) ON DELETE RESTRICT)'));
    await db.run(raw('CREATE VIEW slugs AS SELECT slug FROM notes'));
    await db.run(raw(`INSERT INTO invoices VALUES ('${id(1)}')`));
    for (const options of [{}, { allowDestructive: true }]) {
      const error = await applyMigration(db, notes(BY_TEAM), options).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(MigrationRefused);
      expect((error as MigrationRefused).migration.destructive).toMatchObject([
        {
          kind: 'impossible',
          why:
            '"notes" has to be made anew, and cannot be dropped: a foreign key of a table that the schema does not have refers to it; ' +
            'drop that first: ALTER TABLE invoices DROP CONSTRAINT invoices_note_fkey; ' +
            'the view slugs reads it; drop that first, and make it again afterwards',
        },
      ]);
    }
    expect((await readCatalog(db)).get('invoices')!.constraints).toMatchObject([{ kind: 'f', table: 'notes' }]);
    await db.run(raw('DROP VIEW slugs'));
    await db.run(raw('ALTER TABLE invoices DROP CONSTRAINT invoices_note_fkey'));
    await applyMigration(db, notes(BY_TEAM));
    expect((await readCatalog(db)).get('notes')!.tenantLayout).toEqual({ kind: 'by', column: 'team_id' });
    await db.close();
  });

  it('a move needs consent to lose a reference that the schema does not have', async () => {
    await open(notes(''));
    await db.run(raw('ALTER TABLE teams ADD COLUMN first uuid CONSTRAINT of_owner REFERENCES notes (id)'));
    const { destructive } = await planMigration(db, notes(BY_TEAM), { keepsExtra: true });
    expect(destructive.map(({ kind: of, why }) => [of, why])).toContainEqual([
      'destructive',
      'the schema does not have the constraint FOREIGN KEY (first) to "notes" of "teams"; it would be lost',
    ]);
    await db.close();
  });

  it('a start of a schema without tenants does not move the rows of tenant tables', async () => {
    await open(notes(BY_TEAM));
    const before = await rows();
    const start = { keepsExtra: true, mayRewrite: false };
    await expect(applyMigration(db, notes(''), start)).rejects.toThrow(/"notes" would be divided no longer/);
    expect((await readCatalog(db)).get('notes')!.tenantLayout).toEqual({ kind: 'by', column: 'team_id' });
    expect(await rows()).toEqual(before);
    await applyMigration(db, notes(BY_TEAM), start);
    await db.close();
  });

  it('a move without rows needs no consent', async () => {
    db = await openKind(kind);
    await applyMigration(db, notes(''));
    await applyMigration(db, notes(BY_TEAM), { mayRewrite: false });
    expect((await readCatalog(db)).get('notes')!.tenantLayout).toEqual({ kind: 'by', column: 'team_id' });
    await db.close();
  });
});

describe.each(ONE_KIND)('a cluster, planned on %s', (kind) => {
  let db: Database;
  beforeAll(async () => {
    db = await openKind(kind);
  });
  afterAll(() => db?.close());
  const planned = async (schema: Schema, actual: Awaited<ReturnType<typeof readCatalog>> = new Map()) =>
    (await planSteps({ db, wanted: tablesOf(schema), actual, owned: [], isCluster: true, canRunApart: false })).map(
      (step) => step.sql.text,
    );

  it('a cluster gets its tables by these statements', async () => {
    const statements = await planned(SAMPLE);
    expect(statements.filter((statement) => statement.startsWith('SELECT'))).toEqual([
      `SELECT create_reference_table('"users"')`,
      `SELECT create_reference_table('"teams"')`,
      `SELECT create_reference_table('"memberships"')`,
      `SELECT create_reference_table('"tags"')`,
      `SELECT create_distributed_table('"documents"', 'team_id', colocate_with => 'none')`,
      `SELECT create_distributed_table('"covers"', 'team_id', colocate_with => '"documents"')`,
      `SELECT create_distributed_table('"comments"', 'team_id', colocate_with => '"documents"')`,
      `SELECT create_distributed_table('"events"', 'team_id', colocate_with => '"documents"')`,
      `SELECT create_reference_table('"files"')`,
      `SELECT create_distributed_table('"documents__related"', '_tenant', colocate_with => '"documents"')`,
      `SELECT create_distributed_table('"documents__tags"', '_tenant', colocate_with => '"documents"')`,
    ]);
    expect(statements.filter((statement) => /"comments"/.test(statement))).toEqual([
      expect.stringMatching(
        /^create table "comments" \(.*constraint "comments_pkey" primary key \("team_id", "id"\)\)$/,
      ),
      `SELECT create_distributed_table('"comments"', 'team_id', colocate_with => '"documents"')`,
      'alter table "comments" add constraint "comments_team_id_fkey" foreign key ("team_id") references "teams" ("id") on delete CASCADE',
      'alter table "comments" add constraint "comments_document_id_fkey" foreign key ("team_id", "document_id") references ' +
        '"documents" ("team_id", "id") on delete CASCADE',
      'alter table "comments" add constraint "comments_answer_to_id_fkey" foreign key ("team_id", "answer_to_id") references ' +
        '"comments" ("team_id", "id") on delete NO ACTION',
      'alter table "comments" add constraint "comments_author_id_fkey" foreign key ("author_id") references "users" ("id") on delete RESTRICT',
      'create index "comments_team_id_created_at_id_idx" on "comments" ("team_id", "created_at", "id")',
      'create index "comments_team_id_document_id_id_idx" on "comments" ("team_id", "document_id", "id")',
      'create index "comments_team_id_answer_to_id_id_idx" on "comments" ("team_id", "answer_to_id", "id")',
      'create index "comments_team_id_author_id_id_idx" on "comments" ("team_id", "author_id", "id")',
    ]);
    expect(statements.join('\n')).not.toMatch(/partition|PARTITION|deferrable/);
  });

  it('a cluster moves the rows of existing tables', async () => {
    await applyMigration(db, notes(''));
    const statements = await planned(notes(BY_TEAM), await readCatalog(db));
    expect(
      statements.filter(
        (statement) => /"_?notes(?:_former)?"/.test(statement) && !/index|foreign key/i.test(statement),
      ),
    ).toEqual([
      'ALTER TABLE "notes" DROP CONSTRAINT "notes_above_id_fkey"',
      'ALTER TABLE "notes" DROP CONSTRAINT "notes_team_id_fkey"',
      'ALTER TABLE "notes" RENAME TO "_notes_former"',
      'ALTER TABLE "_notes_former" DROP CONSTRAINT "notes_pkey"',
      'ALTER TABLE "_notes_former" DROP CONSTRAINT "notes_slug_key"',
      expect.stringMatching(/^create table "notes" \(.* primary key \("team_id", "id"\)\)$/),
      `SELECT create_distributed_table('"notes"', 'team_id', colocate_with => 'none')`,
      expect.stringMatching(/^INSERT INTO "notes" \((.*)\) SELECT \1 FROM "_notes_former"$/),
      expect.stringMatching(/^DO .* RAISE EXCEPTION 'not every row of notes was copied'/),
      'DROP TABLE "_notes_former"',
      `SELECT create_distributed_table('"notes__alike"', '_tenant', colocate_with => '"notes"')`,
      expect.stringMatching(/^INSERT INTO "notes__alike" .* JOIN "notes" AS s ON s."id" = f."record_id"$/),
      'alter table "notes" add constraint "notes_slug_key" unique ("team_id", "slug")',
    ]);
    expect(statements.filter((statement) => /reference_table/.test(statement))).toEqual([
      `SELECT create_reference_table('"users"')`,
      `SELECT create_reference_table('"teams"')`,
      `SELECT create_reference_table('"files"')`,
    ]);
  });

  it('a cluster adds constraints of renamed fields again, because it cannot rename them', async () => {
    const own = await openKind(kind);
    await applyMigration(own, notes(BY_TEAM));
    const actual = new Map(
      [...(await readCatalog(own))].map(([name, table]) => {
        const constraints = table.constraints.map((each) =>
          each.name === 'notes_slug_key' ? { ...each, name: 'old_key' } : each,
        );
        return [name, { ...table, constraints }] as const;
      }),
    );
    const input = { db: own, wanted: tablesOf(notes(BY_TEAM)), actual, owned: [], canRunApart: false } as const;
    const textsOf = async (isCluster: boolean) =>
      (await planSteps({ ...input, isCluster }))
        .map((step) => step.sql.text)
        .filter((statement) => statement.includes('_key'));
    expect(await textsOf(false)).toEqual(['ALTER TABLE "notes" RENAME CONSTRAINT "old_key" TO "notes_slug_key"']);
    expect(await textsOf(true)).toEqual([
      'ALTER TABLE "notes" DROP CONSTRAINT "old_key"',
      'alter table "notes" add constraint "notes_slug_key" unique ("team_id", "slug")',
    ]);
    await own.close();
  });
});
