/** A lasting connection, for statements that a transaction cannot contain. */
import pg from 'pg';
import type { Sql } from '../sql.ts';
import type { Session } from './contract.ts';
import { Statements } from './lanes/statements.ts';
import { countOf, type Outcome } from './pg-internals.ts';
import { withSetting } from './server-url.ts';
import { toStoreError } from './to-store-error.ts';

/** Building an index takes hours on a large table. */
const NO_TIME_LIMITS = '-c statement_timeout=0 -c lock_timeout=0';

export async function openSession(config: pg.ClientConfig): Promise<Session> {
  const client = new pg.Client(withSetting(config, NO_TIME_LIMITS));
  client.on('error', () => undefined);
  const statements = new Statements(0);
  const send = async (statement: Sql): Promise<Outcome> => {
    try {
      return await statements.send(client, statement);
    } catch (error) {
      throw toStoreError(error);
    }
  };
  await client.connect();
  return {
    rows: async (statement) => (await send(statement)).rows,
    run: async (statement) => countOf(await send(statement)),
    close: () => client.end(),
  };
}
