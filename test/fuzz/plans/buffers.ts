/** A connection for the statements of lists, which also measures what each costs, as a new and as a remembered statement. */
import pg from 'pg';
import type { Cells, Database } from '../../../src/database/contract.ts';
import { readServerUrl } from '../../../src/database/server-url.ts';
import { isQueryCanceled } from '../../../src/database/to-store-error.ts';
import type { Sql } from '../../../src/sql.ts';
import type { QueryDoors } from '../query/store-modules.ts';

/** The statement was cut off, or would take too long. */
export class TooSlow extends Error {}

export interface Session {
  rows(statement: Sql): Promise<readonly Cells[]>;
  /** The rows of a text of the fuzz. */
  text(text: string): Promise<readonly Cells[]>;
  /** Runs a statement that may take minutes. */
  unlimited(text: string): Promise<void>;
  /** Limits the time of all statements from now on. */
  limit(whose: Whose): Promise<void>;
  close(): Promise<void>;
}
type Whose = 'ours' | 'other';

/** The longest statement of ours, and of another form, in ms. */
const LONGEST_MS = { ours: 4_000, other: 700 };
/** The embedded database cannot cancel a statement, so the planner's estimate decides. */
const MOST_COST = 400_000;

const AS_TEXT = { getTypeParser: () => (value: unknown) => value } as unknown as pg.CustomTypesConfig;

export async function openServerSession(url: string): Promise<Session> {
  const client = new pg.Client(readServerUrl(url).config);
  await client.connect();
  const limit = async (whose: Whose): Promise<void> => {
    await client.query(`SET statement_timeout = ${LONGEST_MS[whose]}`);
  };
  await limit('ours');
  const ask = async (text: string, values?: unknown[]): Promise<readonly Cells[]> => {
    try {
      const { rows } = await client.query({ text, values, rowMode: 'array', types: AS_TEXT } as pg.QueryArrayConfig);
      return rows as Cells[];
    } catch (error) {
      throw isQueryCanceled(error) ? new TooSlow() : error;
    }
  };
  const unlimited = async (text: string): Promise<void> => {
    await client.query('SET statement_timeout = 0');
    await client.query(text);
    await limit('ours');
  };
  return {
    limit,
    rows: ({ text, values }) => ask(text, values),
    text: (text) => ask(text),
    unlimited,
    close: () => client.end(),
  };
}

export function embeddedSession(db: Database, doors: QueryDoors): Session {
  const { raw, sql } = doors.compiler.sql;
  const text = (given: string) => db.rows(raw(given)).catch(throwTooSlow);
  const rows = async (statement: Sql) => {
    if (statement.text.startsWith('EXPLAIN')) return db.rows(statement);
    const plan = await db.rows(sql`EXPLAIN (FORMAT JSON) ${statement}`);
    if (numberIn(planIn(plan), 'Total Cost') > MOST_COST) throw new TooSlow();
    return db.rows(statement).catch(throwTooSlow);
  };
  const unlimited = async (given: string): Promise<void> => {
    await db.run(raw(given));
  };
  return { rows, text, limit: async () => undefined, unlimited, close: async () => undefined };
}

/** A filter of a query divides by zero once the statement has had its time. */
function throwTooSlow(error: unknown): never {
  throw (error as { readonly code?: string }).code === '22012' ? new TooSlow() : error;
}

interface Plan extends Readonly<Record<string, unknown>> {
  readonly Plans?: readonly Plan[];
}
const numberIn = (plan: Plan, name: string): number => (plan[name] ?? 0) as number;
interface Explained {
  readonly Plan: Plan;
  readonly 'Execution Time'?: number;
}
function explainedIn(rows: readonly Cells[]): Explained {
  const [explained] = JSON.parse(rows.map(([line]) => line).join('\n')) as [Explained];
  return explained;
}
const planIn = (rows: readonly Cells[]): Plan => explainedIn(rows).Plan;
const BUFFERS = ['Shared Hit Blocks', 'Shared Read Blocks', 'Temp Read Blocks', 'Temp Written Blocks'];
/** The reads of a statement; infinite where it was cut off. */
export interface Reads {
  readonly buffers: number;
  /** Rows of tables, and of tables in memory. */
  readonly rows: number;
  readonly ms: number;
}
const CUT_OFF: Reads = {
  buffers: Number.POSITIVE_INFINITY,
  rows: Number.POSITIVE_INFINITY,
  ms: Number.POSITIVE_INFINITY,
};

const readsOf = ({ Plan: plan, 'Execution Time': ms = 0 }: Explained): Reads => ({
  buffers: BUFFERS.reduce((sum, name) => sum + numberIn(plan, name), 0),
  rows: Math.round(rowsOf(plan)),
  ms,
});

/** The rows that all nodes pass on or drop. */
function rowsOf(plan: Plan): number {
  const { Plans = [] } = plan;
  const own = numberIn(plan, 'Actual Rows') + numberIn(plan, 'Rows Removed by Filter');
  return own * numberIn(plan, 'Actual Loops') + Plans.reduce((sum, each) => sum + rowsOf(each), 0);
}

/** After so many uses, PostgreSQL decides between one plan for all values and another one each time. */
const USES = 5;

/** Values with which a text was asked before. */
interface Former {
  readonly given: string;
  readonly cost: number;
}

export interface MeasuredForm extends Reads {
  /** `remembered`: after five uses. */
  readonly name: string;
  readonly statement: Sql;
  readonly settings?: readonly string[];
}

export class BufferMeter {
  readonly #session: Session;
  /** The costliest former use of each text: after such uses, the plan for all values is the likeliest. */
  readonly #former = new Map<string, Former>();
  #statements = 0;

  constructor(session: Session) {
    this.#session = session;
  }

  async asNew(statement: Sql, settings: readonly string[] = []): Promise<Reads> {
    const all = ['plan_cache_mode = force_custom_plan', ...settings];
    return this.#prepared(statement, all, (execute) => this.#readsOf(execute));
  }

  /** The statement was used five times by other callers, where they make another plan. */
  async asRemembered(statement: Sql): Promise<Reads> {
    const given = givenOf(statement);
    const cost = await this.#prepared(statement, ['plan_cache_mode = force_custom_plan'], async (execute) => {
      return numberIn(planIn(await this.#session.text(`EXPLAIN (FORMAT JSON) ${execute}`)), 'Total Cost');
    });
    const known = this.#former.get(statement.text);
    const former = known === undefined || known.cost < cost ? { given, cost } : known;
    this.#former.set(statement.text, former);
    return this.#prepared(statement, [], async (execute, name) => {
      for (let use = 0; use < USES; use++) await this.#session.text(`EXPLAIN EXECUTE ${name}${former.given}`);
      return this.#readsOf(execute);
    });
  }

  /** The plan of a statement, for a report. */
  async planOf({ name, statement, settings = [] }: MeasuredForm): Promise<string> {
    const mode = name === 'remembered' ? 'force_generic_plan' : 'force_custom_plan';
    const rows = await this.#prepared(statement, [`plan_cache_mode = ${mode}`, ...settings], (execute) =>
      this.#session.text(`EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) ${execute}`),
    );
    return rows.map(([line]) => line).join('\n');
  }

  async #readsOf(execute: string): Promise<Reads> {
    try {
      return readsOf(
        explainedIn(await this.#session.text(`EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) ${execute}`)),
      );
    } catch (error) {
      if (error instanceof TooSlow) return CUT_OFF;
      throw error;
    }
  }

  async #prepared<T>(
    statement: Sql,
    settings: readonly string[],
    work: (execute: string, name: string) => Promise<T>,
  ): Promise<T> {
    const name = `measured_${++this.#statements}`;
    await this.#session.text(`PREPARE ${name} AS ${statement.text}`);
    for (const setting of settings) await this.#session.text(`SET ${setting}`);
    try {
      return await work(`EXECUTE ${name}${givenOf(statement)}`, name);
    } finally {
      for (const setting of settings) await this.#session.text(`RESET ${setting.split(' ')[0]}`);
      await this.#session.text(`DEALLOCATE ${name}`);
    }
  }
}

/** The values of a statement in its order, for EXECUTE. */
function givenOf({ values }: Sql): string {
  return values.length === 0 ? '' : `(${values.map(literalOf).join(', ')})`;
}

function literalOf(value: unknown): string {
  if (value === null || value === undefined) return 'NULL';
  if (!Array.isArray(value)) return pg.escapeLiteral(String(value));
  const elements = value.map((each) => (each === null ? 'NULL' : JSON.stringify(String(each))));
  return pg.escapeLiteral(`{${elements.join()}}`);
}
