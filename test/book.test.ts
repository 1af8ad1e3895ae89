// @module-tag long
/**
 * The policies of real products that an outside review of the language collected, each with rows and callers,
 * through every backend. A case that distinguishes no callers and no records
 * would prove nothing.
 */
import { createPgConfig } from '@electric-sql/pglite/node-postgres';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { readServerUrl } from '../src/database/server-url.ts';
import { decide, type Permit } from '../src/policy/access.ts';
import { compileChecked } from '../src/policy/compile.ts';
import type { Policy, PolicyRequest, Related, Row } from '../src/policy/types.ts';
import { ident, raw, type Sql, sql } from '../src/sql.ts';
import { createTables, createWrittenTable, type Database } from './fuzz/policies/tables.ts';
import { relatedOf } from './oracle/database.ts';
import { interpret } from './oracle/interpret.ts';
import { BOOK_SCHEMAS, type BookCase, type Chapter, chapters } from './support/book.ts';
import { emptySnapshot, openEngine } from './support/embedded/embedded.ts';
import { isolatedUrl } from './support/postgres.ts';

const CHAPTERS = chapters();
const postgresUrl = inject('postgresUrl');
const clients = new Map<string, pg.Client>();

beforeAll(async () => {
  const embedded = await openEngine({ loadDataDir: await emptySnapshot() });
  const configs: [string, pg.ClientConfig][] = [['PGlite', createPgConfig(embedded) as unknown as pg.ClientConfig]];
  if (postgresUrl !== '') configs.push(['PostgreSQL', readServerUrl(await isolatedUrl(postgresUrl)).config]);
  for (const [name, config] of configs) {
    const client = new pg.Client(config);
    await client.connect();
    clients.set(name, client);
  }
});

afterAll(async () => {
  for (const client of clients.values()) await client.end();
});

/** A record, or a write of one, that the rules are asked about. */
interface Asked {
  readonly name: string;
  readonly record: Row;
  readonly next?: Row;
}

function askedBy({ collection, tries }: BookCase, { data, names }: Chapter): readonly Asked[] {
  if (tries === undefined)
    return (data.rows.get(collection.name) ?? []).map((record) => ({ name: names.get(String(record.id))!, record }));
  return tries.map(({ name, stored, written }) =>
    stored === undefined ? { name, record: written } : { name, record: stored, next: written },
  );
}

/** As the gate decides. */
function permits({ rules }: Permit, { record, next }: Asked, related: Related): boolean {
  return rules.some(({ residual, namesNext }) => {
    if (next === undefined) return residual.test(record, related);
    if (namesNext) return residual.test(record, related, next);
    return residual.test(record, related) && residual.written.test(next, related);
  });
}

interface Meaning {
  readonly related: Related;
  readonly request: PolicyRequest;
  readonly isCreate: boolean;
}

/** As the language says. */
function isAllowed(rules: readonly Policy[], { record, next }: Asked, { isCreate, ...world }: Meaning): boolean {
  return rules.some(({ checked, namesNext }) => {
    if (isCreate) return interpret(checked, { ...world, record, isWritten: true }) === true;
    if (next !== undefined && namesNext) return interpret(checked, { ...world, record, next }) === true;
    if (interpret(checked, { ...world, record }) !== true) return false;
    return next === undefined || interpret(checked, { ...world, record: next, isWritten: true }) === true;
  });
}

function statement({ collection, action, tries }: BookCase, permit: Permit, table: string): Sql {
  const stored = sql`${ident(collection.table)} AS r`;
  const written = raw(`"${table}"`);
  if (tries === undefined) return sql`SELECT r._bit FROM ${stored} WHERE ${permit.where('r')}`;
  if (action === 'create') return sql`SELECT r._bit FROM ${written} AS r WHERE ${permit.where('r')}`;
  return sql`SELECT n._bit FROM ${stored} JOIN ${written} AS n ON n.id = r.id WHERE ${permit.update.allows('r', 'n')}`;
}

const withoutCodegen = (rules: readonly Policy[], { schema }: Chapter, { action }: BookCase): readonly Policy[] =>
  rules.map((rule) => compileChecked({ ...rule, catalog: schema, action }, { codegen: false }));

describe.each(CHAPTERS)('$file', (chapter) => {
  const related = relatedOf(chapter.schema, chapter.data);

  beforeAll(async () => {
    for (const client of clients.values()) {
      const place = `"${chapter.file.replace('.yaml', '')}"`;
      await client.query(`CREATE SCHEMA ${place}`);
      await client.query(`SET search_path = ${place}`);
      const database = client as unknown as Database;
      await createTables(database, { catalog: chapter.schema, data: chapter.data, collation: 'declared' });
      for (const [i, { collection, tries }] of chapter.cases.entries()) {
        if (tries === undefined) continue;
        const rows = tries.map(({ written }) => written);
        await createWrittenTable(database, { catalog: chapter.schema, name: `tries_${i}`, collection, rows });
      }
    }
  });

  it.each(chapter.cases.map((each, i) => ({ ...each, i })))('$name', async ({ i, ...each }) => {
    const asked = askedBy(each, chapter);
    const closures = withoutCodegen(each.rules, chapter, each);
    const answers: Record<string, Record<string, readonly string[]>> = {};
    for (const caller of Object.keys(each.expect)) {
      const request = { auth: chapter.callers.get(caller)!, query: {}, now: chapter.now };
      const permit = decide({ rules: each.rules, request });
      const composed = decide({ rules: closures, request });
      const meaning = { related, request, isCreate: each.action === 'create' };
      const named = (test: (one: Asked) => boolean): readonly string[] => asked.filter(test).map(({ name }) => name);
      const found: Record<string, readonly string[]> = {
        interpreter: named((one) => isAllowed(each.rules, one, meaning)),
        generated: named((one) => permits(permit, one, related)),
        closures: named((one) => permits(composed, one, related)),
      };
      for (const [name, client] of clients) {
        const { text, values } = statement(each, permit, `tries_${i}`);
        const { rows } = await client.query(text, values as unknown[]);
        const bits = new Set(rows.map(({ _bit }) => String(_bit).indexOf('1')));
        found[name] = asked.flatMap((one, place) => (bits.has(place) ? [one.name] : []));
      }
      answers[caller] = found;
    }
    const wanted = Object.entries(each.expect).map(([caller, names]) => {
      const backends = ['interpreter', 'generated', 'closures', ...clients.keys()];
      return [caller, Object.fromEntries(backends.map((backend) => [backend, names]))];
    });
    expect(answers).toEqual(Object.fromEntries(wanted));
    const lengths = Object.values(each.expect).map(({ length }) => length);
    expect(Math.max(...lengths), 'some caller may have something').toBeGreaterThan(0);
    expect(Math.min(...lengths), 'some caller may not have everything').toBeLessThan(asked.length);
  });
});

describe('the cases', () => {
  it('cases cover the expressible policies of the review, each with its own name', () => {
    const names = CHAPTERS.flatMap(({ file, cases }) => cases.map(({ name }) => `${file}: ${name}`));
    expect(names.length).toBeGreaterThanOrEqual(54);
    expect(new Set(names).size).toBe(names.length);
  });
  it('cases cover every chapter of the book', () => {
    expect(CHAPTERS.flatMap(({ title }) => title ?? []).sort()).toEqual([...BOOK_SCHEMAS.keys()].sort());
  });
});
