/** The tables of a schema, partitioned by the hash of their key wherever that is possible. */
import type { Database, Transaction } from '../../../src/database/contract.ts';
import { type Table, tablesOf } from '../../../src/migrations/tables.ts';
import type { Schema } from '../../../src/schema/model/model.ts';
import { raw, type Sql } from '../../../src/sql.ts';

/** True if the run tests partitions (`npm run test:partitions`): plans of statements have other names there. */
export const hasPartitions = process.env.TEST_PARTITIONS !== undefined;

/** The database as suites get it. */
export const asWanted = (db: Database, schema: Schema): Database => (hasPartitions ? hashPartitioned(db, schema) : db);

/**
 * A unique constraint of a partitioned table must hold its partition key, so that users and collections with a unique field stay whole;
 * a distributed collection has partitions of its own.
 */
const canPartition = ({ uniques, tenantLayout }: Table): boolean => uniques.length === 0 && tenantLayout === undefined;

const CREATES = /^create table "([^"]+)" \(/;

/** The database, whose migrations make partitions of what they create. */
export function hashPartitioned(db: Database, schema: Schema): Database {
  const tables = new Map([...tablesOf(schema)].filter(([, table]) => canPartition(table)));
  const within = (tx: Transaction): Transaction => ({
    ...tx,
    run: async (statement) => {
      const table = tables.get(CREATES.exec(statement.text)?.[1] ?? '');
      let count = 0;
      for (const each of table === undefined ? [statement] : partitionsOf(table, statement)) count = await tx.run(each);
      return count;
    },
  });
  const transaction: Database['transaction'] = (work, options) => db.transaction((tx) => work(within(tx)), options);
  return new Proxy(db, {
    get(target, name) {
      if (name === 'transaction') return transaction;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

const partitionsOf = ({ name, primaryKey }: Table, { text }: Sql): readonly Sql[] => [
  raw(`${text} PARTITION BY HASH ("${primaryKey[0]}")`),
  ...[0, 1, 2].map((n) =>
    raw(`CREATE TABLE "${name}~${n}" PARTITION OF "${name}" FOR VALUES WITH (MODULUS 3, REMAINDER ${n})`),
  ),
];
