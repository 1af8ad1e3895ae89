/** The columns that a record is selected by. */
import type { HasOne } from '../../schema/model.ts';
import { ident, join, raw, type Sql, sql, uuid } from '../../sql.ts';
import type { Cells } from '../database/contract.ts';
import { VERSION_COLUMN } from '../migrations/tables.ts';
import { type AccessContext, type Reading, readable, type Store } from './access-context.ts';
import type { Members } from './record-shape.ts';

interface Aliased {
  readonly collection: string;
  readonly alias: string;
  /** Those that are wanted; all where it is left out. */
  readonly members?: Members | undefined;
}

/**
 * The cells that `RecordShape.json` reads: the stored columns, and for each has_one the id of a
 * readable target.
 */
export function recordColumns(store: Store, access: AccessContext, { collection, alias, members }: Aliased): Sql {
  const shape = store.shape(collection);
  const columns = members === undefined ? shape.columns(alias) : shape.columnsOf(alias, members);
  if (shape.hasOnes.length === 0) return columns;
  const held = shape.hasOnes.map((relation) =>
    members?.has(relation.name) === false ? raw('NULL') : hasOneId(store, access, { relation, owner: alias }),
  );
  return join([columns, ...held], ', ');
}

interface Held {
  readonly relation: HasOne;
  /** The alias of the row that has the relation. */
  readonly owner: string;
}

/** INVARIANT: the reference is unique, so there is at most one row. */
function hasOneId(store: Store, access: AccessContext, { relation, owner }: Held): Sql {
  const target = access.permit(relation.collection, 'read');
  if (target.verdict === 'deny') return raw('NULL');
  const inner = `${owner}_${relation.name}`;
  const row = ident(inner);
  const same = sql`${row}.${ident(relation.viaColumn)} = ${ident(owner)}.id`;
  return sql`(
    SELECT ${row}.id
      FROM ${store.from(relation.collection, row)}
     WHERE ${target.verdict === 'allow' ? same : sql`${same} AND ${target.where(inner)}`})`;
}

/** The changes of the row named `alias`, as `Versions` takes them. */
export const versionColumn = (alias: string): Sql => ident(alias, VERSION_COLUMN);
/** How many cells come before the record where the version does. */
export const VERSION_WIDTH = 1;

/** The version and the record, if the caller may read it. */
export async function selectReadable({ store, q, access }: Reading, id: string): Promise<Cells | undefined> {
  const { name } = access.collection;
  const [cells] = await q.rows(sql`
    SELECT ${versionColumn('t')}, ${recordColumns(store, access, { collection: name, alias: 't' })}
      FROM ${store.from(name, raw('t'))}
     WHERE t.id = ${uuid(id)}
       AND ${readable(access, name, 't')}`);
  return cells;
}
