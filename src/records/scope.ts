/**
 * The tenant of a statement. A collection can be distributed by tenant; all that is read or written
 * beside one of its records belongs to the same tenant, or is on every node. So each statement
 * names one tenant, as a value: `Scope` gives the tables of a statement only together with the
 * condition that their rows are of the tenant.
 */
import { BoundedMap } from '../bounded-map.ts';
import { invariant, present } from '../invariant.ts';
import { memoizedBy } from '../memoized.ts';
import { LINK_TENANT_COLUMN } from '../policy/condition.ts';
import { lockableRowsOf, rowsOf } from '../policy/stored-rows.ts';
import type { Action, Row } from '../policy/types.ts';
import { own } from '../policy/values.ts';
import {
  type BelongsTo,
  type Collection,
  type HasOne,
  type ManyToMany,
  type Schema,
  tenantKeyOf,
} from '../schema/model/model.ts';
import { empty, ident, join, type Place, raw, type Sql, sql, tableIdent, uuid } from '../sql.ts';
import { type AccessContext, accessIn, type Reading, readable } from './access-context.ts';
import { type RecordKey, recordKeyIn, recordKeyOf } from './record-key.ts';

/** No record is of this tenant. */
const NO_TENANT = '00000000-0000-0000-0000-000000000000';

export type Collections = Pick<Schema, 'collections'>;

interface LinkPair {
  readonly id: string;
  readonly target: string;
}

/** Marks the statements about the records of all tenants, for those who look for statements without a tenant. */
const EVERY_TENANT = raw('/* every tenant */ ');

/** Sorts name the rows of their steps, so requests choose how many aliases there are. */
const KNOWN_ROWS = 1_000;

/** Reaches the records of one tenant, and records without a tenant. */
export class Scope {
  readonly #schema: Collections;
  /** A value, or the column of another row of the statement; undefined: no statement reaches records of a tenant. */
  readonly #tenant: Sql | undefined;
  readonly #mark: Sql;
  /** The rows of a scope without a tenant, by collection and alias: a memo of a pure function. */
  readonly #known = new BoundedMap<string, ScopedRows>(KNOWN_ROWS);

  constructor(schema: Collections, tenant: Sql | undefined, mark = empty) {
    this.#schema = schema;
    this.#tenant = tenant;
    this.#mark = mark;
  }

  /** The records of a collection. */
  from(collection: string, alias: string): ScopedRows {
    if (this.#tenant !== undefined) return this.#from(collection, alias);
    const key = `${collection} ${alias}`;
    let rows = this.#known.get(key);
    if (rows === undefined) {
      rows = this.#from(collection, alias);
      this.#known.set(key, rows);
    }
    return rows;
  }

  #from(collection: string, alias: string): ScopedRows {
    const known = this.#schema.collections.get(collection)!;
    return this.#rows(rowsOf(known), alias, tenantKeyOf(known)?.column);
  }

  /** The records of a collection, for a statement that locks their rows. */
  lockable(collection: string, alias: string): ScopedRows {
    const known = this.#schema.collections.get(collection)!;
    return this.#rows(lockableRowsOf(known), alias, tenantKeyOf(known)?.column);
  }

  /** The stored rows of a collection, for a statement that changes them. */
  stored(collection: string, alias: string): ScopedRows {
    const known = this.#schema.collections.get(collection)!;
    return this.#rows(tableIdent(known.table), alias, tenantKeyOf(known)?.column);
  }

  /** The deleted records of a collection that keeps them, for a statement that changes them. */
  deleted(collection: string, alias: string): ScopedRows {
    const known = this.#schema.collections.get(collection)!;
    return this.#rows(tableIdent(known.softDelete!.table), alias, tenantKeyOf(known)?.column);
  }

  /** The target of an INSERT of deleted records, whose values include the tenant. */
  intoDeleted(collection: string): Sql {
    return tableIdent(this.#schema.collections.get(collection)!.softDelete!.table);
  }

  /** The entries of the history of records that are divided by tenant. */
  past(collection: string, alias: string): ScopedRows {
    return this.#rows(this.#pastOf(collection), alias, LINK_TENANT_COLUMN);
  }

  /** The text that follows INSERT INTO, up to the tenant: the record, number, time, principal and both sides follow. */
  intoPast(collection: string): Sql {
    const tenant = present(this.#tenant, 'the tenant of a record that is written');
    return sql`${this.#pastOf(collection)} (${ident(LINK_TENANT_COLUMN)}, record, seq, at, by, before, after)
      SELECT ${tenant}`;
  }

  #pastOf(collection: string): Sql {
    return tableIdent(present(this.#schema.collections.get(collection)?.history?.table, 'the table of the history'));
  }

  /** The links of records of `owner`, the collection that has the relation. */
  links({ linkTable }: ManyToMany, owner: string, alias: string): ScopedRows {
    const key = tenantKeyOf(this.#schema.collections.get(owner)!);
    return this.#rows(tableIdent(linkTable), alias, key && LINK_TENANT_COLUMN);
  }

  /** The condition of a subquery named `alias` that gives rows of the collection. */
  isOfTenant(collection: string, alias: string): readonly Sql[] {
    const key = tenantKeyOf(this.#schema.collections.get(collection)!);
    return key === undefined || this.#tenant === undefined ? [] : [sql`${ident(alias, key.column)} = ${this.#tenant}`];
  }

  /** The target of an INSERT, whose values include the tenant. */
  into(collection: string, alias: string): Sql {
    return sql`${tableIdent(this.#schema.collections.get(collection)!.table)} AS ${ident(alias)}`;
  }

  /** The text that follows INSERT INTO: `"documents__tags" (…) SELECT …`, a link from `source` to `target`. */
  linkInto(relation: ManyToMany, owner: string, source: Sql, target: Sql): Sql {
    const { linkTable, sourceColumn, targetColumn } = relation;
    const hasTenant = tenantKeyOf(this.#schema.collections.get(owner)!) !== undefined;
    const tenant = hasTenant ? [present(this.#tenant, 'the tenant of a record that is written')] : [];
    const columns = [...tenant.map(() => LINK_TENANT_COLUMN), sourceColumn, targetColumn].map((name) => ident(name));
    return sql`${tableIdent(linkTable)} (${join(columns, ', ')})
    SELECT ${join([...tenant, source, target], ', ')}`;
  }

  /** A statement that inserts the links that are missing. */
  linksInto(relation: ManyToMany, owner: string, pairs: readonly LinkPair[]): Sql {
    const { linkTable, sourceColumn, targetColumn } = relation;
    const tenant = tenantKeyOf(this.#schema.collections.get(owner)!) === undefined ? [] : [LINK_TENANT_COLUMN];
    const columns = [...tenant, sourceColumn, targetColumn].map((name) => ident(name));
    const held = tenant.map(() => present(this.#tenant, 'the tenant of a record that is written'));
    const [source, other] = [owner, relation.collection].map((name) => this.key(name));
    const rows = pairs.map(({ id, target }) => {
      const cells = [...held, sql`${source!.param(id)}`, sql`${other!.param(target)}`];
      return sql`(${join(cells, ', ')})`;
    });
    return sql`
    INSERT INTO ${tableIdent(linkTable)} (${join(columns, ', ')})
    VALUES ${join(rows, ', ')}
    ON CONFLICT DO NOTHING`;
  }

  /** The ids of the records of a collection. */
  key(collection: string): RecordKey {
    return recordKeyIn(this.#schema, collection);
  }

  /** The columns of a row of the collection by which it refers to a record, in the order of the key there. */
  referring({ collection, via }: Pick<HasOne, 'collection' | 'via'>, alias: string): readonly Sql[] {
    const reference = this.#schema.collections.get(collection)!.relations.get(via) as BelongsTo;
    return (reference.columns ?? [reference.column]).map((column) => ident(alias, column));
  }

  /** True if a statement can reach records of the collection. */
  reaches(collection: string): boolean {
    return this.#tenant !== undefined || tenantKeyOf(this.#schema.collections.get(collection)!) === undefined;
  }

  /** @param column of the tenant; undefined: the rows have none */
  #rows(table: Sql, alias: string, column: string | undefined): ScopedRows {
    const rows = sql`${table} AS ${ident(alias)}`;
    if (column === undefined) return new ScopedRows(rows, [], this);
    const tenant = ident(alias, column);
    if (this.#tenant === undefined)
      return new ScopedRows(sql`${this.#mark}${rows}`, [], new Scope(this.#schema, tenant));
    return new ScopedRows(rows, [sql`${tenant} = ${this.#tenant}`], this);
  }
}

/** Tables of a statement. They are printed with the condition that their rows are of the tenant. */
export class ScopedRows {
  /** Reaches the records of these rows' tenant: by its value, or by their column if the value is unknown. */
  readonly related: Scope;
  readonly #tables: Sql;
  /** Rows that are not of a collection: of a subquery, or of the statement's own. */
  readonly #others: Sql | undefined;
  readonly #areOfTenant: readonly Sql[];

  constructor(tables: Sql, areOfTenant: readonly Sql[], related: Scope, others?: Sql) {
    this.related = related;
    this.#tables = tables;
    this.#others = others;
    this.#areOfTenant = areOfTenant;
  }

  join(other: ScopedRows, on: Sql): ScopedRows {
    const tables = sql`${this.#tables} JOIN ${other.#tables} ON ${join([on, ...other.#areOfTenant], ' AND ')}`;
    return new ScopedRows(tables, this.#areOfTenant, this.related);
  }

  beside(others: Sql): ScopedRows {
    return new ScopedRows(this.#tables, this.#areOfTenant, this.related, others);
  }

  /** The text that follows FROM: `"documents" AS "t" WHERE …`. */
  where(...conditions: readonly Sql[]): Sql {
    const tables = this.#others === undefined ? this.#tables : sql`${this.#tables}, ${this.#others}`;
    const all = this.#areOfTenant.length === 0 ? conditions : [...this.#areOfTenant, ...conditions];
    return all.length === 0
      ? tables
      : sql`${tables}
     WHERE ${join(all, '\n       AND ')}`;
  }

  /** The text that follows UPDATE: `"documents" AS "t" SET … WHERE …`. */
  set(assignments: readonly Sql[], ...conditions: readonly Sql[]): Sql {
    const others =
      this.#others === undefined
        ? empty
        : sql`
      FROM ${this.#others}`;
    return sql`${this.#tables}
       SET ${join(assignments, ', ')}${others}${this.#where(conditions)}`;
  }

  /** The text that follows DELETE FROM: `"documents" AS "t" USING … WHERE …`. */
  using(...conditions: readonly Sql[]): Sql {
    const others = this.#others === undefined ? empty : sql` USING ${this.#others}`;
    return sql`${this.#tables}${others}${this.#where(conditions)}`;
  }

  #where(conditions: readonly Sql[]): Sql {
    const all = [...this.#areOfTenant, ...conditions];
    return all.length === 0
      ? empty
      : sql`
     WHERE ${join(all, '\n       AND ')}`;
  }
}

interface Scoped {
  readonly store: Pick<Reading['store'], 'schema'>;
  /** The tenant, or a place for it in a form; undefined: unknown, or the records have none. */
  readonly tenant?: string | Place<never> | undefined;
}

/** The scope of the statements of a request. */
export function scopeOf({ store, tenant }: Scoped): Scope {
  return tenant === undefined ? withoutTenant(store.schema) : new Scope(store.schema, sql`${uuid(tenant)}`);
}

const withoutTenant = memoizedBy((schema: Collections) => new Scope(schema, undefined));

/** The scope of a statement about the records of every tenant. */
export const everyTenant = (schema: Collections): Scope => new Scope(schema, undefined, EVERY_TENANT);

interface WrittenValue {
  readonly column: string;
  readonly value: unknown;
}

/** The tenant of a record that is to be written. */
export function tenantOfValues(collection: Collection, values: readonly WrittenValue[]): string | undefined {
  const member = tenantKeyOf(collection);
  const value = member && values.find(({ column }) => column === member.column)?.value;
  return typeof value === 'string' ? value : undefined;
}

/** The tenant of a record as policies see it. */
export function tenantOf(collection: Collection, record: Row): string | undefined {
  const member = tenantKeyOf(collection);
  const value = member && own(record, member.by);
  return typeof value === 'string' ? value : undefined;
}

/** The tenant that every open rule requires of the records. */
function requiredTenant(access: AccessContext, action: Action): string | undefined {
  const { collection } = access;
  const member = tenantKeyOf(collection);
  if (member === undefined) return undefined;
  const permit = (access.outside ?? access).permit(collection.name, action);
  const tenant = permit.pinned(member.column);
  const isProven = member.lists === 'filtered' || permit.verdict === 'deny' || tenant !== undefined;
  invariant(isProven, 'every rule of a routed collection requires one tenant');
  return tenant;
}

/** True if the rules of the action can hold for records of the reading's tenant. */
export function mayBeOfTenant({ access, tenant }: Reading, action: Action): boolean {
  const required = requiredTenant(access, action);
  return required === undefined || required === tenant;
}

/** The reading of one record, in the tenant that the rules of the action require, or else in the stored one. */
export function inTenantOf<R extends Reading>(reading: R, id: string, action: Action): R | Promise<R> {
  return tenantKeyOf(reading.access.collection) === undefined ? reading : inFoundTenant(reading, id, action);
}

async function inFoundTenant<R extends Reading>(reading: R, id: string, action: Action): Promise<R> {
  const { access, store, q } = reading;
  const member = present(tenantKeyOf(access.collection), 'the tenant of the records');
  const required = requiredTenant(access, action) ?? requiredTenant(access, 'read');
  if (required !== undefined) return withinTenant(reading, required);
  // A caller whom no rule allows finds nothing.
  if (member.lists === 'routed') return withinTenant(reading, NO_TENANT);
  const [row] = await q.rows(sql`
    SELECT t.${ident(member.column)}
      FROM ${everyTenant(store.schema)
        .from(access.collection.name, 't')
        .where(recordKeyOf(access.collection).is('t', id))}`);
  return withinTenant(reading, row?.[0] ?? NO_TENANT);
}

/** The same reading of records of the tenant. */
export const withinTenant = <R extends Pick<Reading, 'store' | 'access' | 'tenant'>>(
  reading: R,
  tenant: string | undefined,
): R => ({
  ...reading,
  ...wayTo(reading, tenant),
  tenant,
  access: accessIn(reading.access, tenant, reading.store.isCluster ? tenantFact(reading.access, tenant) : undefined),
});

/** The node that has the records of the tenant takes the place of the database, but not that of a transaction. */
function wayTo(
  { store: { db }, access, q }: Partial<Reading> & Pick<Reading, 'store' | 'access'>,
  tenant: string | undefined,
): Partial<Pick<Reading, 'q'>> {
  const node = tenant === undefined || q !== db ? undefined : db.nodeFor?.(access.collection.table, tenant);
  return node === undefined ? {} : { q: node };
}

/**
 * All records of the tenant have it, so no rule asks for it. Citus keeps the plan of a statement about one table only if
 * that compares the tenant once.
 */
export function tenantFact({ collection }: AccessContext, tenant: string | undefined): Row | undefined {
  const key = tenantKeyOf(collection);
  return key === undefined || tenant === undefined ? undefined : { [key.by]: tenant };
}

/** True if the caller may read the record in another tenant than the rules of the action require. */
export async function isReadableElsewhere(reading: Reading, id: string): Promise<boolean> {
  const { collection } = reading.access;
  const { name } = collection;
  const elsewhere = await inTenantOf(reading, id, 'read');
  if (elsewhere.tenant === reading.tenant) return false;
  const found = await elsewhere.q.rows(sql`
    SELECT 1
      FROM ${scopeOf(elsewhere)
        .from(name, 't')
        .where(recordKeyOf(collection).is('t', id), readable(elsewhere.access, name, 't'))}`);
  return found.length > 0;
}

/**
 * The tenant of the records of a list: its rules require it, or its filters.
 *
 * @param facts what the filters prove of every record
 */
export function listedTenant(access: AccessContext, facts: Row): string | undefined {
  const member = tenantKeyOf(access.collection);
  if (member === undefined) return undefined;
  const filtered = own(facts, member.by);
  return requiredTenant(access, 'list') ?? (typeof filtered === 'string' ? filtered : undefined);
}
