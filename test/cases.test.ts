// @module-tag long
/**
 * Runs every case of test/cases by every backend. A case whose answer is none or all of the rows would prove
 * nothing, and is rejected.
 */
import { createPgConfig } from '@electric-sql/pglite/node-postgres';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { readServerUrl } from '../src/database/server-url.ts';
import { compilePolicy } from '../src/policy/compile.ts';
import type { Policy, Residual, Row } from '../src/policy/types.ts';
import { ident, type Sql, sql } from '../src/sql.ts';
import { createTables, createWrittenTable, type Database } from './fuzz/policies/tables.ts';
import { relatedOf } from './oracle/database.ts';
import { interpret } from './oracle/interpret.ts';
import { areas, type Case, COLLECTION, DOCUMENTS, world } from './support/cases.ts';
import { emptySnapshot, openEngine } from './support/embedded/embedded.ts';
import { isolatedUrl } from './support/postgres.ts';

const AREAS = areas();
const ROWS = world.data.rows.get(COLLECTION)!;
const UPDATED = world.updated.get(COLLECTION)!;
const CREATED = world.created.get(COLLECTION)!;
const RELATED = relatedOf(world.catalog, world.data);

const postgresUrl = inject('postgresUrl');
const clients: pg.Client[] = [];
const databases = new Map<string, Database>();

beforeAll(async () => {
  if (postgresUrl !== '') await connect('PostgreSQL', readServerUrl(await isolatedUrl(postgresUrl)).config);
  const embedded = await openEngine({ loadDataDir: await emptySnapshot() });
  await connect('PGlite', createPgConfig(embedded) as unknown as pg.ClientConfig);
});

afterAll(async () => {
  for (const client of clients) await client.end();
});

async function connect(name: string, config: pg.ClientConfig): Promise<void> {
  const client = new pg.Client(config);
  await client.connect();
  clients.push(client);
  const database = client as unknown as Database;
  await createTables(database, { ...world, collation: 'declared' });
  const collection = world.catalog.collections.get(COLLECTION)!;
  await createWrittenTable(database, { catalog: world.catalog, name: 'updated', collection, rows: UPDATED });
  await createWrittenTable(database, { catalog: world.catalog, name: 'created', collection, rows: CREATED });
  databases.set(name, database);
}

const named = (test: (row: number) => boolean): string[] => DOCUMENTS.filter((_, row) => test(row));

/** The rows that a case asks about, in process and in a statement. */
interface Asked {
  readonly rows: readonly Row[];
  readonly isWritten: boolean;
  readonly from: Sql;
}

function askedBy({ action, half }: Case): Asked {
  if (action === 'create') return { rows: CREATED, isWritten: true, from: sql`created AS r` };
  if (half === 'after') return { rows: UPDATED, isWritten: true, from: sql`updated AS r` };
  const stored = sql`${ident(COLLECTION)} AS r`;
  const from = action === 'update' ? sql`${stored} JOIN updated AS n ON n.id = r.id` : stored;
  return { rows: ROWS, isWritten: false, from };
}

function residualOf(policy: Policy, { request, half }: Case): Residual {
  const residual = policy.specialise(request);
  return half === 'after' ? residual.written : residual;
}

function byPredicate(policy: Policy, each: Case): string[] {
  const residual = residualOf(policy, each);
  const { rows } = askedBy(each);
  return named((row) => residual.test(rows[row]!, RELATED, UPDATED[row]!));
}

function byInterpreter({ checked }: Policy, each: Case): string[] {
  const { rows, isWritten } = askedBy(each);
  return named((row) => {
    const next = isWritten ? {} : { next: UPDATED[row]! };
    const seen = { record: rows[row]!, isWritten, ...next, related: RELATED, request: each.request };
    return interpret(checked, seen) === true;
  });
}

async function bySql(policy: Policy, each: Case, database: Database): Promise<string[]> {
  const { rows, from } = askedBy(each);
  const { text, values } = sql`SELECT r.id FROM ${from} WHERE ${residualOf(policy, each).where('r', 'n')}`;
  const answer = await database.query(text, values);
  const found = new Set(answer.rows.map(({ id }) => id));
  return named((row) => found.has(rows[row]!.id));
}

interface CompiledCase {
  readonly policy: Policy;
  readonly closures: Policy;
}
const compiled = new Map<string, CompiledCase>();

/** Cases of one text and action share the policy, as the requests of a service do. */
function compiledOf({ policy: text, action }: Case): CompiledCase {
  const place = { catalog: world.catalog, collection: COLLECTION, action };
  const key = `${action} ${text}`;
  const made = compiled.get(key) ?? {
    policy: compilePolicy(text, place),
    closures: compilePolicy(text, place, { codegen: false }),
  };
  compiled.set(key, made);
  return made;
}

describe.each(AREAS)('$area', ({ cases }) => {
  it.each(cases)('$name', async (each) => {
    expect(each.expect.length, 'a case that expects no row or every row proves nothing').toBeGreaterThan(0);
    expect(each.expect.length, 'a case that expects no row or every row proves nothing').toBeLessThan(DOCUMENTS.length);
    const { policy, closures } = compiledOf(each);
    const answers: Record<string, readonly string[]> = {
      interpreter: byInterpreter(policy, each),
      generated: byPredicate(policy, each),
      closures: byPredicate(closures, each),
    };
    for (const [name, database] of databases) answers[name] = await bySql(policy, each, database);
    expect(answers).toEqual(Object.fromEntries(Object.keys(answers).map((backend) => [backend, each.expect])));
  });
});

describe('the cases', () => {
  it('cases are many, and differ within an area', () => {
    expect(AREAS.flatMap(({ cases }) => cases).length).toBeGreaterThanOrEqual(300);
    for (const { area, cases } of AREAS) {
      const keys = cases.map(({ policy, request, action }) => JSON.stringify([policy, request, action]));
      expect(new Set(keys).size, area).toBe(keys.length);
    }
  });

  it('cases run on PGlite, and on PostgreSQL if there is one', () => {
    expect([...databases.keys()]).toEqual(postgresUrl !== '' ? ['PostgreSQL', 'PGlite'] : ['PGlite']);
  });
});
