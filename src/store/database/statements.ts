/** How a fragment goes over the wire: a bounded set of names for prepared statements, and parameters as text. */
import { createHash } from 'node:crypto';
import pg from 'pg';
import type { Param, Sql } from '../../sql.ts';
import type { Cells } from './contract.ts';

/** Each costs PostgreSQL memory on every connection. What comes after is sent unnamed, which is correct and a little slower. */
const MAX_NAMES = 1_000;
const MAX_SEEN = 10_000;

const names = new Map<string, string>();
let seen = new Set<string>();

/** A text gets a name with its second use, so that odd shapes of a stranger's requests take no place. */
function nameOf(text: string): string | undefined {
  const known = names.get(text);
  if (known !== undefined || names.size >= MAX_NAMES) return known;
  if (!seen.has(text)) {
    if (seen.size >= MAX_SEEN) seen = new Set();
    seen.add(text);
    return undefined;
  }
  seen.delete(text);
  const name = `b${createHash('sha256').update(text).digest('base64url').slice(0, 20)}`;
  names.set(text, name);
  return name;
}

/** jsonb: text is taken as JSON text, anything else is written as JSON. */
function encode({ type, value }: Param): unknown {
  if (type !== 'jsonb' || value === null || value === undefined || typeof value === 'string') return value;
  return JSON.stringify(value);
}

export interface Outcome {
  readonly rows: readonly Cells[];
  /** Rows affected. */
  readonly count: number;
}

/** What the driver calls while an answer arrives, which its types leave out. */
interface Handlers {
  name: string | undefined;
  handleRowDescription(): void;
  handleDataRow(message: { readonly fields: Cells }): void;
  handleCommandComplete(message: { readonly text: string }): void;
  handleEmptyQuery(): void;
  handleError(error: Error): void;
  handleReadyForQuery(): void;
}
const DriverQuery = pg.Query as unknown as new (text: string, values: readonly unknown[]) => pg.Query & Handlers;

/** A statement whose cells stay as they came: no row description is read, no type is parsed, nothing is copied. */
class CellQuery extends DriverQuery {
  readonly outcome: Promise<Outcome>;
  readonly #rows: Cells[] = [];
  readonly #settle: PromiseWithResolvers<Outcome>;
  #tag = '';

  constructor(statement: Sql) {
    super(statement.text, statement.params.map(encode));
    this.name = nameOf(statement.text);
    this.#settle = Promise.withResolvers();
    this.outcome = this.#settle.promise;
  }

  override handleRowDescription(): void {}

  override handleDataRow({ fields }: { readonly fields: Cells }): void {
    this.#rows.push(fields);
  }

  override handleCommandComplete({ text }: { readonly text: string }): void {
    this.#tag = text;
  }

  override handleEmptyQuery(): void {}

  override handleError(error: Error): void {
    this.#settle.reject(error);
  }

  /** Only now: a deferred constraint refuses after the command is complete. */
  override handleReadyForQuery(): void {
    this.#settle.resolve({ rows: this.#rows, count: Number(/\d+$/.exec(this.#tag)?.[0] ?? 0) });
  }
}

export function send(client: Pick<pg.ClientBase, 'query'>, statement: Sql): Promise<Outcome> {
  const query = new CellQuery(statement);
  client.query(query);
  return query.outcome;
}
