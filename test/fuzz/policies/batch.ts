/** Conditions of many policies in one statement: for each, the bits of the rows that meet it. */
import type { Sql } from '../../../src/sql.ts';
import type { Compiler } from './compiler.ts';
import type { Finding } from './differential.ts';
import type { Database } from './tables.ts';

export interface Question {
  readonly condition: Sql;
  readonly expected: readonly boolean[];
  readonly finding: Omit<Finding, 'backend' | 'row' | 'expected'>;
}
export interface Batch {
  /** The FROM of the statement, with the tested rows as `r`. */
  readonly from: string;
  readonly questions: readonly Question[];
  /** As a `WHERE`, where PostgreSQL may make joins of it and use indexes; otherwise as a `FILTER`, many at once and cheap. */
  readonly asWhere: boolean;
}

/** The state of PostgreSQL for a statement that took too long. */
const STATEMENT_TIMEOUT = '57014';
export const isTimeout = (error: unknown): boolean =>
  (error as { readonly code?: unknown } | undefined)?.code === STATEMENT_TIMEOUT;

/** Returns a finding whose error `isTimeout` if one condition alone takes too long for all rows, and the others agree. */
export async function ask(
  database: Database,
  batch: Batch,
  { compiler, backend }: { compiler: Compiler; backend: Finding['backend'] },
): Promise<Finding | undefined> {
  try {
    const bits: (string | null)[] = [];
    for (const questions of shortEnough(batch.questions))
      bits.push(...(await answers(database, { ...batch, questions }, compiler)));
    return compare(bits, batch, backend);
  } catch (error) {
    if (batch.questions.length === 1) {
      const { finding, condition } = batch.questions[0]!;
      return { ...finding, backend, row: 0, expected: undefined, error, sql: condition };
    }
    // A condition fails the whole statement; sent alone, it shows itself.
    let slow: Finding | undefined;
    for (const question of batch.questions) {
      const found = await ask(database, { ...batch, questions: [question] }, { compiler, backend });
      if (isTimeout(found?.error)) slow = found;
      else if (found) return found;
    }
    // Together they took too long; each other one was compared alone.
    if (isTimeout(error)) return slow;
    throw new Error('a statement failed of which every part alone succeeds', { cause: error });
  }
}

/** Characters of a statement. A plan takes a thousand times as many bytes, and the embedded engine has two GB. */
const LONGEST = 400_000;

function shortEnough(questions: readonly Question[]): readonly (readonly Question[])[] {
  const groups: Question[][] = [];
  let length = Number.POSITIVE_INFINITY;
  for (const question of questions) {
    length += question.condition.text.length;
    if (length > LONGEST) {
      groups.push([]);
      length = question.condition.text.length;
    }
    groups.at(-1)!.push(question);
  }
  return groups;
}

function compare(
  bits: readonly (string | null)[],
  { questions }: Batch,
  backend: Finding['backend'],
): Finding | undefined {
  for (const [i, { expected, finding, condition }] of questions.entries()) {
    const got = bits[i] ?? '';
    for (let row = 0; row < expected.length; row++) {
      if ((got[row] === '1') !== expected[row])
        return { ...finding, backend, row, expected: expected[row], sql: condition };
    }
  }
  return undefined;
}

async function answers(
  database: Database,
  { from: rows, questions, asWhere }: Batch,
  { sql: { join, raw, sql } }: Compiler,
): Promise<readonly (string | null)[]> {
  const from = raw(`FROM ${rows}`);
  if (asWhere) {
    const parts = questions.map(({ condition }) => sql`(SELECT bit_or(r._bit) ${from} WHERE ${condition})`);
    const statement = sql`SELECT ARRAY[${join(parts, ', ')}]::text[] AS bits`;
    const answer = await database.query(statement.text, statement.values);
    return answer.rows[0]!.bits as (string | null)[];
  }
  const parts = questions.map(({ condition }) => sql`bit_or(r._bit) FILTER (WHERE ${condition})`);
  const statement = sql`SELECT ARRAY[${join(parts, ', ')}]::text[] AS bits ${from}`;
  const answer = await database.query(statement.text, statement.values);
  return answer.rows[0]!.bits as (string | null)[];
}
