/**
 * Runs a migration. The quick statements are one transaction, and are refused as a whole. Statements
 * that read a large table follow as separate steps, while others read and write; after an
 * interruption, the next start continues from the state that it finds.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { SEQUENTIAL_SHARDS } from '../database/citus.ts';
import { type Database, type DatabaseSession, StoreError, type Transaction } from '../database/contract.ts';
import { isLockTimeout } from '../database/to-store-error.ts';
import { invariant, present } from '../invariant.ts';
import type { Schema } from '../schema/model/model.ts';
import { ident, param, raw, type Sql, sql, tableIdent, text } from '../sql.ts';
import { tableExists } from './catalog.ts';
import { noteEnd, noteStart } from './history.ts';
import {
  type MigrateOptions,
  type Migration,
  type MigrationPlan,
  MigrationRefused,
  migrationOf,
  missingSystemTables,
  readPlan,
  riskOf,
} from './migration.ts';
import { fingerprintOf, ownedTables, pendingFingerprint, writeSchemaRecord } from './schema-record.ts';
import { copyPage, isBeyond, type PagedRows, pagedRows } from './search-columns.ts';
import type { Step } from './step.ts';
import { tablesOf } from './tables.ts';

/** → the migration that was done. Throws MigrationRefused. */
export async function applyMigration(db: Database, schema: Schema, options: MigrateOptions = {}): Promise<Migration> {
  const run = new MigrationRun(db, schema, options);
  const done = await run.apply();
  if (options.repeatsCopies === true) await run.repeatCopies();
  return done;
}

/** 'bylaw' as a number: no other program uses the same lock. */
const MIGRATION_LOCK = 0x62_79_6c_61_77;
/** 'byla' as a number; the second lock key is the schema. */
const SESSION_LOCK = 0x62_79_6c_61;

/** Milliseconds that a change may wait for a lock: all users of the table wait as long. */
const LOCK_TIMEOUT_MS = 2_000;
const LOCK_ATTEMPTS = 30;
const LOCK_PAUSE_MS = 1_000;
/** Poll and log intervals while another migration runs. */
const TURN_PAUSE_MS = 200;
const TURN_NOTE_MS = 10_000;
/** Rows that one transaction of a step in pages changes. */
const PAGE_ROWS = 5_000;
/**
 * After each statement that drops a constraint, Citus looks for tables of the coordinator that no longer refer to a table
 * of every node, in all schemas of the database, and keeps the writers of those that it looks at out until the
 * transaction ends: sessions, kept answers and the like.
 */
const LOOKS_FOR_FREED_TABLES = raw('SET LOCAL citus.enable_local_reference_table_foreign_keys TO');

/** A table stayed locked through all attempts. */
class TableInUse extends Error {
  constructor(cause: unknown) {
    super(
      'a table that has to change is in use by another program; ' +
        "end its transaction (SELECT * FROM pg_stat_activity WHERE xact_start < now() - interval '1 minute' finds it) " +
        'and try again',
      { cause },
    );
    this.name = 'TableInUse';
  }
}

/** The result of the first transaction. */
interface BegunMigration {
  readonly migration: Migration;
  /** The steps that follow. */
  readonly left: readonly Step[];
  /** The id in the history. */
  readonly id: string | undefined;
}

class MigrationRun {
  readonly #db: Database;
  readonly #schema: Schema;
  readonly #options: MigrateOptions;
  #session: DatabaseSession | undefined;

  constructor(db: Database, schema: Schema, options: MigrateOptions) {
    this.#db = db;
    this.#schema = schema;
    this.#options = options;
  }

  async apply(): Promise<Migration> {
    const { openSession } = this.#db;
    if (openSession === undefined) return (await this.#begin()).migration;
    const unchanged = await this.#applyUnchanged();
    if (unchanged !== undefined) return unchanged;
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

  /** Most starts find nothing to do, and need no session. → undefined if there are steps. */
  async #applyUnchanged(): Promise<Migration | undefined> {
    try {
      return await this.#inTurns(async (tx) => {
        const plan = await this.#plan(tx);
        return plan.steps.length === 0 ? (await this.#beginIn(tx, plan)).migration : undefined;
      });
    } catch (error) {
      if (error instanceof TableInUse) throw error;
      // Another node may build or drop an index while this one plans; a plan that fails is made again in its turn.
      return undefined;
    }
  }

  async repeatCopies(): Promise<void> {
    for (const table of tablesOf(this.#schema).values())
      for (const { name: to, foldedFrom: from } of table.columns)
        if (from !== undefined)
          await this.#eachPage((tx, after) => copyPage(tx, { ...pagedRows(table), from, to, isRepeated: true }, after));
  }

  /** Each page is a transaction. */
  #eachPage(work: (tx: Transaction, after: string | undefined) => Promise<string | undefined>): Promise<void> {
    return throughPages((after) => this.#inTurns((tx) => work(tx, after)));
  }

  /**
   * Polls instead of waiting in a statement, whose snapshot would hold up an index that the other
   * migration builds.
   */
  async #takeTurn(session: DatabaseSession): Promise<void> {
    let notedAt = performance.now();
    for (;;) {
      const [row] = await session.rows(sql`
        SELECT pg_try_advisory_lock(${param('int8', SESSION_LOCK)}::int4, hashtext(current_schema()))`);
      if (row?.[0] === 't') return;
      if (performance.now() - notedAt > TURN_NOTE_MS) {
        notedAt = performance.now();
        this.#options.onNote?.('another process migrates the database; waiting until it has finished');
      }
      await sleep(TURN_PAUSE_MS);
    }
  }

  #begin(): Promise<BegunMigration> {
    return this.#inTurns(async (tx) => this.#beginIn(tx, await this.#plan(tx)));
  }

  /** Waits for locks in short turns; other statements run between them. */
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
      // Earlier versions, and nodes behind a pooler, take this lock alone.
      await tx.rows(sql`SELECT pg_advisory_xact_lock(${param('int8', MIGRATION_LOCK)})`);
      // The limit follows that lock, which another node may hold for long.
      await tx.run(raw(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`));
    }
    // Adopted tables, and tables of earlier versions, may have deferred constraints: a table cannot be
    // altered while checks of its changed rows are pending.
    await tx.run(raw('SET CONSTRAINTS ALL IMMEDIATE'));
    if (this.#db.isCluster) await tx.run(SEQUENTIAL_SHARDS);
    return work(tx);
  }

  #plan(tx: Transaction): Promise<MigrationPlan> {
    const canRunApart = this.#db.openSession !== undefined;
    return readPlan(tx, { schema: this.#schema, canRunApart, ...this.#options });
  }

  async #beginIn(tx: Transaction, { steps, kept }: MigrationPlan): Promise<BegunMigration> {
    for (const name of kept) this.#options.onNote?.(`kept, though the schema does not have it: ${name}`);
    const missing = await missingSystemTables(tx, this.#options.systemTables ?? []);
    const migration = migrationOf(steps, missing);
    const refused = await this.#refusedOf(tx, steps);
    if (refused.length > 0) throw new MigrationRefused({ ...migration, destructive: refused });
    for (const step of steps) if (step.apart === undefined) await this.#take(tx, step);
    // Nothing else: a role without rights on the schema can serve a database that is current.
    for (const statement of missing) await tx.run(statement);
    // The first migration makes the secret key of record versions.
    await tx.run(sql`
      INSERT INTO bylaw_version_key (key)
      VALUES (${text(randomBytes(32).toString('base64url'))})
      ON CONFLICT DO NOTHING`);
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

  async #take(tx: Transaction, step: Step): Promise<void> {
    const { sql: statement, foldedCopy } = step;
    this.#options.onStatement?.(statement.text);
    await this.#run(tx, step);
    if (foldedCopy !== undefined) await throughPages((after) => copyPage(tx, foldedCopy, after));
  }

  async #run(tx: Transaction, { sql: statement, frees }: Step): Promise<void> {
    const isLooking = this.#db.isCluster && !frees && /\bDROP\b/.test(statement.text);
    if (isLooking) await tx.run(sql`${LOOKS_FOR_FREED_TABLES} off`);
    await tx.run(statement);
    if (isLooking) await tx.run(sql`${LOOKS_FOR_FREED_TABLES} DEFAULT`);
  }

  async #runApart(session: DatabaseSession, step: Step): Promise<void> {
    const { sql: statement, apart, onBrokenRow } = step;
    this.#options.onStatement?.(statement.text);
    this.#options.onNote?.(`running, while the tables are in use: ${statement.text}`);
    try {
      if (apart === 'statement') await session.run(statement);
      else if (apart === 'transaction') await this.#inTurns((tx) => this.#run(tx, step));
      else await this.#runInPages(step);
    } catch (error) {
      const isBroken = error instanceof StoreError && ['unique', 'check', 'foreign_key'].includes(error.kind);
      if (onBrokenRow === undefined || !isBroken) throw error;
      await this.#runApart(session, onBrokenRow.undo);
      const { text: broken } = statement;
      const risk = { sql: broken, why: onBrokenRow.why, kind: 'impossible' } as const;
      throw new MigrationRefused({ statements: [broken], destructive: [risk], apart: [broken] });
    }
  }

  async #runInPages(step: Step): Promise<void> {
    const { sql: statement, apart, foldedCopy } = step;
    invariant(typeof apart === 'object', 'a step in pages has a table');
    if (foldedCopy === undefined)
      return this.#eachPage((tx, after) => changePage(tx, { statement, rows: apart.pagesOf, after }));
    await this.#eachPage((tx, after) => copyPage(tx, foldedCopy, after));
    await this.#inTurns((tx) => this.#run(tx, step));
  }

  async #end(tx: Transaction, id: string | undefined): Promise<void> {
    if (id !== undefined) await noteEnd(tx, id);
    await writeSchemaRecord(tx, fingerprintOf(this.#schema), await this.#tablesNow(tx));
  }

  /**
   * Records the tables before the remaining steps, so that an interrupted migration still owns them.
   * A node that finds its columns and unique fields serves meanwhile; indexes and references may be
   * missing.
   */
  async #noteTables(tx: Transaction, id: string | undefined): Promise<void> {
    await writeSchemaRecord(tx, pendingFingerprint(present(id, 'the migration')), await this.#tablesNow(tx));
  }

  async #tablesNow(tx: Transaction): Promise<readonly string[]> {
    const wanted = [...tablesOf(this.#schema).keys()];
    if (this.#options.keepsExtra !== true) return wanted;
    const owned: string[] = [];
    for (const name of await ownedTables(tx)) if (await tableExists(tx, name)) owned.push(name);
    return [...new Set([...owned, ...wanted])];
  }
}

interface ChangedPage {
  readonly statement: Sql;
  readonly rows: PagedRows;
  /** The last id of the page before. */
  readonly after: string | undefined;
}

/** @param run runs a page after an id; → its last id, undefined after the last page */
async function throughPages(run: (after: string | undefined) => Promise<string | undefined>): Promise<void> {
  let after = await run(undefined);
  while (after !== undefined) after = await run(after);
}

/** → the last id of the page; undefined after the last page. */
async function changePage(tx: Transaction, { statement, rows, after }: ChangedPage): Promise<string | undefined> {
  const key = ident(rows.key);
  const from = after === undefined ? sql`TRUE` : isBeyond(rows, '>', after);
  const ids = await tx.rows(sql`
    SELECT ${key}::text
      FROM ${tableIdent(rows.table)}
     WHERE ${from}
     ORDER BY ${key}
     LIMIT ${raw(String(PAGE_ROWS))}`);
  const last = ids.at(-1)?.[0];
  if (last === undefined || last === null) return undefined;
  await tx.run(sql`${statement} AND ${from} AND ${isBeyond(rows, '<=', last)}`);
  return ids.length < PAGE_ROWS ? undefined : last;
}
