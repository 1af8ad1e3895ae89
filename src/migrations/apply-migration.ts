/**
 * Runs a migration. What is quick is one transaction, and refused as a whole. What has to read a
 * large table follows in steps of its own, beside which others read and write; if it is interrupted,
 * the next start goes on from what it finds.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { SEQUENTIAL_SHARDS, tenantStorageOf } from '../database/citus.ts';
import { type Database, type Session, StoreError, type Transaction } from '../database/contract.ts';
import { isLockTimeout } from '../database/to-store-error.ts';
import { makeVersionKey } from '../database/version-key.ts';
import { invariant, present } from '../invariant.ts';
import { hasTenants, type Schema } from '../schema/model/model.ts';
import { ident, param, raw, sql, text } from '../sql.ts';
import { fingerprintOf, underWay } from './fingerprint.ts';
import { noteEnd, noteStart } from './history.ts';
import {
  type MigrateOptions,
  type Migration,
  MigrationRefused,
  migrationOf,
  missingSystemTables,
  ownedTables,
  riskOf,
  stepsOf,
} from './migration.ts';
import { type Filling, fillCopies, fillPage } from './search-columns.ts';
import type { Step } from './step.ts';
import { tablesOf } from './tables.ts';

/** What was done. Throws MigrationRefused. */
export async function applyMigration(db: Database, schema: Schema, options: MigrateOptions = {}): Promise<Migration> {
  const run = new MigrationRun(db, schema, options);
  const done = await run.apply();
  if (options.repeatsCopies === true) await run.repeatCopies();
  return done;
}

/** 'bylaw' as a number, so that no other program uses the same lock. */
const LOCK = 0x62_79_6c_61_77;
/** 'byla', beside which the schema of the tables stands. */
const SESSION_LOCK = 0x62_79_6c_61;

/** Milliseconds that a change may wait for a lock: meanwhile, everybody waits who uses the table. */
const LOCK_TIMEOUT_MS = 2_000;
const LOCK_ATTEMPTS = 30;
const LOCK_PAUSE_MS = 1_000;
/** How often another migration is asked whether it has ended, and how often that is said. */
const TURN_PAUSE_MS = 200;
const TURN_NOTE_MS = 10_000;
/** Rows that a step in pages changes at once. */
const PAGE = 5_000;

/** A table stayed locked through all attempts. */
class TableInUse extends Error {
  constructor(cause: unknown) {
    super(
      'a table that has to change is in use by another program; ' +
        "end its transaction (SELECT * FROM pg_stat_activity WHERE xact_start < now() - interval '1 minute' finds it) and try again",
      { cause },
    );
    this.name = 'TableInUse';
  }
}

/** What the first transaction did, and what is left to do. */
interface BegunMigration {
  readonly migration: Migration;
  readonly left: readonly Step[];
  /** Of the history. */
  readonly id: string | undefined;
}

class MigrationRun {
  readonly #db: Database;
  readonly #schema: Schema;
  readonly #options: MigrateOptions;
  #session: Session | undefined;

  constructor(db: Database, schema: Schema, options: MigrateOptions) {
    this.#db = db;
    this.#schema = schema;
    this.#options = options;
  }

  async apply(): Promise<Migration> {
    const { openSession } = this.#db;
    if (openSession === undefined) return (await this.#begin()).migration;
    // Most starts find nothing to do, and need no session.
    if (!(await this.#mayHaveSteps())) return (await this.#begin()).migration;
    this.#session = await openSession();
    try {
      await this.#takeTurn(this.#session);
      const begun = await this.#begin();
      for (const step of begun.left) await this.#runApart(this.#session, step);
      if (begun.left.length > 0) await this.#inTurns((tx) => this.#end(tx, begun.id));
      return begun.migration;
    } finally {
      await this.#session.close();
      this.#session = undefined;
    }
  }

  /** Another node may rename a table while this one looks at it, so a plan that fails is made again in its turn. */
  async #mayHaveSteps(): Promise<boolean> {
    const unnoted = { ...this.#options, onNote: undefined };
    try {
      return (await stepsOf(this.#db, { schema: this.#schema, canRunApart: true, ...unnoted })).length > 0;
    } catch {
      return true;
    }
  }

  async repeatCopies(): Promise<void> {
    for (const { name, columns } of tablesOf(this.#schema).values())
      for (const { name: copy, copies } of columns)
        if (copies !== undefined) await this.#fill({ table: name, column: copies, copy, isRepeated: true });
  }

  /** Page by page, each in a transaction. */
  async #fill(filling: Filling): Promise<void> {
    let after: string | undefined;
    do {
      const start = after;
      after = await this.#inTurns((tx) => fillPage(tx, filling, start));
    } while (after !== undefined);
  }

  /**
   * Never waits inside a statement: its snapshot would hold up an index that the other migration
   * builds.
   */
  async #takeTurn(session: Session): Promise<void> {
    let saidAt = performance.now();
    for (;;) {
      const [row] = await session.rows(sql`
        SELECT pg_try_advisory_lock(${param('int8', SESSION_LOCK)}::int4, hashtext(current_schema()))`);
      if (row?.[0] === 't') return;
      if (performance.now() - saidAt > TURN_NOTE_MS) {
        saidAt = performance.now();
        this.#options.onNote?.('another process migrates the database; waiting until it has finished');
      }
      await sleep(TURN_PAUSE_MS);
    }
  }

  #begin(): Promise<BegunMigration> {
    return this.#inTurns((tx) => this.#beginIn(tx));
  }

  /** With short waits for locks, and others served in between. */
  async #inTurns<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        // The time limit of requests does not apply to long changes.
        return await this.#db.transaction((tx) => this.#locked(tx, work), { unlimited: true });
      } catch (error) {
        if (!isLockTimeout(error)) throw error;
        if (attempt === LOCK_ATTEMPTS) throw new TableInUse(error);
      }
      this.#options.onNote?.(
        `a table that has to change is in use by another program for more than ${LOCK_TIMEOUT_MS / 1_000} s; ` +
          `trying again (${attempt} of ${LOCK_ATTEMPTS})`,
      );
      await sleep(LOCK_PAUSE_MS);
    }
  }

  async #locked<T>(tx: Transaction, work: (tx: Transaction) => Promise<T>): Promise<T> {
    if (this.#db.kind === 'postgres') {
      // Of versions that know no session, and of those behind a pooler.
      await tx.rows(sql`SELECT pg_advisory_xact_lock(${param('int8', LOCK)})`);
      // After that lock, which another node may hold for long.
      await tx.run(raw(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`));
    }
    // Earlier versions made deferred constraints, and adopted tables may have some: a table cannot be
    // altered while checks of its changed rows are pending.
    await tx.run(raw('SET CONSTRAINTS ALL IMMEDIATE'));
    if (hasTenants(this.#schema) && (await tenantStorageOf(tx)) === 'citus') await tx.run(SEQUENTIAL_SHARDS);
    return work(tx);
  }

  async #beginIn(tx: Transaction): Promise<BegunMigration> {
    const canRunApart = this.#session !== undefined;
    const steps = await stepsOf(tx, { schema: this.#schema, canRunApart, ...this.#options });
    const missing = await missingSystemTables(tx, this.#options.systemTables ?? []);
    const migration = migrationOf(steps, missing);
    const refused = await this.#refusedOf(tx, steps);
    if (refused.length > 0) throw new MigrationRefused({ ...migration, destructive: refused });
    for (const step of steps) if (step.apart === undefined) await this.#take(tx, step);
    // Only those: a role without rights on the schema can serve a database that is current.
    for (const statement of missing) await tx.run(statement);
    await makeVersionKey(tx);
    const { version = 'unknown' } = this.#options;
    const id = migration.statements.length === 0 ? undefined : await noteStart(tx, version, migration.statements);
    const left = steps.filter(({ apart }) => apart !== undefined);
    if (left.length === 0) await this.#end(tx, id);
    else await this.#noteTables(tx, id);
    return { migration, left, id };
  }

  async #refusedOf(tx: Transaction, steps: readonly Step[]): Promise<Migration['destructive']> {
    const { allowDestructive = false, mayRewrite = true, allows } = this.#options;
    const refused: Migration['destructive'][number][] = [];
    for (const step of steps) {
      const risk = riskOf(step);
      if (risk === undefined || (risk.kind === 'rewrites' && mayRewrite)) continue;
      const isAllowed = risk.kind === 'destructive' && (allowDestructive || (await allows?.(tx, step)));
      if (!isAllowed) refused.push(risk);
    }
    return refused;
  }

  async #take(tx: Transaction, { sql: statement, filling }: Step): Promise<void> {
    this.#options.onStatement?.(statement);
    await tx.run(raw(statement));
    if (filling !== undefined) await fillCopies(tx, filling);
  }

  async #runApart(session: Session, step: Step): Promise<void> {
    const { sql: statement, apart, onBrokenRow } = step;
    this.#options.onStatement?.(statement);
    this.#options.onNote?.(`running, while the tables are in use: ${statement}`);
    try {
      if (apart === 'statement') await session.run(raw(statement));
      else if (apart === 'transaction') await this.#inTurns((tx) => tx.run(raw(statement)));
      else await this.#runInPages(step);
    } catch (error) {
      const isBroken = error instanceof StoreError && ['unique', 'check', 'foreign_key'].includes(error.kind);
      if (onBrokenRow === undefined || !isBroken) throw error;
      await this.#runApart(session, onBrokenRow.undo);
      const risk = { sql: statement, why: onBrokenRow.why, kind: 'impossible' } as const;
      throw new MigrationRefused({ statements: [statement], destructive: [risk], apart: [statement] });
    }
  }

  async #runInPages({ sql: statement, apart, filling }: Step): Promise<void> {
    invariant(typeof apart === 'object', 'a step in pages has a table');
    if (filling !== undefined) {
      await this.#fill(filling);
      await this.#inTurns((tx) => tx.run(raw(statement)));
      return;
    }
    let after: string | undefined;
    do {
      const start = after;
      after = await this.#inTurns((tx) => changePage(tx, { statement, table: apart.pagesOf, start }));
    } while (after !== undefined);
  }

  async #end(tx: Transaction, id: string | undefined): Promise<void> {
    if (id !== undefined) await noteEnd(tx, id);
    await writeRecord(tx, fingerprintOf(this.#schema), await this.#tablesNow(tx));
  }

  /**
   * An interrupted migration leaves tables that are known as made by a schema. Who finds its columns
   * and unique fields there serves meanwhile; indexes and references may be missing.
   */
  async #noteTables(tx: Transaction, id: string | undefined): Promise<void> {
    await writeRecord(tx, underWay(present(id, 'the migration')), await this.#tablesNow(tx));
  }

  async #tablesNow(tx: Transaction): Promise<readonly string[]> {
    const wanted = [...tablesOf(this.#schema).keys()];
    if (this.#options.keepsExtra !== true) return wanted;
    const owned = await tx.rows(sql`
      SELECT name
        FROM unnest(${param('text[]', await ownedTables(tx))}) AS o (name)
       WHERE to_regclass(quote_ident(name)) IS NOT NULL`);
    return [...new Set([...owned.map(([name]) => name!), ...wanted])];
  }
}

interface ChangedPage {
  readonly statement: string;
  readonly table: string;
  readonly start: string | undefined;
}

/** → the last id of the page; undefined after the last page. */
async function changePage(tx: Transaction, { statement, table, start }: ChangedPage): Promise<string | undefined> {
  const from = start === undefined ? sql`TRUE` : sql`id > ${param('uuid', start)}`;
  const ids = await tx.rows(sql`
    SELECT id::text
      FROM ${ident(table)}
     WHERE ${from}
     ORDER BY id
     LIMIT ${raw(String(PAGE))}`);
  const last = ids.at(-1)?.[0];
  if (last === undefined || last === null) return undefined;
  await tx.run(sql`${raw(statement)} AND ${from} AND id <= ${param('uuid', last)}`);
  return ids.length < PAGE ? undefined : last;
}

async function writeRecord(tx: Transaction, fingerprint: string, tables: readonly string[]): Promise<void> {
  await tx.run(sql`
    INSERT INTO bylaw_schema (id, fingerprint, tables, applied_at)
    VALUES (1, ${text(fingerprint)}, ${param('jsonb', JSON.stringify(tables))}, now())
        ON CONFLICT (id) DO UPDATE
       SET fingerprint = excluded.fingerprint, tables = excluded.tables, applied_at = excluded.applied_at`);
}

/** Whether both schemas want the same tables, so that nothing lies to be migrated between them. */
export const haveSameTables = (a: Schema, b: Schema): boolean => fingerprintOf(a) === fingerprintOf(b);
