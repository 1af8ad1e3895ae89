import type pg from 'pg';
import type { Sql } from '../../sql.ts';
import { type AnyClient, type Outcome, StatementBatch, TogetherError } from '../pg-internals.ts';
import { isStalePlan } from '../to-store-error.ts';
import { PreparedNames } from './prepared-names.ts';
import type { StatementHistory } from './statement-history.ts';

/** Prepared statements that a connection keeps. Each costs PostgreSQL some 30 kB there. */
const MOST_PREPARED = 256;

/**
 * Sends the statements of one server, over all its connections: prepared under a name from the second use of a text on,
 * parameters and cells as text.
 */
export class Statements {
  readonly #history: StatementHistory;
  readonly #mostPrepared: number;
  readonly #prepared = new WeakMap<AnyClient, PreparedNames>();

  /** @param mostPrepared 0: nothing is prepared, because a pooler lends connections. */
  constructor(history: StatementHistory, mostPrepared = MOST_PREPARED) {
    this.#history = history;
    this.#mostPrepared = mostPrepared;
  }

  /** Never throws: a value that cannot be encoded fails only its own statement. */
  async send(client: Pick<pg.ClientBase, 'query'>, statement: Sql): Promise<Outcome> {
    try {
      const [outcome] = await this.sendTogether(client, [statement]);
      return outcome!;
    } catch (error) {
      throw error instanceof TogetherError ? error.cause : error;
    }
  }

  /** As one transaction. Rejects with a `TogetherError`. */
  async sendTogether(client: Pick<pg.ClientBase, 'query'>, statements: readonly Sql[]): Promise<readonly Outcome[]> {
    const named = statements.map((statement) => ({ statement, name: this.#nameOf(statement.text) }));
    const { outcomes } = client.query(new StatementBatch(named, this.#preparedOn(client)));
    try {
      return await outcomes;
    } catch (error) {
      const { cause, completed } = error as TogetherError;
      const failed = named[completed];
      if (failed?.name !== undefined && isStalePlan(cause)) this.#history.renew(failed.statement.text, failed.name);
      throw error;
    }
  }

  #nameOf(text: string): string | undefined {
    return this.#mostPrepared === 0 ? undefined : this.#history.nameOf(text);
  }

  #preparedOn(client: AnyClient): PreparedNames {
    let names = this.#prepared.get(client);
    if (names === undefined) {
      names = new PreparedNames(this.#mostPrepared);
      this.#prepared.set(client, names);
    }
    return names;
  }
}
