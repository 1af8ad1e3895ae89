/** Records that the program writes and reads on its own behalf (registration, the command line), without a policy. */
import { v7 as uuidv7 } from 'uuid';
import type { Row } from '../../policy/types.ts';
import { FIELD_KINDS } from '../../schema/fields/index.ts';
import type { Collection, Default } from '../../schema/model.ts';
import { raw, type Sql, sql } from '../../sql.ts';
import type { Queryable, Transaction } from '../database/contract.ts';
import type { Store } from './access-context.ts';
import { insert } from './create.ts';
import type { Value } from './input.ts';
import { VERSION_WIDTH } from './select.ts';

/**
 * By the names of fields and belongs_to relations, each already of its type; also `id` and, for users, `roles`.
 * Omitted ones take their default.
 */
export type SystemValues = Readonly<Record<string, unknown>>;

export interface SystemRecord {
  readonly id: string;
  readonly row: Row;
  /** The record as the API shows it, without has_one. */
  readonly json: string;
}

export async function insertSystem(
  store: Store,
  tx: Transaction,
  { collection: name, values }: { readonly collection: string; readonly values: SystemValues },
): Promise<SystemRecord> {
  const { collection } = store.shape(name);
  const id = typeof values.id === 'string' ? values.id : uuidv7();
  const cells = await insert(store, {
    write: (statement) => tx.rows(statement),
    collection,
    values: [{ column: 'id', type: 'uuid', value: id }, ...systemValues(collection, values)],
  });
  return systemRecord(store, name, cells.slice(VERSION_WIDTH));
}

/** `where` names the table `t`. */
export async function findSystem(
  store: Store,
  q: Queryable,
  { collection, where }: { readonly collection: string; readonly where: Sql },
): Promise<readonly SystemRecord[]> {
  const rows = await q.rows(sql`
    SELECT ${store.shape(collection).columns('t')}
      FROM ${store.from(collection, raw('t'))}
     WHERE ${where}
     ORDER BY t.id`);
  return rows.map((cells) => systemRecord(store, collection, cells));
}

function systemRecord(store: Store, name: string, cells: readonly (string | null)[]): SystemRecord {
  const shape = store.shape(name);
  return { id: cells[0]!, row: shape.row(cells), json: `${shape.openStored(cells)}}` };
}

/** Nobody is signed in here, so a default from the caller gives nothing. */
function defaultOf(otherwise: Default | undefined): unknown {
  if (otherwise?.kind === 'now') return new Date().toISOString();
  return otherwise?.kind === 'constant' ? otherwise.value : undefined;
}

function systemValues(collection: Collection, given: SystemValues): readonly Value[] {
  const values: Value[] = [];
  const push = (
    member: { readonly name: string; readonly column: string },
    type: Value['type'],
    otherwise: Default | undefined,
  ) => {
    const value = given[member.name] ?? defaultOf(otherwise);
    if (value !== undefined) values.push({ column: member.column, type, value: value as Value['value'] });
  };
  for (const field of collection.fields.values()) push(field, FIELD_KINDS[field.type].sqlType, field.default);
  for (const relation of collection.relations.values())
    if (relation.kind === 'belongs_to') push(relation, 'uuid', relation.default);
  if (collection.kind === 'users') push({ name: 'roles', column: 'roles' }, 'text[]', undefined);
  return values;
}
