/** Records that no rule was asked about. */
import type { Database } from '../../src/database/contract.ts';
import type { Row } from '../../src/policy/types.ts';
import { Store } from '../../src/records/access-context.ts';
import { findSystem, insertSystem, type SystemValues } from '../../src/records/system.ts';
import type { Schema } from '../../src/schema/model/model.ts';
import type { Sql } from '../../src/sql.ts';
import { TENANT } from './cluster/distributed-schema.ts';

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
  const tenantLayout = collections.get(collection)?.tenantLayout;
  return tenantLayout?.kind === 'by' && tenantLayout.by === 'tenant' ? { tenant: TENANT, ...values } : values;
}
