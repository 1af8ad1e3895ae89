/** The records of one tenant: the collections that have some, and the column by which each is found. */
import type { Queryable } from '../../database/contract.ts';
import { belongsTosOf } from '../../policy/types.ts';
import { type BelongsTo, type Collection, type Schema, tenantKeyOf } from '../../schema/model/model.ts';
import { ident, type Sql, sql, uuid } from '../../sql.ts';
import { everyTenant, type Scope, type ScopedRows, scopeOf } from '../scope.ts';

export interface TenantPart {
  readonly collection: Collection;
  /** Holds the id of the tenant. */
  readonly column: string;
}

export interface Tenant {
  readonly id: string;
  /** In the order in which their records can be written: each after those that it must refer to. */
  readonly parts: readonly TenantPart[];
}

/** The collections whose records are tenants. */
export const tenantCollections = ({ collections }: Schema): readonly string[] => [
  ...new Set([...collections.values()].flatMap((collection) => tenantRelation(collection)?.collection ?? [])),
];

function tenantRelation(collection: Collection): BelongsTo | undefined {
  const key = tenantKeyOf(collection);
  const relation = key && collection.relations.get(key.by);
  return relation?.kind === 'belongs_to' ? relation : undefined;
}

/** The tenant with this id; undefined if no collection of tenants has such a record. */
export async function findTenant(q: Queryable, schema: Schema, id: string): Promise<Tenant | undefined> {
  for (const name of tenantCollections(schema)) {
    const rows = everyTenant(schema)
      .from(name, 't')
      .where(sql`t.id = ${uuid(id)}`);
    if ((await q.rows(sql`SELECT 1 FROM ${rows}`)).length > 0) return tenantFromId(schema, name, id);
  }
  return undefined;
}

/**
 * The record of the tenant, the records that every machine has and that end with it, such as memberships, and the
 * records that are divided by it.
 *
 * @param collection of the tenant
 */
export function tenantFromId(schema: Schema, collection: string, id: string): Tenant {
  const own = { collection: schema.collections.get(collection)!, column: 'id' };
  const others = [...schema.collections.values()].flatMap((each): readonly TenantPart[] => {
    const relation =
      tenantRelation(each) ?? (tenantKeyOf(each) === undefined ? endingWith(each, collection) : undefined);
    return relation?.collection === collection ? [{ collection: each, column: relation.column }] : [];
  });
  return { id, parts: [own, ...partsInOrder(others)] };
}

const endingWith = (collection: Collection, tenants: string): BelongsTo | undefined =>
  collection.kind === 'users'
    ? undefined
    : belongsTosOf(collection).find(
        ({ required, onDelete, collection: to }) => required && onDelete === 'cascade' && to === tenants,
      );

function partsInOrder(parts: readonly TenantPart[]): readonly TenantPart[] {
  const ordered: TenantPart[] = [];
  const visit = (part: TenantPart): void => {
    if (ordered.includes(part)) return;
    const needed = belongsTosOf(part.collection).filter(({ required }) => required);
    for (const other of parts)
      if (other !== part && needed.some(({ collection }) => collection === other.collection.name)) visit(other);
    ordered.push(part);
  };
  for (const part of parts) visit(part);
  return ordered;
}

/** The optional references among records that are divided by tenant: a record may hold them before their targets exist. */
export const looseReferences = (part: TenantPart, { parts }: Tenant): readonly BelongsTo[] =>
  belongsTosOf(part.collection).filter(
    ({ required, collection, column }) =>
      !required && column !== part.column && parts.some((other) => other.collection.name === collection),
  );

/** The rows `t` of the part, with the conditions that they are of the tenant. */
export function rowsOfPart(schema: Schema, { collection, column }: TenantPart, id: string) {
  const scope = scopeOfPart(schema, { collection, column }, id);
  const rows: ScopedRows = scope.from(collection.name, 't');
  const isOfTenant: readonly Sql[] =
    tenantKeyOf(collection) === undefined ? [sql`${ident('t', column)} = ${uuid(id)}`] : [];
  return { scope, rows, isOfTenant };
}

export const scopeOfPart = (schema: Schema, { collection }: TenantPart, id: string): Scope =>
  tenantKeyOf(collection) === undefined ? everyTenant(schema) : scopeOf({ store: { schema }, tenant: id });
