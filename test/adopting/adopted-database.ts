/** A database of another program, served by a draft of it and a few edits. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, inject } from 'vitest';
import { parse, stringify } from 'yaml';
import { openDatabase } from '../../src/database/open-database.ts';
import { draftSchema } from '../../src/migrations/adopt/adopt.ts';
import { compareFile } from '../../src/migrations/adopt/compare-file.ts';
import { countDraft, printDraft } from '../../src/migrations/adopt/print-draft.ts';
import { readExistingTables } from '../../src/migrations/adopt/read-existing-tables.ts';
import { parseSchema } from '../../src/schema/load.ts';
import { ownDatabaseUrl } from '../support/postgres.ts';
import { TestService } from '../support/service.ts';

const ROLES = { roles: { admin: { assigns: ['admin', 'member'] }, member: {} }, register: { roles: ['member'] } };

/** All that PostgreSQL knows of the owner's tables, functions and rights, a line each. */
const CATALOGUE = `
SELECT line FROM (
  SELECT concat(n.nspname, '.', c.relname) AS place, concat_ws(' ', c.relkind, c.relacl, c.relrowsecurity,
           CASE WHEN c.relkind IN ('v', 'm') THEN pg_get_viewdef(c.oid) END) AS line
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
   UNION ALL
  SELECT a.attrelid::regclass::text, concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
           pg_get_expr(d.adbin, d.adrelid), a.attacl)
    FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
   WHERE a.attnum > 0
   UNION ALL
  SELECT conrelid::regclass::text, concat_ws(' ', conname, pg_get_constraintdef(oid)) FROM pg_constraint WHERE conrelid <> 0
   UNION ALL
  SELECT indrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index
   UNION ALL
  SELECT tgrelid::regclass::text, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
   UNION ALL
  SELECT polrelid::regclass::text, polname FROM pg_policy
   UNION ALL
  SELECT concat(pronamespace::regnamespace, '.'), concat_ws(' ', proname, prosrc) FROM pg_proc) AS found
 WHERE split_part(place, '.', 1) = ANY($1)
 ORDER BY place, line`;

/** Keys by collection; `without` names fields of the draft. */
type Edits = Readonly<Record<string, object>>;

interface Adoption {
  /** The statements of the owner. */
  readonly owner: string;
  /** Statements that make room for the service; default: a schema for its tables. */
  readonly service?: string;
  /** The role of the service; default: the owner. */
  readonly role?: string;
  /** As YAML: keys that the draft gets. */
  readonly edits: string;
}

export class AdoptedDatabase {
  readonly service = new TestService('postgres');
  readonly #schemas: readonly string[];
  #owner: pg.Client | undefined;
  #before: readonly string[] = [];
  draft = '';
  counts = '';
  /** The draft with the edits. */
  schema = '';

  /** @param schemas of the owner */
  constructor(schemas: readonly string[]) {
    this.#schemas = schemas;
  }

  /** Makes the database, drafts a schema file, and serves it. */
  async start({ owner, service = 'CREATE SCHEMA bylaw', role, edits }: Adoption): Promise<void> {
    const base = await ownDatabaseUrl(inject('postgresUrl'));
    this.#owner = new pg.Client({ connectionString: base });
    await this.#owner.connect();
    await this.#owner.query(owner);
    await this.#owner.query(service);
    this.#before = await this.catalogue();
    const url = serviceUrl(base, role);
    const db = await openDatabase({ url, poolSize: 1, pipelines: 1 });
    const tables = await readExistingTables(db, this.#schemas);
    await db.close();
    const draft = draftSchema(tables);
    this.draft = printDraft(draft);
    this.counts = countDraft(draft);
    const { schema, issues } = parseSchema(this.draft);
    expect(issues).toEqual([]);
    expect(compareFile(schema!, tables, this.#schemas)).toEqual([]);
    this.schema = edited(this.draft, parse(edits));
    await this.service.start({ schema: this.schema, connect: () => url });
  }

  async stop(): Promise<void> {
    await this.service.stop();
    await this.#owner?.end();
  }

  /** A statement of the program that owns the database. → its rows */
  async own(statement: string, values: readonly unknown[] = []): Promise<readonly Record<string, unknown>[]> {
    return (await this.#owner!.query(statement, [...values])).rows;
  }

  async catalogue(): Promise<readonly string[]> {
    return (await this.own(CATALOGUE, [this.#schemas])).map(({ line }) => String(line));
  }

  async expectUnaltered(): Promise<void> {
    expect(this.#before.length).toBeGreaterThan(20);
    expect(await this.catalogue()).toEqual(this.#before);
  }
}

/** The service keeps its own tables in a schema of its own. */
function serviceUrl(base: string, role: string | undefined): string {
  const url = base.replace('//postgres@', `//${role ?? 'postgres'}@`);
  return `${url}${url.includes('?') ? '&' : '?'}options=${encodeURIComponent('-c search_path=bylaw')}`;
}

/** The database of a file of this folder, for a suite: it starts before the tests, and stops after them. */
export function adopted(file: string, schemas: readonly string[], edits: Edits): AdoptedDatabase {
  const database = new AdoptedDatabase(schemas);
  const owner = readFileSync(join(import.meta.dirname, file), 'utf8');
  beforeAll(() => database.start({ owner, edits: JSON.stringify({ ...ROLES, collections: edits }) }));
  afterAll(() => database.stop());
  return database;
}

export function edited(draft: string, { collections: edits, ...keys }: { readonly collections: Edits }): string {
  const { collections } = parse(draft);
  for (const [name, edit] of Object.entries(edits)) {
    expect([...Object.keys(collections), 'users']).toContain(name);
    const { without = [], ...keys } = edit as { readonly without?: readonly string[] };
    for (const field of without) delete collections[name].fields[field];
    collections[name] = { ...collections[name], ...keys };
  }
  return stringify({ ...keys, collections });
}
