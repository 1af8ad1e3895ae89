/** The columns that a record is selected by. */

import { VERSION_COLUMN } from '../schema/model/stored-names.ts';
import { ident, type Sql, sql, uuid } from '../sql.ts';
import { type AccessContext, type Reading, readable, type Store } from './access-context.ts';
import { RecordView, type Viewed } from './record-view.ts';
import { scopeOf } from './scope.ts';

interface Aliased extends Viewed {
  readonly alias: string;
}

/** The cells that a view of the same members reads. */
export const recordColumns = (store: Store, access: AccessContext, { alias, ...viewed }: Aliased): Sql =>
  new RecordView(store, access, viewed).columns(alias);

/** The changes of the row named `alias`, as `Versions` takes them. */
export const versionColumn = (alias: string): Sql => ident(alias, VERSION_COLUMN);
/** The number of cells that a version adds before the record. */
export const VERSION_WIDTH = 1;

/** Selects the version and the record, if the caller may read it. */
export function selectReadable(reading: Omit<Reading, 'q'>, id: string): Sql {
  const { store, access } = reading;
  const { name } = access.collection;
  return sql`
    SELECT ${versionColumn('t')}, ${recordColumns(store, access, { collection: name, alias: 't', tenant: reading.tenant })}
      FROM ${scopeOf(reading)
        .from(name, 't')
        .where(sql`t.id = ${uuid(id)}`, readable(access, name, 't'))}`;
}
