/** Records that the program itself writes and reads (registration, the command line), without a policy. */
import type { Queryable, Transaction } from '../database/contract.ts';
import { valueReferringTo } from '../policy/stored-rows.ts';
import type { Row } from '../policy/types.ts';
import { datetimeOf } from '../policy/values.ts';
import { newRecordId } from '../record-id.ts';
import { FIELD_KINDS } from '../schema/fields/index.ts';
import type { BelongsTo, Collection, Default, Field, Schema } from '../schema/model/model.ts';
import { ident, join, param, type Sql, sql } from '../sql.ts';
import type { Store } from './access-context.ts';
import { recordKeyIn, recordKeyOf } from './record-key.ts';
import { everyTenant } from './scope.ts';
import { type ColumnValue, valueOfDefault, withFoldedCopies } from './write/input.ts';

/**
 * Values by the names of fields and belongs_to relations, each already of its type; also `id` and, for
 * users, `roles`. Omitted ones take their default.
 */
export type SystemValues = Readonly<Record<string, unknown>>;

interface SystemInsert {
  readonly collection: string;
  readonly values: SystemValues;
}

/** → the id. */
export async function insertSystem(
  store: Store,
  tx: Transaction,
  { collection: name, values }: SystemInsert,
): Promise<string> {
  const { collection } = store.shape(name);
  const id = typeof values.id === 'string' ? values.id : newRecordId();
  const key = recordKeyOf(collection);
  const own: ColumnValue = { column: key.column, type: key.type, value: id };
  const all = withFoldedCopies(collection, [own, ...systemValues(store.schema, collection, values)]);
  const columns = all.map(({ column }) => ident(column));
  const cells = all.map(({ type, value, references }) => valueReferringTo(sql`${param(type, value)}`, { references }));
  await tx.run(sql`
    INSERT INTO ${everyTenant(store.schema).into(name, 't')} (${join(columns, ', ')})
    VALUES (${join(cells, ', ')})`);
  return id;
}

interface SystemQuery {
  readonly collection: string;
  /** The table is aliased as `t`. */
  readonly where: Sql;
}

export async function findSystem(
  store: Store,
  q: Queryable,
  { collection, where }: SystemQuery,
): Promise<readonly Row[]> {
  const shape = store.shape(collection);
  const rows = await q.rows(sql`
    SELECT ${shape.columns('t')}
      FROM ${everyTenant(store.schema).from(collection, 't').where(where)}
     ORDER BY ${recordKeyOf(shape.collection).of('t')}`);
  return rows.map((cells) => shape.row(cells));
}

/** The service has no caller here, so a default from `@request.auth` gives nothing. */
const defaultValue = (otherwise: Default | undefined, now: string): unknown =>
  otherwise?.kind === 'auth' ? undefined : valueOfDefault(otherwise, now);

type NamedColumn = Pick<Field, 'name' | 'column'> & Partial<Pick<BelongsTo, 'references'>>;

function systemValues(schema: Schema, collection: Collection, given: SystemValues): readonly ColumnValue[] {
  const values: ColumnValue[] = [];
  // `created_at` and `updated_at` are one instant.
  const now = datetimeOf(new Date());
  const push = (member: NamedColumn, type: ColumnValue['type'], otherwise: Default | undefined) => {
    const value = given[member.name] ?? defaultValue(otherwise, now);
    const { column, references } = member;
    if (value !== undefined) values.push({ column, type, value: value as ColumnValue['value'], references });
  };
  for (const field of collection.fields.values()) push(field, FIELD_KINDS[field.type].sqlType, field.default);
  for (const relation of collection.relations.values())
    if (relation.kind === 'belongs_to') push(relation, recordKeyIn(schema, relation.collection).type, relation.default);
  if (collection.kind === 'users') push({ name: 'roles', column: 'roles' }, 'text[]', undefined);
  return values;
}
