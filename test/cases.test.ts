/** Every case of test/cases by every backend. One whose answer is none or all of the rows would prove nothing, and is refused. */
import { PGlite } from '@electric-sql/pglite';
import { createPgConfig } from '@electric-sql/pglite/node-postgres';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { compile } from '../src/policy/compile.ts';
import type { Policy } from '../src/policy/types.ts';
import { ident, sql } from '../src/sql.ts';
import { createTables, type Database } from './fuzz/tables.ts';
import { relatedOf } from './fuzz/world.ts';
import { interpret } from './oracle/interpret.ts';
import { areas, type Case, COLLECTION, DOCUMENTS, idOf, world } from './support/cases.ts';
import { emptySnapshot } from './support/embedded.ts';
import { isolatedUrl } from './support/postgres.ts';

const AREAS = areas();
const ROWS = world.data.rows.get(COLLECTION)!;
const NEXT = world.next.rows.get(COLLECTION)!;
const RELATED = relatedOf(world.catalog, world.data);
const NEXT_RELATED = relatedOf(world.catalog, world.next);

const postgresUrl = inject('postgresUrl');
let embedded: PGlite;
const clients: pg.Client[] = [];
const databases = new Map<string, Database>();

beforeAll(async () => {
  if (postgresUrl !== '') await connect('PostgreSQL', { connectionString: await isolatedUrl(postgresUrl) });
  embedded = await PGlite.create({ loadDataDir: await emptySnapshot() });
  await connect('PGlite', createPgConfig(embedded) as unknown as pg.ClientConfig);
}, 60_000);

afterAll(async () => {
  for (const client of clients) await client.end();
  await embedded?.close();
});

async function connect(name: string, config: pg.ClientConfig): Promise<void> {
  const client = new pg.Client(config);
  await client.connect();
  clients.push(client);
  const database = client as unknown as Database;
  await createTables(database, { ...world, collation: 'declared' });
  databases.set(name, database);
}

const named = (test: (row: number) => boolean): string[] => DOCUMENTS.filter((_, row) => test(row));

function byPredicate(policy: Policy, { request, action }: Case): string[] {
  const residual = policy.specialise(request);
  const [next, related] = action === 'create' ? [ROWS, RELATED] : [NEXT, NEXT_RELATED];
  return named((row) => residual.test(ROWS[row]!, RELATED, next[row]!, related));
}

function byInterpreter({ checked }: Policy, { request, action }: Case): string[] {
  const [next, nextRelated] = action === 'create' ? [ROWS, RELATED] : [NEXT, NEXT_RELATED];
  return named((row) => {
    const seen = { record: ROWS[row]!, next: next[row]!, related: RELATED, nextRelated, request };
    return interpret(checked, seen) === true;
  });
}

async function bySql(policy: Policy, { request }: Case, database: Database): Promise<string[]> {
  const condition = policy.specialise(request).where('r');
  const { text, values } = sql`SELECT r.id FROM ${ident(COLLECTION)} AS r WHERE ${condition}`;
  const { rows } = await database.query(text, values);
  const found = new Set(rows.map(({ id }) => id));
  return named((row) => found.has(idOf(DOCUMENTS[row]!)));
}

describe.each(AREAS)('$area', ({ cases }) => {
  it.each(cases)('$name', async (each) => {
    expect(each.expect.length, 'a case that expects no row or every row proves nothing').toBeGreaterThan(0);
    expect(each.expect.length, 'a case that expects no row or every row proves nothing').toBeLessThan(DOCUMENTS.length);
    const place = { catalog: world.catalog, collection: COLLECTION, action: each.action };
    const policy = compile(each.policy, place);
    const closures = compile(each.policy, place, { codegen: false });
    const answers: Record<string, readonly string[]> = {
      interpreter: byInterpreter(policy, each),
      generated: byPredicate(policy, each),
      closures: byPredicate(closures, each),
    };
    // What speaks of the resulting record is tested in process only.
    const isSearched = !policy.namesNext || each.action === 'create';
    if (isSearched) for (const [name, database] of databases) answers[name] = await bySql(policy, each, database);
    expect(answers).toEqual(Object.fromEntries(Object.keys(answers).map((backend) => [backend, each.expect])));
  });
});

describe('the cases', () => {
  it('are many, and no two of an area are the same', () => {
    expect(AREAS.flatMap(({ cases }) => cases).length).toBeGreaterThanOrEqual(300);
    for (const { area, cases } of AREAS) {
      const keys = cases.map(({ policy, request, action }) => JSON.stringify([policy, request, action]));
      expect(new Set(keys).size, area).toBe(keys.length);
    }
  });

  it('run on PGlite, and on a PostgreSQL where there is one', () => {
    expect([...databases.keys()]).toEqual(postgresUrl !== '' ? ['PostgreSQL', 'PGlite'] : ['PGlite']);
  });
});
