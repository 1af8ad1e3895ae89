/** Records that no rule was asked about. */
import type { Row } from '../../src/policy/types.ts';
import type { Schema } from '../../src/schema/model.ts';
import type { Sql } from '../../src/sql.ts';
import type { Database } from '../../src/store/database/contract.ts';
import { Store } from '../../src/store/records/access-context.ts';
import { findSystem, insertSystem, type SystemValues } from '../../src/store/records/system.ts';
import { TENANT } from './distributed-schema.ts';

interface Home {
  readonly db: Database;
  readonly schema: Schema;
}

/** → the id. */
export const insertRecord = ({ db, schema }: Home, collection: string, values: SystemValues): Promise<string> =>
  db.transaction((tx) =>
    insertSystem(new Store(db, schema), tx, { collection, values: placed(schema, collection, values) }),
  );

/** `where` names the table `t`. */
export const findRecords = ({ db, schema }: Home, collection: string, where: Sql): Promise<readonly Row[]> =>
  findSystem(new Store(db, schema), db, { collection, where });

function placed({ collections }: Schema, collection: string, values: SystemValues): SystemValues {
  const distribution = collections.get(collection)?.distribution;
  return distribution?.kind === 'by' && distribution.by === 'tenant' ? { tenant: TENANT, ...values } : values;
}
